"""The programs family: operations on lists, programs that examples give away, and lists of unseen lengths."""

import re
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_jax.errors import InputError
from robust_jax.randomness import rng
from robust_jax.systematicity.families import FAMILIES
from robust_jax.systematicity.families.programs import Parameters, draw_program, skeletons
from robust_jax.systematicity.rules.programs import LITERALS, WEIGHTS, List, Operation, Program
from robust_jax.systematicity.solvers import programs as solver
from robust_jax.systematicity.solvers.programs import OPERATIONS, shortest_programs, solve
from robust_jax.systematicity.task import Example, Parts
from tests.systematicity.tasks import task, tasks


@pytest.mark.parametrize(
    ("name", "literals", "x", "y"),
    [
        ("swap", (), (), ()),
        ("swap", (), (1,), (1,)),
        ("swap", (), (1, 2), (2, 1)),
        ("swap", (), (1, 2, 3), (2, 3, 1)),
        ("swap", (), (1, 2, 3, 4, 5), (3, 4, 5, 1, 2)),
        ("remove", (0,), (), ()),
        ("remove", (0,), (1, 2, 3), (2, 3)),
        ("remove", (2,), (1, 2, 3), (1, 2)),
        ("remove", (3,), (1, 2, 3), (1, 2, 3)),
        ("remove", (-1,), (1, 2, 3), (1, 2)),
        ("remove", (-3,), (1, 2, 3), (2, 3)),
        ("remove", (-3,), (1, 2), (1, 2)),
        ("insert", (0, 9), (), (9,)),
        ("insert", (1, 9), (), ()),
        ("insert", (-1, 9), (), ()),
        ("insert", (0, 9), (1, 2), (9, 1, 2)),
        ("insert", (2, 9), (1, 2), (1, 2, 9)),
        ("insert", (3, 9), (1, 2), (1, 2)),
        ("insert", (-1, 9), (1, 2), (1, 9, 2)),
        ("insert", (-2, 9), (1, 2), (9, 1, 2)),
        ("insert", (-3, 9), (1, 2), (1, 2)),
        ("tail", (2,), (), ()),
        ("tail", (2,), (1,), (1,)),
        ("tail", (2,), (1, 2, 3), (2, 3)),
        ("repeat", (5,), (), ()),
        ("repeat", (5,), (1,), (1, 1, 1, 1, 1)),
        ("repeat", (5,), (1, 2, 3), (1, 2, 3, 1, 2)),
        ("repeat", (5,), (1, 2, 3, 4, 5, 6), (1, 2, 3, 4, 5)),
        ("shift", (3,), (), ()),
        ("shift", (3,), (1,), (1,)),
        ("shift", (3,), (1, 2), (2, 1)),
        ("shift", (1,), (1, 2, 3), (3, 1, 2)),
        ("shift", (3,), (1, 2, 3), (1, 2, 3)),
    ],
)
def test_operations_by_hand(name: str, literals: tuple[int, ...], x: List, y: List) -> None:
    assert Operation(name, literals)(x) == y


@pytest.mark.parametrize("operation", [Operation("swap", (1,)), Operation("reverse"), Operation("insert", (1,))])
def test_no_other_operations(operation: Operation) -> None:
    with pytest.raises(ValueError, match="no operation"):
        operation((1, 2))


def test_a_program_is_written_from_the_outside_in() -> None:
    program = Program((Operation("insert", (-1, 7)), Operation("swap")))
    assert str(program) == "swap(insert(x, -1, 7))"
    assert program((1, 2, 3)) == (7, 3, 1, 2)


def test_the_grammar_has_ninety_six_operations_and_the_weights_of_its_productions() -> None:
    assert len(OPERATIONS) == 1 + 7 + 7 * 11 + 3 + 5 + 3
    assert sum(WEIGHTS.values()) + 1 / 2 == pytest.approx(1)


@settings(deadline=None)
@given(st.lists(st.sampled_from(OPERATIONS), max_size=3), st.lists(st.integers(0, 10), max_size=16))
def test_programs_run_together_do_what_each_does_alone(operations: list[Operation], elements: list[int]) -> None:
    chain = np.array([[OPERATIONS.index(operation) for operation in operations]], np.int16)
    (row,) = solver._run(chain, tuple(elements), 20)
    assert tuple(row[row >= 0].tolist()) == Program(tuple(operations))(tuple(elements))


def test_the_shortest_programs_are_those_of_blind_enumeration() -> None:
    generator = rng(0, "test programs")
    for skeleton in [("swap",), ("remove", "shift")]:
        program = draw_program(skeleton, generator)
        inputs = [tuple(generator.integers(10, size=size).tolist()) for size in (10, 1, 2, 3, 9)]
        support = tuple(Example(x, program(x)) for x in inputs)
        for size in range(3):
            blind = {
                candidate
                for chain in product(OPERATIONS, repeat=size)
                if all((candidate := Program(chain))(example.x) == example.y for example in support)
            }
            if blind:
                break
        assert set(shortest_programs(support)) == blind


def test_what_no_program_explains_has_no_answer() -> None:
    backwards = [Example(x, x[::-1]) for x in ((1, 2, 3, 4, 5), (6, 7, 8, 9))]
    assert solve(backwards, [(1, 2)]) is None
    assert solve([Example((1,), tuple(range(60)))], [(1, 2)]) is None


def test_shortest_programs_that_differ_on_a_query_leave_it_open() -> None:
    support = [Example((1, 2, 3), (3, 1, 2))]  # shift(x, 1), but also tail and insert, or remove and insert
    assert solve(support, [(4, 5, 6)]) == [(6, 4, 5)]
    assert solve([Example((1, 2), (2, 1))], [(4, 5, 6)]) is None  # swap, or a shift by one or three


def test_support_and_queries_have_different_lengths() -> None:
    for made in tasks("programs"):
        assert sorted(len(example.x) for example in made.support) == [1, 2, 3, 4, 13, 14, 15, 16]
        assert sorted(map(len, made.queries)) == list(range(5, 13))
        assert all(0 <= element <= 9 for x in made.queries for element in x)
        assert 2 <= len(made.rule.operations) <= 3
    assert sorted({len(x) for x in task("programs, described", 0).queries}) == list(range(5, 13))


def test_no_program_is_an_identity_a_constant_or_longer_than_it_need_be() -> None:
    for made in tasks("programs"):
        inputs = [*(example.x for example in made.support), *made.queries]
        outputs = [made.rule(x) for x in inputs]
        assert outputs != inputs
        assert len(set(outputs)) > 1
        assert len(shortest_programs(made.support)[0].operations) == len(made.rule.operations)


def test_skeletons_are_dealt_out() -> None:
    names = [task("programs", number).rule.skeleton for number in range(6)]
    assert len(set(names)) == len(names)
    assert len(skeletons(2, 3)) == 6**2 + 6**3 - 15


@pytest.mark.slow
def test_the_skeletons_left_out_are_exactly_those_that_shorter_programs_explain_away() -> None:
    """All programs of up to three operations on the support's lengths, with every element told apart."""
    lengths = Parameters().support_lengths
    width = max(lengths) + 4
    weights = np.random.default_rng(0).integers(1, 2**62, size=(1_100, width), dtype=np.uint64)
    shorter: np.ndarray = np.zeros(0, np.uint64)
    explained: Counter[tuple[str, ...]] = Counter()
    total: Counter[tuple[str, ...]] = Counter()
    for size in range(4):
        chains = solver._chains(size)
        behaviour = np.zeros(len(chains), np.uint64)
        for start in range(0, len(chains), 50_000):
            part = chains[start : start + 50_000]
            for number, length in enumerate(lengths):
                rows = solver._run(part, tuple(range(20, 20 + length)), width).astype(np.int64) + 1
                fold = np.uint64(2 * number + 1)
                behaviour[start : start + 50_000] += fold * weights[rows, np.arange(width)].sum(-1, dtype=np.uint64)
        names = np.array([operation.name for operation in OPERATIONS])[chains]
        for skeleton, is_explained in zip(
            map(tuple, names.tolist()), np.isin(behaviour, shorter).tolist(), strict=True
        ):
            total[skeleton] += 1
            explained[skeleton] += is_explained
        shorter = np.union1d(shorter, behaviour)
    left_out = {skeleton for skeleton in total if len(skeleton) > 1 and explained[skeleton] == total[skeleton]}
    assert set(product(LITERALS, repeat=2)) | set(product(LITERALS, repeat=3)) == left_out | set(skeletons(2, 3))
    assert not left_out & set(skeletons(2, 3))


def test_substitution_changes_elements_and_never_positions_or_lengths() -> None:
    program = Program((Operation("insert", (-1, 7)), Operation("remove", (2,)), Operation("repeat", (5,))))
    change = FAMILIES["programs"].change(task("programs", 0), "substitution", rng(0, "test"))
    changed = change.apply(Parts(program, ((1, 2, 3),), ((4, 10),)))
    assert [operation.name for operation in changed.rule.operations] == ["insert", "remove", "repeat"]
    assert [operation.literals for operation in changed.rule.operations] == [(-1, change.elements[7]), (2,), (5,)]
    assert changed.support == (tuple(change.elements[element] for element in (1, 2, 3)),)
    assert sorted(change.elements) == list(range(11))
    for x in ((1, 2, 3), (4, 10)):
        assert changed.rule(tuple(change.elements[e] for e in x)) == tuple(change.elements[e] for e in program(x))


def test_two_levels_of_instructions() -> None:
    family = FAMILIES["programs"]
    general, described = (family.instructions(task(setting, 0)) for setting in ("programs", "programs, described"))
    assert described.startswith(general)
    assert all(f"- {name}(list" in described and f"{name}(list" not in general for name in LITERALS)


@pytest.mark.parametrize(
    ("chosen", "named"),
    [
        ({"most": 4}, "≤ 3"),
        ({"fewest": 3, "most": 2}, "3 to 2 operations"),
        ({"fewest": 0}, "0 to 3"),
        ({"longest": 11}, "programs.longest must be from 12"),
    ],
)
def test_impossible_settings_are_refused_in_one_line(chosen: dict, named: str) -> None:
    with pytest.raises(InputError, match=re.escape(named)) as refusal:
        Parameters(**chosen)
    assert "\n" not in str(refusal.value)
