import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from robust_jax.analysis.auc import Auc, auc, micro_auc

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
