"""Marginal effects of slot values: right where the truth is known, and silent where there is none."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from robust_jax.analysis.attribution import (
    clear,
    explained_share,
    percentiles,
    proportion_difference,
    value_effects,
    value_groups,
)


def test_words_stand_alone_and_many_numbers_make_ranges() -> None:
    assert [group.label for group in value_groups(["b", "a", "10", "9", "a"])] == ["a", "b", "9", "10"]
    assert [group.label for group in value_groups([str(n) for n in range(8)])] == list("01234567")
    ranges = value_groups([str(n) for n in range(2, 52)])
    assert [group.label for group in ranges] == ["2 to 11", "12 to 21", "22 to 31", "32 to 41", "42 to 51"]
    assert value_groups(["1/2", "0.25", *map(str, range(9))])[0].label == "0 to 0.25"


@given(st.lists(st.sampled_from([*map(str, range(30)), "x"]), min_size=1, max_size=60))
def test_every_value_lies_in_one_group(values: list[str]) -> None:
    groups = value_groups(values)
    assert sorted(value for group in groups for value in group.values) == sorted(set(values))


def test_a_planted_effect_is_found_with_its_size() -> None:
    rng = np.random.default_rng(0)
    values = rng.choice(["a", "b", "c", "d"], 4_000)
    wrong = rng.random(4_000) < np.where(values == "c", 0.5, 0.2)
    difficulty = rng.normal(size=4_000) + (values == "c")
    effects = {effect.group.label: effect for effect in value_effects(values.tolist(), wrong, difficulty)}
    assert list(effects) == ["a", "b", "c", "d"]
    assert effects["c"].error.interval.low < 0.3 < effects["c"].error.interval.high
    assert effects["c"].error.interval.n == (values == "c").sum()
    assert effects["c"].difficulty.interval.low > 0.15
    assert effects["a"].error.interval.high < 0


def test_rare_values_are_left_out() -> None:
    values = ["a"] * 9 + ["b"] * 50
    assert value_effects(values, np.zeros(59, bool), np.zeros(59)) == []


@pytest.mark.parametrize(("p", "q"), [(0.05, 0.1), (0.5, 0.5), (0.9, 0.3)])
def test_the_interval_of_a_proportion_covers_the_truth(p: float, q: float) -> None:
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(1_000):
        interval = proportion_difference(rng.random(40) < p, rng.random(200) < q).interval
        covered += interval.low <= p - q <= interval.high
    assert 925 <= covered <= 985


@pytest.mark.parametrize("share", [0.0, 0.04, 0.3])
def test_the_explained_share_and_its_interval_are_unbiased(share: float) -> None:
    rng = np.random.default_rng(2)
    values, covered = [], 0
    for _ in range(60):
        groups = rng.integers(20, size=800)
        effects = rng.permutation(np.linspace(-1, 1, 20))
        effects *= math.sqrt(share / (1 - share) / effects.var())
        found = explained_share(groups, effects[groups] + rng.normal(size=800), generator=rng)
        values.append(found.value)
        covered += found.low <= share <= found.high
    assert abs(np.mean(values) - share) < 0.02
    assert covered >= 50


def test_nothing_to_explain_is_nan() -> None:
    rng = np.random.default_rng(0)
    assert math.isnan(explained_share(np.arange(5), np.ones(5), generator=rng).value)
    assert math.isnan(explained_share(np.zeros(5, int), np.full(5, np.nan), generator=rng).value)


@given(st.lists(st.floats(0, 1), max_size=30))
def test_clear_effects_are_those_of_benjamini_and_hochberg(p_values: list[float]) -> None:
    adjusted = false_discovery_control(p_values) if p_values else np.empty(0)
    near = np.isclose(adjusted, 0.05, rtol=1e-9)
    assert (clear(p_values) == (adjusted <= 0.05))[~near].all()


def test_percentiles_share_ties_and_keep_nan() -> None:
    np.testing.assert_allclose(percentiles(np.array([3.0, np.nan, 1.0, 3.0, 2.0])), [0.75, np.nan, 0.125, 0.75, 0.375])
