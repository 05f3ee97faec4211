"""any, fraction and all: by hand, for every way to complete what does not count, and for learners of known success."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.stats import binom

from robust_jax.analysis.systematicity import Attempts, passes, systematicity, task_metrics

NAN = np.nan
OUTCOMES = arrays(float, array_shapes(min_dims=2, max_dims=2, max_side=5), elements=st.sampled_from([0.0, 1.0, NAN]))


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("attempts", "passed"),
    [
        ([1, 1, 1, 0, 0], 1.0),
        ([1, 1, 0, 0, 0], 0.0),
        ([1, 1, 0, 0], 0.0),  # a tie is a fail
        ([1], 1.0),
        ([1, 1, 1, NAN, NAN], 1.0),
        ([0, 0, 0, NAN, NAN], 0.0),
        ([1, 1, NAN, 0, 0], NAN),
        ([NAN, NAN], NAN),
        ([0, NAN], 0.0),  # at best a tie
    ],
)
def test_the_majority_by_hand(attempts: list[float], passed: float) -> None:
    np.testing.assert_equal(passes(np.array([attempts], float)), [passed])


@given(OUTCOMES)
def test_a_variation_is_decided_if_what_does_not_count_cannot_change_it(attempts: Attempts) -> None:
    for row, passed in zip(attempts, passes(attempts), strict=True):
        missing = np.flatnonzero(np.isnan(row))
        found = set()
        for filling in product([0.0, 1.0], repeat=len(missing)):
            row[missing] = filling
            found.add(2 * row.sum() > len(row))
        assert passed == found.pop() if len(found) == 1 else np.isnan(passed)


@given(OUTCOMES)
def test_all_is_at_most_fraction_and_fraction_at_most_any(attempts: Attempts) -> None:
    any_, fraction, all_ = task_metrics(attempts)
    assert np.isnan([any_, fraction, all_]).all() or 0 <= all_ <= fraction <= any_ <= 1
    assert {any_, all_} <= {0.0, 1.0} or np.isnan(any_)


def learner(tasks: int, rates: np.ndarray, attempts: int, draws: np.random.Generator) -> list[Attempts]:
    """Attempts of a learner that solves the k-th variation of every task with probability rates[k]."""
    return [(draws.random((len(rates), attempts)) < rates[:, None]).astype(float) for _ in range(tasks)]


@pytest.mark.parametrize("rates", [[0.5] * 5, [0.9, 0.2, 0.6, 0.6, 1.0], [0.75]])
def test_learners_of_known_success_rates(rates: list[float]) -> None:
    """A variation of success rate p is passed with the probability of more than half of N attempts."""
    tasks, attempts = 4_000, 5
    passed = binom.sf(attempts // 2, attempts, rates)
    found = systematicity(
        {"substitution": learner(tasks, np.array(rates), attempts, generator(1))}, generator=generator(), resamples=500
    )
    truth = {"any": 1 - np.prod(1 - passed), "fraction": np.mean(passed), "all": np.prod(passed)}
    truth["gap"] = truth["any"] - truth["all"]
    for name, share in truth.items():
        interval = getattr(found, name)
        assert interval.value == pytest.approx(share, abs=4 * 0.5 / tasks**0.5), name  # four standard errors
        assert interval.low <= interval.value <= interval.high and interval.n == tasks


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    draws, rates = generator(2), np.array([0.8, 0.5, 0.6])
    passed = binom.sf(2, 5, rates)
    gap = 1 - np.prod(1 - passed) - np.prod(passed)
    hits = 0
    for _ in range(200):
        found = systematicity({"reordering": learner(60, rates, 5, draws)}, generator=draws, resamples=300).gap
        hits += found.low <= gap <= found.high
    assert 0.89 <= hits / 200 <= 0.99


def test_a_learner_that_does_all_or_nothing_is_systematic() -> None:
    tasks = [np.full((5, 5), float(solved)) for solved in generator(3).integers(2, size=50)]
    found = systematicity({"substitution": tasks, "reordering": tasks}, generator=generator())
    assert found.any.value == found.fraction.value == found.all.value == np.mean([task[0, 0] for task in tasks])
    assert (found.gap.value, found.gap.low, found.gap.high) == (0, 0, 0)


def test_kinds_weigh_the_same_and_a_task_keeps_its_kinds_together() -> None:
    right, wrong = np.ones((5, 5)), np.zeros((5, 5))
    found = systematicity({"a": [right, right, wrong], "b": [wrong, wrong, wrong]}, generator=generator())
    assert found.any.value == found.all.value == pytest.approx(1 / 3)
    # Where one kind always has what the other lacks, every task is worth 1/2: there is no spread between tasks.
    opposed = systematicity({"a": [right, wrong] * 9, "b": [wrong, right] * 9}, generator=generator())
    assert (opposed.any.low, opposed.any.value, opposed.any.high) == (0.5, 0.5, 0.5)


def test_undecided_tasks_are_left_out_and_counted() -> None:
    right, undecided = np.ones((2, 3)), np.array([[1, 1, 1], [1, 0, NAN]])
    found = systematicity({"a": [right, undecided, right], "b": [right, right, right]}, generator=generator())
    assert (found.any.value, found.any.n, found.undecided) == (1.0, 2, 1)
    nothing = systematicity({"a": [undecided]}, generator=generator())
    assert np.isnan(nothing.any.value) and nothing.any.n == 0 and nothing.undecided == 1


def test_kinds_of_different_tasks_are_refused() -> None:
    with pytest.raises(ValueError):
        systematicity({"a": [np.ones((2, 2))], "b": [np.ones((2, 2))] * 2}, generator=generator())
