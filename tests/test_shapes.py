"""Sizes of arrays: large enough, and few."""

import math

from hypothesis import given
from hypothesis import strategies as st

from robust_jax.shapes import half_octave, power_of_two


def test_half_octaves_hold_their_sizes_and_are_few() -> None:
    sizes = {half_octave(size, 16) for size in range(1, 4097)}
    assert all(half_octave(size, 16) >= size for size in range(1, 4097))
    assert len(sizes) == 17


@given(st.integers(0, 10**6), st.integers(0, 12).map(lambda exponent: 2**exponent))
def test_steps_are_the_least_that_hold_a_size(count: int, least: int) -> None:
    power, half = power_of_two(count, least), half_octave(count, least)
    assert power == max(least, 2 ** math.ceil(math.log2(max(count, 1))))
    assert max(count, least) <= half <= power
    assert half in (power, power * 3 // 4)
    assert half == power or half >= count > power // 2
