"""Checks a written-out worked solution: every equation in it holds, and it ends in the right number.

A side of an equation is the longest run of arithmetic that touches the equals sign. The left side may instead be a
plain label (`Total = 3 + 4`); a label that holds a number or an operator is refused, because what it computes would
go unchecked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from robust_jax.errors import InputError
from robust_jax.problems.expressions import RESERVED, parse
from robust_jax.types import Grading, Number

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?P<percent>\s?%)?(?![A-Za-z_])
    | (?P<equals>≈|(?<![<>!=])==?(?![>=]))
    | (?P<operator>\*\*|//|[-+*/^()−–×·÷])
    | (?P<currency>[$€£¥])
    | (?P<comma>,)
    | (?P<word>[^\W\d_][\w'’]*(?:-[^\W\d_][\w'’]*)*)
    | (?P<end>[.;:!?](?=\s|$))
    | (?P<other>\S)
    )""",
    re.VERBOSE,
)
_SPELLING = {"−": "-", "–": "-", "×": "*", "·": "*", "÷": "/", "^": "**"}
_FINAL = re.compile(r"####[ ]*(?P<answer>\S.*)")
_MAX_TOKENS = 120


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    """As an expression spells it; empty for a currency sign."""
    place: Fraction | None = None
    """For a number, the value of its last printed place if that is a decimal."""


@dataclass(frozen=True)
class _Side:
    text: str
    value: Number
    place: Fraction | None
    """The last printed place, where the side is one printed decimal or whole number."""


def check_trace(trace: str, answer: Number | None, grading: Grading) -> list[str]:
    """Every fault of a worked solution, one line each; an empty list if it is right.

    The sides of `≈` agree within half of the last printed place. So do those of `=` where a number is printed with
    decimals; whole numbers on `=` agree exactly. The number after `####` has to be right by the suite's own grading,
    unless no answer is given to compare it with.
    """
    *lines, last = trace.rstrip().split("\n")
    faults = [fault for line in lines for fault in _check_line(line)]
    final = _FINAL.fullmatch(last.strip())
    if final is None:
        return [*faults, "the solution does not end in a line '#### answer'"]
    side = _evaluate(_tokens(final["answer"]))
    if side is None:
        return [*faults, f"'{final['answer']}' after #### is not a number"]
    if answer is not None and abs(side.value - answer) > grading.absolute + grading.relative * abs(answer):
        faults.append(f"the solution ends in {final['answer']}, but the answer expression gives {answer}")
    return faults


def _check_line(line: str) -> list[str]:
    tokens = _tokens(line)
    signs = [index for index, token in enumerate(tokens) if token.kind == "equals"]
    if len(tokens) > _MAX_TOKENS and signs:
        return [f"'{line.strip()[:60]}…' is too long to check: break the line"]
    faults = []
    for number, sign in enumerate(signs):
        start = signs[number - 1] + 1 if number else 0
        end = signs[number + 1] if number + 1 < len(signs) else len(tokens)
        before, after = tokens[start:sign], tokens[sign + 1 : end]
        left, right = _longest(before, from_end=True), _longest(after, from_end=False)
        if right is None or (left is None and not _is_label(before)):
            faults.append(f"'{line.strip()}': cannot read the equation at sign {number + 1}: write plain arithmetic")
        elif left is not None and not _agree(left, right, is_rounded=tokens[sign].text == "≈"):
            faults.append(
                f"'{line.strip()}': {left.text} is {_shown(left.value)}, not {right.text}"
                + ("" if right.text == str(right.value) else f" ({_shown(right.value)})")
            )
    return faults


def _tokens(text: str) -> list[_Token]:
    tokens = []
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "other"
        written = match[kind]
        if match["number"] is not None:
            digits = match["number"].replace(",", "")
            decimals = len(digits.partition(".")[2])
            place = Fraction(1, 10**decimals)
            if match["percent"] is not None:
                tokens.append(_Token("number", f"({digits} / 100)", place / 100))
            else:
                tokens.append(_Token("number", digits, place))
        elif kind == "currency":
            continue
        elif kind == "word" and written in RESERVED:
            tokens.append(_Token("function", written))
        else:
            tokens.append(_Token(kind, _SPELLING.get(written, written)))
    return tokens


_ARITHMETIC = frozenset({"number", "operator", "function", "comma"})


def _longest(tokens: Sequence[_Token], *, from_end: bool) -> _Side | None:
    """The longest run of arithmetic that touches the equals sign."""
    length = 0
    for token in reversed(tokens) if from_end else tokens:
        if token.kind not in _ARITHMETIC:
            break
        length += 1
    for size in range(length, 0, -1):
        side = _evaluate(tokens[len(tokens) - size :] if from_end else tokens[:size])
        if side is not None:
            return side
    return None


def _evaluate(tokens: Sequence[_Token]) -> _Side | None:
    text = " ".join(token.text for token in tokens)
    if not any(token.kind in ("number", "function") for token in tokens):
        return None
    try:
        value = parse(text, (), where="", wanted="number").number({})
    except InputError:
        return None
    numbers = [token for token in tokens if token.kind == "number"]
    is_printed = len(numbers) == 1 and all(t.kind == "number" or t.text in ("-", "+") for t in tokens)
    return _Side(text, value, numbers[0].place if is_printed else None)


def _is_label(tokens: Sequence[_Token]) -> bool:
    """Whether the words since the last sentence or comma hold nothing that computes."""
    clause: list[_Token] = []
    for token in tokens:
        clause = [] if token.kind in ("end", "comma") else [*clause, token]
    return any(token.kind == "word" for token in clause) and not any(t.kind in _ARITHMETIC for t in clause)


def _agree(left: _Side, right: _Side, *, is_rounded: bool) -> bool:
    places = [side.place for side in (left, right) if side.place is not None and (is_rounded or side.place < 1)]
    return abs(left.value - right.value) <= max(places, default=Fraction(0)) / 2


def _shown(value: Number) -> str:
    return str(value) if value.denominator < 10**6 else f"{float(value):.6g}"
