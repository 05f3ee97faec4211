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
    p: float
    """Two-sided p of as uneven a split if either direction were as likely; 1 where nothing changed."""


def mcnemar(before: Float[np.ndarray, " C"], after: Float[np.ndarray, " C"]) -> Changes:
    """McNemar's exact test over items: p = P(|X − n/2| ≥ |fell − n/2|), X ~ Binomial(n = fell + rose, ½).

    With one attempt an item this is the test itself; with several it is the sign test of the items' mean accuracies,
    so that an item counts once however often it was tried. Items with NaN on either side are left out.
    """
    difference = after - before
    fell, rose = int((difference < 0).sum()), int((difference > 0).sum())
    return Changes(fell, rose, float(binomtest(fell, fell + rose).pvalue) if fell + rose else 1.0)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjustment: the chance of a single false alarm among all the tests stays below the level.

    Sorted, p₍ᵢ₎ becomes max_{j ≤ i} min(1, (m − j + 1) · p₍ⱼ₎).
    """
    order = np.argsort(p_values, kind="stable")
    adjusted = np.empty(len(p_values))
    largest = 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = largest
    return [float(p) for p in adjusted]
