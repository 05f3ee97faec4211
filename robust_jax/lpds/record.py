"""What a finished run leaves besides answers: search.jsonl, references.json, and finished.json as its last word."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from robust_jax.errors import InputError
from robust_jax.runs import FeatureStore, SampleStore, json_text, keeping, sample_key, write_atomically

SEARCH_FILE = "search.jsonl"
REFERENCES_FILE = "references.json"
FINISHED_FILE = "finished.json"


class CandidateRecord(NamedTuple):
    """One scored candidate: a line of search.jsonl."""

    template: str
    key: str
    iteration: int
    parent: str | None
    origin: str
    cheap: float | None
    """f̃ when it was proposed; none for a start."""
    difficulty: float | None
    """f under the last fit; none where it is NaN."""
    fit: int
    """Number of the fit under which it was first scored, from 0."""
    in_beam: tuple[int, ...]
    """Iterations at whose end it was in the beam."""


class ReferenceRecord(NamedTuple):
    """Which replies the references of one template are."""

    initial: tuple[str, ...]
    """Keys of the initial references, from the arm `reference`; excluded from every accuracy."""
    added: tuple[str, ...] = ()
    """Keys that joined when the goalpost moved, from the arm `beam`."""


def write_references(directory: Path, references: Mapping[str, ReferenceRecord]) -> None:
    """Write references.json.

    Raises:
        RunError: the disk fails.
    """
    content = {item: record._asdict() for item, record in references.items()}
    with keeping(directory):
        write_atomically(directory / REFERENCES_FILE, (json_text(content) + "\n").encode())


def read_references(directory: Path) -> dict[str, ReferenceRecord]:
    """The references of a finished run.

    Raises:
        InputError: the run has not finished, or the file is damaged.
    """
    path = directory / REFERENCES_FILE
    with _intact(path):
        content = json.loads(_read(path))
        return {item: ReferenceRecord(tuple(row["initial"]), tuple(row["added"])) for item, row in content.items()}


def write_candidates(directory: Path, candidates: Sequence[CandidateRecord]) -> None:
    """Write search.jsonl.

    Raises:
        RunError: the disk fails.
    """
    lines = [json_text(candidate._asdict()) + "\n" for candidate in candidates]
    with keeping(directory):
        write_atomically(directory / SEARCH_FILE, "".join(lines).encode())


def read_candidates(directory: Path) -> list[CandidateRecord]:
    """The scored candidates of a finished search.

    Raises:
        InputError: the run has not finished, or the file is damaged.
    """
    path = directory / SEARCH_FILE
    with _intact(path):
        rows = [json.loads(line) for line in _read(path).splitlines()]
        return [CandidateRecord(**{**row, "in_beam": tuple(row["in_beam"])}) for row in rows]


def write_finished(directory: Path, samples: SampleStore, features: FeatureStore) -> None:
    """Mark a run as finished: how many answers, and how many of them with features, every arm has of every item.

    Raises:
        RunError: the disk fails.
    """
    with keeping(directory):
        write_atomically(directory / FINISHED_FILE, (json_text(_counts(samples, features)) + "\n").encode())


def check_finished(directory: Path, samples: SampleStore, features: FeatureStore) -> None:
    """Check that a run has finished and that nothing of it has been lost since.

    Raises:
        InputError: it has not, or something has; the message says what.
    """
    path = directory / FINISHED_FILE
    with _intact(path):
        expected, found = json.loads(_read(path)), _counts(samples, features)
        for arm, items in expected.items():
            for item, counts in items.items():
                if found.get(arm, {}).get(item) != counts:
                    raise InputError(
                        f"{directory} has lost answers or features of {item} ({arm}): run its command again"
                    )


def _counts(samples: SampleStore, features: FeatureStore) -> dict[str, dict[str, list[int]]]:
    counts: dict[str, dict[str, list[int]]] = {}
    for sample in samples:
        of_item = counts.setdefault(sample.arm, {}).setdefault(sample.item, [0, 0])
        of_item[0] += 1
        of_item[1] += features.has_all([sample_key(sample)])
    return counts


@contextmanager
def _intact(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(f"{path} is damaged: run the command of {path.parent} again") from None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path.parent} holds no finished run: it has no {path.name}; run its command again") from None
