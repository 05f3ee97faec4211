"""Telling a tracker about a run: what arrives, and that nothing it does stops the run."""

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from robust_jax.errors import InputError, RunError
from robust_jax.runs.tracking import RUN_ID_FILE, WandbTracker, tracking


@pytest.fixture(autouse=True)
def no_settings_of_the_developer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("WANDB_MODE", "WANDB_API_KEY", "WANDB_BASE_URL", "WANDB_PROJECT", "WANDB_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "no-netrc"))
    monkeypatch.setenv("WANDB_CONFIG_DIR", str(tmp_path / "no-settings"))


def records(file: Path) -> Iterator[bytes]:
    """The records of a wandb file: behind seven bytes, the log format of LevelDB."""
    data, block, start, parts = file.read_bytes(), 32_768, 7, b""
    while start + 7 <= len(data):
        if block - start % block < 7:
            start += block - start % block
            continue
        length, kind = struct.unpack("<HB", data[start + 4 : start + 7])
        parts += data[start + 7 : start + 7 + length]
        start += 7 + length
        if kind in (1, 4):  # a whole record, or the last part of one
            yield parts
            parts = b""


def kept_offline(directory: Path) -> tuple[list[dict[str, str]], dict[str, str]]:
    """Every line of figures and the options of the one run that wandb keeps in a directory, values as JSON."""
    from wandb.proto import wandb_internal_pb2

    (file,) = directory.glob("wandb/offline-run-*/*.wandb")
    lines, options = [], {}
    for data in records(file):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        if record.history.item:
            lines.append({item.key or ".".join(item.nested_key): item.value_json for item in record.history.item})
        for item in record.run.config.update:
            options[item.key] = item.value_json
    return lines, options


def test_untracked_nothing_is_written(tmp_path: Path) -> None:
    with tracking("none", name="run", config={}, directory=tmp_path) as tracker:
        tracker.metrics({"loss": 1.0}, step=1)
        tracker.table("accuracy", ["set", "share"], [["test", 0.5]])
        tracker.figures({"curve": tmp_path / "curve.png"})
    assert list(tmp_path.iterdir()) == []


def test_without_a_key_everything_is_kept_offline(tmp_path: Path) -> None:
    import wandb
    from PIL import Image

    Image.new("RGB", (2, 2)).save(tmp_path / "curve.png")
    with tracking(
        "wandb", name="run", config={"rate": 1e-4, "out": tmp_path, "layers": (1, 2)}, directory=tmp_path
    ) as tracker:
        tracker.metrics({"loss": 2.5, "rate": 1e-4}, step=7)
        tracker.table("accuracy", ["set", "share"], [["test", 0.5], ["base", None]])
        tracker.figures({"curve": tmp_path / "curve.png"})
    wandb.teardown()  # Its service may still be writing when a run has finished.
    lines, options = kept_offline(tmp_path)
    assert (lines[0]["loss"], lines[0]["rate"], lines[0]["step"]) == ("2.5", "0.0001", "7")
    assert any(key.startswith("accuracy") for key in lines[1])
    assert any(key.startswith("curve") for key in lines[2])
    assert options["rate"] == "0.0001" and options["layers"] == "[1,2]"
    assert "out" not in options, "the directory must be free to move"


def test_a_resumed_directory_keeps_its_run(tmp_path: Path) -> None:
    ids = []
    for _ in range(2):
        with tracking("wandb", name="run", config={}, directory=tmp_path):
            ids.append((tmp_path / RUN_ID_FILE).read_text())
    assert ids[0] == ids[1]
    assert len(list(tmp_path.glob(f"wandb/offline-run-*-{ids[0]}"))) >= 1


UNREACHABLE = """
import sys
from pathlib import Path
from robust_jax.runs import tracking
tracking.SECONDS_TO_START = 1
with tracking.tracking("wandb", name="run", config={}, directory=Path(sys.argv[1])) as tracker:
    tracker.metrics({"loss": 2.5}, step=1)
"""


def test_a_server_that_cannot_be_reached_stops_nothing(tmp_path: Path) -> None:
    with socket.socket() as taken:  # bound and not listening: every connection is refused
        taken.bind(("127.0.0.1", 0))
        server = {"WANDB_API_KEY": "0" * 40, "WANDB_BASE_URL": f"http://127.0.0.1:{taken.getsockname()[1]}"}
        # A process of its own, because wandb reads its settings once.
        command = [sys.executable, "-c", UNREACHABLE, str(tmp_path)]
        environment = {**os.environ, **server, "PYTHONPATH": str(Path(__file__).parents[2])}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "cannot be reached" in done.stderr
    assert [line["loss"] for line in kept_offline(tmp_path)[0]] == ["2.5"]


class Failing:
    """A run of a tracker that takes nothing."""

    def define_metric(self, *words: Any, **more: Any) -> None:
        pass

    def log(self, values: Any) -> None:
        raise OSError("no space left")

    def finish(self, exit_code: int) -> None:
        raise TimeoutError


def test_whatever_fails_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    tracker = WandbTracker(None, Failing)
    tracker.metrics({"loss": 1.0})
    tracker.table("accuracy", ["set"], [["test"]])
    tracker.figures({})
    tracker.finish(0)
    assert capsys.readouterr().err.count("the run goes on") == 1


def test_without_wandb_the_option_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(InputError, match="pip install"), tracking("wandb", name="r", config={}, directory=tmp_path):
        pass


def test_the_tracker_is_told_that_a_run_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[int] = []
    monkeypatch.setattr("robust_jax.runs.tracking._start", lambda *words: _Noting(ends))
    with pytest.raises(RunError), tracking("wandb", name="run", config={}, directory=tmp_path):
        raise RunError("the disk is full")
    with tracking("wandb", name="run", config={}, directory=tmp_path):
        pass
    assert ends == [1, 0]


class _Noting(Failing):
    def __init__(self, ends: list[int]) -> None:
        self.ends = ends

    def finish(self, exit_code: int) -> None:
        self.ends.append(exit_code)
