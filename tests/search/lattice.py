"""Small search spaces for the tests: a lattice with forbidden points."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from hypothesis import strategies as st

Point = tuple[int, ...]


class Lattice:
    """All points of a box but the forbidden ones; neighbours differ in one coordinate."""

    def __init__(
        self,
        sizes: Sequence[int],
        forbidden: frozenset[Point] = frozenset(),
        cheap: Mapping[Point, float] | None = None,
    ) -> None:
        self.sizes = tuple(sizes)
        self.forbidden = forbidden
        self.estimates = cheap or {}
        self.cheap_calls: list[list[Point]] = []
        self.draws = 0

    def is_valid(self, point: Point) -> bool:
        return point not in self.forbidden and all(
            0 <= value < size for value, size in zip(point, self.sizes, strict=True)
        )

    def points(self) -> list[Point]:
        return [p for p in itertools.product(*map(range, self.sizes)) if self.is_valid(p)]

    def random(self, generator: np.random.Generator) -> Point:
        while True:
            self.draws += 1
            point = tuple(int(generator.integers(size)) for size in self.sizes)
            if self.is_valid(point):
                return point

    def neighbours(self, point: Point) -> Iterator[Point]:
        for slot, size in enumerate(self.sizes):
            for value in range(size):
                other = (*point[:slot], value, *point[slot + 1 :])
                if value != point[slot] and self.is_valid(other):
                    yield other

    def key(self, point: Point) -> str:
        return ",".join(map(str, point))

    def cheap(self, points: Sequence[Point]) -> np.ndarray:
        self.cheap_calls.append(list(points))
        return np.array([self.estimates.get(point, float(sum(point))) for point in points], float)

    def ask(self, point: Point) -> str:
        return self.key(point)


values = st.sampled_from([0.0, 1.0, 2.0, math.nan, -math.inf, math.inf, 0.5])
"""Few values, so that ties are common."""


@st.composite
def lattices(draw: st.DrawFn) -> Lattice:
    """A lattice of 1 to 64 points, often with constraints and tied or missing estimates."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    points = Lattice(sizes).points()
    forbidden = draw(st.sets(st.sampled_from(points), max_size=len(points) - 1))
    estimates = draw(st.just(None) | st.fixed_dictionaries({point: values for point in points}))
    return Lattice(sizes, frozenset(forbidden), estimates)
