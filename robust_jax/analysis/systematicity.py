"""How systematically a learner solves the variations of tasks (Schug and Lake, Sections 3.5 and 3.6).

Attempts come as an array a task, with a row a variation: 1 right, 0 wrong, NaN for an attempt that does not count.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from robust_jax.analysis.intervals import Interval, bootstrap, mean

Attempts = Float[np.ndarray, "variations attempts"]


@dataclass(frozen=True)
class Systematicity:
    """The three metrics of Section 3.5, averaged over tasks and then over kinds of variation, and their gap."""

    any: Interval
    """Share of tasks of which at least one variation is passed."""
    fraction: Interval
    """Share of variations that are passed."""
    all: Interval
    """Share of tasks of which every variation is passed."""
    gap: Interval
    """any − all: 0 for a perfectly systematic learner, and for one that passes nothing."""
    undecided: int
    """Tasks that are left out, because attempts that do not count leave a variation of theirs undecided."""


def passes(attempts: Attempts) -> Float[np.ndarray, " variations"]:
    """Whether each variation is passed: more than half of its N attempts are right (Section 3.6). A tie is a fail.

    Where attempts do not count, 1 and 0 stand only for what they cannot change any more, and NaN for undecided.
    """
    right = np.nansum(attempts, axis=1)
    open_ = np.isnan(attempts).sum(axis=1)
    half = attempts.shape[1] / 2
    return np.where(right > half, 1.0, np.where(right + open_ > half, np.nan, 0.0))


def task_metrics(attempts: Attempts) -> tuple[float, float, float]:
    """any, fraction and all of one task: max, mean and min over its variations; NaN where one is undecided."""
    passed = passes(attempts)
    if np.isnan(passed).any():
        return np.nan, np.nan, np.nan
    return float(passed.max()), float(passed.mean()), float(passed.min())


def systematicity(
    kinds: Mapping[str, Sequence[Attempts]], *, generator: np.random.Generator, resamples: int = 2_000
) -> Systematicity:
    """The metrics of tasks that have variations of one or several kinds, with bootstrap intervals over tasks.

    A task is a cluster: it is drawn again with all its variations of all kinds. It is left out where a variation of any
    of them is undecided.

    Args:
        kinds: by kind, the attempts of every task, the tasks in the same order.
        generator: draws the resamples.
        resamples: how many.

    Raises:
        ValueError: the kinds have different numbers of tasks.
    """
    table = np.array([[task_metrics(attempts) for attempts in tasks] for tasks in kinds.values()], float)
    table = table.reshape(len(kinds), -1, 3).mean(axis=0)
    any_, fraction, all_ = (bootstrap(mean, column, generator=generator, resamples=resamples) for column in table.T)
    gap = bootstrap(mean, table[:, 0] - table[:, 2], generator=generator, resamples=resamples)
    return Systematicity(any_, fraction, all_, gap, int(np.isnan(table).any(axis=1).sum()))
