"""How well a difficulty metric predicts wrong answers: AUC (paper Section 3.2 and Appendix C.3.3)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from robust_jax.analysis.intervals import Interval, bootstrap


class Auc(NamedTuple):
    """The AUC of one template and what it rests on."""

    value: float
    """NaN if either kind of answer is missing."""
    incorrect: int
    """n₀: wrong answers with a difficulty."""
    correct: int
    """n₁: right answers with a difficulty."""
    missing: int
    """Answers that were left out because their difficulty is NaN."""

    @property
    def pairs(self) -> int:
        """n₀·n₁: the template's weight."""
        return self.incorrect * self.correct


def auc(difficulty: Float[np.ndarray, " n"], correct: Bool[np.ndarray, " n"]) -> Auc:
    """AUC of one template: Σ_{i wrong} Σ_{k right} (1[f_i > f_k] + ½·1[f_i = f_k]) / (n₀·n₁), Appendix C.3.3.

    Computed from ranks, (Σ_{i wrong} rank_i − n₀(n₀+1)/2) / (n₀·n₁), where ties share their mean rank.

    Args:
        difficulty: f, oriented so that higher is harder. NaN is left out and counted.
        correct: whether each answer was right.
    """
    usable = ~np.isnan(difficulty)
    wrong = ~correct[usable]
    incorrect, right = int(wrong.sum()), int((~wrong).sum())
    value = np.nan
    if incorrect and right:
        _, group, sizes = np.unique(difficulty[usable], return_inverse=True, return_counts=True)
        mean_rank = np.cumsum(sizes) - (sizes - 1) / 2
        rank_sum = mean_rank[group][wrong].sum()
        value = float((rank_sum - incorrect * (incorrect + 1) / 2) / (incorrect * right))
    return Auc(value, incorrect, right, int((~usable).sum()))


def micro_auc(templates: Sequence[Auc], *, generator: np.random.Generator, resamples: int = 2_000) -> Interval:
    """AUC over templates: Σ_j n₀ⱼn₁ⱼ·AUCⱼ / Σ_j n₀ⱼn₁ⱼ, Appendix C.3.3, with a bootstrap interval over templates.

    Templates without a pair have no AUC and are left out; `n` counts the others.
    """
    return bootstrap(
        lambda values, pairs: (values * pairs).sum(-1) / pairs.sum(-1),
        np.array([template.value for template in templates], float),
        np.array([template.pairs for template in templates], float),
        generator=generator,
        resamples=resamples,
    )
