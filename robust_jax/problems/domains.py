"""What a slot may hold: exact, lazy number grids and short tuples of words, numbers or pairs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import overload

from robust_jax.problems.expressions import whole
from robust_jax.types import Number, Value


@dataclass(frozen=True)
class Grid(Sequence[Number]):
    """The numbers start, start + step, …, `count` of them, exact and never written out."""

    start: Number
    step: Number
    count: int

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
        count = int((stop - start) // step) + 1
        if count > sys.maxsize:
            raise ValueError("it has too many values")
        return cls(whole(start), whole(step), count)

    def __len__(self) -> int:
        return self.count

    @overload
    def __getitem__(self, index: int) -> Number: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Number]: ...
    def __getitem__(self, index: int | slice) -> Number | Sequence[Number]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self.count))]
        if not -self.count <= index < self.count:
            raise IndexError(index)
        return whole(self.start + self.step * (index % self.count))

    def __iter__(self) -> Iterator[Number]:
        if isinstance(self.start, int) and isinstance(self.step, int):
            return iter(range(self.start, self.start + self.step * self.count, self.step))
        return (whole(self.start + self.step * index) for index in range(self.count))

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, (int, Fraction)):
            return False
        index = Fraction(value - self.start) / self.step
        return index.denominator == 1 and 0 <= index < self.count


def common_kind(domain: Sequence[Value]) -> type | None:
    """The one kind of value that a tuple holds (`str`, `Pair`, or `Fraction` for every number); None if they differ."""
    kinds = {Fraction if isinstance(value, (int, Fraction)) else type(value) for value in domain}
    return kinds.pop() if len(kinds) == 1 else None
