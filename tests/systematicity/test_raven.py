"""The raven family: rows that follow rules, features that change places, and grids with one answer."""

from collections import Counter
from itertools import combinations, permutations, product

import pytest

from robust_jax.errors import InputError
from robust_jax.randomness import rng
from robust_jax.systematicity.families import FAMILIES
from robust_jax.systematicity.families.raven import Parameters, draw_columns
from robust_jax.systematicity.generation import TaskDeal, generate_task, variations
from robust_jax.systematicity.rules.raven import FIXED_RULES, VALUES, Matrix, Panel, Row, RowRule
from robust_jax.systematicity.solvers.raven import solve
from robust_jax.systematicity.task import Example, Parts
from tests.systematicity.tasks import task, tasks

CONSTANT, GROWING = RowRule("constant"), RowRule("progression", 2)
ALIGNED = Matrix((CONSTANT, GROWING), ((0, 1), (0, 1), (0, 1)))
GRID = [[(5, 2), (5, 4), (5, 6)], [(8, 7), (8, 9), (8, 1)], [(3, 5), (3, 7)]]
TWIN = [[(2, 5), (5, 4), (6, 5)], [(7, 8), (8, 9), (1, 8)], [(5, 3), (3, 7)]]


def examples(grid: list[list[Panel]]) -> tuple[list[Example[Row, Panel]], list[Row]]:
    return [Example((row[0], row[1]), row[2]) for row in grid[:2]], [(grid[2][0], grid[2][1])]


def test_the_worked_example_and_its_permuted_twin() -> None:
    """Section 4.2: the aligned grid on the left, and on the right the one whose answer is [9, 3]."""
    assert solve(*examples(GRID)) == [(3, 9)]
    assert solve(*examples(TWIN)) == [(9, 3)]
    assert ALIGNED(((5, 2), (5, 4))) == (5, 6)
    permuted = Matrix(ALIGNED.rules, ((1, 0), (0, 1), (1, 0)))
    assert [permuted((row[0], row[1])) for row in TWIN] == [(6, 5), (1, 8), (9, 3)]


@pytest.mark.parametrize(
    ("rule", "pair", "third"),
    [
        (CONSTANT, (4, 4), 4),
        (CONSTANT, (4, 5), None),
        (RowRule("progression", 1), (8, 9), 0),
        (GROWING, (9, 1), 3),
        (RowRule("progression", -1), (1, 0), 9),
        (RowRule("progression", -2), (1, 9), 7),
        (RowRule("progression", -2), (1, 8), None),
        (RowRule("addition"), (7, 6), 3),
        (RowRule("subtraction"), (2, 5), 7),
        (RowRule("minimum"), (2, 5), 2),
        (RowRule("maximum"), (2, 5), 5),
        (RowRule("distribute-three", values=(2, 5, 9)), (9, 2), 5),
        (RowRule("distribute-three", values=(2, 5, 9)), (9, 9), None),
        (RowRule("distribute-three", values=(2, 5, 9)), (9, 1), None),
        (RowRule("distribute-three", values=(2, 5)), (5, 2), None),
    ],
)
def test_rules_by_hand(rule: RowRule, pair: tuple[int, int], third: int | None) -> None:
    assert rule.third(*pair) == third


def answers_by_brute_force(grid: list[list[Panel]]) -> set[Panel]:
    """Every pair of rules, with every three values of distribute-three, under every order of every column."""
    rules = [*FIXED_RULES, *(RowRule("distribute-three", values=three) for three in combinations(range(VALUES), 3))]
    shown = [tuple(row) for row in grid]
    found = set()
    for first, second, third in product(permutations(range(2)), repeat=3):
        fitting = []
        for feature in range(2):
            places = [order.index(feature) for order in (first, second, third)]
            tracks = [[panel[place] for panel, place in zip(row, places, strict=False)] for row in shown]
            fitting.append(
                {
                    value
                    for rule in rules
                    if all(rule.third(*track[:2]) == track[2] for track in tracks[:2])
                    and (value := rule.third(*tracks[2][:2])) is not None
                }
            )
        for values in product(*fitting):
            found.add(tuple(values[feature] for feature in third))
    return found


def test_the_solver_agrees_with_brute_force_on_clear_and_ambiguous_grids() -> None:
    generator = rng(0, "test grids")
    clear = Counter()
    for made in tasks("raven"):
        grid = [[*example.x, example.y] for example in made.support] + [list(made.queries[0])]
        if generator.random() < 0.7:  # one number changed: most often no rule is left, or several
            row, column, place = (int(generator.integers(limit)) for limit in (2, 3, 2))
            panel = list(grid[row][column])
            panel[place] = int(generator.integers(VALUES))
            grid[row][column] = tuple(panel)
        possible = answers_by_brute_force(grid)
        found = solve(*examples(grid))
        assert found == (list(possible) if len(possible) == 1 else None)
        clear[min(len(possible), 2)] += 1
    assert min(clear[count] for count in (0, 1)) > 0


def test_an_ambiguous_grid_is_left_open() -> None:
    """5 + 0 = 5 and max(5, 0) = 5: the third row would tell them apart, but it is what is asked."""
    grid = [[(5, 1), (0, 1), (5, 1)], [(0, 2), (7, 2), (7, 2)], [(3, 4), (4, 4)]]
    assert len(answers_by_brute_force(grid)) > 1
    assert solve(*examples(grid)) is None


def test_every_binding_but_the_aligned_ones_is_a_variation() -> None:
    family = FAMILIES["raven"]
    made = generate_task(family, Parameters(features=2), 0, 1)
    found = variations(family, made, "rebinding", 6)
    assert len({variation.task.rule.columns for variation in found}) == 6 == 2**3 - 2
    with pytest.raises(InputError, match="has 6 distinct variations by rebinding, itself included"):
        variations(family, made, "rebinding", 7)
    generator = rng(0, "test columns")
    drawn = {draw_columns(3, generator) for _ in range(4_000)}
    assert len(drawn) == 6**3 - 6
    assert not any(first == second == third for first, second, third in drawn)


def test_no_task_is_aligned() -> None:
    for setting in ("raven", "raven, 3 features"):
        for made in tasks(setting):
            assert len(set(made.rule.columns)) > 1


def test_one_feature_has_no_rebinding() -> None:
    family = FAMILIES["raven"]
    made = generate_task(family, Parameters(features=1), 0, 0)
    assert family.kinds(made.parameters) == ()
    with pytest.raises(InputError, match="no rebinding; it has no variations"):
        variations(family, made, "rebinding", 2)
    with pytest.raises(InputError, match="features must be 1, 2 or 3, not 4"):
        Parameters(features=4)


def test_rule_combinations_are_dealt_out() -> None:
    """Two features: the first 55 tasks have the 55 combinations of the ten rules, with repetition."""
    dealt = [TaskDeal(3, "raven", number)([1.0] * 55) for number in range(110)]
    assert sorted(dealt[:55]) == sorted(dealt[55:]) == list(range(55))
    assert dealt[:55] != dealt[55:] != list(range(55))
    names = [tuple(sorted(str(rule).partition(" [")[0] for rule in task("raven", n).rule.rules)) for n in range(20)]
    assert len(set(names)) == 20


def test_rebinding_moves_the_answer_with_the_third_column() -> None:
    family, made = FAMILIES["raven"], task("raven, 3 features", 0)
    change = family.change(made, "rebinding", rng(1, "test"))
    parts = change.apply(Parts(made.rule, tuple(e.x for e in made.support), made.queries))
    order = change.orders[2]
    assert parts.rule(parts.queries[0]) == tuple(made.answers[0][place] for place in order)
