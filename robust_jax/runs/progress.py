"""How far long work has come: a bar on a terminal, now and then a line elsewhere."""

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import IO, Protocol, cast, runtime_checkable

import rich.progress
from rich.console import Console

SECONDS_BETWEEN_LINES = 5.0
SECONDS_OF_SILENCE = 60.0
"""How long nothing is said while nothing gets done."""
SECONDS_BEFORE_BYTES = 2.0
MEGABYTE = 10**6
LINES_OF_RATE = 12
"""The time left is told from the pace over the last so many lines, since the first steps: those may have waited for a
compilation, or were done before a run was resumed."""


@runtime_checkable
class Stream(Protocol):
    """Where text can be shown, such as standard error."""

    def write(self, text: str, /) -> object: ...

    def flush(self) -> object: ...

    def isatty(self) -> bool: ...


class Progress:
    """Shows how much of `total` is done and how long the rest takes; used as a context, from any thread.

    Args:
        description: what is being done.
        total: how many steps it takes.
        stream: where to show it; standard error if none is given.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        description: str,
        total: int,
        stream: Stream | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        stream = sys.stderr if stream is None else stream
        is_terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
        self._display = _Bar(description, total, stream) if is_terminal else _Lines(description, total, stream, clock)

    def __enter__(self) -> "Progress":
        self._display.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._display.stop()

    def advance(self, steps: int = 1) -> None:
        """Count steps as done."""
        self._display.advance(steps)

    def describe(self, text: str) -> None:
        """Say what is being done now."""
        self._display.describe(text)


class ByteProgress:
    """Shows how many megabytes of how many are read, once that has taken a while; used as a context and called.

    Args:
        description: what is being read.
        stream: where to show it; standard error if none is given.
        clock: seconds that only grow.
    """

    def __init__(
        self, description: str, stream: Stream | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._description, self._stream, self._clock = description, stream, clock
        self._progress: Progress | None = None
        self._shown = 0

    def __enter__(self) -> "ByteProgress":
        self._started = self._clock()
        return self

    def __call__(self, done: int, total: int) -> None:
        """Tell how many bytes of how many are read."""
        if self._progress is None:
            if self._clock() - self._started < SECONDS_BEFORE_BYTES:
                return
            self._progress = Progress(f"{self._description}, MB", total // MEGABYTE, self._stream, self._clock)
            self._progress.__enter__()
        self._progress.advance(done // MEGABYTE - self._shown)
        self._shown = done // MEGABYTE

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.__exit__(kind, error, trace)


class _Bar:
    def __init__(self, description: str, total: int, stream: Stream) -> None:
        self._progress = rich.progress.Progress(
            rich.progress.TextColumn("{task.description}", markup=False),
            rich.progress.BarColumn(),
            rich.progress.MofNCompleteColumn(),
            rich.progress.TaskProgressColumn(),
            rich.progress.TimeRemainingColumn(elapsed_when_finished=True),
            console=Console(file=cast(IO[str], stream)),
        )
        self._task = self._progress.add_task(description, total=total)

    def start(self) -> None:
        self._progress.start()

    def stop(self) -> None:
        self._progress.stop()

    def advance(self, steps: int) -> None:
        self._progress.advance(self._task, steps)

    def describe(self, text: str) -> None:
        self._progress.update(self._task, description=text)


class _Lines:
    def __init__(self, description: str, total: int, stream: Stream, clock: Callable[[], float]) -> None:
        self._description, self._total, self._stream, self._clock = description, total, stream, clock
        self._done = 0
        self._shown = -1
        self._lines: deque[tuple[float, int]] = deque(maxlen=LINES_OF_RATE)
        """Time and steps done at the first steps and at the latest lines."""
        self._guard = threading.Lock()

    def start(self) -> None:
        self._started = self._shown_at = self._clock()

    def stop(self) -> None:
        with self._guard:
            if self._shown != self._done:
                self._show()

    def advance(self, steps: int) -> None:
        with self._guard:
            self._done += steps
            if steps and not self._lines:
                self._lines.append((self._clock(), self._done))
            least = SECONDS_OF_SILENCE if self._done == self._shown else SECONDS_BETWEEN_LINES
            if self._clock() - self._shown_at >= least:
                self._show()

    def describe(self, text: str) -> None:
        with self._guard:
            self._description = text

    def _show(self) -> None:
        now = self._clock()
        since, done_then = self._lines[0] if self._lines else (now, self._done)
        if self._done >= self._total:
            time_text = f"took {_duration(now - self._started)}"
        elif self._done > done_then:
            time_text = f"{_duration((now - since) / (self._done - done_then) * (self._total - self._done))} left"
        else:
            time_text = "time left unknown"
        percent = 100 if self._total == 0 else 100 * self._done // self._total
        print(
            f"{self._description}: {self._done}/{self._total} ({percent}%), {time_text}", file=self._stream, flush=True
        )
        if self._lines:
            self._lines.append((now, self._done))
        self._shown, self._shown_at = self._done, now


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
