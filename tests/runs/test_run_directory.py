"""A run directory is resumed by the same options alone and written by one process at a time."""

import signal
import subprocess
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_jax.errors import InputError
from robust_jax.runs import RunDirectory, RunOptions, SuiteOptions, fingerprint, plain, read_config, sample_key
from tests.runs.making_samples import sample, temporary_folder

FINGERPRINT = {"model": "builtin:tiny", "seed": 0, "shots": None}


def tree(path: Path) -> dict[str, bytes]:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_a_new_run_records_what_it_was_made_with(tmp_path: Path) -> None:
    options = RunOptions(out=tmp_path / "a" / "run", temperature=0.5)
    with RunDirectory(options.out, fingerprint(options), plain(options)):
        record = yaml.safe_load((tmp_path / "a" / "run" / "config.yaml").read_text())
    assert record == read_config(tmp_path / "a" / "run")
    assert record["config"]["out"] == str(options.out)
    assert record["fingerprint"]["temperature"] == 0.5
    assert "out" not in record["fingerprint"]
    assert record["versions"].keys() >= {"python", "robust-jax", "jax", "numpy"}
    assert record["versions"]["numpy"] == np.__version__
    assert "cpu" in record["device"].lower() or "gpu" in record["device"].lower()
    assert record.keys() >= {"git"}


def test_the_fingerprint_ignores_what_leaves_results_alone() -> None:
    @dataclass(frozen=True)
    class Options(SuiteOptions):
        share: Fraction = Fraction(1, 3)
        layers: tuple[int, ...] = (1, 2)

    neutral = Options(out=Path("x"), batch_size=3, dry_run=True)
    assert fingerprint(Options()) == fingerprint(neutral)
    assert fingerprint(Options())["share"] == "1/3"
    assert fingerprint(Options())["layers"] == [1, 2]
    others = [
        Options(model="m"),
        Options(suite="s"),
        Options(shots=0),
        Options(seed=1),
        Options(limit=1),
        Options(attempts=2),
        Options(temperature=1.0),
        Options(max_tokens=9),
        Options(dtype="bfloat16"),
        Options(layers=(1,)),
    ]
    assert len({str(fingerprint(o)) for o in [Options(), *others]}) == 1 + len(others)


def test_a_finished_block_is_there_when_the_run_is_resumed(tmp_path: Path) -> None:
    samples = [sample(1, "apples"), sample(1, "pears"), sample(2, "apples")]
    keys = [sample_key(s) for s in samples]
    embedding = np.array([[1.0], [2.0], [3.0]], "f4")
    with RunDirectory(tmp_path, FINGERPRINT, {}) as run:
        assert not run.has_all(keys, features=True)
        run.commit("measure-0", samples, {"embedding": embedding})
        before = tree(tmp_path)
    with RunDirectory(tmp_path, FINGERPRINT, {}) as run:
        assert run.has_all(keys, features=True)
        assert [run.samples.get(key) for key in keys] == samples
        np.testing.assert_array_equal(run.features.gather(keys)["embedding"], embedding)
        run.commit("measure-0", samples, {"embedding": embedding})
    assert tree(tmp_path) == before


def test_samples_without_features_are_no_finished_block_where_features_are_asked_for(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, FINGERPRINT, {}) as run:
        run.commit("measure-0", [sample(1)], {})
        assert run.has_all([sample_key(sample(1))], features=False)
        assert not run.has_all([sample_key(sample(1))], features=True)


def test_features_reach_the_disk_before_the_samples_that_promise_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RunDirectory(tmp_path, FINGERPRINT, {}) as run:
        monkeypatch.setattr(run.samples, "append", lambda samples: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run.commit("measure-0", [sample(1)], {"embedding": np.zeros((1, 1), "f4")})
    with RunDirectory(tmp_path, FINGERPRINT, {}) as run:
        assert run.features.has_all([sample_key(sample(1))])
        assert not run.has_all([sample_key(sample(1))], features=True)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"seed": 1}, ["seed was 0, now 1"]),
        ({"model": "hf:a/b"}, ["model was 'builtin:tiny', now 'hf:a/b'"]),
        ({"seed": 1, "shots": 8}, ["seed was 0, now 1", "shots was None, now 8"]),
        ({"extra": 3}, ["extra was absent, now 3"]),
        ({"seed": False}, ["seed was 0, now False"]),
    ],
)
def test_changed_options_are_refused_by_name(changed: dict, words: list[str], tmp_path: Path) -> None:
    with RunDirectory(tmp_path, FINGERPRINT, {}) as run:
        run.commit("measure-0", [sample(1)], {})
    before = tree(tmp_path)
    with pytest.raises(InputError) as refusal:
        RunDirectory(tmp_path, FINGERPRINT | changed, {})
    assert all(word in str(refusal.value) for word in words)
    assert "\n" not in str(refusal.value)
    assert all(name in changed or name not in str(refusal.value).split("(")[1] for name in FINGERPRINT)
    assert tree(tmp_path) == before


def test_an_option_that_is_gone_is_named(tmp_path: Path) -> None:
    RunDirectory(tmp_path, FINGERPRINT, {}).close()
    with pytest.raises(InputError, match="shots was None, now absent"):
        RunDirectory(tmp_path, {"model": "builtin:tiny", "seed": 0}, {})


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.sampled_from(["1e5", "no", "~"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=25, deadline=None)
@given(options=st.dictionaries(st.text(max_size=5), PLAIN, max_size=4))
def test_the_same_fingerprint_always_resumes(options: dict) -> None:
    with temporary_folder() as folder:
        RunDirectory(folder / "run", options, options).close()
        RunDirectory(folder / "run", dict(reversed(options.items())), {}).close()


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("dear")
    with pytest.raises(InputError, match="not empty and holds no run"):
        RunDirectory(tmp_path, FINGERPRINT, {})
    assert tree(tmp_path) == {"thesis.txt": b"dear"}


@pytest.mark.parametrize("content", ["learning_rate: 3\n", "- a\n", "a: [", "", "\x00"])
def test_somebody_elses_config_is_left_alone(content: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(content)
    with pytest.raises(InputError, match="records no run"):
        RunDirectory(tmp_path, FINGERPRINT, {})
    assert tree(tmp_path) == {"config.yaml": content.encode()}


def test_a_run_that_died_while_it_was_made_is_made(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    (tmp_path / ".config.yaml.unfinished").write_text("config: {")
    with RunDirectory(tmp_path, FINGERPRINT, {}):
        assert read_config(tmp_path)["fingerprint"] == FINGERPRINT
    assert set(tree(tmp_path)) == {".lock", "config.yaml"}


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "run", Path("/proc/run"), Path("/proc/self/run/er")):
        with pytest.raises(InputError, match="cannot be written") as refusal:
            RunDirectory(place, FINGERPRINT, {})
        assert "--out" in str(refusal.value)


def test_no_run_directory_to_read(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(InputError, match="is no run directory"):
            read_config(place)


def test_a_damaged_samples_file_lets_go_of_the_lock(tmp_path: Path) -> None:
    RunDirectory(tmp_path, FINGERPRINT, {}).close()
    (tmp_path / "samples.jsonl").write_text("not a sample\n")
    for _ in range(2):
        with pytest.raises(InputError, match="line 1"):
            RunDirectory(tmp_path, FINGERPRINT, {})


HOLDING = """
import sys
from pathlib import Path
from robust_jax.runs import RunDirectory
run = RunDirectory(Path(sys.argv[1]), {"seed": 0}, {})
print("held", flush=True)
sys.stdin.read()
"""


def test_two_processes_never_write_one_directory(tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", HOLDING, str(tmp_path / "run")]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        before = tree(tmp_path)
        with pytest.raises(InputError, match="another process is writing"):
            RunDirectory(tmp_path / "run", {"seed": 0}, {})
        assert tree(tmp_path) == before
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with (
        RunDirectory(tmp_path / "run", {"seed": 0}, {}),
        pytest.raises(InputError, match="another process"),
    ):
        RunDirectory(tmp_path / "run", {"seed": 0}, {})
