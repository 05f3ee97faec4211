"""What a slot may hold: exact, lazy number grids and short tuples of words, numbers or pairs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import overload

from robust_jax.problems.arithmetic import whole
from robust_jax.types import Number, Value


@dataclass(frozen=True)
class Grid(Sequence[Number]):
    """The numbers start, start + step, …, `length` of them, exact and never written out."""

    start: Number
    step: Number
    length: int

    @classmethod
    def between(cls, start: Number, stop: Number, step: Number = 1) -> Grid:
        """The grid from `start` to `stop`, both ends included where the step meets the end.

        Raises:
            ValueError: the step is not positive, the grid is empty, or it is too long to count.
        """
        if step <= 0:
            raise ValueError("the step has to be positive")
        if stop < start:
            raise ValueError("the end lies before the start")
        length = int((stop - start) // step) + 1
        if length > sys.maxsize:
            raise ValueError("it has too many values")
        return cls(whole(start), whole(step), length)

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, index: int) -> Number: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Number]: ...
    def __getitem__(self, index: int | slice) -> Number | Sequence[Number]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self.length))]
        if not -self.length <= index < self.length:
            raise IndexError(index)
        return whole(self.start + self.step * (index % self.length))

    def __iter__(self) -> Iterator[Number]:
        if isinstance(self.start, int) and isinstance(self.step, int):
            return iter(range(self.start, self.start + self.step * self.length, self.step))
        return (whole(self.start + self.step * index) for index in range(self.length))

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, (int, Fraction)):
            return False
        index = Fraction(value - self.start) / self.step
        return index.denominator == 1 and 0 <= index < self.length


def common_kind(domain: Sequence[Value]) -> type | None:
    """The one kind of value that a domain holds: `str`, `Pair`, or `Fraction` for all numbers; None if they differ."""
    if isinstance(domain, Grid):
        return Fraction
    kinds = {Fraction if isinstance(value, (int, Fraction)) else type(value) for value in domain}
    return kinds.pop() if len(kinds) == 1 else None
