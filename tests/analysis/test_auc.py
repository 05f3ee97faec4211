import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from robust_jax.analysis.auc import Auc, auc, auc_difference, micro_auc

templates = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0, 1.5, 2.0, -3.0, np.inf, -np.inf, np.nan]), st.booleans()), max_size=25
)


def arrays(rows: list[tuple[float, bool]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([f for f, _ in rows], float), np.array([c for _, c in rows], bool)


@settings(max_examples=100, deadline=None)
@given(templates)
def test_auc_is_the_paper_s_double_sum(rows: list[tuple[float, bool]]) -> None:
    difficulty, correct = arrays(rows)
    result = auc(difficulty, correct)
    wrong = [f for f, c in rows if not c and not np.isnan(f)]
    right = [f for f, c in rows if c and not np.isnan(f)]
    wins = sum((i > k) + 0.5 * (i == k) for i in wrong for k in right)
    assert (result.incorrect, result.correct) == (len(wrong), len(right))
    assert result.pairs == len(wrong) * len(right)
    assert result.missing == len(rows) - len(wrong) - len(right)
    expected = wins / result.pairs if result.pairs else np.nan
    assert result.value == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("decimals", [0, 1, 8])
def test_auc_agrees_with_scikit_learn(decimals: int) -> None:
    draws = np.random.default_rng(0)
    correct = draws.random(2_000) < 0.7
    difficulty = np.round(draws.normal(size=2_000) - correct, decimals)
    assert auc(difficulty, correct).value == pytest.approx(roc_auc_score(~correct, difficulty), abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(st.lists(templates, max_size=6))
def test_micro_auc_pools_all_pairs_within_templates(rows: list[list[tuple[float, bool]]]) -> None:
    results = [auc(*arrays(template)) for template in rows]
    interval = micro_auc(results, generator=np.random.default_rng(0), resamples=50)
    wins = pairs = 0.0
    for template in rows:
        for i, wrong in template:
            for k, right in template:
                if not wrong and right and not np.isnan([i, k]).any():
                    pairs += 1
                    wins += (i > k) + 0.5 * (i == k)
    assert interval.value == pytest.approx(wins / pairs if pairs else np.nan, nan_ok=True)
    assert interval.n == sum(result.pairs > 0 for result in results)
    if interval.n > 1:
        values = [result.value for result in results if result.pairs]
        assert min(values) - 1e-12 <= interval.low <= interval.high <= max(values) + 1e-12


def test_micro_auc_interval_resamples_templates_with_their_weights() -> None:
    """With two templates the resampled values are the two AUCs and their weighted mean, with shares ¼, ¼ and ½."""
    two = [Auc(0.9, 30, 10, 0), Auc(0.5, 10, 10, 0)]
    interval = micro_auc(two, generator=np.random.default_rng(0))
    assert interval.value == pytest.approx((300 * 0.9 + 100 * 0.5) / 400)
    assert (interval.low, interval.high) == pytest.approx((0.5, 0.9))
    assert np.isnan(micro_auc(two[:1], generator=np.random.default_rng(0)).low)


@settings(max_examples=50, deadline=None)
@given(templates)
def test_nan_ranks_as_hardest_where_that_is_asked_for(rows: list[tuple[float, bool]]) -> None:
    difficulty, correct = arrays(rows)
    hard = auc(difficulty, correct, nan="hard")
    expected = auc(np.where(np.isnan(difficulty), np.inf, difficulty), correct)
    np.testing.assert_equal(hard[:3], expected[:3])
    assert hard.missing == np.isnan(difficulty).sum()


def test_a_constant_metric_is_chance() -> None:
    assert auc(np.full(9, 3.0), np.arange(9) < 4).value == 0.5


def made_up(seed: int, gain: float, templates: int = 60) -> tuple[list[Auc], list[Auc]]:
    """Two metrics that err together; the second tells right from wrong better by `gain`."""
    draws = np.random.default_rng(seed)
    pairs = []
    for _ in range(templates):
        correct, noise = draws.random(100) < 0.6, draws.normal(size=100)
        strength = draws.normal(1, 0.5)
        other = noise + 0.3 * draws.normal(size=100)
        pairs.append((auc(noise - strength * correct, correct), auc(other - (strength + gain) * correct, correct)))
    first, second = zip(*pairs, strict=True)
    return list(first), list(second)


def test_a_paired_difference_is_that_of_the_two_and_narrower_than_they_are() -> None:
    second, first = made_up(0, gain=0.4)
    difference = auc_difference(first, second, generator=np.random.default_rng(1))
    one, other = (micro_auc(metric, generator=np.random.default_rng(2)) for metric in (first, second))
    assert difference.value == pytest.approx(one.value - other.value)
    assert difference.n == 60
    assert difference.excludes_zero
    assert difference.high - difference.low < 0.6 * (one.high - one.low)


def test_a_paired_interval_holds_zero_for_equal_metrics_as_often_as_it_claims() -> None:
    """Each of the two is the better one in half of the templates, so their true difference is 0."""
    held = 0
    for seed in range(100):
        first, second = made_up(seed, gain=0.3, templates=40)
        swapped = np.random.default_rng(seed).random(40) < 0.5
        left = [b if swap else a for a, b, swap in zip(first, second, swapped, strict=True)]
        right = [a if swap else b for a, b, swap in zip(first, second, swapped, strict=True)]
        interval = auc_difference(left, right, generator=np.random.default_rng(seed), resamples=500)
        held += interval.low <= 0 <= interval.high
    assert 88 <= held <= 99


def test_a_difference_rests_on_templates_where_both_have_an_auc() -> None:
    first = [Auc(0.9, 30, 10, 0), Auc(np.nan, 0, 10, 0), Auc(0.7, 10, 10, 0)]
    second = [Auc(0.6, 10, 10, 0), Auc(0.5, 10, 10, 0), Auc(np.nan, 0, 0, 20)]
    alone = auc_difference(first, second, generator=np.random.default_rng(0))
    assert (alone.value, alone.n) == (pytest.approx(0.3), 1)
    assert np.isnan([alone.low, alone.high]).all()
    with pytest.raises(ValueError, match="3 templates against 2"):
        auc_difference(first, second[:2], generator=np.random.default_rng(0))
