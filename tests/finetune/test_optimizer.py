"""The learning rate of every step."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_jax.finetune.optimizer import learning_rate


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 400), st.sampled_from([0.0, 0.01, 0.03, 0.05, 0.5]), st.sampled_from(["cosine", "constant"]))
def test_the_rate_rises_evenly_to_its_peak_and_then_never_again(steps: int, warm_up: float, schedule: str) -> None:
    rate = learning_rate(2.0, steps, warm_up=warm_up, schedule=schedule)  # type: ignore[arg-type]
    rates = np.asarray(rate(np.arange(steps)))
    rising = math.ceil(warm_up * steps)
    assert (rates > 0).all(), "no step is wasted at a rate of zero"
    np.testing.assert_allclose(rates[:rising], 2.0 * np.arange(1, rising + 1) / (rising + 1), rtol=1e-5)
    if rising < steps:
        assert rates[rising] == 2.0
    assert (np.diff(rates[rising:]) <= 1e-6).all()
    if schedule == "constant":
        assert (rates[rising:] == 2.0).all()


@pytest.mark.parametrize("final", [0.0, 0.1])
def test_a_cosine_is_half_way_down_in_the_middle(final: float) -> None:
    rate = learning_rate(1.0, 100, warm_up=0.0, final=final)
    assert float(rate(50)) == pytest.approx((1 + final) / 2, abs=1e-6)
    assert float(rate(100)) == pytest.approx(final, abs=1e-6)
