import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from robust_jax.analysis.robustness import (
    BeamLevel,
    accuracy,
    accuracy_distribution,
    accuracy_drops,
    error_rate_difference,
    quantile_curve,
    search_curves,
    template_accuracy,
)
from robust_jax.errors import InputError


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def answers(rates: np.ndarray, n: int, seed: int) -> list[np.ndarray]:
    return list(generator(seed).random((len(rates), n)) < rates[:, None])


nothing = np.array([], bool)
right = np.array([True])
wrong = np.array([False])


def test_accuracy_weighs_templates_not_answers() -> None:
    correct = [np.ones(100, bool), np.zeros(1, bool), nothing]
    np.testing.assert_equal(template_accuracy(correct), [1, 0, np.nan])
    interval = accuracy(correct, generator=generator())
    assert (interval.value, interval.n) == (0.5, 2)
    assert (interval.low, interval.high) == (0, 1)


def test_drops_and_their_ratio_agree_with_a_paired_bootstrap_of_scipy() -> None:
    rates = generator(9).uniform(0.6, 1.0, size=100)
    base, beam, random = (answers(rates - drop, 80, seed) for seed, drop in ((1, 0.0), (2, 0.3), (3, 0.1)))
    drops = accuracy_drops(base, beam, random, generator=generator())
    b, s, r = map(template_accuracy, (base, beam, random))
    assert drops.beam_drop.value == pytest.approx(np.mean(b - s))
    assert drops.random_drop.value == pytest.approx(np.mean(b - r))
    assert drops.base.value - drops.beam.value == pytest.approx(drops.beam_drop.value)
    assert drops.ratio is not None
    assert drops.ratio.value == pytest.approx(np.mean(b - s) / np.mean(b - r))
    theirs = stats.bootstrap(
        (b, s, r),
        lambda b, s, r, axis: np.mean(b - s, axis) / np.mean(b - r, axis),
        paired=True,
        n_resamples=5_000,
        method="percentile",
        rng=generator(4),
    ).confidence_interval
    assert drops.ratio.low == pytest.approx(theirs.low, rel=0.03)
    assert drops.ratio.high == pytest.approx(theirs.high, rel=0.03)


@pytest.mark.parametrize(
    "base, random",
    [
        ([right, wrong] * 10, [right, wrong] * 10),  # no drop at all
        ([right, wrong] * 10, [wrong, right] * 10),  # a drop of 0 with a wide interval
        ([right], [wrong]),  # one template: no interval
        ([nothing], [nothing]),
        ([], []),
    ],
)
def test_a_ratio_over_a_drop_that_may_be_zero_is_undefined(base: list[np.ndarray], random: list[np.ndarray]) -> None:
    drops = accuracy_drops(base, [wrong] * len(base), random, generator=generator())
    assert drops.ratio is None


def test_drops_rest_on_templates_that_have_answers_in_every_arm() -> None:
    drops = accuracy_drops(
        [right, right, nothing, right],
        [wrong, wrong, wrong, nothing],
        [right, wrong, wrong, wrong],
        generator=generator(),
    )
    assert drops.base.n == drops.beam.n == drops.random.n == drops.beam_drop.n == drops.random_drop.n == 2
    assert (drops.base.value, drops.beam_drop.value, drops.random_drop.value) == (1, 1, 0.5)


def test_arms_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError):
        accuracy_drops([right, right], [right], [right, right], generator=generator())
    with pytest.raises(ValueError):
        error_rate_difference([right, right], [right], generator=generator())


def test_error_rate_difference_is_positive_where_the_beam_is_harder() -> None:
    rates = generator(9).uniform(0.2, 0.8, size=60)
    beam, random = answers(rates - 0.15, 200, 1), answers(rates, 200, 2)
    interval = error_rate_difference([*beam, nothing], [*random, right], generator=generator())
    assert interval.n == 60
    assert interval.value == pytest.approx(np.mean(template_accuracy(random) - template_accuracy(beam)))
    t = stats.ttest_rel(template_accuracy(random), template_accuracy(beam)).confidence_interval()
    assert (interval.low, interval.high) == pytest.approx((t.low, t.high), abs=0.003)
    assert interval.excludes_zero


def test_accuracy_distribution_is_that_of_independent_draws() -> None:
    correct = [*answers(generator(3).random(50), 31, 4), nothing]
    draws = accuracy_distribution(correct, generator=generator(), draws=20_000)
    p = template_accuracy(correct[:-1])
    assert draws.shape == (20_000,)
    assert draws.mean() == pytest.approx(p.mean(), abs=0.002)
    assert draws.std() == pytest.approx(np.sqrt((p * (1 - p)).sum()) / 50, rel=0.03)
    np.testing.assert_allclose(draws * 50, np.round(draws * 50), atol=1e-9)
    assert np.isnan(accuracy_distribution([nothing], generator=generator())).all()


def test_quantile_curve_of_distinct_difficulties_is_the_mean_of_equal_groups() -> None:
    draws = generator(1)
    difficulty = [draws.permutation(60.0 + np.arange(60)) for _ in range(5)]
    correct = [draws.random(60) < 0.5 for _ in range(5)]
    curve = quantile_curve(difficulty, correct, generator=generator())
    expected = np.mean([c[np.argsort(f)].reshape(20, 3).mean(1) for f, c in zip(difficulty, correct, strict=True)], 0)
    np.testing.assert_allclose([group.value for group in curve.accuracy], expected)
    assert curve.score.value == pytest.approx(np.trapezoid(expected) / 19)
    assert (curve.left_out, curve.missing, curve.score.n) == (0, 0, 5)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([0.0, 1.0, 2.0, np.inf, np.nan]), st.booleans()), min_size=5, max_size=30),
    st.integers(2, 6),
    st.randoms(use_true_random=False),
)
def test_quantile_curve_averages_over_the_orders_of_ties(rows, quantiles, random) -> None:
    """Whatever the order of the rows, and on average what sorting with ties in random order gives."""
    difficulty, correct = (np.array(column) for column in zip(*rows, strict=True))
    curve = quantile_curve([difficulty], [correct], generator=generator(), quantiles=quantiles)
    usable = [row for row in rows if not np.isnan(row[0])]
    assert curve.missing == len(rows) - len(usable)
    assert curve.left_out == (len(usable) < quantiles)
    values = [group.value for group in curve.accuracy]
    if curve.left_out:
        assert np.isnan(values).all()
        assert np.isnan(curve.score.value)
        return
    random.shuffle(rows)
    shuffled = (np.array(column) for column in zip(*rows, strict=True))
    again = quantile_curve(*([column] for column in shuffled), generator=generator(), quantiles=quantiles)
    np.testing.assert_allclose([group.value for group in again.accuracy], values)

    n = len(usable)
    sizes = [(q + 1) * n // quantiles - q * n // quantiles for q in range(quantiles)]
    assert max(sizes) - min(sizes) <= 1
    assert np.dot(sizes, values) == pytest.approx(sum(c for _, c in usable))
    # The group of each sorted place, and the mean over it of the chance that a tie's answer there is right.
    ordered = sorted(f for f, _ in usable)
    chance = [np.mean([c for g, c in usable if g == f]) for f in ordered]
    expected = [np.mean(part) for part in np.split(chance, np.cumsum(sizes)[:-1])]
    np.testing.assert_allclose(values, expected)


@pytest.mark.parametrize("share, score", [(np.ones(100, bool), 1.0), (np.zeros(100, bool), 0.0)])
def test_the_score_is_one_if_all_is_right_and_zero_if_nothing_is(share: np.ndarray, score: float) -> None:
    curve = quantile_curve([np.arange(100.0)] * 3, [share] * 3, generator=generator())
    assert (curve.score.value, curve.score.low, curve.score.high) == (score, score, score)


def test_the_score_weighs_the_two_ends_half() -> None:
    only_easiest = np.arange(20) == 0
    curve = quantile_curve([np.arange(20.0)], [only_easiest], generator=generator())
    assert curve.score.value == pytest.approx(0.5 / 19)


def test_templates_with_too_few_answers_are_left_out_and_counted() -> None:
    few = np.arange(19.0)
    enough = np.arange(20.0)
    curve = quantile_curve([few, enough], [few < 5, enough < 10], generator=generator())
    assert (curve.left_out, curve.score.n) == (1, 1)
    assert [group.value for group in curve.accuracy] == [1] * 10 + [0] * 10
    with pytest.raises(InputError):
        quantile_curve([enough], [enough < 1], generator=generator(), quantiles=1)


def test_search_curves_are_medians_over_templates() -> None:
    def level(difficulty: list[float], correct: list[bool]) -> BeamLevel:
        return BeamLevel(np.array(difficulty, float), np.array(correct, bool))

    searches = [
        [level([1], [True]), level([1, 4], [True, False]), level([9, 4], [False, False])],
        [level([3], [True]), level([5, np.nan], [True, True]), level([6, 5], [True])],
        [level([2], [False]), level([8.5], [False])],  # ended early: its last beam stays
        [level([np.nan], []), level([np.nan, 7], [False]), level([8], [False])],
        [],
    ]
    curves = search_curves(searches, generator=generator())
    assert [point.value for point in curves.difficulty] == [2, 6, 8.25]
    assert [point.n for point in curves.difficulty] == [3, 4, 4]
    assert [point.value for point in curves.accuracy] == [1, 0.25, 0]
    assert [point.n for point in curves.accuracy] == [3, 4, 4]
    assert search_curves([], generator=generator()).difficulty == ()
