"""What it costs to evaluate an expression, estimated from its syntax tree and so the same on every machine.

The unit is about a microsecond of an ordinary core. Costs are too high rather than too low: an estimate follows every
branch, and takes every fraction for one that cannot be reduced.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from robust_jax.problems.arithmetic import DIGITS, MAX_BITS, MAX_EXPONENT
from robust_jax.problems.domains import Grid
from robust_jax.problems.expressions import WORDS, Expression
from robust_jax.types import Pair, Value

_NODE = 0.15
"""A closure with a whole number or a word."""
_FRACTION = 3.0
"""An operation on short fractions."""
_FUNCTION = 100.0
"""A root, a logarithm or a trigonometric function to 50 digits."""
_BITS = 8 * DIGITS
"""Bits of such a function's result, above and below the line, that it has beyond its argument's."""
_EXP_BITS = 7_400
"""Bits of the largest number that `exp` gives."""
_SCREENED = 0.02
"""One node for one filling, where thousands of fillings are looked at together with floats."""


class Length(NamedTuple):
    """Bits of a number above and below the line; 0 below is a whole number."""

    above: int
    below: int = 0


class Cost(NamedTuple):
    """The cost of one filling."""

    exact: float
    screened: float
    """As one of thousands that `robust_jax.problems.intervals` looks at together."""

    def __add__(self, other: Cost) -> Cost:  # type: ignore[override]
        return Cost(self.exact + other.exact, self.screened + other.screened)


def cost(expression: Expression, lengths: Mapping[str, Length]) -> Cost:
    """The cost of evaluating an expression once.

    Args:
        expression: any that was parsed.
        lengths: the longest number of every slot, as `length_of` gives it.
    """
    tree = _tree(expression)
    nodes = sum(isinstance(node, ast.expr) for node in ast.walk(tree))
    return Cost(_estimate(tree, lengths)[0], nodes * _SCREENED)


def result_length(expression: Expression, lengths: Mapping[str, Length]) -> Length:
    """A bound of the result's length; the arguments are those of `cost`."""
    return _estimate(_tree(expression), lengths)[1]


def length_of(domain: Sequence[Value]) -> Length:
    """The length of the longest number of a domain; words have none."""
    ends = [domain[0], domain[-1], domain.step] if isinstance(domain, Grid) else domain
    numbers = [value.number if isinstance(value, Pair) else value for value in ends if not isinstance(value, str)]
    above = max((number.numerator.bit_length() for number in numbers), default=0)
    below = max((number.denominator for number in numbers), default=1)
    return Length(above, 0 if below == 1 else below.bit_length())


def _tree(expression: Expression) -> ast.expr:
    return ast.parse(expression.source, mode="eval").body


def _estimate(node: ast.expr, lengths: Mapping[str, Length]) -> tuple[float, Length]:
    """Cost of a node with all below it, and the length of the number that it gives."""
    match node:
        case ast.Constant(value=value):
            return _NODE, _constant(value)
        case ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name)):
            return _NODE, lengths.get(name, Length(_BITS, _BITS))
    parts = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    if isinstance(node, ast.Call):
        parts = node.args
    estimates = [_estimate(part, lengths) for part in parts]
    inner = sum(price for price, _ in estimates)
    numbers = [length for _, length in estimates]
    match node:
        case ast.BinOp(op=op, right=right):
            length = _result(op, numbers[0], numbers[1], right)
        case ast.Call(func=ast.Name(id=name)) if name not in WORDS:
            price, length = _call(name, numbers, parts)
            return inner + price, length
        case _:  # of comparisons, conditions, choices, signs and words
            length = Length(max(n.above for n in numbers), max(n.below for n in numbers))
    return inner + _price(*numbers, length), length


def _price(*numbers: Length) -> float:
    """One operation on numbers of these lengths, of which a fraction is reduced."""
    bits = max(max(number) for number in numbers)
    long = 0.006 * bits + 1.5e-6 * bits**2 if bits > 64 else 0.0
    return _NODE + long + (_FRACTION + long if any(number.below for number in numbers) else 0.0)


def _result(op: ast.operator, left: Length, right: Length, exponent: ast.expr) -> Length:
    match op:
        case ast.Add() | ast.Sub():
            above = 1 + max(left.above + right.below, right.above + left.below)
            return _bounded(above, left.below + right.below)
        case ast.Mult():
            return _bounded(left.above + right.above, left.below + right.below)
        case ast.Div():
            return _bounded(left.above + right.below, left.below + right.above)
        case ast.FloorDiv():
            return _bounded(left.above + right.below, 0)
        case ast.Mod():
            return _bounded(right.above + left.below, left.below + right.below)
    times = _size(exponent, right)
    is_whole = not left.below and isinstance(exponent, ast.Constant)
    return _bounded(max(left) * times, 0 if is_whole else max(left) * times)


def _call(name: str, numbers: Sequence[Length], arguments: Sequence[ast.expr]) -> tuple[float, Length]:
    """The price of a function alone, and its result's length."""
    longest = Length(max(n.above for n in numbers), max(n.below for n in numbers))
    price = len(numbers) * _price(longest)
    match name:
        case "min" | "max" | "abs":
            return price, longest
        case "floor" | "ceil" | "trunc" | "gcd" | "is_int":
            return price, Length(longest.above)
        case "divides":
            return price, Length(1)
        case "round":
            places = 4 * _size(arguments[1], numbers[1]) if len(numbers) == 2 else 0
            length = _bounded(numbers[0].above + places, min(places, 4 * DIGITS))
            return 8 * _price(longest, length) + _FRACTION, length
        case "exp":
            bits = min(_EXP_BITS, _BITS + 2 ** min(longest.above + 1, 13))
            return _FUNCTION + _price(longest, Length(bits, bits)), Length(bits, bits)
    return _FUNCTION + price, _bounded(_BITS + longest.above, _BITS + longest.below)


def _size(node: ast.expr, length: Length) -> int:
    """The largest value of an exponent or a number of places, as far as it is allowed to be."""
    match node:
        case ast.Constant(value=int(value)) | ast.UnaryOp(operand=ast.Constant(value=int(value))):
            return min(abs(value), MAX_EXPONENT)
    return min(2 ** min(length.above, 10), MAX_EXPONENT)


def _constant(value: object) -> Length:
    if isinstance(value, str):
        return Length(0)
    if isinstance(value, float) and not math.isfinite(value):  # A long decimal, which is exact in expressions.
        return Length(MAX_BITS, MAX_BITS)
    number = Fraction(str(value))
    return Length(number.numerator.bit_length(), 0 if number.denominator == 1 else number.denominator.bit_length())


def _bounded(above: int, below: int) -> Length:
    return Length(min(above, MAX_BITS), min(below, MAX_BITS))
