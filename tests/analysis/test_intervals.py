import numpy as np
import pytest
from scipy import stats

from robust_jax.analysis.intervals import Interval, bootstrap, mean, mean_difference, median


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("statistic, reference", [(mean, np.mean), (median, np.median)])
def test_interval_agrees_with_scipy(statistic, reference) -> None:
    values = generator(1).gamma(2.0, size=60)
    ours = bootstrap(statistic, values, generator=generator(), resamples=20_000)
    theirs = stats.bootstrap(
        (values,), reference, n_resamples=20_000, method="percentile", rng=generator(2)
    ).confidence_interval
    assert ours.value == pytest.approx(reference(values))
    assert ours.n == 60
    spread = theirs.high - theirs.low
    assert ours.low == pytest.approx(theirs.low, abs=0.03 * spread)
    assert ours.high == pytest.approx(theirs.high, abs=0.03 * spread)


def test_paired_interval_agrees_with_scipy_and_is_narrower_than_an_unpaired_one() -> None:
    first = generator(1).normal(size=80)
    second = first - 0.3 + 0.1 * generator(2).normal(size=80)
    ours = bootstrap(mean_difference, first, second, generator=generator(), resamples=20_000)
    paired, unpaired = (
        stats.bootstrap(
            (first, second),
            lambda a, b, axis: np.mean(a, axis) - np.mean(b, axis),
            paired=paired,
            n_resamples=5_000,
            method="percentile",
            rng=generator(3),
        ).confidence_interval
        for paired in (True, False)
    )
    assert ours.low == pytest.approx(paired.low, abs=0.003)
    assert ours.high == pytest.approx(paired.high, abs=0.003)
    assert ours.high - ours.low < (unpaired.high - unpaired.low) / 3


def test_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    draws = generator(5)
    hits = 0
    for _ in range(400):
        interval = bootstrap(mean, draws.normal(1.0, 1.0, size=50), generator=draws, resamples=400, level=0.9)
        hits += interval.low <= 1.0 <= interval.high
    assert 0.85 < hits / 400 < 0.94


def test_whole_clusters_are_drawn_not_single_columns() -> None:
    first = np.arange(20.0)
    exact = bootstrap(mean_difference, first, first - 2, generator=generator())
    assert (exact.value, exact.low, exact.high) == (2, 2, 2)


@pytest.mark.parametrize("values, value, n", [([], np.nan, 0), ([np.nan, np.nan], np.nan, 0), ([np.nan, 3.0], 3.0, 1)])
def test_below_two_clusters_there_is_no_interval(values: list[float], value: float, n: int) -> None:
    interval = bootstrap(mean, np.array(values), generator=generator())
    np.testing.assert_equal((interval.value, interval.low, interval.high, interval.n), (value, np.nan, np.nan, n))
    assert not interval.excludes_zero


def test_a_cluster_with_nan_in_any_column_is_as_if_it_were_not_there() -> None:
    first, second = generator(1).normal(size=(2, 12))
    holes = np.array([np.nan, 5.0]), np.array([5.0, np.nan])
    with_holes = bootstrap(
        mean_difference, np.append(first, holes[0]), np.append(second, holes[1]), generator=generator()
    )
    assert with_holes == bootstrap(mean_difference, first, second, generator=generator())


def test_resamples_without_a_finite_statistic_are_left_out() -> None:
    def ratio(over: np.ndarray, under: np.ndarray) -> np.ndarray:
        return over.sum(-1) / under.sum(-1)

    over, under = np.ones(4), np.array([0.0, 1.0, 1.0, 1.0])
    interval = bootstrap(ratio, over, under, generator=generator())
    assert interval.value == pytest.approx(4 / 3)
    assert 1 <= interval.low <= interval.high <= 4
    nothing = bootstrap(ratio, over, np.zeros(4), generator=generator())
    assert nothing.value == np.inf
    assert np.isnan([nothing.low, nothing.high]).all()


def test_the_same_generator_gives_the_same_interval() -> None:
    values = generator(1).normal(size=30)
    first = bootstrap(mean, values, generator=generator(7))
    assert first == bootstrap(mean, values, generator=generator(7))
    assert first != bootstrap(mean, values, generator=generator(8))


@pytest.mark.parametrize(
    "low, high, excludes", [(0.1, 1, True), (-1, -0.1, True), (-1, 1, False), (0, 1, False), (np.nan, np.nan, False)]
)
def test_an_interval_excludes_zero_only_on_one_side_of_it(low: float, high: float, excludes: bool) -> None:
    assert Interval(0.5, float(low), float(high), 3).excludes_zero is excludes
