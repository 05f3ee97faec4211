"""Text with holes: literal pieces and `{expression}` holes, parsed once and written out for any slot values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from robust_jax.errors import InputError
from robust_jax.problems.arithmetic import round_half_up
from robust_jax.problems.expressions import Expression, Values, parse
from robust_jax.types import Number, Pair, Point, Slot, Value

MAX_PLACES = 20
EXACT_PLACES = 6
"""A number without a format is printed in full if it has at most so many decimals."""

_PIECE = re.compile(r"""(?P<literal>(?:[^{}]|\{\{|\}\})+)|\{(?P<hole>(?:[^{}'"]|'[^']*'|"[^"]*")*)\}""")
_FORMAT = re.compile(r":(?=.)(?P<comma>,?)(?:\.(?P<places>\d{1,2})f)?$")


@dataclass(frozen=True)
class Hole:
    """One `{expression}` of a text."""

    expression: Expression
    rounded_to: int | None = None
    """Decimals that a format such as `:.2f` asks for; None prints the exact number."""
    thousands: bool = False
    """Whether thousands are separated by commas."""
    least_places: int = 0
    """Decimals that a bare slot is printed with at least."""
    as_fraction: bool = False
    """Whether a number that has no short decimal is printed as a fraction such as 1/3."""
    capital: bool = False
    """Whether the first letter is written large, as where a sentence begins."""

    def render(self, values: Values) -> str:
        """The hole's text at these values.

        Raises:
            InputError: it has no value there, or none that can be printed without a format.
        """
        value = self.expression(values)
        has_format = self.rounded_to is not None or self.thousands
        if value.__class__ is int and not has_format and not self.least_places:
            return str(value)
        if isinstance(value, Pair):
            value = value.number if has_format else value.word
        if isinstance(value, str) and not has_format:
            return value[:1].upper() + value[1:] if self.capital else value
        if isinstance(value, (str, bool)):
            raise self._error(f"{value} cannot be printed with that format")
        places = self.rounded_to
        if places is None:
            places = exact_places(value, max(EXACT_PLACES, self.least_places))
            if places is None and self.as_fraction:
                return str(value)
            if places is None:
                raise self._error(f"{value} has no short exact decimal: add a format such as :.2f")
            places = max(places, self.least_places)
        return decimal(value, places, thousands=self.thousands)

    def _error(self, reason: str) -> InputError:
        return InputError(f"{self.expression.where}: '{self.expression.source}': {reason}")


@dataclass(frozen=True)
class Text:
    """Literal pieces and holes in order."""

    pieces: tuple[str | Hole, ...]

    @cached_property
    def expressions(self) -> tuple[Expression, ...]:
        """The holes' expressions, in order."""
        return tuple(piece.expression for piece in self.pieces if isinstance(piece, Hole))

    @cached_property
    def names(self) -> frozenset[str]:
        """The slots that the text mentions."""
        return frozenset().union(*(expression.names for expression in self.expressions))

    def render(self, values: Values) -> str:
        """The text at these slot values."""
        return "".join([piece if isinstance(piece, str) else piece.render(values) for piece in self.pieces])


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
            shown = " ".join(source[position : position + 30].split())
            raise InputError(
                f"{where}: the brace in '{shown}' has no partner or is nested: write {{{{ for a literal one"
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
    expression = parse(source[: format_.start()] if format_ else source, places, where=where)
    if expression.kind == "boolean":
        raise InputError(f"{where}: '{expression.source}' is true or false: it cannot be printed")
    least_places = places.get(expression.source, 0)
    if format_ is None:
        return Hole(expression, least_places=least_places)
    rounded_to = int(format_["places"]) if format_["places"] else None
    if rounded_to is not None and rounded_to > MAX_PLACES:
        raise InputError(f"{where}: '{source}' asks for more than {MAX_PLACES} decimals")
    return Hole(expression, rounded_to, thousands=bool(format_["comma"]), least_places=least_places)


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
    return next((places for places in range(most + 1) if 10**places % number.denominator == 0), None)


@lru_cache(maxsize=100_000)
def exact(number: Number) -> str:
    """An exact and readable spelling of a number: a decimal if it is short, else a fraction such as 1/3."""
    places = exact_places(number)
    return str(number) if places is None else decimal(number, places)


def key_of(point: Point) -> str:
    """The key of a filling, such as `Ava|12|5`; a backslash marks a bar within a word."""
    return "|".join([str(value) if value.__class__ is int else _key_part(value) for value in point])


def _key_part(value: Value) -> str:
    if isinstance(value, Pair):
        value = value.word
    if isinstance(value, str):
        return value.replace("\\", "\\\\").replace("|", "\\|") if "|" in value or "\\" in value else value
    return exact(value)
