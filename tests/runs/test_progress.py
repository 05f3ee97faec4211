"""Progress: a bar on a terminal, few lines elsewhere."""

import contextlib
import io
import os
import threading
from collections.abc import Iterator

import pytest

from robust_jax.runs import ByteProgress, Progress


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_lines_come_at_most_every_five_seconds_with_percentage_and_time_left() -> None:
    stream, clock = io.StringIO(), Clock()
    with Progress("measure", 100, stream, clock) as progress:
        for _ in range(100):
            clock.now += 1
            progress.advance()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 20
    assert lines[0] == "measure: 5/100 (5%), 0:01:35 left"
    assert lines[9] == "measure: 50/100 (50%), 0:00:50 left"
    assert lines[-1] == "measure: 100/100 (100%), took 0:01:40"


def test_work_found_done_does_not_shorten_the_time_left_for_long() -> None:
    stream, clock = io.StringIO(), Clock()
    with Progress("resumed", 1000, stream, clock) as progress:
        progress.advance(500)
        for _ in range(200):
            clock.now += 1
            progress.advance()
    assert stream.getvalue().splitlines()[-1] == "resumed: 700/1000 (70%), 0:05:00 left"


def test_the_end_shows_where_it_stopped() -> None:
    stream, clock = io.StringIO(), Clock()
    with pytest.raises(KeyboardInterrupt), Progress("measure", 10, stream, clock) as progress:
        progress.advance(3)
        clock.now += 1
        raise KeyboardInterrupt
    assert stream.getvalue() == "measure: 3/10 (30%), time left unknown\n"


def test_nothing_is_said_for_a_while_while_nothing_gets_done() -> None:
    stream, clock = io.StringIO(), Clock()
    with Progress("answers", 10, stream, clock) as progress:
        for _ in range(150):
            clock.now += 1
            progress.advance(0)
        progress.advance(1)
        clock.now += 5
        progress.advance(1)
    assert stream.getvalue().splitlines() == [
        "answers: 0/10 (0%), time left unknown",
        "answers: 0/10 (0%), time left unknown",
        "answers: 0/10 (0%), time left unknown",
        "answers: 1/10 (10%), time left unknown",
        "answers: 2/10 (20%), 0:00:40 left",
    ]


def test_the_wait_for_the_first_steps_says_nothing_about_the_rest() -> None:
    stream, clock = io.StringIO(), Clock()
    with Progress("answers", 100, stream, clock) as progress:
        clock.now += 60  # a compilation
        progress.advance(10)
        clock.now += 10
        progress.advance(10)
    assert stream.getvalue().splitlines()[-1] == "answers: 20/100 (20%), 0:01:20 left"


def test_nothing_to_do() -> None:
    stream = io.StringIO()
    with Progress("measure", 0, stream, Clock()):
        pass
    assert stream.getvalue() == "measure: 0/0 (100%), took 0:00:00\n"


def test_the_description_can_change() -> None:
    stream = io.StringIO()
    with Progress("one", 2, stream, Clock()) as progress:
        progress.describe("two")
        progress.advance(2)
    assert stream.getvalue().startswith("two: 2/2")


def test_no_step_of_any_thread_is_lost() -> None:
    stream = io.StringIO()
    with Progress("measure", 8000, stream, Clock()) as progress:
        threads = [threading.Thread(target=lambda: [progress.advance() for _ in range(1000)]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert stream.getvalue().startswith("measure: 8000/8000")


def test_standard_error_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("measure", 1) as progress:
        progress.advance()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("measure: 1/1")


def everything(terminal: int) -> Iterator[bytes]:
    """What is written to a terminal until its other end is closed."""
    with contextlib.suppress(OSError), os.fdopen(terminal, "rb", buffering=0) as stream:
        yield from iter(lambda: stream.read(1 << 12), b"")


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = os.openpty()
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.extend(everything(ours)))
    reader.start()
    with os.fdopen(theirs, "w") as stream, Progress("measure [b]", 4, stream) as progress:
        progress.advance(4)
        progress.describe("measured [b]")
    reader.join()
    shown = b"".join(read).decode()
    assert "\x1b[" in shown
    assert "measured [b]" in shown
    assert "4/4" in shown


def test_bytes_are_shown_in_megabytes_once_they_take_a_while() -> None:
    stream, clock = io.StringIO(), Clock()
    with ByteProgress("loading", stream, clock) as report:
        for done in range(0, 101, 10):
            report(done * 10**6, 100 * 10**6)
            clock.now += 1
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("loading, MB: 70/100 (70%)")
    assert lines[-1].startswith("loading, MB: 100/100 (100%)")


def test_what_loads_at_once_says_nothing() -> None:
    stream = io.StringIO()
    with ByteProgress("loading", stream, Clock()) as report:
        report(10**6, 2 * 10**6)
        report(2 * 10**6, 2 * 10**6)
    assert stream.getvalue() == ""
