"""The ideal observer of concepts: which expression that explains the examples is the most probable (Section 4.4).

Expressions are told apart by what they say of the 27 objects alone. An expression of n predicates joins one of i and
one of n − i, so what all expressions of n say, with their probability in total, follows from what the smaller ones say.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64, UInt32

from robust_jax.systematicity.rules.boolean import (
    BOOL_PRIOR,
    COMBINATION_PRIOR,
    CONSTANT_PRIOR,
    FEATURES,
    LABELS,
    PREDICATE_PRIOR,
    Label,
    Object,
)
from robust_jax.systematicity.task import Example

MOST = 5
"""Predicates of the largest expressions: one more than any concept has."""
OBJECTS = tuple(product(range(3), repeat=3))
"""By the numbers of their values."""
EVERYTHING = (1 << len(OBJECTS)) - 1


class Hypotheses(NamedTuple):
    """What all expressions of up to some number of predicates say."""

    tables: UInt32[np.ndarray, " H"]
    """Truth tables, each once: bit i says whether object i is wudsy."""
    priors: Float64[np.ndarray, " H"]
    """Probability of all expressions of each table."""
    sizes: Int64[np.ndarray, " H"]
    """Predicates of the smallest of them; 0 for the constants."""


def solve(support: Sequence[Example[Object, Label]], queries: Sequence[Object]) -> list[Label] | None:
    """What the most probable explanation says of the queries; None where one of as few predicates says otherwise."""
    shown = _table(example.x for example in support)
    wudsy = _table(example.x for example in support if example.y == LABELS[True])
    tables, priors, sizes = hypotheses(MOST)
    consistent = (tables & np.uint32(shown)) == wudsy
    if not consistent.any():
        return None
    tables, priors, sizes = tables[consistent], priors[consistent], sizes[consistent]
    best = int(priors.argmax())
    rivals = tables[sizes <= sizes[best]] & np.uint32(_table(queries))
    if (rivals != rivals[0]).any():
        return None
    return [LABELS[int(tables[best]) >> number(query) & 1] for query in queries]


def fewest_predicates(wudsy: Iterable[Object]) -> int:
    """Predicates of the smallest expression that holds of these objects and no others, none of it above `MOST`."""
    tables, _, sizes = hypotheses(MOST)
    return int(sizes[np.searchsorted(tables, np.uint32(_table(wudsy)))])


def _table(things: Iterable[Object]) -> int:
    """The truth table of what holds of these objects alone."""
    return sum(1 << number(x) for x in things)


def number(x: Object) -> int:
    """The place of an object's bit in a truth table."""
    first, second, third = (FEATURES[feature].index(value) for feature, value in x)
    return (first * 3 + second) * 3 + third


@cache
def hypotheses(most: int) -> Hypotheses:
    """All expressions of up to `most` predicates, the constants included, in the order of their truth tables."""
    parts = [(np.array([0, EVERYTHING], np.uint32), np.full(2, CONSTANT_PRIOR))]
    parts += [(tables, BOOL_PRIOR * priors) for tables, priors in map(expressions, range(1, most + 1))]
    tables, priors = _merged(*map(np.concatenate, zip(*parts, strict=True)))
    sizes = np.full(len(tables), most)
    for size in range(most - 1, -1, -1):
        sizes[np.searchsorted(tables, parts[size][0])] = size
    return Hypotheses(tables, priors, sizes)


@cache
def expressions(predicates: int) -> tuple[UInt32[np.ndarray, " H"], Float64[np.ndarray, " H"]]:
    """The truth tables of expressions of so many predicates, with the probability that BOOL gives them in total."""
    if predicates == 1:
        single = [
            sum(1 << place for place, x in enumerate(OBJECTS) if x[feature] == value)
            for feature, value in product(range(3), repeat=2)
        ]
        return np.array(single, np.uint32), np.full(len(single), PREDICATE_PRIOR)
    found = []
    for left in range(1, predicates):
        (tables, priors), (others, weights) = expressions(left), expressions(predicates - left)
        joint = (COMBINATION_PRIOR * np.outer(priors, weights)).ravel()
        for joined in (tables[:, None] & others, tables[:, None] | others):
            found.append(_merged(joined.ravel(), joint))
    return _merged(*map(np.concatenate, zip(*found, strict=True)))


def _merged(
    tables: UInt32[np.ndarray, " E"], priors: Float64[np.ndarray, " E"]
) -> tuple[UInt32[np.ndarray, " H"], Float64[np.ndarray, " H"]]:
    """Every table once, with the sum of its probabilities."""
    distinct, place = np.unique(tables, return_inverse=True)
    return distinct, np.bincount(place.ravel(), weights=priors, minlength=len(distinct))
