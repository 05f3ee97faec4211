"""Text with holes: literal pieces and `{expression}` holes, parsed once and written out for any slot values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from robust_jax.errors import InputError
from robust_jax.problems.expressions import Expression, Result, Values, parse, round_half_up
from robust_jax.types import Number, Pair, Slot

MAX_PLACES = 20
EXACT_PLACES = 6
"""A number without a format is printed in full if it has at most so many decimals."""

_PIECE = re.compile(r"""(?P<literal>(?:[^{}]|\{\{|\}\})+)|\{(?P<hole>(?:[^{}'"]|'[^']*'|"[^"]*")*)\}""")
_FORMAT = re.compile(r":(?P<comma>,?)(?:\.(?P<places>\d{1,2})f)?\s*$")


@dataclass(frozen=True)
class Hole:
    """One `{expression}` of a text."""

    expression: Expression
    places: int | None
    """Decimals to print; None prints the exact number."""
    thousands: bool = False
    is_fixed: bool = True
    """Whether `places` was asked for by a format, so that the number is rounded to it."""

    def render(self, values: Values) -> str:
        """The hole's text at these values.

        Raises:
            InputError: it is a number that cannot be written exactly and has no format.
        """
        value = self.expression(values)
        if value.__class__ is int and not self.places and not self.thousands:
            return str(value)
        return self._format(value)

    def _format(self, value: Result) -> str:
        if isinstance(value, bool):
            raise InputError(
                f"{self.expression.where}: '{self.expression.source}' is a condition: it cannot be printed"
            )
        if isinstance(value, Pair):
            value = value.number if self.is_fixed and self.places is not None else value.word
        if isinstance(value, str):
            if self.thousands or (self.is_fixed and self.places is not None):
                raise InputError(f"{self.expression.where}: '{self.expression.source}' is a word: remove its format")
            return value
        places = self.places
        if places is None or (not self.is_fixed and not _has_places(value, places)):
            places = exact_places(value)
        if places is None:
            raise InputError(
                f"{self.expression.where}: '{self.expression.source}' = {value} has no short decimal: "
                "add a format such as :.2f"
            )
        return decimal(value, places, thousands=self.thousands)


@dataclass(frozen=True)
class Text:
    """Literal pieces and holes in order."""

    pieces: tuple[str | Hole, ...]

    @cached_property
    def names(self) -> frozenset[str]:
        """The slots that the text mentions."""
        return frozenset().union(*(piece.expression.names for piece in self.pieces if isinstance(piece, Hole)))

    def render(self, values: Values) -> str:
        """The text at these slot values."""
        return "".join([piece if piece.__class__ is str else piece.render(values) for piece in self.pieces])  # type: ignore[union-attr,misc]


def parse_text(source: str, slots: Sequence[Slot], *, where: str) -> Text:
    """Parse a text whose holes are expressions over the slots.

    Raises:
        InputError: a brace without its partner, or a hole that is no expression.
    """
    places = {slot.name: slot.places for slot in slots}
    pieces: list[str | Hole] = []
    position = 0
    while position < len(source):
        match = _PIECE.match(source, position)
        if match is None:
            raise InputError(
                f"{where}: the brace in '{source[position : position + 30]}' has no partner or is nested: "
                "write {{ or }} for a literal brace"
            )
        literal = match["literal"]
        if literal is not None:
            pieces.append(literal.replace("{{", "{").replace("}}", "}"))
        else:
            pieces.append(_parse_hole(match["hole"], places, where))
        position = match.end()
    return Text(tuple(pieces))


def _parse_hole(source: str, places: Mapping[str, int], where: str) -> Hole:
    format_ = _FORMAT.search(source)
    if format_ is None or not (format_["comma"] or format_["places"]):
        expression = parse(source, places, where=where)
        return Hole(expression, places.get(expression.source), is_fixed=False)
    wanted = int(format_["places"]) if format_["places"] else None
    if wanted is not None and wanted > MAX_PLACES:
        raise InputError(f"{where}: '{source}' asks for more than {MAX_PLACES} decimals")
    expression = parse(source[: format_.start()], places, where=where)
    if wanted is None:
        return Hole(expression, places.get(expression.source), thousands=True, is_fixed=False)
    return Hole(expression, wanted, thousands=bool(format_["comma"]))


def decimal(number: Number, places: int, *, thousands: bool = False) -> str:
    """A number rounded to so many decimals, ties away from zero; what rounds to zero has no sign."""
    scaled = int(round_half_up(number * 10**places))
    digits = str(abs(scaled)).rjust(places + 1, "0")
    integer, fraction = (digits[:-places], "." + digits[-places:]) if places else (digits, "")
    if thousands:
        integer = f"{int(integer):,}"
    return f"{'-' if scaled < 0 else ''}{integer}{fraction}"


def exact_places(number: Number, most: int = EXACT_PLACES) -> int | None:
    """The fewest decimals that write a number exactly; None if it takes more than `most`."""
    return next((places for places in range(most + 1) if _has_places(number, places)), None)


@lru_cache(maxsize=100_000)
def exact(number: Number) -> str:
    """An exact and readable spelling of a number: a decimal if it is short, else a fraction such as 1/3."""
    places = exact_places(number)
    return str(number) if places is None else decimal(number, places)


def _has_places(number: Number, places: int) -> bool:
    return 10**places % number.denominator == 0
