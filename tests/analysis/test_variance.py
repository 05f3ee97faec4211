"""The decomposition of variance: exact expectations, simulated learners of known variances, and what has none."""

from itertools import product
from math import comb, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from robust_jax.analysis.systematicity import Attempts
from robust_jax.analysis.variance import Components, Estimator, components, variance_decomposition

OUTCOMES = arrays(
    float, array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=5), elements=st.sampled_from([0.0, 1.0])
)


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def attempts_of(successes: tuple[int, ...], trials: int) -> Attempts:
    return np.array([[1.0] * count + [0.0] * (trials - count) for count in successes])


def expected(rates: dict[float, float], variations: int, trials: int, estimator: Estimator) -> Components:
    """The exact expectation of every component: over all success rates and over all numbers of successes.

    Args:
        rates: success rates that variations have, each with its probability.
    """
    chance = {
        count: sum(share * comb(trials, count) * p**count * (1 - p) ** (trials - count) for p, share in rates.items())
        for count in range(trials + 1)
    }
    sums = np.zeros(4)
    for successes in product(chance, repeat=variations):
        weight = prod(chance[count] for count in successes)
        sums += weight * np.array(components(attempts_of(successes, trials), estimator))
    return Components(*sums.tolist())


@pytest.mark.parametrize(("variations", "trials"), [(2, 2), (3, 2), (2, 5), (4, 3)])
@pytest.mark.parametrize("rates", [{0.5: 1.0}, {0.2: 0.5, 0.7: 0.5}, {0.0: 0.25, 1.0: 0.75}, {0.1: 0.2, 0.6: 0.8}])
def test_the_unbiased_estimators_expect_what_they_estimate(
    rates: dict[float, float], variations: int, trials: int
) -> None:
    mean = sum(share * p for p, share in rates.items())
    between = sum(share * (p - mean) ** 2 for p, share in rates.items())
    within = sum(share * p * (1 - p) / trials for p, share in rates.items())
    found = expected(rates, variations, trials, "unbiased")
    np.testing.assert_allclose(found[:3], [between + within, within, between], atol=1e-12)
    moments = expected(rates, variations, trials, "paper")
    np.testing.assert_allclose(moments.total, found.total * (variations - 1) / variations, atol=1e-12)
    np.testing.assert_allclose(moments.within, found.within * (trials - 1) / trials, atol=1e-12)


@given(OUTCOMES)
def test_the_papers_components_are_tied_to_each_other(attempts: Attempts) -> None:
    """Total + N within = σ²_max, so that ρ_within = (1 − ρ_total)/N."""
    found = components(attempts, "paper")
    trials = attempts.shape[1]
    assert found.total + trials * found.within == pytest.approx(found.largest, abs=1e-12)
    assert found.between == found.total - found.within
    assert 0 <= found.total <= found.largest + 1e-12


def test_components_by_hand() -> None:
    """Success rates 1, 1/2 and 0 over two attempts."""
    found = components(np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]]), "unbiased")
    np.testing.assert_allclose(found, [1 / 4, 1 / 12, 1 / 6, 1 / 4])
    found = components(np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]]), "paper")
    np.testing.assert_allclose(found, [1 / 6, 1 / 24, 1 / 8, 1 / 4])


def simulated(tasks: int, rates: np.ndarray, trials: int, draws: np.random.Generator) -> list[Attempts]:
    """Tasks whose variations each draw their success rate from `rates`."""
    return [(draws.random((5, trials)) < draws.choice(rates, size=(5, 1))).astype(float) for _ in range(tasks)]


def test_a_learner_of_pure_chance_has_no_variance_between_variations() -> None:
    """Attempts can be swapped between variations, so the shares' expectation is 0; what is clipped is the average.

    Clipping every task would make 0.05 of it out of noise.
    """
    tasks = simulated(3_000, np.array([0.5]), 5, generator(1))
    found = variance_decomposition(tasks, generator=generator(), resamples=300)
    shares = np.array([c.between / c.largest for c in (components(task, "unbiased") for task in tasks)])
    assert abs(shares.mean()) < 4 * shares.std() / len(shares) ** 0.5
    assert found.between.value == pytest.approx(max(0.0, shares.mean()))
    assert found.within.value == pytest.approx(found.total.value - shares.mean())
    assert np.maximum(shares, 0).mean() > 0.04


def test_a_learner_without_chance_has_no_variance_within_a_variation() -> None:
    tasks = simulated(500, np.array([0.0, 1.0]), 5, generator(2))
    # p̂(1 − p̂) is the variance of rates 0 and 1 as a plain moment; the unbiased one is K/(K − 1) as large.
    shares: dict[Estimator, float] = {"unbiased": 5 / 4, "paper": 1.0}
    for estimator, share in shares.items():
        found = variance_decomposition(tasks, estimator=estimator, generator=generator(), resamples=300)
        assert (found.within.value, found.within.high) == (0, 0)
        assert found.total.value == found.between.value == pytest.approx(share)
        assert found.undefined == sum(len(np.unique(task)) == 1 for task in tasks) > 0
        assert found.total.n == 500 - found.undefined


def test_a_learner_of_two_rates_has_both_variances() -> None:
    """Rates 0.2 and 0.8: between 0.09 and within 0.16/40, measured with so many trials that σ²_max is nearly known."""
    tasks = simulated(1_500, np.array([0.2, 0.8]), 40, generator(3))
    raw = np.mean([components(task, "unbiased") for task in tasks], axis=0)
    np.testing.assert_allclose(raw[:3], [0.094, 0.004, 0.09], atol=0.003)
    found = variance_decomposition(tasks, generator=generator(), resamples=300)
    assert found.between.value > 10 * found.within.value
    assert found.between.low < found.between.value < found.between.high


def test_what_has_no_share_is_counted() -> None:
    always, never, mixed = np.ones((2, 2)), np.zeros((2, 2)), np.array([[1.0, 0.0], [0.0, 0.0]])
    error = np.array([[1.0, np.nan], [0.0, 0.0]])
    found = variance_decomposition([always, never, mixed, error], generator=generator())
    assert (found.undefined, found.incomplete, found.total.n) == (2, 1, 1)
    nothing = variance_decomposition([always], generator=generator())
    assert nothing.total.n == 0 and np.isnan(nothing.between.value)


def test_one_variation_or_one_attempt_leaves_the_unbiased_components_undefined() -> None:
    one_variation, one_attempt = np.array([[1.0, 0.0, 1.0]]), np.array([[1.0], [0.0]])
    assert variance_decomposition([one_variation] * 3, generator=generator()).total.n == 0
    assert variance_decomposition([one_variation] * 3, generator=generator()).within.n == 3
    assert variance_decomposition([one_attempt] * 3, generator=generator()).within.n == 0
    assert variance_decomposition([one_attempt] * 3, generator=generator()).total.n == 3
