"""Intervals by a bootstrap over clusters.

The variations of one template resemble each other, so they are one cluster: whole templates are drawn again, never
single variations (paper Section 3.2 and Appendix C.3.3 average over templates in the same way).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

Statistic = Callable[..., Float[np.ndarray, " S"]]
"""Takes columns of shape (S, C), one row a resample and one column a cluster, and gives one number a resample."""


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval."""

    value: float
    """The estimate itself; NaN where there was nothing to estimate from."""
    low: float
    """NaN, like `high`, below two clusters: one cluster tells nothing of the spread between clusters."""
    high: float
    n: int
    """How many clusters the estimate rests on."""

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of 0; False where there is none."""
        return self.low > 0 or self.high < 0


def bootstrap(
    statistic: Statistic,
    *columns: Float[np.ndarray, " C"],
    generator: np.random.Generator,
    resamples: int = 2_000,
    level: float = 0.95,
) -> Interval:
    """Percentile interval of a statistic: [q_{(1−level)/2}, q_{(1+level)/2}] of its values on resampled clusters.

    Every resample draws C of the C clusters with replacement and takes all columns of a drawn cluster together, which
    makes the bootstrap paired. A cluster with NaN in any column is left out beforehand, and so is a resample on which
    the statistic is not finite.

    Args:
        statistic: takes the resampled columns, each of shape (S, C), and gives S numbers; with S = 1 for the estimate.
        columns: one value a cluster each.
        generator: draws the clusters.
        resamples: how many resamples are drawn.
        level: the share of resamples inside the interval.
    """
    table = np.stack(columns)
    table = table[:, ~np.isnan(table).any(axis=0)]
    n = table.shape[1]
    if n == 0:
        return Interval(np.nan, np.nan, np.nan, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = statistic(*table[:, None]).item()
        if n == 1:
            return Interval(value, np.nan, np.nan, 1)
        replicates = statistic(*table[:, generator.integers(n, size=(resamples, n))])
    finite = replicates[np.isfinite(replicates)]
    if not finite.size:
        return Interval(value, np.nan, np.nan, n)
    low, high = np.quantile(finite, [(1 - level) / 2, (1 + level) / 2])
    return Interval(value, float(low), float(high), n)


def mean(values: Float[np.ndarray, "S C"]) -> Float[np.ndarray, " S"]:
    """Mean over clusters, each with the same weight."""
    return values.mean(axis=-1)


def mean_difference(first: Float[np.ndarray, "S C"], second: Float[np.ndarray, "S C"]) -> Float[np.ndarray, " S"]:
    """Mean over clusters of first − second: with `bootstrap`, the paired comparison of two treatments."""
    return (first - second).mean(axis=-1)


def median(values: Float[np.ndarray, "S C"]) -> Float[np.ndarray, " S"]:
    """Median over clusters."""
    return np.median(values, axis=-1)
