"""Estimated costs: a result is never longer than was estimated, and what is dear is estimated as dear."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_jax.errors import InputError
from robust_jax.problems.cost import Length, cost, length_of, result_length
from robust_jax.problems.domains import Grid
from robust_jax.problems.expressions import Expression, parse
from robust_jax.types import Pair, Slot

SLOTS = {
    "n": Slot("n", Grid.between(-40, 900)),
    "d": Slot("d", Grid.between(parse("0.05", (), where="").number({}), parse("3.3", (), where="").number({}))),
    "w": Slot("w", ("red", "blue")),
    "p": Slot("p", (Pair("half", parse("1/2", (), where="").number({})), Pair("two", 2))),
}
LENGTHS = {name: length_of(slot.domain) for name, slot in SLOTS.items()}
LEAVES = st.sampled_from(["n", "d", "p", "p[1]", "7", "0.25", "1e12"])
FORMS = [
    *("{} + {}", "{} - {}", "{} * {}", "{} / {}", "{} // {}", "{} % {}", "min({}, {})", "max({}, {})", "-({})"),
    *("abs({})", "floor({})", "ceil({})", "trunc({})", "round({})", "round({}, 3)", "({}) ** 3", "({}) ** -2"),
    *("sqrt({})", "exp({})", "log({})", "sin({})", "tan({})", "acos({})", "({}) if n > 3 else ({})"),
]
SOURCES = st.recursive(
    LEAVES,
    lambda inner: st.builds(
        lambda form, one, other: form.format(f"({one})", f"({other})"), st.sampled_from(FORMS), inner, inner
    ),
    max_leaves=8,
)


def parsed(source: str) -> Expression:
    return parse(source, SLOTS, where="t")


@settings(max_examples=300, deadline=None)
@given(SOURCES, st.data())
def test_no_result_is_longer_than_estimated(source: str, data: st.DataObject) -> None:
    values = {name: data.draw(st.sampled_from(slot.domain), label=name) for name, slot in SLOTS.items()}
    try:
        expression = parsed(source)
        result = expression(values)
    except InputError:  # powers of powers, and what has no value
        return
    if isinstance(result, Pair):
        result = result.number
    assert not isinstance(result, (str, bool))
    longest = result_length(expression, LENGTHS)
    assert result.numerator.bit_length() <= longest.above
    assert result.denominator == 1 or result.denominator.bit_length() <= longest.below


@pytest.mark.parametrize(
    ("cheap", "dear", "times"),
    [
        ("n > 3", "n > 3 and n + 1 > 3", 1.5),
        ("n * 7", "d * 7", 5),
        ("d * 7", "sqrt(d)", 10),
        ("n ** 3", "n ** 900", 5),
        ("d + d", "d ** 400 + d ** 400", 10),
        ("1 / n", " + ".join(["1 / n"] * 30), 30),
        ("w == 'red'", "exp(sin(n)) > 0", 100),
    ],
)
def test_what_is_dear_is_estimated_as_dear(cheap: str, dear: str, times: float) -> None:
    assert cost(parsed(dear), LENGTHS).exact > times * cost(parsed(cheap), LENGTHS).exact


def test_lengths_of_domains() -> None:
    assert length_of(("red", "blue")) == Length(0, 0)
    assert length_of(Grid.between(1, 1000)) == Length(10, 0)
    assert length_of(SLOTS["p"].domain) == Length(2, 2)
