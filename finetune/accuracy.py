"""Accuracy of a model on a set of problems, counted by template: before and after, and of several runs together."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from robust_jax.analysis.intervals import Interval, bootstrap
from robust_jax.finetune.data import Data
from robust_jax.finetune.problem import Problem
from robust_jax.randomness import rng
from robust_jax.types import Sample

BEFORE = "before"
"""Name of the model that nothing was trained in."""

Tally = dict[str, tuple[int, int, int | None]]
"""By template: answers that count, how many of them are right, and how many the searched model had right; the last is
None where it was asked otherwise."""


def evaluated_results(
    answers: Mapping[str, Sequence[Sample]], sets: Mapping[str, Sequence[Problem]], data: Data, *, has_before: bool
) -> dict[str, Any]:
    """Accuracy on every set, with what a table over several runs needs."""
    return {
        name: set_results(tally(answers[name], problems, has_before=has_before), data.settings["seed"], name)
        for name, problems in sets.items()
    }


def set_results(counted: Tally, seed: int, name: str) -> dict[str, Any]:
    """The figures of one set."""
    changed = change(counted, seed, name)
    return {
        "accuracy": asdict(share_right(counted, seed, name)),
        "change": None if changed is None else asdict(changed),
        "problems": sum(n for n, _, _ in counted.values()),
        "templates": {item: list(row) for item, row in counted.items()},
    }


def read_tally(stored: Mapping[str, Any]) -> Tally:
    """What `set_results` stored of one set."""
    return {item: (n, right, had) for item, (n, right, had) in stored["templates"].items()}


def accuracy(samples: Sequence[Sample]) -> float:
    """Share of right answers among those that count; 0 where none counts."""
    counted = [sample.is_correct for sample in samples if sample.counts]
    return sum(counted) / max(1, len(counted))


def tally(samples: Sequence[Sample], problems: Sequence[Problem], *, has_before: bool) -> Tally:
    """Right answers by template, beside those of the searched model.

    Args:
        problems: what the samples answer.
        has_before: whether the searched model answered them under the same conditions as this one.
    """
    before = {problem.identity: problem.was_correct for problem in problems}
    counted: Tally = {}
    for sample in samples:
        if sample.counts:
            n, right, was_right = counted.get(sample.item, (0, 0, 0 if has_before else None))
            had = None if was_right is None else was_right + before[sample.item, sample.variation]
            counted[sample.item] = (n + 1, right + sample.is_correct, had)
    return counted


def pooled(tallies: Sequence[Tally]) -> Tally:
    """Several runs' tallies as one: the same templates' answers together."""
    joined: Tally = {}
    for one in tallies:
        for item, (n, right, had) in one.items():
            n_before, right_before, had_before = joined.get(item, (0, 0, 0))
            both = None if had is None or had_before is None else had + had_before
            joined[item] = (n + n_before, right + right_before, both)
    return joined


def share_right(counted: Tally, seed: int, name: str) -> Interval:
    """Accuracy over all answers, with a bootstrap interval over templates."""
    n, right = (np.array([row[column] for row in counted.values()], float) for column in (0, 1))
    return bootstrap(_share, right, n, generator=rng(seed, "bootstrap", "accuracy", name))


def change(counted: Tally, seed: int, name: str) -> Interval | None:
    """Accuracy after minus before, paired by problem, with a bootstrap interval over templates."""
    if any(row[2] is None for row in counted.values()):
        return None
    n, right, had = (np.array([row[column] for row in counted.values()], float) for column in (0, 1, 2))
    return bootstrap(_share, right - had, n, generator=rng(seed, "bootstrap", "change", name))


def difference(first: Tally, second: Tally, seed: int, name: str) -> Interval:
    """Accuracy of one model minus that of another on the same problems, with a bootstrap interval over templates."""
    items = [item for item in first if item in second]
    columns = [np.array([one[item][column] for item in items], float) for one in (first, second) for column in (1, 0)]

    def shares_apart(right: np.ndarray, n: np.ndarray, other_right: np.ndarray, other_n: np.ndarray) -> np.ndarray:
        return _share(right, n) - _share(other_right, other_n)

    return bootstrap(shares_apart, *columns, generator=rng(seed, "bootstrap", "difference", name))


def _share(right: np.ndarray, n: np.ndarray) -> np.ndarray:
    share: np.ndarray = right.sum(axis=-1) / n.sum(axis=-1)
    return share
