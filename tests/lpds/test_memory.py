"""Statistics of stored features are computed a template at a time, so memory does not grow with their number."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from robust_jax.cli import main
from robust_jax.lpds import arms
from robust_jax.lpds.options import MeasureOptions
from robust_jax.lpds.record import ReferenceRecord, write_references
from robust_jax.runs import FeatureStore, Key, RunDirectory, fingerprint, write_finished
from robust_jax.types import Sample
from tests.runs.making_samples import sample

BLOCK = 128


def make_run(path: Path, templates: int, variations: int, references: int, width: int) -> None:
    """A finished measurement of a made-up model: hidden states drift where answers are wrong."""
    rng = np.random.default_rng(0)
    options = MeasureOptions(model="made up", layers=(21,), variations=variations)
    settings = {"command": "lpds measure", **fingerprint(options), "suite_digest": "", "model_digest": ""}
    record = {}
    with RunDirectory(path, settings, settings) as run:
        for item in (f"template_{number:03d}" for number in range(templates)):
            for arm, count in ((arms.REFERENCE, references), (arms.MEASURE, variations)):
                for block, samples in enumerate(_in_blocks(rng, arm, item, count)):
                    run.commit(f"{arm}-{block:03d}", samples, _features(rng, samples, width))
            record[item] = ReferenceRecord(tuple(f"reference {number}" for number in range(references)))
        write_references(path, record)
        write_finished(path, run.samples, run.features)


def _in_blocks(rng: np.random.Generator, arm: str, item: str, count: int) -> Iterator[list[Sample]]:
    for start in range(0, count, BLOCK):
        yield [_sample(rng, arm, item, number) for number in range(start, min(start + BLOCK, count))]


def _sample(rng: np.random.Generator, arm: str, item: str, number: int) -> Sample:
    is_right = arm == arms.REFERENCE or bool(rng.random() < 0.7)
    steps = [f"{a} + {b} = {a + b} apples are in basket {c}." for a, b, c in rng.integers(1, 99, size=(12, 3))]
    return replace(
        sample(number, item, "\n".join(steps), arm),
        variation=f"{arm} {number}",
        extracted="7" if is_right else "2",
        score=float(is_right),
    )


def _features(rng: np.random.Generator, samples: Sequence[Sample], width: int) -> dict[str, np.ndarray]:
    count = len(samples)
    wrong = np.array([not sample.is_correct for sample in samples])
    hidden, embedding = rng.standard_normal((2, count, width), np.float32)
    hidden += 0.02 * wrong[:, None]
    statistics = rng.standard_normal((2, count, 3), np.float32)
    return {
        "hidden": hidden[:, None],
        "embedding": embedding,
        "output_statistics": statistics[0],
        "input_statistics": statistics[1],
    }


def test_features_are_read_a_template_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_run(tmp_path / "run", templates=4, variations=150, references=30, width=16)
    read: list[tuple[set[str], int]] = []
    gather = FeatureStore.gather

    def watched(self: FeatureStore, keys: Sequence[Key]) -> dict[str, np.ndarray]:
        read.append(({item for _, item, _, _ in keys}, len(keys)))
        return gather(self, keys)

    monkeypatch.setattr(FeatureStore, "gather", watched)
    assert main(["report", str(tmp_path / "run")]) == 0
    assert all(len(items) == 1 for items, _ in read)
    assert sorted(count for _, count in read) == [30] * 4 + [150] * 4


@pytest.mark.slow
def test_the_paper_s_size_fits_into_four_gigabytes(tmp_path: Path) -> None:
    make_run(tmp_path / "run", templates=100, variations=1000, references=200, width=4096)
    script = (
        "import resource, sys; from robust_jax.cli import main; code = main(['report', sys.argv[1]]);"
        "print('peak', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss); sys.exit(code)"
    )
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    words = [sys.executable, "-c", script, str(tmp_path / "run")]
    shown = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
    kilobytes = int(shown.split("peak")[-1])
    print(f"peak: {kilobytes / 1e6:.2f} GB")
    assert kilobytes < 4e6
