"""How a metric is distributed over right and over wrong answers (paper Figures 7 and 27–37)."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

OUTER = 0.005
"""Share of the values that lies beyond each end of the bins: one huge distance must not squeeze all others together."""


@dataclass(frozen=True, eq=False)
class Distribution:
    """Counts of answers in equal bins; the outer bins also hold what lies beyond them."""

    edges: Float[np.ndarray, " _"]
    """One more than there are bins."""
    right: Int[np.ndarray, " bins"]
    wrong: Int[np.ndarray, " bins"]


def distribution(
    values: Float[np.ndarray, " n"], correct: Bool[np.ndarray, " n"], bins: int = 40
) -> Distribution | None:
    """The distribution of a metric; None where no value is finite.

    Args:
        values: the raw metric of each answer; NaN and infinities are left out.
        correct: whether each answer was right.
        bins: how many.
    """
    usable = np.isfinite(values)
    values, correct = values[usable].astype(np.float64), correct[usable]
    if not values.size:
        return None
    low, high = np.quantile(values, [OUTER, 1 - OUTER])
    # Where almost all values are one, floating point has no room for the bins between them: they go round it.
    least = 4 * bins * np.spacing(max(abs(low), abs(high)))
    if high - low <= least:
        low, high = low - max(0.5, least), high + max(0.5, least)
    edges = np.linspace(low, high, bins + 1)
    inside = np.clip(values, edges[0], edges[-1])
    return Distribution(edges, np.histogram(inside[correct], edges)[0], np.histogram(inside[~correct], edges)[0])
