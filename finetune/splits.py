"""From what a search explored to training, validation and test sets (paper Section 5 and Appendix C.5.1)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from robust_jax.errors import InputError
from robust_jax.finetune.problem import Problem
from robust_jax.randomness import rng

SplitBy = Literal["variations", "templates"]

T = TypeVar("T")

SHARES = (0.70, 0.15)
"""Of training and validation; the test set has the rest."""
BUCKETS = ("low", "mid", "high")
"""Thirds of increasing difficulty."""
LEAST = 3
"""What is split into three needs so many."""


class Mixture(NamedTuple):
    """How a training set is made up: shares of the three buckets, in percent."""

    low: int
    mid: int
    high: int

    @property
    def name(self) -> str:
        """As files and options have it: q_high, or mix_20_30_50."""
        whole = [bucket for bucket, share in zip(BUCKETS, self, strict=True) if share == 100]
        return f"q_{whole[0]}" if whole else "mix_" + "_".join(map(str, self))

    @property
    def label(self) -> str:
        """As tables have it: Q_low (30%) - Q_mid (70%)."""
        parts = [f"Q_{bucket} ({share}%)" for bucket, share in zip(BUCKETS, self, strict=True) if share]
        return " - ".join(parts)


MIXTURES = tuple(
    Mixture(*shares)
    for shares in [
        (100, 0, 0),
        (0, 100, 0),
        (0, 0, 100),
        (30, 70, 0),
        (70, 30, 0),
        (30, 0, 70),
        (70, 0, 30),
        (0, 30, 70),
        (0, 70, 30),
        (50, 30, 20),
        (20, 30, 50),
        (20, 20, 60),
        (10, 10, 80),
    ]
)
"""The rows of the paper's Tables 5 to 7, which end with a random sample of the same size."""
RANDOM = "random"
TRAIN_SETS = {**{mixture.name: mixture.label for mixture in MIXTURES}, RANDOM: "Random sampling"}
"""Every training set by name, with what tables call it."""


@dataclass(frozen=True)
class SplitOptions:
    """How a search's variations become data sets."""

    split: SplitBy = "variations"
    """variations: every template's are split 70/15/15; templates: whole templates are held out."""
    per_template: int = 100
    """Most initially wrong variations of a template in the training pool."""
    evaluated: int = 10
    """Most variations of a template in the validation set and in the test set."""
    evaluated_wrong: int | None = None
    """Most initially wrong variations of a template in the thirds of the test pool; None takes all."""


@dataclass(frozen=True)
class Datasets:
    """Everything that is trained on and evaluated."""

    train: dict[str, list[Problem]]
    """By the names of `TRAIN_SETS`, all of one size."""
    validation: list[Problem]
    test: list[Problem]
    thirds: dict[str, list[Problem]]
    """The initially wrong variations of the test pool, by bucket."""
    base: list[Problem]
    """The original problems."""
    pool: list[Problem]
    """What all training sets are drawn from: initially wrong, easiest first."""
    discarded: tuple[str, ...]
    """Templates of which the model never solved a variation."""
    without_difficulty: int
    """Wrong variations that cannot be ranked."""


def make_datasets(
    explored: Mapping[str, Sequence[Problem]], base: Sequence[Problem], options: SplitOptions, seed: int
) -> Datasets:
    """Split, rank and mix; the same seed gives the same sets.

    Raises:
        InputError: there is too little to split, or too little that the model got wrong to fill three buckets.
    """
    solved = {item: rows for item, rows in explored.items() if any(row.was_correct for row in rows)}
    if not solved:
        raise InputError("the model solved no variation of any template: there is no robustness to train for")
    train_pool, validation_pool, test_pool = _split(solved, options.split, seed)
    wrong = [row for rows in train_pool.values() for row in _wrong(rows, options.per_template, seed, "pool")]
    low, mid, high = _thirds(wrong, "the model got too little wrong to train on")
    buckets = dict(zip(BUCKETS, (low, mid, high), strict=True))
    train = {mixture.name: _mix(buckets, mixture, seed) for mixture in MIXTURES}
    ranked = [*low, *mid, *high]
    train[RANDOM] = _draw(ranked, len(low), seed, RANDOM)
    test_wrong = [
        row for rows in test_pool.values() for row in _wrong(rows, options.evaluated_wrong, seed, "thirds of the test")
    ]
    thirds = _thirds(test_wrong, "the test pool holds too little that the model got wrong")
    unranked = sum(not row.was_correct and row.difficulty is None for rows in solved.values() for row in rows)
    return Datasets(
        train=train,
        validation=_some_of_each(validation_pool, options.evaluated, seed, "validation"),
        test=_some_of_each(test_pool, options.evaluated, seed, "test"),
        thirds=dict(zip(BUCKETS, thirds, strict=True)),
        base=[row for row in base if row.template in solved],
        pool=ranked,
        discarded=tuple(item for item in explored if item not in solved),
        without_difficulty=unranked,
    )


def _split(
    solved: Mapping[str, Sequence[Problem]], by: SplitBy, seed: int
) -> tuple[dict[str, list[Problem]], dict[str, list[Problem]], dict[str, list[Problem]]]:
    """Training, validation and test pools, by template."""
    pools: tuple[dict[str, list[Problem]], ...] = ({}, {}, {})
    if by == "templates":
        if len(solved) < LEAST:
            raise InputError(f"{len(solved)} templates cannot be split into three: take --split variations")
        for pool, items in zip(pools, _cut(list(solved), rng(seed, "split by template")), strict=True):
            pool.update((item, list(solved[item])) for item in items)
        return pools[0], pools[1], pools[2]
    for item, rows in solved.items():
        if len(rows) < LEAST:
            raise InputError(f"variations of template {item}: {len(rows)}, too few to split into three: search longer")
        for pool, part in zip(pools, _cut(list(rows), rng(seed, "split", item)), strict=True):
            pool[item] = part
    return pools[0], pools[1], pools[2]


def _cut(things: list[T], generator: np.random.Generator) -> tuple[list[T], list[T], list[T]]:
    """Shuffle and cut into 70, 15 and 15 %, none of them empty."""
    order = [things[place] for place in generator.permutation(len(things))]
    validation = max(1, round(SHARES[1] * len(things)))
    test = max(1, round((1 - sum(SHARES)) * len(things)))
    train = len(things) - validation - test
    return order[:train], order[train : train + validation], order[train + validation :]


def _wrong(rows: Sequence[Problem], most: int | None, seed: int, purpose: str) -> list[Problem]:
    """What the model got wrong and can be ranked, at most so many of a template, drawn at random."""
    wrong = [row for row in rows if not row.was_correct and row.difficulty is not None]
    if most is None or len(wrong) <= most:
        return wrong
    return _draw(wrong, most, seed, purpose, wrong[0].template)


def _thirds(wrong: Sequence[Problem], complaint: str) -> tuple[list[Problem], list[Problem], list[Problem]]:
    """Three sets of equal size and increasing difficulty; what does not divide lies between the second and the third.

    Raises:
        InputError: one of them would be empty.
    """
    size = len(wrong) // LEAST
    if not size:
        raise InputError(f"{complaint}: {len(wrong)} variations leave a bucket empty; search more, or a harder suite")
    ranked = sorted(wrong, key=lambda row: (row.difficulty or 0.0, row.identity))
    return ranked[:size], ranked[size : 2 * size], ranked[-size:]


def _mix(buckets: Mapping[str, Sequence[Problem]], mixture: Mixture, seed: int) -> list[Problem]:
    """A training set of the buckets' size in those shares, drawn without replacement."""
    size = len(buckets["low"])
    counts = np.floor(size * np.array(mixture) / 100).astype(int)
    # What rounding leaves goes to the largest remainders, the harder bucket first.
    remainders = size * np.array(mixture) / 100 - counts
    for place in sorted(range(LEAST), key=lambda place: (-remainders[place], -place))[: size - counts.sum()]:
        counts[place] += 1
    drawn = [
        row
        for (bucket, rows), count in zip(buckets.items(), counts, strict=True)
        for row in _draw(rows, int(count), seed, mixture.name, bucket)
    ]
    return drawn


def _some_of_each(pool: Mapping[str, Sequence[Problem]], most: int, seed: int, purpose: str) -> list[Problem]:
    return [row for item, rows in pool.items() for row in _draw(rows, min(most, len(rows)), seed, purpose, item)]


def _draw(rows: Sequence[Problem], count: int, seed: int, *purpose: str) -> list[Problem]:
    """So many of them, drawn without replacement, in their old order."""
    places = rng(seed, *purpose).choice(len(rows), size=count, replace=False)
    return [rows[place] for place in sorted(places)]
