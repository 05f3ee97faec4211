"""How well a difficulty metric predicts wrong answers: AUC (paper Section 3.2 and Appendix C.3.3)."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from robust_jax.analysis.intervals import Interval, bootstrap

NanPolicy = Literal["drop", "hard"]
"""What becomes of a reply without tokens, whose metrics are NaN: drop leaves it out, hard ranks it above all others."""


class Auc(NamedTuple):
    """The AUC of one template and what it rests on."""

    value: float
    """NaN if either kind of answer is missing."""
    incorrect: int
    """n₀: wrong answers that were ranked."""
    correct: int
    """n₁: right answers that were ranked."""
    missing: int
    """Answers whose difficulty is NaN."""

    @property
    def pairs(self) -> int:
        """n₀·n₁: the template's weight."""
        return self.incorrect * self.correct


def auc(difficulty: Float[np.ndarray, " n"], correct: Bool[np.ndarray, " n"], nan: NanPolicy = "drop") -> Auc:
    """AUC of one template: Σ_{i wrong} Σ_{k right} (1[f_i > f_k] + ½·1[f_i = f_k]) / (n₀·n₁), Appendix C.3.3.

    Computed from ranks, (Σ_{i wrong} rank_i − n₀(n₀+1)/2) / (n₀·n₁), where ties share their mean rank.

    Args:
        difficulty: f, oriented so that higher is harder.
        correct: whether each answer was right.
        nan: whether a NaN is left out or ranked as hardest; it is counted either way.
    """
    is_nan = np.isnan(difficulty)
    if nan == "hard":
        difficulty = np.where(is_nan, np.inf, difficulty)
    usable = ~np.isnan(difficulty)
    wrong = ~correct[usable]
    incorrect, right = int(wrong.sum()), int((~wrong).sum())
    value = np.nan
    if incorrect and right:
        rank_sum = mean_ranks(difficulty[usable])[wrong].sum()
        value = float((rank_sum - incorrect * (incorrect + 1) / 2) / (incorrect * right))
    return Auc(value, incorrect, right, int(is_nan.sum()))


def mean_ranks(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Ranks from 1; ties share their mean rank."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Float[np.ndarray, " k"] = np.cumsum(sizes) - (sizes - 1) / 2
    return ranks[group]


def micro_auc(templates: Sequence[Auc], *, generator: np.random.Generator, resamples: int = 2_000) -> Interval:
    """AUC over templates: Σ_j n₀ⱼn₁ⱼ·AUCⱼ / Σ_j n₀ⱼn₁ⱼ, Appendix C.3.3, with a bootstrap interval over templates.

    Templates without a pair have no AUC and are left out; `n` counts the others.
    """
    return bootstrap(_micro, *_columns(templates), generator=generator, resamples=resamples)


def auc_difference(
    first: Sequence[Auc], second: Sequence[Auc], *, generator: np.random.Generator, resamples: int = 2_000
) -> Interval:
    """AUC of one metric minus that of another, with a paired bootstrap interval over templates.

    Every resample draws the same templates for both metrics, so that what makes a template easy or hard to rank for
    both cancels. Templates in which either has no AUC are left out; `n` counts the others.

    Args:
        first: AUCs of the one metric, one a template.
        second: AUCs of the other, for the same templates in the same order.

    Raises:
        ValueError: the two differ in length.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} templates against {len(second)}")
    return bootstrap(
        lambda values, pairs, other_values, other_pairs: _micro(values, pairs) - _micro(other_values, other_pairs),
        *_columns(first),
        *_columns(second),
        generator=generator,
        resamples=resamples,
    )


def _micro(values: Float[np.ndarray, "S C"], pairs: Float[np.ndarray, "S C"]) -> Float[np.ndarray, " S"]:
    return (values * pairs).sum(axis=-1) / pairs.sum(axis=-1)


def _columns(templates: Sequence[Auc]) -> tuple[Float[np.ndarray, " C"], Float[np.ndarray, " C"]]:
    values = np.array([template.value for template in templates], float)
    return values, np.array([template.pairs for template in templates], float)
