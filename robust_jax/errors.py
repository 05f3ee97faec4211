"""The two ways in which a command may end badly. Anything else that escapes is a fault of ours."""

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(Exception):
    """What was asked cannot be done: the message says in one line what is wrong and what to do (exit code 2)."""


class RunError(Exception):
    """The run failed on its way: the message says what was kept and how to resume (exit code 1)."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Which of some known words is most like one that is not known, upper and lower case alike; for messages."""
    by_folded = {name.casefold(): name for name in known}
    return by_folded[get_close_matches(word[:80].casefold(), by_folded, n=1, cutoff=0.0)[0]]
