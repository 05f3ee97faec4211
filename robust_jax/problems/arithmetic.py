"""Exact arithmetic with bounds: what the expressions of templates compute with.

Whole numbers are `int`, everything else is a `Fraction`, and no number may grow beyond `MAX_BITS`.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import mpmath  # type: ignore[import-untyped]

from robust_jax.types import Number

MAX_EXPONENT = 1_000
MAX_BITS = 14_000
"""Bits of a numerator or a denominator: some 4,200 digits, which is as long as Python prints by default."""
DIGITS = 50
"""Significant digits of roots, logarithms and trigonometric functions."""


class Undefined(ArithmeticError):
    """There is no such number, or it is out of bounds."""


def whole(number: Number) -> Number:
    """The same number, as an `int` if it is whole."""
    return number.numerator if number.denominator == 1 else number


def bounded(number: Number) -> Number:
    """The same number, as an `int` if it is whole.

    Raises:
        Undefined: it is longer than `MAX_BITS`.
    """
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > MAX_BITS:
        raise Undefined("the number gets too long")
    return whole(number)


def round_half_up(number: Number, places: Number = 0) -> Number:
    """The nearest number with `places` decimals; a tie goes away from zero, as taught in school."""
    if places.denominator != 1 or not -DIGITS <= places <= DIGITS:
        raise Undefined(f"round needs a whole number of places, at most {DIGITS}")
    scaled = Fraction(number) * Fraction(10) ** int(places)
    rounded = math.floor(abs(scaled) + Fraction(1, 2))
    return whole((-rounded if number < 0 else rounded) / Fraction(10) ** int(places))


def _multiply(left: Number, right: Number) -> Number:
    product = left * right
    # A Fraction is bounded where every result is; whole numbers skip that for speed, and only a product can be long.
    return bounded(product) if product.__class__ is int and product.bit_length() > 64 else product


def _divide(left: Number, right: Number) -> Number:
    if left.__class__ is int and right.__class__ is int and left % right == 0:
        return left // right
    return Fraction(left) / right


def _power(base: Number, exponent: Number) -> Number:
    is_whole = isinstance(base, int) and isinstance(exponent, int)
    if is_whole and 0 <= exponent <= MAX_EXPONENT and base.numerator.bit_length() * exponent <= MAX_BITS:
        power: int = int(base) ** int(exponent)
        return power
    if exponent.denominator != 1:
        raise Undefined("an exponent has to be whole: use sqrt, or exp and log")
    if not -MAX_EXPONENT <= exponent <= MAX_EXPONENT:
        raise Undefined(f"an exponent may be at most {MAX_EXPONENT}")
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if bits * abs(int(exponent)) > MAX_BITS:
        raise Undefined("the power gets too long")
    return whole(Fraction(base) ** int(exponent))


def _gcd(*numbers: Number) -> Number:
    if any(number.denominator != 1 for number in numbers):
        raise Undefined("gcd needs whole numbers")
    return math.gcd(*(int(number) for number in numbers))


def _divides(multiple: Number, divisor: Number) -> bool:
    return multiple % divisor == 0


def _is_int(number: Number) -> bool:
    return number.denominator == 1


# A context of its own, so that no precision but this one's is touched. The spare digits go to rounding once.
_CONTEXT = mpmath.MPContext()
_CONTEXT.dps = DIGITS + 15

PI = Fraction(_CONTEXT.nstr(_CONTEXT.pi, DIGITS))


def _transcendental(name: str) -> Callable[[Number], Number]:
    """The function of that name, rounded to `DIGITS` significant digits."""
    function = getattr(_CONTEXT, name)

    @lru_cache(maxsize=10_000)
    def evaluate(argument: Number) -> Number:
        if name == "exp" and not -5_000 <= argument <= 5_000:
            raise Undefined("exp of a number beyond 5000")
        if name == "sqrt" and argument >= 0:
            root = Fraction(math.isqrt(argument.numerator), math.isqrt(argument.denominator))
            if root * root == argument:
                return whole(root)
        try:
            result = function(_CONTEXT.mpf(argument.numerator) / argument.denominator)
        except ValueError:
            result = _CONTEXT.nan
        if not isinstance(result, _CONTEXT.mpf) or not _CONTEXT.isfinite(result):
            raise Undefined(f"{name} of {str(argument)[:40]} does not exist")
        return bounded(Fraction(_CONTEXT.nstr(result, DIGITS)))

    return evaluate


class Function(NamedTuple):
    """A function of the language with the least and the greatest number of arguments."""

    compute: Callable[..., Number]
    least: int
    most: int


FUNCTIONS: Mapping[str, Function] = {
    "min": Function(min, 2, 20),
    "max": Function(max, 2, 20),
    "abs": Function(abs, 1, 1),
    "round": Function(round_half_up, 1, 2),
    "floor": Function(math.floor, 1, 1),
    "ceil": Function(math.ceil, 1, 1),
    "trunc": Function(math.trunc, 1, 1),
    "gcd": Function(_gcd, 2, 20),
    **{
        name: Function(_transcendental(name), 1, 1)
        for name in ("sqrt", "exp", "log", "log10", "sin", "cos", "tan", "asin", "acos", "atan")
    },
}
"""Functions that give a number."""

TESTS: Mapping[str, Function] = {"divides": Function(_divides, 2, 2), "is_int": Function(_is_int, 1, 1)}
"""Functions that give true or false."""

BINARY: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: _multiply,
    ast.Div: _divide,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}

COMPARISONS: Mapping[type[ast.cmpop], Callable[[Number, Number], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
