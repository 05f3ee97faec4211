"""Lazy grids against the lists they stand for."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_jax.problems.domains import Grid, common_kind
from robust_jax.types import Pair

numbers = st.integers(-50, 50) | st.fractions(-50, 50, max_denominator=20)
steps = st.integers(1, 9) | st.fractions(Fraction(1, 20), 5, max_denominator=20)


@settings(max_examples=60, deadline=None)
@given(numbers, st.fractions(0, 20, max_denominator=20), steps, st.data())
def test_a_grid_is_the_list_it_stands_for(
    start: int | Fraction, width: Fraction, step: int | Fraction, data: st.DataObject
) -> None:
    grid = Grid.between(start, start + width, step)
    expected, value = [], Fraction(start)
    while value <= start + width:
        expected.append(value)
        value += step
    assert list(grid) == expected
    assert len(grid) == len(expected)
    assert [grid[index] for index in range(len(grid))] == expected
    assert grid[-1] == expected[-1]
    bounds = st.none() | st.integers(-len(grid) - 2, len(grid) + 2)
    part = slice(data.draw(bounds), data.draw(bounds), data.draw(st.sampled_from([None, 1, 2, -1])))
    assert list(grid[part]) == expected[part]
    for probe in [*expected[:5], start - step, start + step / Fraction(2), start + width + step, data.draw(numbers)]:
        assert (probe in grid) == (probe in expected)
    for value in grid:
        assert type(value) is (int if value.denominator == 1 else Fraction)
    with pytest.raises(IndexError):
        grid[len(grid)]


@pytest.mark.timeout(10)
def test_a_huge_grid_stays_lazy() -> None:
    grid = Grid.between(0, 10**12)
    assert len(grid) == 10**12 + 1
    assert 10**12 in grid and 10**12 + 1 not in grid
    assert "Ava" not in grid and Pair("half", 1) not in grid
    assert grid[10**12] == 10**12
    assert len(Grid.between(0, 10**6, Fraction(1, 1000))) == 10**9 + 1


@pytest.mark.parametrize(("start", "stop", "step"), [(2, 1, 1), (0, 5, 0), (0, 5, -1), (0, 10**30, 1)])
def test_impossible_grids(start: int, stop: int, step: int) -> None:
    with pytest.raises(ValueError, match=r"step|end|many"):
        Grid.between(start, stop, step)


def test_common_kind() -> None:
    assert common_kind((1, Fraction(1, 2))) is Fraction
    assert common_kind(("a", "b")) is str
    assert common_kind((Pair("a", 1),)) is Pair
    assert common_kind(("a", 1)) is None
    assert common_kind(Grid.between(0, 10**15)) is Fraction
