r"""Where a problem's text is LaTeX or a drawing, so that words are only looked for elsewhere."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

Kind = Literal["drawing", "math", "command"]


class Span(NamedTuple):
    """A stretch of text, from `start` up to `end`."""

    start: int
    end: int
    kind: Kind
    """drawing: code that draws a picture; math: between signs such as `$`; command: a `\\name` and what it names."""


_OPENING = re.compile(
    r"\[(?P<drawing>asy)\]"
    r"|\\begin\{(?P<environment>[A-Za-z]+\*?)\}"
    r"|(?P<sign>\$\$|\\\[|\\\(|(?<!\\)\$(?=\S))"
    r"|(?P<command>\\(?:[A-Za-z]+|.))",
    re.DOTALL,
)
_CLOSING = {"$$": "$$", r"\[": r"\]", r"\(": r"\)"}
_DRAWINGS = ("asy", "tikzpicture", "picture")
_DOLLAR = re.compile(r"(?<!\\)\$")
_NAMED = re.compile(r"\\(?:begin|end)\{[^{}]*\}|\\(?:[A-Za-z]+|.)", re.DOTALL)
_WORDS = re.compile(r"\\(?:text(?:bf|it|rm|sf)?|mbox)\s?\{([^{}]*)\}")


def latex_spans(text: str) -> list[Span]:
    """Drawings, formulas and commands outside formulas, in order and without overlap.

    A sign without its partner is no formula. The time it takes is linear in the text.
    """
    return list(_spans(text))


def _spans(text: str) -> Iterator[Span]:
    unclosed: set[str] = set()
    position = 0
    while opening := _OPENING.search(text, position):
        position = opening.end()
        if opening["command"]:
            yield Span(opening.start(), opening.end(), "command")
            continue
        name = opening["drawing"] or opening["environment"]
        closing = _closing(opening)
        end = -1 if closing in unclosed else _find(closing, text, position)
        if end >= 0:
            yield Span(opening.start(), end, "drawing" if name in _DRAWINGS else "math")
            position = end
            continue
        if closing != "$":
            unclosed.add(closing)
        if opening["environment"]:
            yield Span(opening.start(), opening.end(), "command")


def _closing(opening: re.Match[str]) -> str:
    if opening["drawing"]:
        return "[/asy]"
    if opening["environment"]:
        return rf"\end{{{opening['environment']}}}"
    return _CLOSING.get(opening["sign"], "$")


def _find(closing: str, text: str, position: int) -> int:
    """Where the closing sign ends; -1 if there is none."""
    if closing == "$":
        found = _DOLLAR.search(text, position)
        # A dollar sign behind a space or before a digit belongs to a price: then the one before it did, too.
        is_price = found and (text[found.start() - 1].isspace() or text[found.end() : found.end() + 1].isdigit())
        return found.end() if found and not is_price else -1
    start = text.find(closing, position)
    return start + len(closing) if start >= 0 else -1


def commands(text: str, within: Span) -> list[Span]:
    """The commands inside a formula, with the names of environments."""
    return [Span(found.start(), found.end(), "command") for found in _NAMED.finditer(text, within.start, within.end)]


def words_in_math(text: str, within: Span) -> list[Span]:
    r"""The plain words inside a formula: what stands in `\text{}` and its kin."""
    return [Span(*found.span(1), "math") for found in _WORDS.finditer(text, within.start, within.end)]


class Mask:
    """Answers whether a stretch of text touches any of some spans, which are in order and do not overlap."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._starts = [span.start for span in spans]
        self._ends = [span.end for span in spans]

    def touches(self, start: int, end: int) -> bool:
        place = bisect_right(self._ends, start)
        return place < len(self._starts) and self._starts[place] < end
