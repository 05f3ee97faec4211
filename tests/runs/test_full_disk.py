"""A disk that fills up: the message says what is kept, and the same command goes on from there."""

import errno
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from robust_jax.errors import RunError
from robust_jax.runs import RunDirectory, SampleStore, keeping, sample_key, write_results
from tests.runs.making_samples import block

FILLING = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from robust_jax.errors import RunError
from tests.runs.test_full_disk import fill
largest_file = int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
try:
    fill(Path(sys.argv[2]))
except RunError as error:
    print(error)
"""


def fill(path: Path) -> int:
    """Answer everything that has not been answered yet; how much had been."""
    with RunDirectory(path, {"seed": 0}, {}) as run:
        found = len(run.samples)
        for number in range(12):
            if not run.has_all(map(sample_key, block(number)), features=True):
                run.commit(f"measure-{number}", block(number), {"embedding": np.full((20, 16), number, "f4")})
    return found


def fill_elsewhere(path: Path, largest_file: int, *before: str) -> str:
    """The same in a process for which no file may grow beyond a size; what it complains about."""
    arguments = [*before, sys.executable, "-c", FILLING, str(Path(__file__).parents[2]), str(path), str(largest_file)]
    return subprocess.run(arguments, check=True, capture_output=True, text=True).stdout.strip()


def test_a_run_goes_on_where_the_disk_was_full(tmp_path: Path) -> None:
    complaint = fill_elsewhere(tmp_path / "run", 400_000)
    kept = len(SampleStore(tmp_path / "run" / "samples.jsonl"))
    assert complaint == (
        f"cannot write to {tmp_path}/run (File too large): free space, then run the same command again: "
        f"{kept} samples are kept in {tmp_path}/run"
    )
    assert kept in range(20, 240, 20), "of the block that did not fit nothing is left"
    assert (tmp_path / "run" / "samples.jsonl").read_bytes().endswith(b"\n")
    assert fill(tmp_path / "run") == kept
    assert fill(tmp_path / "uninterrupted") == 0
    files = [file.relative_to(tmp_path / "run") for file in (tmp_path / "run").rglob("*.[sj]*")]
    assert len(files) == 13
    for file in files:
        assert (tmp_path / "run" / file).read_bytes() == (tmp_path / "uninterrupted" / file).read_bytes(), file


def test_a_real_full_disk(tmp_path: Path) -> None:
    mounting = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o size=600k tmpfs {tmp_path} && "$@"', "sh"]
    if subprocess.run([*mounting, "true"], capture_output=True).returncode != 0:
        pytest.skip("a file system cannot be mounted here")
    complaint = fill_elsewhere(tmp_path / "run", 10**9, *mounting)
    assert re.search(r"No space left on device\): free space, then run the same command again: \d+ samples", complaint)


def test_other_failures_ask_for_what_they_need(tmp_path: Path) -> None:
    for code, remedy in [(errno.ENOSPC, "free space"), (errno.EDQUOT, "free space"), (errno.EIO, "put that right")]:
        with pytest.raises(RunError, match=f"{remedy}, then run the same command again: 0 samples"), keeping(tmp_path):
            raise OSError(code, "it failed")


def test_results_that_do_not_fit_leave_the_earlier_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_results(tmp_path / "results.json", {"a": 1})

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(RunError, match="free space"):
        write_results(tmp_path / "results.json", {"a": 2})
    assert [file.name for file in tmp_path.iterdir()] == ["results.json"]
    assert (tmp_path / "results.json").read_text() == '{\n  "a": 1\n}\n'
