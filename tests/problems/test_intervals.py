"""Intervals against exact arithmetic: what they rule out is never valid, and they rule out most of what is not."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_jax.problems.domains import Grid
from robust_jax.problems.expressions import parse
from robust_jax.problems.intervals import Column, Table, possible
from robust_jax.types import Pair, Value

DOMAINS: dict[str, tuple[Value, ...] | Grid] = {
    "a": Grid.between(-5, 12),
    "b": Grid.between(Fraction(1, 10), 3, Fraction(1, 10)),
    "c": (2, 3, Fraction(1, 3), Fraction(7, 5), 10**18 + 1),
    "part": (Pair("half", Fraction(1, 2)), Pair("a third", Fraction(1, 3)), Pair("twice", 2)),
    "who": ("Ava", "Omar"),
    "wide": Grid(0, 7, 2**60),
}
NUMBERS = ["a", "b", "c", "part", "wide", "0.1", "3", "1e-7", "part[1]"]
BINARY = ["{} + {}", "{} - {}", "{} * {}", "{} / {}", "{} // {}", "{} % {}", "min({}, {})", "max({}, {})"]
UNARY = ["-{}", "+{}", "abs({})", "floor({})", "ceil({})", "trunc({})", "round({})", "sqrt({})", "{} ** 2"]
numbers = st.recursive(
    st.sampled_from(NUMBERS),
    lambda inner: st.one_of(
        st.builds(lambda form, x, y: "(" + form.format(x, y) + ")", st.sampled_from(BINARY), inner, inner),
        st.builds(lambda form, x: "(" + form.format(x) + ")", st.sampled_from(UNARY), inner),
        st.builds("({} if {} < {} else {})".format, inner, inner, inner, inner),
    ),
    max_leaves=6,
)
tests = st.one_of(
    st.builds(lambda op, x, y: f"{x} {op} {y}", st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), numbers, numbers),
    st.builds("{} <= {} < {}".format, numbers, numbers, numbers),
    st.builds("is_int({})".format, numbers),
    st.builds("divides({}, {})".format, numbers, numbers),
    st.sampled_from(["who == 'Ava'", "'Omar' != who", "part == 'half'", "who == 'Eve'"]),
)
conditions = st.recursive(
    tests,
    lambda inner: st.one_of(
        st.builds("({}) and ({})".format, inner, inner),
        st.builds("({}) or ({})".format, inner, inner),
        st.builds("not ({})".format, inner),
    ),
    max_leaves=3,
)


@settings(max_examples=60, deadline=None)
@given(conditions, st.integers(0, 2**32))
def test_nothing_valid_is_ruled_out(source: str, seed: int) -> None:
    condition = parse(source, DOMAINS, where="t", wanted="boolean")
    rng = np.random.default_rng(seed)
    rows = rng.integers([len(domain) for domain in DOMAINS.values()], size=(40, len(DOMAINS)))
    columns = {n: Column(Table(domain), rows[:, i]) for i, (n, domain) in enumerate(DOMAINS.items())}
    may_hold = possible(condition, columns, len(rows))
    assert may_hold.shape == (40,)
    for row, is_possible in zip(rows.tolist(), may_hold.tolist(), strict=True):
        values = {name: DOMAINS[name][index] for name, index in zip(DOMAINS, row, strict=True)}
        assert is_possible or not condition.holds(values)


@pytest.mark.parametrize(
    "source",
    ["a < 3", "a * b > c", "is_int(a * b)", "divides(a, 4)", "is_int(a / 7) and part * a > 1", "who == 'Ava'"],
)
def test_what_is_not_valid_is_mostly_ruled_out(source: str) -> None:
    condition = parse(source, DOMAINS, where="t", wanted="boolean")
    rows = np.random.default_rng(0).integers([len(d) for d in DOMAINS.values()], size=(500, len(DOMAINS)))
    columns = {n: Column(Table(domain), rows[:, i]) for i, (n, domain) in enumerate(DOMAINS.items())}
    exact = [condition.holds({n: DOMAINS[n][i] for n, i in zip(DOMAINS, row, strict=True)}) for row in rows.tolist()]
    assert possible(condition, columns, len(rows)).sum() <= sum(exact) + 10
