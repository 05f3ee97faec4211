"""Reading the answers out of a reply, and what they are worth."""

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from robust_jax.problems.grading import is_refusal, without_thinking
from robust_jax.systematicity.prompts import json_value
from robust_jax.systematicity.task import Family, Task, X, Y
from robust_jax.types import Response, Status

_START = re.compile(r'\{\s*"answers"\s*:')
_FENCE = re.compile(r"\A\s*```\w*\s*\n|\n\s*```\s*\Z")
_STARTS = 20
"""Objects that are tried, the last ones of a reply: a hostile reply must not take long."""


class Verdict(NamedTuple):
    """What a reply is worth."""

    status: Status
    score: float
    """1 if every query is answered right, else 0."""
    extracted: str | None = None
    """The answers that were read, as JSON."""
    rule: str | None = None
    """How they were found: in an object, as the form asks, or as a bare list."""


def grade(response: Response, family: Family[X, Y], task: Task[X, Y]) -> Verdict:
    """Right if every query is answered right (Section 3.3).

    A reply without one readable answer for every query is unparsed, or truncated where it was cut, or refused where it
    says so in a few words: all wrong. A reply that failed is an error and a prompt that did not fit is skipped: neither
    is a wrong answer.
    """
    if response.finish_reason == "error":
        return Verdict("error", 0.0)
    if response.finish_reason == "context":
        return Verdict("skipped", 0.0)
    shown, unclosed = without_thinking(response.text)
    if unclosed:
        return Verdict("truncated", 0.0)
    found, rule = read_answers(shown)
    outputs = None if found is None else _outputs(found, family, task)
    if outputs is None:
        if response.finish_reason == "length":
            return Verdict("truncated", 0.0)
        return Verdict("refused" if is_refusal(shown) else "unparsed", 0.0)
    return Verdict("ok", float(tuple(outputs) == task.answers), answers_text(family, outputs), rule)


def read_answers(reply: str) -> tuple[list[object] | None, str | None]:
    """The answers that a reply gives, as JSON values, and how they were found; code fences and prose do not matter.

    The last object that holds a list of answers counts; without one, a reply that is a list and nothing else.
    """
    decoder = json.JSONDecoder()
    for start in [match.start() for match in _START.finditer(reply)][: -_STARTS - 1 : -1]:
        try:
            value, _ = decoder.raw_decode(reply, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(value["answers"], list):
            return value["answers"], "object"
    try:
        value = json.loads(_FENCE.sub("", reply))
    except (ValueError, RecursionError):
        return None, None
    return (value, "list") if isinstance(value, list) else (None, None)


def _outputs(found: list[object], family: Family[X, Y], task: Task[X, Y]) -> list[Y] | None:
    """The answers as outputs of the family; None where there are too many or too few or one cannot be read."""
    if len(task.queries) == 1 and len(found) != 1:
        found = [found]  # The only answer is itself a list, and stands where the list of answers should.
    outputs = [output for value in found if (output := family.read_output(value)) is not None]
    return outputs if len(outputs) == len(found) == len(task.queries) else None


def answers_text(family: Family[X, Y], outputs: Sequence[Y]) -> str:
    """Outputs as one text, such as ["RED RED", "BLUE"]."""
    return json.dumps([json_value(family.show_output(output)) for output in outputs], ensure_ascii=False)
