"""Distinct points drawn at random: the baseline of the search, and the search's own exploration."""

from collections.abc import Iterator
from itertools import islice

import numpy as np

from robust_jax.randomness import rng
from robust_jax.types import P, Space

PATIENCE = 1_000
"""Draws in a row that bring nothing new before a space counts as exhausted: by then the points that were never
drawn are very likely less than half a per cent of it."""


def random_points(
    space: Space[P], count: int, *, seed: int, name: str, exclude: frozenset[str] = frozenset()
) -> list[P]:
    """Distinct points of a space, none of them excluded: what beam search is compared with (paper Section 4.2).

    A shorter draw is the beginning of a longer one. There are fewer than `count` points where the space has no more.

    Args:
        space: what to draw from.
        count: how many points.
        seed: the seed of the run.
        name: the space's name, such as its template's id; it keeps the draws of two spaces apart.
        exclude: keys that must not be drawn.
    """
    unseen = unseen_points(space, rng(seed, "baseline", name), set(exclude))
    return [point for _, point in islice(unseen, count)]


def unseen_points(space: Space[P], generator: np.random.Generator, seen: set[str]) -> Iterator[tuple[str, P]]:
    """Random points with their keys, none of them in `seen`, to which every one of them is added.

    Ends when `PATIENCE` draws in a row were all in `seen`.
    """
    misses = 0
    while misses < PATIENCE:
        point = space.random(generator)
        key = space.key(point)
        if key in seen:
            misses += 1
            continue
        misses = 0
        seen.add(key)
        yield key, point
