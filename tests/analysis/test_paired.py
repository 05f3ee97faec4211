"""Paired tests against statsmodels and against their definitions."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar as reference_mcnemar

from robust_jax.analysis.paired import holm, mcnemar


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=60))
def test_mcnemar_is_that_of_statsmodels(pairs: list[tuple[bool, bool]]) -> None:
    before, after = (np.array([pair[side] for pair in pairs], float) for side in (0, 1))
    table = [[int(((before == row) & (after == column)).sum()) for column in (1, 0)] for row in (1, 0)]
    found = mcnemar(before, after)
    assert (found.fell, found.rose) == (table[0][1], table[1][0])
    if found.fell + found.rose:
        assert found.p == pytest.approx(reference_mcnemar(table, exact=True).pvalue, abs=1e-12)


def test_items_count_once_however_often_they_were_tried() -> None:
    found = mcnemar(np.array([1.0, 0.5, 0.25, np.nan, 1.0]), np.array([0.75, 0.0, 0.5, 1.0, 1.0]))
    assert (found.fell, found.rose, found.p) == (2, 1, 1.0)


def test_nothing_changed_and_nothing_to_compare() -> None:
    assert mcnemar(np.ones(3), np.ones(3)).p == 1.0
    assert mcnemar(np.full(3, np.nan), np.ones(3)).p is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_is_the_closed_procedure_of_bonferroni_tests(p_values: list[float]) -> None:
    """A hypothesis falls with every set of hypotheses that it belongs to."""
    places = range(len(p_values))
    sets = [chosen for size in places for chosen in combinations(places, size + 1)]
    for place, adjusted in enumerate(holm(p_values)):
        by_set = [min(1.0, len(chosen) * min(p_values[n] for n in chosen)) for chosen in sets if place in chosen]
        assert adjusted == pytest.approx(max(by_set), abs=1e-12)


def test_a_test_that_could_not_be_made_is_none_of_those_adjusted_for() -> None:
    assert holm([0.01, None, 0.04]) == [0.02, None, 0.04]
    assert holm([]) == []
