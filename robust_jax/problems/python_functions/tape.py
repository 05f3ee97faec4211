"""One run of a template function: what it draws, in order, either recorded from a seed or played from chosen values."""

from __future__ import annotations

import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from robust_jax.problems.arithmetic import whole
from robust_jax.problems.domains import Grid
from robust_jax.types import Pair, Value

T = TypeVar("T")

MAX_DRAWS = 2_000
"""Draws of one run."""
_LONGEST_WORD = 200


class Site(NamedTuple):
    """Where a draw happens: the same draw of two runs has the same site, however many draws stand before it."""

    file: str
    line: int
    occurrence: int
    """How many draws at that line came before."""


class Draw(NamedTuple):
    site: Site
    value: Value
    domain: Sequence[Value]
    """What could have been drawn there in this run."""


class DrawnFloat(float):
    """A recorded float that remembers the most decimals it was rounded or printed to."""

    places: int | None = None

    def __round__(self, ndigits: int | None = None) -> Any:  # type: ignore[override]
        self.places = max(self.places or 0, ndigits or 0)
        return round(float(self), ndigits)

    def __format__(self, spec: str) -> str:
        digits = spec.removesuffix("f").rpartition(".")[2]
        if spec.endswith("f") and digits.isdecimal():
            self.places = max(self.places or 0, int(digits))
        return format(float(self), spec)


class UnknownSource(Exception):
    """The function drew something that no slot can hold."""


_current: ContextVar[Tape | None] = ContextVar("tape", default=None)


@contextmanager
def playing(tape: Tape) -> Iterator[None]:
    """Let every draw of this thread go over a tape."""
    token = _current.set(tape)
    try:
        yield
    finally:
        _current.reset(token)


def current_tape() -> Tape:
    """The tape that is playing. What a file draws while it is imported is no slot, and the same every time."""
    return _current.get() or Tape(files=(), max_values=100, generators=(random.Random(0), np.random.RandomState(0)))


@dataclass
class Tape:
    """Answers every draw of one run and writes it down.

    A recording asks the generators, exactly as a plain call under the same seed would. A playback takes the value that
    it was given for the draw's site, if that may be drawn there, and otherwise draws from what may.
    """

    files: Collection[str]
    """The files whose lines are sites."""
    max_values: int
    """Most values of a grid that stands for a continuous draw."""
    generators: tuple[random.Random, np.random.RandomState] | None = None
    """What a recording asks; None for a playback."""
    values: Mapping[Site, Value] | Sequence[Value] = ()
    """What is played: by site, or in the order of the draws."""
    fallback: np.random.Generator | None = None
    """Draws what `values` does not give."""
    places: Mapping[Site, int] | None = None
    """Decimals of continuous draws, as far as they are known."""

    def __post_init__(self) -> None:
        self.draws: list[Draw] = []
        self.floats: dict[Site, DrawnFloat] = {}
        """The continuous draws of a recording."""
        self.is_exact = True
        """Whether every draw so far was given a value that may be drawn there."""
        self._counts: Counter[tuple[str, int]] = Counter()

    def actual(self, ask: Callable[[random.Random, np.random.RandomState], T]) -> T | None:
        """What the generators give, if this is a recording."""
        return None if self.generators is None else ask(*self.generators)

    def pick(self, elements: Sequence[T], actual: T | None) -> T:
        """One of some elements."""
        if not len(elements):
            raise IndexError("cannot choose from nothing")
        site = self._site()
        if isinstance(elements, range):
            return self._integer(site, elements, actual)  # type: ignore[return-value, arg-type]
        domain = _labels(elements)
        if self.generators is not None:
            index = _position(elements, actual)
        elif (value := self._value(site)) in domain:
            index = domain.index(value)
        else:
            index = self._drawn_instead(len(domain))
        self._note(Draw(site, domain[index], domain))
        return elements[index]

    def _integer(self, site: Site, numbers: range, actual: int | None) -> int:
        """One of a range, which becomes a grid of a bounded number of values."""
        stride = max(1, -(-len(numbers) // self.max_values))
        thinned = numbers[::stride] if numbers.step > 0 else numbers[::-stride][::-1]
        domain = Grid(min(thinned), abs(thinned.step), len(thinned))
        value = self._value(site) if actual is None else actual
        if not isinstance(value, int) or value not in numbers:
            value = int(domain[self._drawn_instead(len(domain))])
        self._note(Draw(site, value, domain))
        return value

    def real(self, low: float, high: float, actual: float | None, typical: tuple[float, ...] = ()) -> float:
        """A number from a continuous distribution.

        Args:
            low: least possible value.
            high: greatest possible value.
            typical: values to choose from where the distribution is not even; none for an even one.
        """
        site = self._site()
        if actual is not None:
            self.floats[site] = drawn = DrawnFloat(actual)
            self._note(Draw(site, _label(float(actual)), ()))
            return drawn
        places = (self.places or {}).get(site)
        make = partial(_typical_grid, typical) if typical else partial(_even_grid, low, high)
        domain = make(places, self.max_values)
        given = self._value(site)
        if isinstance(given, (int, Fraction)) and low <= given <= high:
            value: Value = given
        else:
            value = domain[self._drawn_instead(len(domain))]
        self._note(Draw(site, value, domain))
        assert not isinstance(value, (str, Pair))
        return float(value)

    def _site(self) -> Site:
        frame = sys._getframe(2)
        while frame.f_back is not None and frame.f_code.co_filename not in self.files:
            frame = frame.f_back
        place = (frame.f_code.co_filename, frame.f_lineno)
        self._counts[place] += 1
        return Site(*place, self._counts[place])

    def _note(self, draw: Draw) -> None:
        self.draws.append(draw)
        if len(self.draws) > MAX_DRAWS:
            raise UnknownSource(f"it draws more than {MAX_DRAWS} times")

    def _value(self, site: Site) -> Value | None:
        if isinstance(self.values, Mapping):
            return self.values.get(site)
        return self.values[len(self.draws)] if len(self.draws) < len(self.values) else None

    def _drawn_instead(self, count: int) -> int:
        """A position to take where no value was given that may be drawn."""
        self.is_exact = False
        if self.fallback is None:
            raise UnknownSource("it draws more than it was given values for")
        return int(self.fallback.integers(count))


# --------------------------------------------------------------------------------------------------
# Elements as the values of slots


def _labels(elements: Sequence[Any]) -> tuple[Value, ...]:
    """A value for every element, all of one kind; equal values stand for elements that print the same."""
    if all(type(element) is str for element in elements):
        return tuple(elements)
    labels = [_label(element) for element in elements]
    kinds = {int if isinstance(label, (int, Fraction)) else type(label) for label in labels}
    is_distinct = len(set(labels)) == len({repr(element) for element in elements})
    if len(kinds) == 1 and Pair not in kinds and is_distinct:
        return tuple(labels)
    return tuple(Pair(_word(element, index), index) for index, element in enumerate(elements))


def _label(element: object) -> Value:
    if isinstance(element, (int, np.integer)) and not isinstance(element, bool):
        return int(element)
    if isinstance(element, (float, np.floating)) and math.isfinite(element):
        return whole(Fraction(repr(float(element))))
    if isinstance(element, str):
        return str(element)
    return Pair("", 0)


def _word(element: object, index: int) -> str:
    word = " ".join(repr(element).split())
    # The address of an object differs from run to run.
    return f"item {index + 1}" if " at 0x" in word or len(word) > _LONGEST_WORD else word


def _position(elements: Sequence[Any], actual: object) -> int:
    """Which element was drawn: the very object, or one that prints the same."""
    if isinstance(elements, range):
        return elements.index(actual)  # type: ignore[arg-type]
    for index, element in enumerate(elements):
        if element is actual:
            return index
    for index, element in enumerate(elements):
        if type(element) is type(actual) and repr(element) == repr(actual):
            return index
    raise UnknownSource(f"it drew {actual!r:.80}, which is not among what it drew from")


# --------------------------------------------------------------------------------------------------
# Grids for continuous draws


@lru_cache(maxsize=10_000)
def _even_grid(low: float, high: float, places: int | None, most: int) -> Grid:
    """Decimals between two ends, evenly spaced; without known places so many that there are about 100 steps."""
    least, greatest = sorted((Fraction(repr(float(low))), Fraction(repr(float(high)))))
    if places is None:
        places = max(0, 2 - math.floor(math.log10(greatest - least))) if greatest > least else 6
    step = Fraction(1, 10**places)
    first, last = math.ceil(least / step), math.floor(greatest / step)
    if last < first:
        return Grid(whole(least), 1, 1)
    stride = math.ceil((last - first + 1) / most)
    return Grid(whole(first * step), whole(stride * step), (last - first) // stride + 1)


@lru_cache(maxsize=10_000)
def _typical_grid(typical: tuple[float, ...], places: int | None, most: int) -> tuple[Value, ...]:
    if places is None:
        spread = max(typical) - min(typical)
        places = max(0, 2 - math.floor(math.log10(spread))) if spread > 0 else 6
    values = tuple(dict.fromkeys(whole(Fraction(repr(round(number, places)))) for number in typical))
    return values[:: math.ceil(len(values) / most)]
