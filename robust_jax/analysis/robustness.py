"""What a search tells about robustness: accuracies, drops, their spread, and curves (paper Section 4.2, Appendix D.2).

Answers come as one array a template, because templates may have different numbers of variations; every average is
taken within each template first and then over templates, all of the same weight.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from robust_jax.analysis.intervals import Interval, bootstrap, mean, mean_difference, median
from robust_jax.errors import InputError

Answers = Sequence[Bool[np.ndarray, " _"]]
"""For each template, whether each of its answers that count was right."""

# --------------------------------------------------------------------------------------------------
# Accuracies and their differences


def template_accuracy(correct: Answers) -> Float[np.ndarray, " C"]:
    """Share of right answers a template: (1/n) Σ_i c_i; NaN for a template without answers."""
    return np.array([answers.mean() if answers.size else np.nan for answers in correct], float)


def accuracy(correct: Answers, *, generator: np.random.Generator) -> Interval:
    """Mean of the templates' accuracies (Section 4.2), with a bootstrap interval over templates."""
    return bootstrap(mean, template_accuracy(correct), generator=generator)


@dataclass(frozen=True)
class Drops:
    """How far accuracy falls from the base problems, in shares of 1 (Section 4.2, Figure 13).

    All of it rests on the templates that have answers in every arm.
    """

    base: Interval
    """Accuracy on the base problems."""
    beam: Interval
    """Accuracy on the variations that beam search explored."""
    random: Interval
    """Accuracy on variations drawn at random."""
    beam_drop: Interval
    """base − beam."""
    random_drop: Interval
    """base − random."""
    ratio: Interval | None
    """beam_drop / random_drop; None means undefined: the interval of random_drop holds 0 or does not exist."""


def accuracy_drops(base: Answers, beam: Answers, random: Answers, *, generator: np.random.Generator) -> Drops:
    """Accuracy drops mean_j(base_j − arm_j) and their ratio (Section 4.2), paired by template.

    Args:
        base: answers to the base problems, one array a template.
        beam: answers to the explored variations, for the same templates in the same order.
        random: answers to random variations, likewise.
        generator: draws the resamples.

    Raises:
        ValueError: the arms have different numbers of templates.
    """
    base_j, beam_j, random_j = _paired_accuracy(base, beam, random)
    drops = Drops(
        base=bootstrap(mean, base_j, generator=generator),
        beam=bootstrap(mean, beam_j, generator=generator),
        random=bootstrap(mean, random_j, generator=generator),
        beam_drop=bootstrap(mean_difference, base_j, beam_j, generator=generator),
        random_drop=bootstrap(mean_difference, base_j, random_j, generator=generator),
        ratio=None,
    )
    if not drops.random_drop.excludes_zero:
        return drops
    ratio = bootstrap(
        lambda over, under: mean(over) / mean(under), base_j - beam_j, base_j - random_j, generator=generator
    )
    return replace(drops, ratio=ratio)


def error_rate_difference(beam: Answers, random: Answers, *, generator: np.random.Generator) -> Interval:
    """Error rate on beam variations minus that on random ones, mean_j((1 − beam_j) − (1 − random_j)), D.2.2.

    Paired by template, with a bootstrap interval over the templates that have answers in both arms.

    Raises:
        ValueError: the arms have different numbers of templates.
    """
    beam_j, random_j = _paired_accuracy(beam, random)
    return bootstrap(mean_difference, 1 - beam_j, 1 - random_j, generator=generator)


def _paired_accuracy(*arms: Answers) -> Float[np.ndarray, "arms C"]:
    """Accuracies of the templates that have answers in every arm."""
    accuracies = np.stack([template_accuracy(arm) for arm in arms])
    return accuracies[:, ~np.isnan(accuracies).any(axis=0)]


def accuracy_distribution(
    correct: Answers, *, generator: np.random.Generator, draws: int = 1_000
) -> Float[np.ndarray, " draws"]:
    """Accuracies of suites of one variation a template: (1/C) Σ_j c_{i(j)}, i(j) uniform (Section 4.2, Figure 14).

    Templates without answers are left out; without any template every accuracy is NaN.
    """
    answered = [answers for answers in correct if answers.size]
    if not answered:
        return np.full(draws, np.nan)
    return np.mean([answers[generator.integers(answers.size, size=draws)] for answers in answered], axis=0)


# --------------------------------------------------------------------------------------------------
# Accuracy as difficulty grows


@dataclass(frozen=True)
class QuantileCurve:
    """Accuracy in difficulty quantiles (Section 4.2, Figure 18) and the score it gives (Appendix D.2.2, Table 13)."""

    accuracy: tuple[Interval, ...]
    """Mean accuracy over templates in each quantile, the easiest first."""
    score: Interval
    """The difficulty-robustness score DRS: 1 if every answer is right, 0 if none is."""
    left_out: int
    """Templates with fewer usable answers than quantiles."""
    missing: int
    """Answers that were left out because their difficulty is NaN."""


def quantile_curve(
    difficulty: Sequence[Float[np.ndarray, " _"]],
    correct: Answers,
    *,
    generator: np.random.Generator,
    quantiles: int = 20,
) -> QuantileCurve:
    """Accuracy in `quantiles` groups of growing difficulty, within each template and then averaged over templates.

    A template's answers are sorted by difficulty and cut where q·n/Q is reached, so that the sizes of two groups
    differ by one at most. Answers of equal difficulty are shared out evenly over the groups they fall into: each
    counts with the mean of its ties. A template with fewer than Q usable answers would leave a group empty; it is
    left out and counted.

    DRS = Σ_{q<Q} (a_q + a_{q+1}) / 2 / (Q − 1): the area under the curve by trapezoids, with intervals from a
    bootstrap over templates.

    Raises:
        InputError: `quantiles` is less than 2.
        ValueError: the two sequences differ in length.
    """
    if quantiles < 2:
        raise InputError(f"a difficulty curve of {quantiles} quantiles has no area: give at least 2")
    usable = [~np.isnan(values) for values in difficulty]
    templates = [
        _quantile_accuracy(values[keep], answers[keep], quantiles)
        for values, answers, keep in zip(difficulty, correct, usable, strict=True)
        if keep.sum() >= quantiles
    ]
    table = np.stack(templates, axis=1) if templates else np.empty((quantiles, 0))
    areas = (table[:-1] + table[1:]).sum(axis=0) / 2 / (quantiles - 1)
    return QuantileCurve(
        accuracy=tuple(bootstrap(mean, group, generator=generator) for group in table),
        score=bootstrap(mean, areas, generator=generator),
        left_out=len(usable) - len(templates),
        missing=sum(int((~keep).sum()) for keep in usable),
    )


def _quantile_accuracy(
    difficulty: Float[np.ndarray, " n"], correct: Bool[np.ndarray, " n"], quantiles: int
) -> Float[np.ndarray, " Q"]:
    _, group, sizes = np.unique(difficulty, return_inverse=True, return_counts=True)
    tied = np.bincount(group, weights=correct) / sizes
    ordered = np.repeat(tied, sizes)
    cuts = np.arange(quantiles + 1) * len(ordered) // quantiles
    return np.add.reduceat(ordered, cuts[:-1]) / np.diff(cuts)


# --------------------------------------------------------------------------------------------------
# The course of the search


class BeamLevel(NamedTuple):
    """One template's beam at the end of an iteration."""

    difficulty: Float[np.ndarray, " w"]
    """f of the beam's variations under the last fit."""
    correct: Bool[np.ndarray, " m"]
    """Whether each answer of the beam that counts was right."""


@dataclass(frozen=True)
class SearchCurves:
    """Medians over templates, one an iteration, the start first (Section 4.2, Figure 10)."""

    difficulty: tuple[Interval, ...]
    """Of the largest difficulty in the beam, max f."""
    accuracy: tuple[Interval, ...]
    """Of the beam's mean accuracy."""


def search_curves(searches: Sequence[Sequence[BeamLevel]], *, generator: np.random.Generator) -> SearchCurves:
    """median_j max_{p in beam_j} f(p) and median_j mean_{p in beam_j} c(p) at every iteration (Section 4.2, Figure 10).

    A search that ended early keeps its last beam. A beam without a difficulty, or without an answer that counts, is
    left out at that iteration. Intervals come from a bootstrap over templates.

    Args:
        searches: for each template, its beam after every iteration.
        generator: draws the resamples.
    """
    searches = [levels for levels in searches if levels]
    length = max(map(len, searches), default=0)
    hardest = np.full((length, len(searches)), np.nan)
    accuracies = np.full((length, len(searches)), np.nan)
    for j, levels in enumerate(searches):
        for t in range(length):
            level = levels[min(t, len(levels) - 1)]
            hardest[t, j] = np.fmax.reduce(level.difficulty, initial=np.nan)
            accuracies[t, j] = level.correct.mean() if level.correct.size else np.nan
    return SearchCurves(
        difficulty=tuple(bootstrap(median, column, generator=generator) for column in hardest),
        accuracy=tuple(bootstrap(median, column, generator=generator) for column in accuracies),
    )
