"""Several processes as one program, on this machine: what they find, how they end, how a run goes on."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robust_jax.cli import main
from robust_jax.runs import FEATURES_FOLDER, SAMPLES_FILE, FeatureStore, SampleStore, sample_key

ROOT = Path(__file__).parents[2]
PROGRESS = re.compile(r".*: \d+/\d+ \(\d+%\), ")
TIMEOUT = 15
"""Seconds of silence after which a process counts as dead."""
WORK = ["--limit", "1", "--max-tokens", "60", "--batch-size", "16", "--reference-count", "8"]
WORK += ["--reference-attempts", "20", "--iterations", "2", "--width", "2", "--branching", "3"]


def start(out: Path, *more: str) -> list[subprocess.Popen[str]]:
    """`lpds search` in two processes, with four virtual devices each."""
    words = ["--mesh", "data=2,model=-1", "--process-timeout", str(TIMEOUT), "--processes", "2"]
    words += ["--coordinator", f"127.0.0.1:{free_port()}", *more]
    return [search(out, 4, *words, "--process", str(number)) for number in range(2)]


def search(out: Path, devices: int, *more: str) -> subprocess.Popen[str]:
    # JAX, which this process has loaded, sets a log level for its children, too.
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    # Little optimisation, because the work is small and is compiled in every process.
    flags = f"--xla_force_host_platform_device_count={devices} --xla_backend_optimization_level=0"
    return subprocess.Popen(
        [sys.executable, "-m", "robust_jax", "lpds", "search", *WORK, "--out", str(out), *more],
        env=environment | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def messages(errors: str) -> list[str]:
    """The lines that do not tell how far the work has come."""
    return [line for line in errors.splitlines() if not PROGRESS.match(line)]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def finish(processes: Sequence[subprocess.Popen[str]]) -> None:
    for process in processes:
        _, errors = process.communicate()
        assert process.returncode == 0, errors


def agree(one: Path, other: Path) -> None:
    """The same variations, texts and statuses in the same order; floats within 1e-4."""
    first, second = (list(SampleStore(out / SAMPLES_FILE)) for out in (one, other))
    assert first == second
    keys = [sample_key(sample) for sample in first]
    features = [FeatureStore(out / FEATURES_FOLDER).gather(keys) for out in (one, other)]
    assert features[0].keys() == features[1].keys() >= {"hidden", "embedding", "output_statistics"}
    for name, array in features[0].items():
        np.testing.assert_allclose(features[1][name], array, atol=1e-4)
    for file in ("search.jsonl", "results.json"):
        texts = [(out / file).read_text() for out in (one, other)]
        found = [
            [json.loads(line) for line in text.splitlines()] if file.endswith("l") else json.loads(text)
            for text in texts
        ]
        if file == "results.json":
            assert_close_distributions(*(content.pop("distributions") for content in found))
        assert_close(*found)


def assert_close_distributions(one: Any, other: Any) -> None:
    """The same bins and answers; a value that lies on the edge of a bin may fall to either side of it."""
    assert one.keys() == other.keys()
    for name in one:
        assert_close(one[name]["edges"], other[name]["edges"])
        for kind in ("right", "wrong"):
            below, others_below = (np.cumsum(shape[name][kind]) for shape in (one, other))
            assert below[-1] == others_below[-1] and np.max(np.abs(below - others_below)) <= 2


def assert_close(one: Any, other: Any) -> None:
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            assert_close(one[name], other[name])
    elif isinstance(one, list):
        for pair in zip(one, other, strict=True):
            assert_close(*pair)
    elif isinstance(one, float):
        assert other == pytest.approx(one, abs=1e-4, rel=1e-4)
    else:
        assert one == other


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same search by one process on one device."""
    out = tmp_path_factory.mktemp("alone") / "run"
    finish([search(out, 1)])
    return out


def test_two_processes_find_what_one_finds(alone: Path, tmp_path: Path) -> None:
    processes = start(tmp_path / "run")
    _, from_leader = processes[0].communicate()
    _, from_follower = processes[1].communicate()
    assert [process.returncode for process in processes] == [0, 0], from_leader + from_follower
    assert "search" in from_leader
    assert from_follower == ""
    agree(alone, tmp_path / "run")


@pytest.mark.slow
@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
@pytest.mark.parametrize("lost", [0, 1], ids=["leader", "follower"])
def test_a_lost_process_ends_the_other_and_the_run_goes_on(
    alone: Path, tmp_path: Path, lost: int, signal_number: signal.Signals
) -> None:
    out = tmp_path / "run"
    processes = start(out)
    kept = out / SAMPLES_FILE
    while not kept.exists() and processes[0].poll() is None:
        time.sleep(0.1)
    processes[lost].send_signal(signal_number)
    since = time.monotonic()
    _, errors = processes[1 - lost].communicate()
    # The runtime looks now and then whether the timeout has passed.
    assert time.monotonic() - since < 2 * TIMEOUT
    processes[lost].kill()
    processes[lost].communicate()
    assert processes[1 - lost].returncode == 1, errors
    (told,) = messages(errors)
    assert told.startswith("robust-jax: ") and "start the same command again" in told
    before = len(SampleStore(kept))
    finish(start(out))
    assert 0 < before < len(SampleStore(kept))
    agree(alone, out)


@pytest.mark.slow
def test_bad_input_ends_all_with_the_leaders_line(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "letter.txt").write_text("dear run")
    processes = start(tmp_path / "run")
    errors = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [2, 2]
    (told,) = messages(errors[0])
    assert "choose another --out" in told
    assert errors[1] == ""


@pytest.mark.slow
def test_a_process_that_nobody_joins_says_so(tmp_path: Path) -> None:
    process, other = start(tmp_path / "run", "--process-timeout", "5")
    other.kill()
    _, errors = process.communicate()
    other.communicate()
    assert process.returncode == 1
    (told,) = messages(errors)
    assert "did not come together within 15 s" in told
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--coordinator", "localhost", "--processes", "2", "--process", "0"], "HOST:PORT"),
        (["--coordinator", "localhost:9000", "--processes", "2"], "--process K"),
        (["--coordinator", "localhost:9000", "--processes", "2", "--process", "2"], "numbered from 0"),
        (["--processes", "2"], "--coordinator"),
        (["--coordinator", "auto", "--process", "1"], "--coordinator HOST:PORT"),
        (["--process-timeout", "1"], "--process-timeout"),
        (["--mesh", "data=3"], "number of devices"),
        (["--mesh", "rows=1"], "data=2,model=4"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else "",
)
def test_bad_options_are_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], named: str
) -> None:
    assert main(["lpds", "search", "--out", str(tmp_path / "run"), *words]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert named in message
    assert not (tmp_path / "run").exists()
