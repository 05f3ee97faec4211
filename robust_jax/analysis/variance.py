r"""How much of a learner's variance comes from the variation of a task, and how much from chance (Appendix A).

A task has K variations τ_k, each attempted N times. A learner solves an attempt at τ_k with probability p_k, so the
success rate p̂_k over its attempts has the mean p_k and the variance p_k(1 − p_k)/N. By the law of total variance,

    Var(p̂) = Var_τ(E[p̂ | τ]) + E_τ[Var(p̂ | τ)] = Var_τ(p_τ) + E_τ[p_τ(1 − p_τ)/N],

the variance between variations and the variance within one. With p̂ = (1/K) Σ p̂_k the estimators are

    total   = 1/(K−1) Σ_k (p̂_k − p̂)²         unbiased for Var(p̂), being the sample variance of K draws of it;
    within  = (1/K) Σ_k p̂_k(1 − p̂_k)/(N−1)    unbiased for E[p(1−p)/N], because E[p̂_k(1 − p̂_k)] = p_k(1−p_k)(N−1)/N;
    between = total − within                   unbiased for Var_τ(p_τ), and therefore sometimes negative.

With `paper` they are the plain moments, 1/K in place of 1/(K−1) and N in place of N−1. Then

    total + N · within = (1/K) Σ (p̂_k² − p̂²) + (1/K) Σ (p̂_k − p̂_k²) = p̂ − p̂² = σ²_max,

so that ρ_within = (1 − ρ_total)/N exactly: a relation that all published cells of Table 1 satisfy to rounding.

σ²_max = p̂(1 − p̂) is the largest variance that success rates of mean p̂ can have; each component over it is a ρ. A task
that is always or never solved has σ²_max = 0 and no ρ. Averages over tasks keep negative values of ρ_between, and only
the average is clipped at 0: clipping every task would make a between-variance out of noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from robust_jax.analysis.intervals import Interval, bootstrap, mean
from robust_jax.analysis.systematicity import Attempts

Estimator = Literal["unbiased", "paper"]


class Components(NamedTuple):
    """The variance components of one task; NaN where K or N leaves an estimator undefined."""

    total: float
    within: float
    between: float
    largest: float
    """σ²_max."""


@dataclass(frozen=True)
class VarianceDecomposition:
    """Normalised components, averaged over tasks, with bootstrap intervals over tasks (Table 1)."""

    total: Interval
    within: Interval
    between: Interval
    """Its value and ends are clipped at 0."""
    undefined: int
    """Tasks without a ρ: always solved, or never."""
    incomplete: int
    """Tasks with an attempt that does not count, which are left out."""


def components(attempts: Attempts, estimator: Estimator) -> Components:
    """The variance components of one task, all of whose attempts count."""
    variations, trials = attempts.shape
    rates = attempts.mean(axis=1)
    pooled = rates.mean()
    lost = 1 if estimator == "unbiased" else 0
    with np.errstate(divide="ignore", invalid="ignore"):
        total = ((rates - pooled) ** 2).sum() / np.float64(variations - lost)
        within = (rates * (1 - rates)).mean() / np.float64(trials - lost)
    return Components(float(total), float(within), float(total - within), float(pooled * (1 - pooled)))


def variance_decomposition(
    tasks: Sequence[Attempts],
    *,
    estimator: Estimator = "unbiased",
    generator: np.random.Generator,
    resamples: int = 2_000,
) -> VarianceDecomposition:
    """ρ_total, ρ_within and ρ_between over the tasks that have them.

    With a single variation, or a single attempt, the unbiased components are undefined, and so are their averages.
    """
    complete = [attempts for attempts in tasks if not np.isnan(attempts).any()]
    found = [components(attempts, estimator) for attempts in complete]
    rows = [[c.total / c.largest, c.within / c.largest, c.between / c.largest] for c in found if c.largest > 0]
    shares: Float[np.ndarray, "C 3"] = np.array(rows, float).reshape(-1, 3)
    total, within, between = (bootstrap(mean, column, generator=generator, resamples=resamples) for column in shares.T)
    return VarianceDecomposition(total, within, _clipped(between), len(found) - len(rows), len(tasks) - len(complete))


def _clipped(interval: Interval) -> Interval:
    value, low, high = (float(np.maximum(end, 0.0)) for end in (interval.value, interval.low, interval.high))
    return Interval(value, low, high, interval.n)
