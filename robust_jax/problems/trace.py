"""Checks a written-out worked solution: every equation in it holds, and it ends in the right number.

A side of an equation is the longest run of arithmetic that touches the equals sign. The left side may instead be a
plain label (`Total = 3 + 4`). Whatever would leave a part of a computation unread is a fault: `5 boxes + 3 = 8`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import takewhile

from robust_jax.errors import InputError
from robust_jax.problems.arithmetic import FUNCTIONS
from robust_jax.problems.expressions import parse
from robust_jax.problems.text import exact
from robust_jax.types import Grading, Number

_MAX_LENGTH = 4_000
"""Characters of one line with equations."""
_MAX_TOKENS = 150
"""Tokens of one line with equations."""

# A number glued to a letter (`5kg`) is a quantity that no arithmetic reads, and no part of it is a number: hence the
# atomic group.
_TOKEN = re.compile(
    rf"""\s*(?:
      (?P<number>(?>\d{{1,3}}(?:,\d{{3}})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+))(?P<percent>\s?%)?(?!\w)
    | (?P<equals>≈|(?<![<>!=])==?(?![>=]))
    | (?P<operator>\*\*|//|[-+*/^−–×·÷])
    | (?P<bracket>[()])
    | (?P<currency>[$€£¥])
    | (?P<comma>,)
    | (?P<function>(?:{"|".join(FUNCTIONS)})(?=\s?\()|pi\b)
    | (?P<quantity>\d[\w.,]*)
    | (?P<word>\w[\w'’]*(?:-\w[\w'’]*)*)
    | (?P<end>[.;:!?](?=\s|$))
    | (?P<other>\S)
    )""",
    re.VERBOSE,
)
_ARITHMETIC = frozenset({"number", "operator", "bracket", "comma", "function"})
_QUANTITIES = frozenset({"number", "quantity"})
_SPELLING = {"−": "-", "–": "-", "×": "*", "·": "*", "÷": "/", "^": "**"}
_BULLET = re.compile(r"\s*[-*•]\s+")
_FINAL = re.compile(r"####\s*(?P<answer>\S.*)")


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    """As an expression spells it."""
    is_sign: bool = False
    """Whether it is a plus or minus that is glued to what follows, but not to what precedes."""
    place: Fraction = Fraction(0)
    """For a number, the value of its last printed place."""


@dataclass(frozen=True)
class _Side:
    text: str
    value: Fraction
    place: Fraction | None
    """The last printed place of a side that is one printed number."""


def check_trace(trace: str, answer: Number | None, grading: Grading, *, equations: bool = True) -> list[str]:
    """Every fault of a worked solution, one line each; an empty list if it is right.

    The sides of `≈` agree within half of the last printed place. So do those of `=` where that place is a decimal;
    whole numbers on `=` agree exactly. The number after `####` has to be right by the suite's own grading, unless no
    answer is given to compare it with. Without `equations` that number is all that is looked at.
    """
    *lines, last = trace.rstrip().split("\n")
    faults = [
        f"line {number}: '{line.strip()[:100]}': {fault}"
        for number, line in enumerate(lines if equations else (), 1)
        for fault in _check_line(line)
    ]
    final = _FINAL.fullmatch(last.strip())
    side = _evaluate(_tokens(final["answer"])) if final else None
    if final is None or side is None:
        faults.append(f"line {len(lines) + 1}: the solution has to end in a line '#### number'")
    elif answer is not None and abs(side.value - answer) > grading.absolute + grading.relative * abs(Fraction(answer)):
        written = final["answer"]
        faults.append(f"line {len(lines) + 1}: the solution ends in {written}, not in the answer {exact(answer)}")
    return faults


def _check_line(line: str) -> list[str]:
    if "=" not in line and "≈" not in line:
        return []
    if len(line) > _MAX_LENGTH:
        return ["too long to check: break the line"]
    bullet = _BULLET.match(line)
    tokens = _tokens(line[bullet.end() :] if bullet else line)
    signs = [index for index, token in enumerate(tokens) if token.kind == "equals"]
    if signs and len(tokens) > _MAX_TOKENS:
        return ["too long to check: break the line"]
    faults = []
    for start, sign, end in zip([-1, *signs], signs, [*signs[1:], len(tokens)], strict=False):
        before, after = tokens[start + 1 : sign], tokens[sign + 1 : end]
        left, right = _left_side(before), _right_side(after)
        if right is None or (left is None and not _is_label(before)):
            shown = "".join(f"{token.text} " for token in tokens[start + 1 : end])
            faults.append(f"cannot read the equation '{shown.strip()[:100]}': write plain arithmetic around the sign")
        elif left is not None and not _agree(left, right, is_rounded=tokens[sign].text == "≈"):
            faults.append(f"{_shown(left)} does not agree with {_shown(right)}")
    return faults


def _tokens(text: str) -> list[_Token]:
    tokens = []
    for match in _TOKEN.finditer(text):
        kind = next(name for name, value in match.groupdict().items() if value is not None)
        written = match[kind]
        if kind == "number":
            digits = written.replace(",", "")
            place = Fraction(1, 10 ** len(digits.partition(".")[2]))
            if match["percent"] is None:
                tokens.append(_Token(kind, digits, place=place))
            else:
                tokens.append(_Token(kind, f"({digits} / 100)", place=place / 100))
        elif kind == "operator":
            is_glued = match.end() < len(text) and not text[match.end()].isspace()
            is_sign = is_glued and (match.start() == 0 or match.start(kind) > match.start())
            tokens.append(_Token(kind, _SPELLING.get(written, written), is_sign=is_sign))
        elif kind != "currency":
            tokens.append(_Token(kind, written))
    return tokens


def _left_side(tokens: Sequence[_Token]) -> _Side | None:
    """The longest arithmetic that ends at the equals sign, if it leaves no part of a computation before it."""
    start = len(tokens)
    while start and tokens[start - 1].kind in _ARITHMETIC:
        start -= 1
    for first in range(start, len(tokens)):
        side = _evaluate(tokens[first:])
        if side is not None:
            previous = tokens[first - 1] if first else None
            is_minus = tokens[first].kind == "operator" and not tokens[first].is_sign
            if previous is not None and (previous.kind in _QUANTITIES or (is_minus and previous.kind == "word")):
                return None
            return None if _computes(tokens[start:first][::-1]) else side
    return None


def _right_side(tokens: Sequence[_Token]) -> _Side | None:
    """The longest arithmetic that begins at the equals sign, if it leaves no part of a computation after it."""
    end = 0
    while end < len(tokens) and tokens[end].kind in _ARITHMETIC:
        end += 1
    for last in range(end, 0, -1):
        side = _evaluate(tokens[:last])
        if side is not None:
            if last < len(tokens) and tokens[last].kind in _QUANTITIES:
                return None
            return None if _computes(tokens[last:end]) else side
    return None


def _computes(unread: Sequence[_Token]) -> bool:
    """Whether arithmetic beside a side, up to the next comma, belongs to the same computation: `5 * (3 + 4 = 7`."""
    return any(token.kind in ("operator", "function") for token in takewhile(lambda t: t.kind != "comma", unread))


def _evaluate(tokens: Sequence[_Token]) -> _Side | None:
    text = " ".join(token.text for token in tokens)
    numbers = [token for token in tokens if token.kind == "number"]
    if len(numbers) == len(tokens) > 1:
        return None
    try:
        value = Fraction(parse(text, (), where="", wanted="number").number({}))
    except InputError:
        return None
    is_printed = len(numbers) == 1 and all(token.kind == "number" or token.text in ("-", "+") for token in tokens)
    return _Side(text, value, numbers[0].place if is_printed else None)


def _is_label(tokens: Sequence[_Token]) -> bool:
    """Whether the words since the last sentence or comma hold nothing that computes."""
    clause: list[_Token] = []
    for token in tokens:
        clause = [] if token.kind in ("end", "comma") else [*clause, token]
    kinds = {token.kind for token in clause}
    return "word" in kinds and not kinds & {"number", "quantity", "operator", "function"}


def _agree(left: _Side, right: _Side, *, is_rounded: bool) -> bool:
    places = [side.place for side in (left, right) if side.place is not None and (is_rounded or side.place < 1)]
    return abs(left.value - right.value) <= max(places, default=Fraction(0)) / 2


def _shown(side: _Side) -> str:
    if side.place is not None:
        return side.text
    value = exact(side.value)
    return f"{side.text[:60]} = {value if len(value) <= 20 else value[:20] + '…'}"
