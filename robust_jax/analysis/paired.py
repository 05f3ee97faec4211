"""The same items under two treatments: how many change for the worse, and whether that could be chance."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.stats import binomtest


@dataclass(frozen=True)
class Changes:
    """Items whose accuracy differs between two treatments, by McNemar's exact test."""

    fell: int
    """Items that were better before."""
    rose: int
    """Items that are better now."""
    p: float | None
    """Two-sided p of as uneven a split if either direction were as likely; 1 where nothing changed, None where no item
    could be compared."""


def mcnemar(before: Float[np.ndarray, " C"], after: Float[np.ndarray, " C"]) -> Changes:
    """McNemar's exact test over items: p = P(|X − n/2| ≥ |fell − n/2|), X ~ Binomial(n = fell + rose, ½).

    With one attempt an item this is the test itself; with several it is the sign test of the items' mean accuracies,
    so that an item counts once however often it was tried. Items with NaN on either side are left out.
    """
    difference = after - before
    fell, rose = int((difference < 0).sum()), int((difference > 0).sum())
    if not fell + rose:
        return Changes(0, 0, None if np.isnan(difference).all() else 1.0)
    return Changes(fell, rose, float(binomtest(fell, fell + rose).pvalue))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's adjustment: the chance of a single false alarm among all the tests stays below the level.

    Sorted, p₍ᵢ₎ becomes max_{j ≤ i} min(1, (m − j + 1) · p₍ⱼ₎). Tests that could not be made are None and stay out.
    """
    made = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(made):
        largest = max(largest, min(1.0, (len(made) - rank) * p))
        adjusted[place] = largest
    return adjusted
