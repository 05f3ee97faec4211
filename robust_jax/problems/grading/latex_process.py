"""Compares answers in LaTeX with math-verify: a pair of texts a line comes in, true, false or null a line goes out."""

from __future__ import annotations

import json
import logging
import sys

from math_verify import parse, verify  # type: ignore[import-untyped]


def _compare(gold: str, given: str, time_limit: int) -> bool | None:
    right, answer = (parse(f"${text.strip().strip('$')}$", parsing_timeout=time_limit) for text in (gold, given))
    if not right or not answer:
        return None
    return bool(verify(right, answer, timeout_seconds=time_limit))


def main(time_limit: int) -> None:
    """Answer until the input ends.

    Args:
        time_limit: seconds for each step of one comparison.
    """
    logging.disable(logging.CRITICAL)
    for line in sys.stdin:
        try:
            gold, given = json.loads(line)
            verdict = _compare(gold, given, time_limit)
        except Exception:
            verdict = None  # Whatever the algebra stumbles over is no answer.
        print(json.dumps(verdict), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
