"""Which slots of a template, and which of their values, make it hard: marginal effects on variations drawn at random.

The effect of a value is a difference of means: variations that have it minus those that do not. Variations drawn at
random are uniform over a template's valid fillings, so nothing that the search prefers biases it. Where constraints tie
slots together it is the effect of the value with all that comes with it.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from robust_jax.analysis.auc import mean_ranks
from robust_jax.analysis.intervals import Interval

MOST_SINGLE_NUMBERS = 8
"""Numeric slots with more distinct values are cut into ranges."""
RANGES = 5
"""Quantiles of such a slot, of about as many variations each."""
LEAST_VARIATIONS = 10
"""Values that fewer variations have are not looked at."""
FALSE_DISCOVERIES = 0.05
"""Share of chance findings that is allowed among the effects called clear."""
RESAMPLES = 200
NORMAL = NormalDist()
Z = NORMAL.inv_cdf(0.975)


class Group(NamedTuple):
    """A value of a slot, or a range of its values."""

    label: str
    values: frozenset[str]
    """As they are printed."""


class Effect(NamedTuple):
    """A difference of means with its 95% interval and how likely chance alone makes one as large."""

    interval: Interval
    """n: the variations that have the value."""
    p_value: float


@dataclass(frozen=True)
class ValueEffect:
    """What one value of a slot does."""

    group: Group
    error: Effect
    """On the share of wrong answers."""
    difficulty: Effect
    """On the percentile of the difficulty among the template's random variations, as a share of 1."""


def value_groups(values: Sequence[str]) -> list[Group]:
    """The values that occur, words each by itself and many different numbers in ranges, in order."""
    numbers = [_number(value) for value in values]
    distinct = sorted(set(values), key=lambda value: (_number(value) or 0, value))
    if None in numbers or len(distinct) <= MOST_SINGLE_NUMBERS:
        return [Group(value, frozenset([value])) for value in distinct]
    counted = Counter(values)
    counts = np.array([counted[value] for value in distinct])
    of_value = (RANGES * (counts.cumsum() - counts / 2) / len(values)).astype(int)
    groups = []
    for number in np.unique(of_value):
        members = [value for value, of in zip(distinct, of_value, strict=True) if of == number]
        label = members[0] if len(members) == 1 else f"{members[0]} to {members[-1]}"
        groups.append(Group(label, frozenset(members)))
    return groups


def value_effects(
    values: Sequence[str], wrong: Bool[np.ndarray, " C"], difficulty: Float[np.ndarray, " C"]
) -> list[ValueEffect]:
    """The effect of every value of one slot that enough random variations have, and not nearly all.

    Args:
        values: the slot's value in each of C variations, as printed.
        wrong: whether each was answered wrong.
        difficulty: its difficulty; NaN counts for nothing.
    """
    percentile = percentiles(difficulty)
    effects = []
    for group in value_groups(values):
        has = np.array([value in group.values for value in values])
        if min(has.sum(), (~has).sum()) >= LEAST_VARIATIONS:
            error = proportion_difference(wrong[has], wrong[~has])
            effects.append(ValueEffect(group, error, mean_difference(percentile[has], percentile[~has])))
    return effects


def percentiles(values: Float[np.ndarray, " C"]) -> Float[np.ndarray, " C"]:
    """Ranks between 0 and 1, ties sharing the middle one; NaN stays."""
    found = np.full(len(values), np.nan)
    known = ~np.isnan(values)
    if known.any():
        found[known] = (mean_ranks(values[known]) - 0.5) / known.sum()
    return found


def proportion_difference(first: Bool[np.ndarray, " _"], second: Bool[np.ndarray, " _"]) -> Effect:
    """Share of true in `first` minus that in `second`, with the interval of Agresti and Caffo (2000)."""
    value = first.mean() - second.mean()
    shrunk = [(part.sum() + 1) / (len(part) + 2) for part in (first, second)]
    variance = sum(p * (1 - p) / (len(part) + 2) for p, part in zip(shrunk, (first, second), strict=True))
    return _effect(float(value), float(shrunk[0] - shrunk[1]), math.sqrt(variance), len(first))


def mean_difference(first: Float[np.ndarray, " _"], second: Float[np.ndarray, " _"]) -> Effect:
    """Mean of `first` minus that of `second`, with a normal interval; NaN counts for nothing."""
    first, second = first[~np.isnan(first)], second[~np.isnan(second)]
    if min(len(first), len(second)) < LEAST_VARIATIONS:
        return Effect(Interval(math.nan, math.nan, math.nan, len(first)), 1.0)
    value = float(first.mean() - second.mean())
    error = math.sqrt(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second))
    return _effect(value, value, error, len(first))


def _effect(value: float, centre: float, error: float, n: int) -> Effect:
    if error == 0:  # both sides constant
        return Effect(Interval(value, centre, centre, n), float(centre == 0))
    p_value = 2 * NORMAL.cdf(-abs(centre) / error)
    return Effect(Interval(value, centre - Z * error, centre + Z * error, n), p_value)


def clear(p_values: Sequence[float]) -> Bool[np.ndarray, " C"]:
    """Which of many effects are clear of chance, by the rule of Benjamini and Hochberg (1995)."""
    order = np.argsort(p_values)
    passed = np.asarray(p_values)[order] <= FALSE_DISCOVERIES * np.arange(1, len(order) + 1) / max(1, len(order))
    found = np.zeros(len(order), bool)
    found[order[: np.flatnonzero(passed)[-1] + 1 if passed.any() else 0]] = True
    return found


def explained_share(
    groups: Int[np.ndarray, " C"], outcome: Float[np.ndarray, " C"], *, generator: np.random.Generator
) -> Interval:
    """How much of an outcome's variance a slot explains, ε² = 1 − (1 − η²)(n − 1)/(n − k), at least 0.

    The interval is of a bootstrap over variations, less its bias: among resampled variations are copies, which makes
    groups look alike. NaN where the outcome never varies.

    Args:
        groups: number of the slot's group in each of C variations.
        outcome: NaN counts for nothing.
        generator: draws the resamples.
    """
    known = ~np.isnan(outcome)
    groups, outcome = groups[known], outcome[known]
    n = len(outcome)
    if n <= len(np.unique(groups)) or outcome.var() == 0:
        return Interval(math.nan, math.nan, math.nan, n)
    value = _epsilon_squared(groups, outcome)
    draws = [_epsilon_squared(groups[rows], outcome[rows]) for rows in generator.integers(n, size=(RESAMPLES, n))]
    low, high = np.nanquantile(draws, [0.025, 0.975]) - (np.nanmean(draws) - value)
    return Interval(max(0.0, value), max(0.0, float(low)), max(0.0, float(high)), n)


def _epsilon_squared(groups: Int[np.ndarray, " C"], outcome: Float[np.ndarray, " C"]) -> float:
    sizes = np.bincount(groups)
    sums = np.bincount(groups, weights=outcome)
    used = sizes > 0
    n, k = len(outcome), int(used.sum())
    mean = outcome.mean()
    total = float(((outcome - mean) ** 2).sum())
    if total == 0 or n == k:
        return math.nan
    between = float((sizes[used] * (sums[used] / sizes[used] - mean) ** 2).sum())
    return 1 - (1 - between / total) * (n - 1) / (n - k)


def _number(text: str) -> Fraction | None:
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        return None
