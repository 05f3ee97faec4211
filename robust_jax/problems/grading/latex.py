"""Whether two answers in LaTeX are the same mathematics, decided by math-verify.

It works on a process of its own. There its time limits, which are signals, work whoever asks and from whichever thread,
and an expression that makes the algebra run away costs no more than a restart.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread

TIME_LIMIT = 5
"""Seconds for each step of one comparison."""
_PATIENCE = 60
"""Seconds for a whole comparison, and for the process to start."""
_LONGEST = 2_000
"""Characters of an answer beyond which it is not read."""


def are_equal(gold: str, given: str) -> bool | None:
    """Whether an answer is the right one; None if it cannot be read as mathematics, or not in time."""
    if len(given) > _LONGEST or len(gold) > _LONGEST:
        return None
    return _judge.compare(gold, given)


class _Judge:
    """A process that answers one comparison after another; started when first asked, again if it hangs or dies."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[str] | None = None
        self._replies: SimpleQueue[str] = SimpleQueue()

    def compare(self, gold: str, given: str) -> bool | None:
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._start()
            assert self._process is not None and self._process.stdin is not None
            try:
                self._process.stdin.write(json.dumps([gold, given]) + "\n")
                self._process.stdin.flush()
                reply = self._replies.get(timeout=_PATIENCE)
            except (OSError, Empty):
                reply = ""
            if not reply:
                self.stop()
                return None
            verdict = json.loads(reply)
            assert verdict is None or isinstance(verdict, bool)
            return verdict

    def _start(self) -> None:
        self._replies = SimpleQueue()
        self._process = subprocess.Popen(
            # By its path and without its folder on the path (-P): the package would import much that it does not need.
            [sys.executable, "-P", str(Path(__file__).with_name("latex_process.py")), str(TIME_LIMIT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        Thread(target=_forward, args=(self._process, self._replies), daemon=True).start()

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _forward(process: subprocess.Popen[str], replies: SimpleQueue[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        replies.put(line)
    replies.put("")


_judge = _Judge()
atexit.register(_judge.stop)
