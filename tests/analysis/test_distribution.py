import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robust_jax.analysis.distribution import distribution

ANY_VALUE = st.sampled_from([0.0, 1.0, -1.0, 1e-300, 1e300, np.inf, -np.inf, np.nan]) | st.floats(-10, 10)


@given(st.lists(st.tuples(ANY_VALUE, st.booleans()), max_size=50), st.integers(1, 40))
def test_every_finite_value_is_in_one_bin(rows: list[tuple[float, bool]], bins: int) -> None:
    values = np.array([value for value, _ in rows], float)
    correct = np.array([right for _, right in rows], bool)
    found = distribution(values, correct, bins)
    finite = np.isfinite(values)
    if not finite.any():
        assert found is None
        return
    assert found is not None
    assert found.right.sum() == (finite & correct).sum()
    assert found.wrong.sum() == (finite & ~correct).sum()
    assert len(found.edges) == bins + 1
    assert (np.diff(found.edges) > 0).all()


def test_bins_span_all_but_the_outermost_values() -> None:
    values = np.append(np.random.default_rng(0).normal(size=2000), [1e9, -1e9])
    found = distribution(values, values > 0)
    assert found is not None
    assert found.edges[0] == pytest.approx(np.quantile(values, 0.005))
    assert found.edges[-1] == pytest.approx(np.quantile(values, 0.995))
    # What lies beyond the ends is in the outer bins: about 0.5% of 2,002 at each end, and those of the bin itself.
    assert found.right[-1] >= 10
    assert found.wrong[0] >= 10
    inner = np.histogram(values, found.edges)[0]
    np.testing.assert_array_equal((found.right + found.wrong)[1:-1], inner[1:-1])
