"""Worked solutions: right ones pass, every kind of mistake is found, nothing is left unread."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_jax.problems.text import decimal
from robust_jax.problems.trace import check_trace
from robust_jax.types import Grading

EXACT = Grading()


def faults(line: str) -> list[str]:
    return check_trace(f"{line}\n#### 1", 1, EXACT)


@pytest.mark.parametrize(
    "line",
    [
        "Ava has 12 + 5 = 17 apples.",
        "After eating 4 there are 12 + 5 - 4 = 13 left.",
        "She pays $3 + $4 = $7.",
        "He gets €10.50 - €0.75 = €9.75 back.",
        "12 / 4 = 3 and then 3 * 2 = 6, so 6 - 1 = 5.",
        "3 + 4 = 7 = 14 / 2",
        "12 / 4 = 3, 3 * 2 = 6, and -1 + 7 = 6 (on day 6)",
        "Total = 3 * 4 = 12",
        "In total, cost = $3 * 4 = $12.",
        "On day 3, the number of trees = 4 * 5 = 20.",
        "First she finds x = 5.",
        "(3 + 4 = 7)",
        "She has (3 + 4) * 2 = 14 pens (7 in each hand).",
        "1,200 + 34 = 1,234 people",
        "12000 / 12 = 1,000.",
        "10 / 3 = 3.33",
        "10 / 3 ≈ 3.3",
        "10 / 3 ≈ 3",
        "2 / 3 = 0.67 = 67%",
        "20% = 0.2",
        "0.2 * 50 = 10",
        "50 * 20% = 10",
        "6 × 7 − 2 = 40",
        "84 ÷ 2 = 42",
        "2^3 = 8 and 2 ** 3 = 8",
        "sqrt(3 ^ 2 + 4 ^ 2) = 5",
        "The area is pi * 2 ^ 2 = 12.57 square metres.",
        "max(3, 4) = 4",
        "Cost per floor = $3 * 4 = $12.",
        "- 3 + 4 = 7 (a list item)",
        "* 3 + 4 = 7",
        "The temperature is -5 + 3 = -2 degrees.",
        "5 - -3 = 8",
        "It is less: 3 <= 4, 4 >= 3, 3 != 4.",
        "No equation, 5 apples + 3 pears - nothing to check.",
        "3 + 4 = 7 apples-to-go",
        "Ava's total = 3 + 4 = 7",
        "60 * 2 = 120 km/h",
        "",
    ],
)
def test_right(line: str) -> None:
    assert faults(line) == []


@pytest.mark.parametrize(
    "line",
    [
        "12 + 5 = 18",
        "12 / 5 = 2",
        "7 / 2 = 4",
        "7 / 2 = 3",
        "10 / 3 = 3.34",
        "10 / 3 ≈ 3.4",
        "10 / 3 ≈ 4",
        "1 / 3 = 0.3334",
        "3 + 4 = 7 = 15 / 2",
        "3 + 4 = 8 = 16 / 2",
        "12 / 4 = 3 and then 3 * 2 = 7.",
        "20% of 50 = 10",
        "5 boxes + 3 = 8",
        "5 boxes * 3 + 4 = 7",
        "5 boxes - 3 + 4 = 1",
        "5 boxes of 3 = 15",
        "5kg + 3kg = 8kg",
        "3 + 4 = 7 * boxes",
        "3 + 4 = 7 8",
        "5 3 + 4 = 7",
        "5 * (3 + 4 = 7",
        "3 + 4 = 7) * 2",
        "5 * (boxes) - (3 + 4 = 7)",
        "= 7",
        "3 + 4 =",
        "3 + 4 = seven",
        "x = y",
        "2 (3 + 4) = 14",
        "3 x 4 = 12",
        "7 / 0 = 0",
        "0 = 7 / 0",
        "12:30 = 12",
        "3² = 9",
        "5kg = 9",
        "3 + 4 = 7 8kg",
        "5kg 3 + 4 = 7",
        "1,23 + 1 = 124",
        "2 ** 99999 = 1",
        "total = (3 + 4",
    ],
)
def test_wrong_or_unreadable(line: str) -> None:
    [fault] = faults(line)[:1]
    assert fault.startswith("line 1: ")


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 9999), st.integers(1, 99), st.integers(0, 4), st.booleans(), st.integers(-9, 9).filter(lambda d: d)
)
def test_a_printed_quotient_passes_and_its_last_digit_matters(
    a: int, b: int, places: int, comma: bool, off: int
) -> None:
    printed = decimal(Fraction(a, b), places, thousands=comma)
    wrong = decimal(Fraction(printed.replace(",", "")) + Fraction(off, 10**places), places)
    assert faults(f"So {a} / {b} ≈ {printed} each.") == []
    is_tie = 2 * abs(Fraction(a, b) - Fraction(wrong)) == Fraction(1, 10**places)
    assert bool(faults(f"So {a} / {b} ≈ {wrong} each.")) is not is_tie


@pytest.mark.parametrize(
    ("trace", "answer", "is_right"),
    [
        ("3 + 4 = 7\n#### 7", 7, True),
        ("#### 7\n\n", 7, True),
        ("#### $1,234.50", Fraction(2469, 2), True),
        ("#### 7/2", Fraction(7, 2), True),
        ("#### -3", -3, True),
        ("3 + 4 = 7\n#### 8", 7, False),
        ("3 + 4 = 7", 7, False),
        ("#### 7\nDone.", 7, False),
        ("#### seven", 7, False),
        ("#### 7 apples", 7, False),
        ("####", 7, False),
        ("", 7, False),
        ("#### 3.33", Fraction(10, 3), False),
        ("#### 3.33", None, True),
    ],
)
def test_the_last_line(trace: str, answer: int | Fraction | None, is_right: bool) -> None:
    assert (check_trace(trace, answer, EXACT) == []) is is_right


def test_the_last_number_is_held_to_the_grading() -> None:
    assert check_trace("#### 3.33", Fraction(10, 3), Grading(relative=Fraction(1, 100))) == []
    assert check_trace("#### 3.2", Fraction(10, 3), Grading(relative=Fraction(1, 100))) != []
    assert check_trace("#### -3.33", Fraction(-10, 3), Grading(relative=Fraction(1, 100))) == []


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "line", ["(" * 5000 + " = 1", "1 + " * 5000 + "1 = 1", "9" * 50_000 + " = 1", "= " * 60, "- " * 140 + "= 1"]
)
def test_hostile_lines_are_faults(line: str) -> None:
    assert faults(line)


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="12 .,=≈+-*/^()%$x#\nsqrt", max_size=40))
def test_any_text_is_checked_without_an_error(text: str) -> None:
    assert all("\n" not in fault for fault in check_trace(text, 1, EXACT))
