"""Templates against brute force: validity, counting, neighbours, uniform draws, keys."""

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from robust_jax.errors import InputError
from robust_jax.problems import fillings
from robust_jax.problems.domains import Grid
from robust_jax.problems.expressions import parse
from robust_jax.problems.template import SymbolicTemplate, restricted
from robust_jax.problems.text import parse_text
from robust_jax.types import Pair, Point, Size, Slot, Value

HALF, THIRD = Pair("half", Fraction(1, 2)), Pair("a third", Fraction(1, 3))
NAMES = ("Ava", "Omar", "Noor", "Ben")


def make(
    domains: Mapping[str, Sequence[Value]],
    constraints: Sequence[str] = (),
    distinct: tuple[tuple[str, ...], ...] = (),
    base: Point | None = None,
    answer: str = "1",
) -> SymbolicTemplate:
    slots = tuple(Slot(name, domain) for name, domain in domains.items())
    return SymbolicTemplate(
        id="t",
        slots=slots,
        question=parse_text(" ".join(f"{{{name}}}" for name in domains), slots, where="template t, question"),
        solution=parse_text(f"#### {{{answer}}}", slots, where="template t, solution"),
        answer=parse(answer, domains, where="template t, answer", wanted="number"),
        constraints=tuple(parse(c, domains, where="template t, constraint", wanted="boolean") for c in constraints),
        distinct=distinct,
        base=base,
    )


# Constraints beside an independent reading of each.
Test = Callable[[dict[str, Value]], bool]
CONSTRAINTS: dict[str, Test] = {
    "n + m > k": lambda v: v["n"] + v["m"] > v["k"],
    "divides(n, k)": lambda v: v["k"] != 0 and v["n"] % v["k"] == 0,
    "n != m": lambda v: v["n"] != v["m"],
    "k < 4 or m == 2": lambda v: v["k"] < 4 or v["m"] == 2,
    "is_int(part * n)": lambda v: (v["part"].number * v["n"]).denominator == 1,
    "a != 'Ava'": lambda v: v["a"] != "Ava",
    "is_int(price * m)": lambda v: (v["price"] * v["m"]).denominator == 1,
    "m >= 1": lambda v: v["m"] >= 1,
}


@st.composite
def small_templates(draw: st.DrawFn) -> tuple[SymbolicTemplate, set[Point]]:
    """A template with the set of its valid fillings, found by trying every one."""
    number = st.builds(lambda low, width, step: Grid.between(low, low + width, step), *3 * [st.integers(1, 4)])
    domains: dict[str, Sequence[Value]] = {
        "a": NAMES[: draw(st.integers(2, 4))],
        "n": draw(number),
        "b": NAMES,
        "m": draw(number),
        "part": (HALF, THIRD),
        "k": Grid.between(0, draw(st.integers(0, 3))),
        "price": Grid.between(Fraction(1, 2), 2, Fraction(1, 2)),
    }
    chosen = draw(st.sets(st.sampled_from(sorted(CONSTRAINTS)), max_size=4))
    distinct = draw(st.sampled_from([(), (("a", "b"),)]))
    valid = set()
    for point in itertools.product(*domains.values()):
        values = dict(zip(domains, point, strict=True))
        if all(CONSTRAINTS[c](values) for c in chosen) and not (distinct and values["a"] == values["b"]):
            valid.add(point)
    return make(domains, sorted(chosen), distinct), valid


def differ_only_in(slot: int, one: Point, other: Point) -> bool:
    return one[:slot] + one[slot + 1 :] == other[:slot] + other[slot + 1 :]


@settings(max_examples=25, deadline=None)
@given(small_templates(), st.integers(0, 2**32))
def test_everything_agrees_with_brute_force(case: tuple[SymbolicTemplate, set[Point]], seed: int) -> None:
    template, valid = case
    rng = np.random.default_rng(seed)
    if not valid:
        with pytest.raises(InputError, match="template t"):
            template.random(rng)
        return
    assert template.size == Size(len(valid), exact=True)
    for _ in range(5):
        point = template.random(rng)
        assert point in valid and template.is_valid(point)
        for slot in range(len(template.slots)):
            expected = {other for other in valid if other != point and differ_only_in(slot, other, point)}
            neighbours = list(template.neighbours(point, slot))
            assert set(neighbours) == expected
            assert len(neighbours) == len(expected)
    probe = tuple(slot.domain[int(rng.integers(len(slot.domain)))] for slot in template.slots)
    assert template.is_valid(probe) == (probe in valid)


@settings(max_examples=25, deadline=None)
@given(small_templates(), st.data())
def test_neighbours_of_an_invalid_point_are_the_valid_repairs(
    case: tuple[SymbolicTemplate, set[Point]], data: st.DataObject
) -> None:
    template, valid = case
    point: Point = tuple(data.draw(st.sampled_from([*slot.domain][:4])) for slot in template.slots)
    spoilt = data.draw(st.integers(0, len(point) - 1))
    outside: Point = (*point[:spoilt], "Zoe" if isinstance(point[spoilt], str) else 999, *point[spoilt + 1 :])
    for slot in range(len(point)):
        expected = {other for other in valid if differ_only_in(slot, other, outside)}
        assert set(template.neighbours(outside, slot)) == expected
    assert not template.is_valid(outside)


def fit_is_uniform(template: SymbolicTemplate, valid: Sequence[Point], draws: int) -> bool:
    rng = np.random.default_rng(7)
    counts = Counter(template.random(rng) for _ in range(draws))
    assert set(counts) <= set(valid)
    return chisquare([counts[point] for point in valid]).pvalue > 1e-4


def test_draws_are_uniform_over_valid_fillings() -> None:
    domains = {"a": NAMES[:3], "b": NAMES[:3], "n": Grid.between(1, 8), "k": Grid.between(1, 5)}
    template = make(domains, ["divides(n, k)", "n > 2"], (("a", "b"),))
    valid = [
        point
        for point in itertools.product(*domains.values())
        if point[0] != point[1] and point[2] % point[3] == 0 and point[2] > 2
    ]
    assert template.size.count == len(valid)
    assert fit_is_uniform(template, valid, 40 * len(valid))


def test_draws_are_uniform_where_valid_fillings_are_rare(monkeypatch: pytest.MonkeyPatch) -> None:
    """So rare that most draws come from the list of valid fillings and some from rejection."""
    monkeypatch.setattr(fillings, "FIRST_TRIES", 48)
    template = make({"n": Grid.between(1, 60), "m": Grid.between(1, 60)}, ["n * m == 360"])
    valid = [(n, 360 // n) for n in range(1, 61) if 360 % n == 0 and 360 // n <= 60]
    assert len(valid) / 60**2 < 1 / 192
    assert fit_is_uniform(template, valid, 30 * len(valid))


def test_draws_from_domains_too_large_to_list() -> None:
    domains = {"n": Grid.between(0, 10**12), "m": Grid.between(0, 10**12), "k": Grid.between(0, 1)}
    template = make(domains, ["n < m", "k == 1"])
    rng = np.random.default_rng(0)
    points = [template.random(rng) for _ in range(200)]
    assert all(n < m and k == 1 for n, m, k in points)
    assert np.mean([n for n, _, _ in points]) == pytest.approx(1e12 / 3, rel=0.15)
    assert template.size == Size((10**12 + 1) ** 2 * 1, exact=False)
    assert next(template.neighbours((5, 9, 1), 1)) == (5, 6, 1)


def test_a_draw_depends_on_the_generator_alone() -> None:
    domains = {"n": Grid.between(1, 60), "m": Grid.between(1, 60)}
    used, fresh = make(domains, ["n * m == 360"]), make(domains, ["n * m == 360"])
    assert used.size.exact and used.random(np.random.default_rng(1)) is not None
    seeds = range(9)
    assert [used.random(np.random.default_rng(s)) for s in seeds] == [
        fresh.random(np.random.default_rng(s)) for s in seeds
    ]


def test_size_of_names_drawn_without_repetition_is_exact_however_many() -> None:
    names = tuple(f"name{i}" for i in range(100))
    template = make(dict.fromkeys("abcd", names), distinct=(("a", "b", "c", "d"),))
    assert fillings.ENUMERABLE < 100**4
    assert template.size == Size(100 * 99 * 98 * 97, exact=True)
    assert len(set(template.random(np.random.default_rng(0)))) == 4


def test_size_is_a_product_over_what_constraints_do_not_connect() -> None:
    domains = dict.fromkeys("abcdef", Grid.between(1, 40))
    template = make(domains, ["a < b", "c < d"])
    assert template.size == Size(780 * 780 * 40 * 40, exact=True)


@pytest.mark.parametrize(
    ("domains", "constraints", "blamed"),
    [
        ({"n": Grid.between(1, 50), "m": Grid.between(1, 50)}, ["n > 1", "n + m > 200"], "n + m > 200"),
        ({"n": Grid.between(1, 10**6), "m": Grid.between(1, 10**6)}, ["n > 9", "n * m < 0"], "n * m < 0"),
        ({"n": Grid.between(1, 50)}, ["n > 60"], "n > 60"),
        ({"n": Grid.between(1, 50)}, ["n / (n - n) > 1"], "n / (n - n) > 1"),
        ({"n": Grid.between(1, 50), "a": NAMES}, ["n > a"], "n > a"),
    ],
)
def test_an_unsatisfiable_template_names_the_constraint(
    domains: dict[str, Sequence[Value]], constraints: list[str], blamed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fillings, "DRAWING_WORK", 3_000.0)
    with pytest.raises(InputError, match="template t") as caught:
        make(domains, constraints).random(np.random.default_rng(0))
    assert f"'{blamed}'" in str(caught.value)


def test_too_few_values_for_distinct_slots() -> None:
    with pytest.raises(InputError, match="pairwise distinct"):
        make(dict.fromkeys("abc", NAMES[:2]), distinct=(("a", "b", "c"),)).random(np.random.default_rng(0))


def test_filling_a_template() -> None:
    template = make({"a": NAMES, "n": Grid.between(1, 9), "part": (HALF, THIRD)}, answer="n * part")
    variation = template.fill(("Ava", 3, HALF))
    assert variation.template == "t"
    assert variation.text == "Ava 3 half" == template.text(("Ava", 3, HALF))
    assert variation.answer == Fraction(3, 2)
    assert variation.trace == "#### 1.5"
    assert dict(variation.values) == {"a": "Ava", "n": 3, "part": HALF}
    assert variation.key == "Ava|3|half" == template.key(("Ava", 3, HALF))


values = st.text(alphabet="a|\\1.", min_size=1, max_size=4)


@settings(max_examples=100, deadline=None)
@given(st.tuples(values, values, st.fractions(max_denominator=50)), st.tuples(values, values, st.fractions()))
def test_keys_are_equal_only_for_equal_points(one: Point, other: Point) -> None:
    template = make({"a": NAMES, "b": NAMES, "n": Grid.between(0, 1)})
    assert (template.key(one) == template.key(other)) == (one == other)


def test_keys_are_readable() -> None:
    template = make({"a": NAMES, "n": Grid.between(1, 9), "m": Grid.between(0, 1, Fraction(1, 4))})
    assert template.key(("Ava", 12, Fraction(1, 4))) == "Ava|12|0.25"
    assert template.key(("a|b", -1, Fraction(1, 3))) == "a\\|b|-1|1/3"


def test_restricted_keeps_everything_but_the_domains() -> None:
    template = make(
        {"n": Grid.between(1, 50), "m": Grid.between(1, 50), "a": NAMES}, ["divides(n, m)"], base=(9, 3, "X")
    )
    narrow = restricted(template, {"n": Grid.between(1, 6), "m": [2, 3]})
    assert narrow.size.count == (3 + 2) * len(NAMES)
    assert narrow.base == template.base and narrow.constraints == template.constraints
    assert template.size.count > narrow.size.count
    assert narrow.slots[1].domain == (2, 3)
    hash(narrow)
    for domains in ({"x": [1]}, {"n": []}, {"n": ["one"]}, {"a": [1]}, {"n": [1, "one"]}):
        with pytest.raises(InputError, match="template t"):
            restricted(template, domains)


def test_a_template_cannot_be_changed() -> None:
    template = make({"n": Grid.between(1, 3)})
    before = hash(template)
    assert template.size.count == 3 and template.random(np.random.default_rng(0))
    with pytest.raises(AttributeError):
        template.id = "other"  # type: ignore[misc]
    assert hash(template) == before and template == make({"n": Grid.between(1, 3)})
