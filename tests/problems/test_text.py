"""Texts with holes: how values are printed, against Python's decimals, and format strings that try too much."""

from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_jax.errors import InputError
from robust_jax.problems.domains import Grid
from robust_jax.problems.text import decimal, exact, parse_text
from robust_jax.types import Pair, Slot, Value

SLOTS = (
    Slot("n", Grid.between(0, 9999)),
    Slot("m", Grid.between(0, 99)),
    Slot("price", Grid.between(0, 100, Fraction(1, 4)), places=2),
    Slot("part", (Pair("half", Fraction(1, 2)), Pair("a third", Fraction(1, 3)))),
    Slot("name", ("Ava", "{n}")),
)
VALUES: dict[str, Value] = {
    "n": 1234,
    "m": 8,
    "price": Fraction(5, 2),
    "part": Pair("half", Fraction(1, 2)),
    "name": "Ava",
}


def render(source: str, **values: Value) -> str:
    return parse_text(source, SLOTS, where="template t, question").render(VALUES | values)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        ("{n}", "1234"),
        ("{ n }", "1234"),
        ("{n:,}", "1,234"),
        ("{n:.2f}", "1234.00"),
        ("{n:,.1f}", "1,234.0"),
        ("{price}", "2.50"),
        ("{price * 2}", "5"),
        ("{price / 2}", "1.25"),
        ("{price:.0f}", "3"),
        ("{part}", "half"),
        ("{part:.2f}", "0.50"),
        ("{part * n}", "617"),
        ("{part[0]} of {part[1]}", "half of 0.5"),
        ("{name}'s {m} apple{'' if m == 1 else 's'}", "Ava's 8 apples"),
        ("{{n}} costs {{{n}}}", "{n} costs {1234}"),
        ("{m - 10}", "-2"),
        ("{1 / 64}", "0.015625"),
        ("{'a: b'}", "a: b"),
        ("{'}'}", "}"),
        ("–{n}%", "–1234%"),
    ],
)
def test_printed(source: str, text: str) -> None:
    assert render(source) == text


def test_values_are_never_read_as_text_with_holes() -> None:
    assert render("{name} and {{{name}}}", name="{n}") == "{n} and {{n}}"


def test_a_number_beyond_the_declared_places_is_printed_in_full() -> None:
    assert render("{price}", price=Fraction(1, 8)) == "0.125"


@pytest.mark.parametrize("source", ["{n / 7}", "{part}{1 / 3}", "{name:.2f}", "{name:,}", "{n / (m - 8)}", "{1 / 128}"])
def test_what_cannot_be_printed(source: str) -> None:
    with pytest.raises(InputError, match="template t, question"):
        render(source)


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "source",
    [
        *("{n:{m}}", "{n!r}", "{n!s:.2f}", "{", "}", "{n", "n}", "{}", "{:.2f}", "{n:}", "{n:d}", "{n:>1000000}"),
        *("{n:.2}", "{n:.99f}", "{n:.2f:.2f}", "{n:x}", "{n.numerator}", "{n.__class__}", "{n[0].__class__}x"),
        *("{self}", "{n > 3}", "{'}", "{" * 9_999, "{'" * 10_000, '{"' + "'" * 10_000),
    ],
)
def test_refused(source: str) -> None:
    with pytest.raises(InputError, match="template t, question") as caught:
        render(source)
    assert "\n" not in str(caught.value)


@settings(max_examples=100, deadline=None)
@given(st.decimals(-(10**9), 10**9, places=6), st.integers(0, 6), st.booleans())
def test_decimal_rounds_like_school(number: Decimal, places: int, thousands: bool) -> None:
    rounded = number.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)
    expected = f"{rounded:{',' if thousands else ''}.{places}f}"
    if not any(digit in expected for digit in "123456789"):
        expected = expected.lstrip("-")
    assert decimal(Fraction(number), places, thousands=thousands) == expected


@settings(max_examples=100, deadline=None)
@given(st.fractions(max_denominator=10**7))
def test_exact_spelling_reads_back(number: Fraction) -> None:
    assert Fraction(exact(number)) == number


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="{}:nm'\".,f2 !+", max_size=20))
def test_any_source_is_a_text_or_an_input_error(source: str) -> None:
    try:
        render(source)
    except InputError as error:
        assert "\n" not in str(error)
