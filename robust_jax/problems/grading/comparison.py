"""What a reply is worth: its answer against the right one, in exact arithmetic, or as LaTeX where that is no number."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from robust_jax.problems.grading.extraction import (
    Extraction,
    ExtractionMode,
    Rule,
    extract,
    extract_statement,
    without_thinking,
)
from robust_jax.problems.grading.latex import are_equal
from robust_jax.types import Grading, Number, Response, Status


@dataclass(frozen=True)
class Grade:
    """What a reply is worth."""

    status: Status
    score: float
    """1 right, 0 wrong."""
    value: Number | str | None = None
    """The answer that was read: a number, or LaTeX where the right answer is LaTeX."""
    rule: Rule | None = None


_REFUSAL = re.compile(
    r"\b(?:can(?:no|['’])t|not able to|unable to|sorry|apologi[sz]e|won['’]t|will not|refuse|decline)\b",
    re.IGNORECASE,
)
_LONGEST_REFUSAL = 400


def is_refusal(shown: str) -> bool:
    """Whether a reply without an answer says, in a few words, that it cannot or will not answer."""
    return len(shown) <= _LONGEST_REFUSAL and bool(_REFUSAL.search(shown))


def _without_unfinished(text: str) -> str:
    """A reply that was cut, without the word it ends in if that may be half a number."""
    if text[-1:] in tuple("^{\\") or text.rstrip(".,/+-")[-1:].isdecimal():
        return text[: len(text) - len(text.split()[-1])]
    return text


def grade(response: Response, gold: Number | str, grading: Grading, mode: ExtractionMode = "standard") -> Grade:
    """Grades a reply: right if |given − right| ≤ absolute + relative · |right|, in exact fractions.

    A right answer in LaTeX (a text) is compared as mathematics instead, and without any tolerance.

    A reply that was cut by its length is graded like any other if it had already given its answer behind a marker (a
    closed box, `####`, 'answer is'); a number that ends where the reply was cut may lack digits and is no answer.
    Otherwise, and if its thinking never closes, it is truncated: its last number is only a step on the way.
    A short reply with no number that says it cannot or will not answer is refused; any other without a number is
    unparsed. A reply that failed is an error and a prompt that did not fit is skipped: neither is a wrong answer.
    """
    if response.finish_reason == "error":
        return Grade("error", 0.0)
    if response.finish_reason == "context":
        return Grade("skipped", 0.0)
    if response.finish_reason == "filter":
        return Grade("refused", 0.0)
    read = extract_statement if isinstance(gold, str) else extract
    text = response.text
    if response.finish_reason == "length":
        text = _without_unfinished(text)
        if read(text).rule in (None, "last number", "last line"):
            return Grade("truncated", 0.0)
    found = extract_statement(text) if isinstance(gold, str) else extract(text, mode)
    if found.unclosed_thinking:
        return Grade("truncated", 0.0)
    if isinstance(gold, str):
        return _grade_latex(found, gold, text)
    if found.value is None:
        return _without_answer(text)
    error = abs(Fraction(found.value - gold))
    right = error <= grading.absolute + grading.relative * abs(Fraction(gold))
    return Grade("ok", float(right), found.value, found.rule)


def _grade_latex(found: Extraction, gold: str, text: str) -> Grade:
    is_right = None if found.text is None else are_equal(gold, found.text)
    return _without_answer(text) if is_right is None else Grade("ok", float(is_right), found.text, found.rule)


def _without_answer(text: str) -> Grade:
    return Grade("refused" if is_refusal(without_thinking(text)[0]) else "unparsed", 0.0)
