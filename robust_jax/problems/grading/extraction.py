"""Which part of a model's reply is its answer (paper Section 2.2), and by which rule it was found.

Every pattern runs in time linear in the reply, whatever the reply holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

from robust_jax.problems.grading.numbers import (
    DECIMAL_IN_TEXT,
    NUMBER_IN_STATEMENT,
    NUMBER_IN_TEXT,
    exact_value,
    plain,
)
from robust_jax.types import Number

ExtractionMode = Literal["standard", "marked", "last-number"]
"""standard: the rules in their order; marked: those that look behind a marker, so that a bare number is no answer;
last-number: the last decimal alone, as in the LPDS paper."""

Rule = Literal["boxed", "####", "answer is", "last number", "last line"]
"""What found an answer; the last line counts where the right answer is LaTeX."""


@dataclass(frozen=True)
class Extraction:
    """What was read from a reply."""

    value: Number | None = None
    rule: Rule | None = None
    """The rule that found the value."""
    text: str | None = None
    """The number as the reply writes it, without LaTeX spacing and with plain signs; or the text of another answer."""
    unclosed_thinking: bool = False
    """The reply ends inside `<think>`, so that nothing was read."""


_BRACE = re.compile(r"\\(?:boxed|fbox)\s*\{|\\[{}]|[{}]")
_HASHES = re.compile(r"####(?![ \t*]{0,8}(?:step|part|case)\b)", re.IGNORECASE)  # `#### Step 2` is a heading
_ANSWER_IS = re.compile(
    r"\banswer(?: (?:to|for) [^.:\n]{1,80}?)?[*_ \t]{0,4}(?:(?P<label>[:=])|\b(?:is|(?:would|should|must) be)\b)",
    re.IGNORECASE,
)
_SHORT_LEAD = re.compile(r"[\W_]*(?:\w{1,3}[\W_]+)?")
_SENTENCE_END = re.compile(r"[.!?][*_)\]\"']{0,3}\s+(?=[A-Z])")
_ASIDE = re.compile(r"[,;]\s|(?<=[\w%.}])\s\(")  # `12, since 3 × 4 = 12` and `12 (3 × 4 = 12)`
_OPERATION = re.compile(r"\s?[-+*/×÷^]\s?[\d($\\]")

_DIGIT = re.compile(r"\d")
_MATHEMATICAL = re.compile(r"[\d\\$^=]")
_SOLID = re.compile(r"[^\W_]")
_NEXT_QUESTION = re.compile(
    r"\n[ \t]{0,8}(?:#{1,6} |\*\*)?(?:(?:question|problem|exercise|instruction|user|human|q)(?: ?\d+)?|example \d+)"
    r"(?:\*\*)?:|\n#{1,6} (?:question|problem|exercise|instruction)\b",
    re.IGNORECASE,
)


def without_thinking(text: str) -> tuple[str, bool]:
    """The text outside `<think>` blocks, and whether the last one stays open. The prompt may have opened the first."""
    *closed, rest = text.split("</think>")
    shown = [part.partition("<think>")[0] if i or "<think>" in part else "" for i, part in enumerate(closed)]
    return "".join([*shown, rest.partition("<think>")[0]]), "<think>" in rest


def _without_run_on(text: str) -> str:
    """The text up to the next question that a model asks itself once it has answered.

    Before the first digit there is no answer to run on from: a reply that restates its question is kept.
    """
    digit = _DIGIT.search(text)
    marker = _NEXT_QUESTION.search(text, digit.start()) if digit else None
    return text[: marker.start()] if marker else text


def _line_after(text: str, start: int) -> str:
    """The rest of the line at `start`, or the next line that says anything."""
    solid = _SOLID.search(text, start)
    if not solid:
        return ""
    end = text.find("\n", solid.start())
    return text[max(start, text.rfind("\n", 0, solid.start()) + 1) : None if end < 0 else end]


def _first(statement: str) -> re.Match[str] | None:
    return next((number for number in NUMBER_IN_STATEMENT.finditer(statement) if number["number"]), None)


def _stated(statement: str, labelled: bool = False) -> re.Match[str] | None:
    """The number that a statement gives: its first, or in an equation the right side if that is a number.

    `Answer:` may also head a whole solution. There only a number right behind the label counts, and no equation.
    """
    sentence = _SENTENCE_END.split(plain(statement), 1)[0].strip()
    first = _first(sentence)
    if not first or (labelled and not (first.start() <= 20 and _SHORT_LEAD.fullmatch(sentence, 0, first.start()))):
        return None
    aside = _ASIDE.search(sentence, first.end())
    _, equals, right = sentence[first.end() : aside.start() if aside else None].replace("≈", "=").rpartition("=")
    if labelled:
        return None if equals else first
    result = _first(right.strip()) if equals else None
    return result if result and not _OPERATION.match(result.string, result.end()) else first


def last_box(text: str) -> str:
    """What stands in the last box that is closed; empty if there is none."""
    last, content = -1, ""
    opened: list[re.Match[str]] = []
    for brace in _BRACE.finditer(text) if "\\boxed" in text or "\\fbox" in text else ():
        if brace[0] == "}" and opened:
            box = opened.pop()
            if len(box[0]) > 1 and box.start() > last:
                last, content = box.start(), text[box.end() : brace.start()]
        elif brace[0] == "{" or len(brace[0]) > 2:
            opened.append(brace)
    return content


def _behind(marker: re.Pattern[str], text: str) -> tuple[str, bool]:
    """The line behind the last marker, and whether the marker is a label such as `Answer:`."""
    markers = list(marker.finditer(text))
    return (_line_after(text, markers[-1].end()), markers[-1].lastgroup == "label") if markers else ("", False)


_MARKED: dict[Rule, Callable[[str], tuple[str, bool]]] = {
    "boxed": lambda text: (last_box(text), False),
    "####": partial(_behind, _HASHES),
    "answer is": partial(_behind, _ANSWER_IS),
}
"""What finds the statement of an answer behind a marker."""


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    for line in filter(None, reversed(text.splitlines())):
        if numbers := [number for number in pattern.finditer(plain(line)) if number["number"]]:
            return numbers[-1]
    return None


def _numbers(answer: str, mode: ExtractionMode) -> Iterator[tuple[Rule, re.Match[str] | None]]:
    """The number that each rule finds, in the order of the rules."""
    if mode == "last-number":
        yield "last number", _last(DECIMAL_IN_TEXT, answer)
        return
    for rule, find in _MARKED.items():
        yield rule, _stated(*find(answer))
    if mode == "standard":
        yield "last number", _last(NUMBER_IN_TEXT, answer)


def extract(response: str, mode: ExtractionMode = "standard") -> Extraction:
    """The answer that a reply gives, by the first rule that finds a number.

    Closed thinking is dropped and a run-on is cut before the next question, in either mode. Then the standard rules
    are, in this order: the last closed `\\boxed{}`; the line of the last `####`; the last 'answer is'; the last number
    of the reply. The first three read the first number behind their marker, or the result if an equation stands there.
    Sub- and superscripts are never answers, and neither are digits that are part of a name such as CO2.
    """
    shown, unclosed = without_thinking(response)
    if unclosed:
        return Extraction(unclosed_thinking=True)
    for rule, number in _numbers(_without_run_on(shown), mode):
        value = exact_value(number) if number else None
        if number and value is not None:
            return Extraction(value, rule, number[0].strip())
    return Extraction()


def extract_statement(response: str) -> Extraction:
    """The text that a reply gives as its answer where that is no number, by the first rule that finds one.

    The rules are those of `extract` but for the last, which takes the last line of the reply.
    """
    shown, unclosed = without_thinking(response)
    if unclosed:
        return Extraction(unclosed_thinking=True)
    answer = _without_run_on(shown)
    for rule, find in _MARKED.items():
        statement, _ = find(answer)
        if statement.strip():
            return Extraction(None, rule, statement.strip())
    lines = [line.strip() for line in answer.splitlines() if _SOLID.search(line)]
    return Extraction(None, "last line", lines[-1]) if lines and _MATHEMATICAL.search(lines[-1]) else Extraction()
