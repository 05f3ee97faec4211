"""Where two replies differ: the alignment behind the Levenshtein distance (paper Section 3.1), made readable."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from rapidfuzz.distance import Levenshtein

from robust_jax.difficulty.tokens import math_tokens

Kind = Literal["equal", "insert", "delete", "replace"]


class Segment(NamedTuple):
    """A stretch of an alignment that is of one kind."""

    kind: Kind
    before: str
    """Tokens of the first text; empty for an insertion."""
    after: str
    """Tokens of the second text; empty for a deletion."""


class Opcode(NamedTuple):
    """Tokens [before_start, before_end) of the first list stand against [after_start, after_end) of the second."""

    kind: Kind
    before_start: int
    before_end: int
    after_start: int
    after_end: int


def align(before: Sequence[str], after: Sequence[str]) -> list[Opcode]:
    """A shortest way from one list of tokens to the other: insertions, deletions and substitutions cost 1 a token."""
    return [Opcode(*code) for code in Levenshtein.opcodes(before, after).as_list()]


def differences(before: str, after: str) -> list[Segment]:
    """The alignment of two texts' math tokens. The segments keep the second text's line breaks."""
    old, _ = _tokens_by_line(before)
    new, gaps = _tokens_by_line(after)
    spaced = [gap + token for gap, token in zip(gaps, new, strict=True)]
    return [
        Segment(
            code.kind,
            " ".join(old[code.before_start : code.before_end]),
            "".join(spaced[code.after_start : code.after_end]),
        )
        for code in align(old, new)
    ]


def _tokens_by_line(text: str) -> tuple[list[str], list[str]]:
    """The text's math tokens, and what stands before each: nothing, a space, or a line break."""
    tokens: list[str] = []
    gaps: list[str] = []
    for line in text.splitlines():
        found = math_tokens(line)
        if found:
            gaps += ["\n" if tokens else "", *[" "] * (len(found) - 1)]
            tokens += found
    return tokens, gaps
