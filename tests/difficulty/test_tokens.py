"""The math-aware tokenizer: one case a rule, and what must hold for any text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robust_jax.difficulty.tokens import math_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        ("... !?\n\t", []),
        ("She has 12 apples.", ["she", "has", "12", "apples"]),
        ("1,234,567.89 and 70,000", ["1234567.89", "and", "70000"]),
        ("1,23 and 1,2345", ["1", "23", "and", "1", "2345"]),
        ("0.50 is .5", ["0.50", "is", ".5"]),
        ("It is 5.", ["it", "is", "5"]),
        ("-5 and −5 and +5", ["-", "5", "and", "-", "5", "and", "+", "5"]),
        ("$1,200.50 = 3*(4+6)^2/7%", ["$", "1200.50", "=", "3", "*", "(", "4", "+", "6", ")", "^", "2", "/", "7", "%"]),
        ("a<b>c €3 £4 2×3÷6", ["a", "<", "b", ">", "c", "€", "3", "£", "4", "2", "×", "3", "÷", "6"]),
        ("so\n#### 42", ["so", "####", "42"]),
        ("####42", ["####", "42"]),
        ("### Step ##### x", ["step", "x"]),
        ("12kg of x1_y2", ["12", "kg", "of", "x", "1", "y", "2"]),
        ("Janet's “ducks”", ["janet", "s", "ducks"]),
        ("ＴＯＴＡＬ：４２", ["total", "42"]),
        ("½ STRASSE straße", ["1", "/", "2", "strasse", "strasse"]),
        ("\\boxed{\\frac{1}{2}}", ["boxed", "frac", "1", "2"]),
        ("lone \ud835 surrogate", ["lone", "surrogate"]),
    ],
)
def test_cases(text: str, tokens: list[str]) -> None:
    assert math_tokens(text) == tokens


@given(st.text(alphabet=st.characters(max_codepoint=0x24F), max_size=60))
def test_tokens_joined_by_spaces_are_the_same_tokens(text: str) -> None:
    tokens = math_tokens(text)
    assert math_tokens(" ".join(tokens)) == tokens


@given(st.text(max_size=60))
def test_no_token_holds_space_separator_or_case(text: str) -> None:
    for token in math_tokens(text):
        assert token
        assert not any(character.isspace() or character == "," for character in token)
        assert token == token.casefold()


@given(st.integers(0, 10**12), st.integers(0, 99))
def test_thousands_separators_do_not_matter(whole: int, cents: int) -> None:
    assert math_tokens(f"{whole:,}.{cents:02d}") == math_tokens(f"{whole}.{cents:02d}") == [f"{whole}.{cents:02d}"]
