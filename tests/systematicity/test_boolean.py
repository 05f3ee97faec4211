"""The boolean family: concepts, their boundary, and the observer that knows which explanation is the most probable."""

import re
from collections import defaultdict
from itertools import product

import numpy as np
import pytest

from robust_jax.errors import InputError
from robust_jax.randomness import rng
from robust_jax.systematicity.families import FAMILIES
from robust_jax.systematicity.families.boolean import (
    Parameters,
    boundary,
    draw_expression,
    neighbours,
    objects,
)
from robust_jax.systematicity.rules.boolean import (
    FEATURES,
    LABELS,
    Combination,
    Concept,
    Constant,
    Expression,
    Object,
    Predicate,
)
from robust_jax.systematicity.solvers import boolean as solver
from robust_jax.systematicity.solvers.boolean import fewest_predicates, hypotheses, number, solve
from robust_jax.systematicity.task import Example
from tests.systematicity.tasks import task, tasks

NAMES = ("shape", "size", "colour")
THINGS = objects(NAMES)


def all_expressions(predicates: int) -> list[Expression]:
    if predicates == 1:
        return [Predicate(feature, value) for feature in NAMES for value in FEATURES[feature]]
    return [
        Combination(operator, left, right)
        for size in range(1, predicates)
        for left, right in product(all_expressions(size), all_expressions(predicates - size))
        for operator in ("and", "or")
    ]


def probability(expression: Expression) -> float:
    """Straight from the grammar's weights, production by production."""
    match expression:
        case Constant():
            return 1 / 2.25
        case Predicate():
            return 3 / 3.125 / 9
        case Combination(_, left, right):
            return (1 / 16) / 3.125 * probability(left) * probability(right)


def test_the_observer_agrees_with_brute_force_on_truth_tables() -> None:
    brute: dict[int, float] = defaultdict(float)
    fewest: dict[int, int] = {}
    for size in range(4):
        for expression in [Constant(True), Constant(False)] if size == 0 else all_expressions(size):
            table = sum(1 << number(x) for x in THINGS if expression.holds(x))
            brute[table] += probability(expression) * (1 if size == 0 else 0.25 / 2.25)
            fewest.setdefault(table, size)
    known = hypotheses(3)
    assert known.tables.tolist() == sorted(brute)
    np.testing.assert_allclose(known.priors, [brute[table] for table in sorted(brute)], rtol=1e-12)
    assert known.sizes.tolist() == [fewest[table] for table in sorted(brute)]


def test_the_prior_of_all_expressions_is_nearly_one() -> None:
    assert 0.999999 < hypotheses(5).priors.sum() < 1


def test_neighbours_differ_in_one_feature() -> None:
    for x in THINGS:
        found = list(neighbours(x))
        assert len(set(found)) == 6
        assert all(sum(a != b for a, b in zip(x, other, strict=True)) == 1 for other in found)
        assert set(found) <= set(THINGS)


def test_the_boundary_by_hand() -> None:
    conjunction = Concept(Combination("and", Predicate("shape", "circle"), Predicate("size", "small")))
    edge = boundary(conjunction, THINGS)
    assert sum(conjunction(x) == "wudsy" for x in edge) == 3
    assert len(edge) == 3 + 2 * 2 * 3
    assert boundary(Concept(Predicate("shape", "circle")), THINGS) == THINGS


def test_off_the_boundary_there_is_one_class_and_copying_the_nearest_example_is_right() -> None:
    """What makes the paper's queries easy, for every concept of two to four predicates."""
    known = hypotheses(4)
    distance = np.array([[sum(a != b for a, b in zip(x, y, strict=True)) for y in THINGS] for x in THINGS])
    places = [number(x) for x in THINGS]
    for table in known.tables[known.sizes >= 2].tolist():
        wudsy = np.array([bool(table >> place & 1) for place in places])
        on_edge = np.array([((distance[i] == 1) & (wudsy != wudsy[i])).any() for i in range(27)])
        rest = np.flatnonzero(~on_edge)
        assert len(set(wudsy[rest].tolist())) <= 1
        for i in rest:
            nearest = distance[i, on_edge] == distance[i, on_edge].min()
            assert (wudsy[on_edge][nearest] == wudsy[i]).all()


@pytest.mark.parametrize("setting", ["boolean", "boolean, rest"])
def test_support_is_the_boundary_and_queries_are_as_asked(setting: str) -> None:
    for made in tasks(setting):
        things = objects([feature for feature, _ in made.queries[0]])
        edge = set(boundary(made.rule, things))
        shown = {example.x for example in made.support}
        assert len(made.queries) == 8
        if setting == "boolean":
            assert shown == edge - set(made.queries)
            assert all(made.answers.count(label) >= 2 for label in LABELS)
        else:
            assert shown == edge
        assert made.queries[0][0][0] == "shape"
        assert 2 <= fewest_predicates(x for x in things if made.rule(x) == "wudsy") <= 4


def test_constants_on_request_show_an_object_and_its_neighbours() -> None:
    constants = [made for made in tasks("boolean, constants") if isinstance(made.rule.expression, Constant)]
    assert constants
    for made in constants:
        assert len(made.support) == 7 and len(made.queries) == 8 and len(set(made.answers)) == 1
        shown = {example.x for example in made.support}
        assert any(shown == {x, *neighbours(x)} for x in shown)
    assert not any(isinstance(made.rule.expression, Constant) for made in tasks("boolean"))


def test_equal_explanations_leave_a_query_open() -> None:
    circle, square = (tuple(zip(NAMES, (shape, "small", "red"), strict=True)) for shape in ("circle", "square"))
    support = [Example(circle, "wudsy"), Example(square, "not wudsy")]
    assert solve(support, [(("shape", "circle"), ("size", "large"), ("colour", "blue"))]) == ["wudsy"]
    large: Object = (("shape", "square"), ("size", "large"), ("colour", "red"))
    other = [*support, Example(tuple(zip(NAMES, ("triangle", "medium", "red"), strict=True)), "wudsy")]
    # or(circle, triangle), and or(circle, medium) too: the triangle's size or its shape.
    assert solve(other, [(("shape", "triangle"), ("size", "large"), ("colour", "blue"))]) is None
    assert solve(other, [large]) == ["not wudsy"]


def test_contradictory_examples_have_no_explanation() -> None:
    assert solve([Example(THINGS[0], "wudsy"), Example(THINGS[0], "not wudsy")], THINGS[1:3]) is None


def test_expressions_are_drawn_over_all_trees() -> None:
    generator = rng(0, "test expressions")
    drawn = [draw_expression(3, NAMES, generator) for _ in range(600)]
    left_heavy = sum(isinstance(expression.left, Combination) for expression in drawn)
    assert abs(left_heavy / 600 - 0.5) < 0.1
    assert abs(sum(expression.operator == "and" for expression in drawn) / 600 - 0.5) < 0.1
    assert {sum(str(e).count(f"is_{n}(") for n in FEATURES) for e in drawn} == {3}


def test_the_prompt_states_the_grammar_of_the_objects() -> None:
    made = task("boolean", 0)
    instructions = FAMILIES["boolean"].instructions(made)
    features = [feature for feature, _ in made.queries[0]]
    for feature, values in FEATURES.items():
        for value in values:
            assert (f"BOOL → is_{feature}({value})" in instructions) == (feature in features)
    assert "not(" not in instructions


def test_the_observer_has_room_for_one_predicate_more() -> None:
    assert Parameters().most + 1 == solver.MOST


@pytest.mark.parametrize("settings", [{"most": 5}, {"fewest": 0}, {"fewest": 4, "most": 3}])
def test_impossible_settings_are_refused_in_one_line(settings: dict) -> None:
    with pytest.raises(InputError, match=re.escape("boolean.fewest ≤ boolean.most ≤ 4")) as refusal:
        Parameters(**settings)
    assert "\n" not in str(refusal.value)
