"""Whether two mathematical expressions mean the same, decided by math-verify in a process of its own.

Computer algebra may take for ever on what a model has written, and only a process can be ended from outside.
"""

import importlib.util
import json
import select
import subprocess
import sys
from contextlib import suppress
from functools import cache

from robust_jax.errors import InputError

SECONDS_TO_START, SECONDS_TO_DECIDE = 60.0, 5.0
_WORK = """
import json, resource, sys
from math_verify import LatexExtractionConfig, parse, verify

def read(text):
    return parse(f"${text}$", [LatexExtractionConfig()], parsing_timeout=None)

resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
print(json.dumps(True), flush=True)
for line in sys.stdin:
    right, given = map(read, json.loads(line))
    print(json.dumps(bool(right and given and verify(right, given, timeout_seconds=None))), flush=True)
"""


class Judge:
    """A process that compares expressions, started when it is first needed, and again once it had to be ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def same(self, right: str, given: str) -> bool | None:
        """Whether two expressions in LaTeX, without dollar signs, are equal; None if that cannot be decided in time.

        Raises:
            InputError: math-verify is not installed.
        """
        process = self._started()
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # It died between two questions, which its silence then tells.
            process.stdin.write(json.dumps([right, given]).encode() + b"\n")
        return self._said(process, SECONDS_TO_DECIDE)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is not None:
            return self._process
        if importlib.util.find_spec("math_verify") is None:
            raise InputError("answers that are expressions need math-verify: pip install 'robust-jax[rrb]'")
        words = [sys.executable, "-c", _WORK]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        if self._said(self._process, SECONDS_TO_START) is None:
            raise InputError("math-verify does not start: see whether `python -c 'import math_verify'` works")
        return self._process

    def _said(self, process: subprocess.Popen[bytes], seconds: float) -> bool | None:
        """The next answer; without one in time the process is ended."""
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], seconds)
        line = process.stdout.readline() if ready else b""
        if line:
            return bool(json.loads(line))
        process.kill()
        process.communicate()
        self._process = None
        return None


@cache
def judge() -> Judge:
    """The one of this process; it ends with it."""
    return Judge()
