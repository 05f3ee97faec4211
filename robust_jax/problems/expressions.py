"""The expressions of templates: a small, exact arithmetic language, checked on Python's syntax tree and never run as Python.

A source is parsed once into nested closures over a mapping of slot values. Whole numbers stay `int`; everything else
is a `Fraction`. Whatever the whitelist does not name is refused, and so is whatever could grow without bound.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import mpmath  # type: ignore[import-untyped]

from robust_jax.errors import InputError
from robust_jax.types import Number, Pair, Value

MAX_LENGTH = 1_000
"""Characters of one expression."""
MAX_DEPTH = 40
"""Levels of nesting of one expression."""
MAX_EXPONENT = 1_000
MAX_BITS = 20_000
"""Bits of a numerator or a denominator."""
DIGITS = 50
"""Significant digits of roots, logarithms and trigonometric functions."""

Values = Mapping[str, Value]
Result = Value | bool
Kind = Literal["number", "boolean", "word", "any"]
"""What a part of an expression is known to give before any slot has a value; a slot's name alone can be `any` value."""

_Closure = Callable[[Values], Result]
_Numeric = Callable[[Values], Number]


class _Undefined(ArithmeticError):
    """The expression has no value at these slot values."""


@dataclass(frozen=True)
class Expression:
    """A parsed expression, called with the slots' values."""

    source: str
    names: frozenset[str]
    """The slots it mentions."""
    kind: Kind
    where: str
    """What it belongs to, for messages."""
    _evaluate: Callable[[Values], Result] = field(repr=False, compare=False)

    def __call__(self, values: Values) -> Result:
        """The exact value.

        Raises:
            InputError: it has none at these values (a division by zero, a word in arithmetic, a number too long).
        """
        try:
            return self._evaluate(values)
        except ArithmeticError as error:
            used = ", ".join(f"{name} = {values[name]}" for name in sorted(self.names))
            raise InputError(f"{self.where}: '{self.source}' has no value at {used or 'all'}: {error}") from None

    def number(self, values: Values) -> Number:
        """The exact value of an expression parsed as a number."""
        result = self(values)
        assert isinstance(result, (int, Fraction))
        return result


def parse(source: str, names: Collection[str], *, where: str, wanted: Kind = "any") -> Expression:
    """Parse one expression over the slots called `names`.

    Args:
        source: the expression.
        names: the slots it may mention.
        where: what it belongs to, such as `template apples`; messages begin with it.
        wanted: what it has to give; a slot whose kind is not known yet is checked when it has a value.

    Raises:
        InputError: it is no expression of the language.
    """
    source = " ".join(source.split())
    if len(source) > MAX_LENGTH:
        raise InputError(f"{where}: '{source[:40]}…' is longer than {MAX_LENGTH} characters: split it")
    compiler = _Compiler(source, names)
    try:
        tree = ast.parse(source, mode="eval").body
        if wanted == "number":
            evaluate, kind = compiler.number(tree, 0), wanted
        elif wanted == "boolean":
            evaluate, kind = compiler.condition(tree, 0), wanted
        else:
            evaluate, kind = compiler.visit(tree, 0)
    except SyntaxError as error:
        raise InputError(f"{where}: '{source}' is not an expression: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError):
        raise InputError(f"{where}: '{source[:80]}' is not an expression, or is nested too deeply") from None
    except _Undefined as error:
        raise InputError(f"{where}: '{source}': {error}") from None
    return Expression(source, frozenset(compiler.mentioned), kind, where, evaluate)


def whole(number: Number) -> Number:
    """The same number, as an `int` if it is whole."""
    if number.__class__ is int:
        return number
    if number.denominator == 1:
        return number.numerator
    return number


# --------------------------------------------------------------------------------------------------
# Arithmetic


def _bounded(number: Number) -> Number:
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > MAX_BITS:
        raise _Undefined("the number gets too long")
    return whole(number)


def _multiply(left: Number, right: Number) -> Number:
    product = left * right
    return product if product.__class__ is int and -(2**64) < product < 2**64 else _bounded(product)


def _divide(left: Number, right: Number) -> Number:
    if left.__class__ is int and right.__class__ is int and right and left % right == 0:
        return left // right
    return Fraction(left) / right


def _power(base: Number, exponent: Number) -> Number:
    if exponent.denominator != 1:
        raise _Undefined("an exponent has to be whole: use sqrt, or exp and log")
    if abs(exponent) > MAX_EXPONENT:
        raise _Undefined(f"an exponent may be at most {MAX_EXPONENT}")
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if bits * abs(exponent) > MAX_BITS and abs(base) != 1:
        raise _Undefined("the power gets too long")
    return Fraction(base) ** int(exponent) if exponent < 0 else base ** int(exponent)


def round_half_up(number: Number, places: Number = 0) -> Number:
    """The nearest number with `places` decimals; a tie goes away from zero, as taught in school."""
    if places.denominator != 1 or abs(places) > DIGITS:
        raise _Undefined(f"round needs a whole number of places, at most {DIGITS}")
    scale = Fraction(10) ** int(places)
    rounded = math.floor(abs(number) * scale + Fraction(1, 2)) / scale
    return whole(-rounded if number < 0 else rounded)


def _gcd(*numbers: Number) -> Number:
    if any(number.denominator != 1 for number in numbers):
        raise _Undefined("gcd needs whole numbers")
    return math.gcd(*(int(number) for number in numbers))


_DECIMAL = mpmath.MPContext()
_DECIMAL.dps = DIGITS + 15


def _transcendental(name: str) -> Callable[[Number], Number]:
    function = getattr(_DECIMAL, name)

    @lru_cache(maxsize=10_000)
    def evaluate(argument: Number) -> Number:
        if name == "sqrt" and argument >= 0:
            root = Fraction(math.isqrt(argument.numerator), math.isqrt(argument.denominator))
            if root * root == argument:
                return whole(root)
        if name == "exp" and abs(argument) > 5_000:
            raise _Undefined("exp of a number beyond 5000")
        try:
            result = function(_DECIMAL.mpf(argument.numerator) / argument.denominator)
        except ValueError:
            result = _DECIMAL.nan
        if not isinstance(result, _DECIMAL.mpf) or not _DECIMAL.isfinite(result):
            raise _Undefined(f"{name} is not defined there")
        return _bounded(Fraction(_DECIMAL.nstr(result, DIGITS)))

    return evaluate


_PI = Fraction(_DECIMAL.nstr(_DECIMAL.pi, DIGITS))

_BINARY: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: _multiply,
    ast.Div: _divide,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}

_ORDER: Mapping[type[ast.cmpop], Callable[[Number, Number], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}

_EQUALITY: Mapping[type[ast.cmpop], Callable[[Result, Result], bool]] = {ast.Eq: operator.eq, ast.NotEq: operator.ne}

_FUNCTIONS: Mapping[str, tuple[Callable[..., Number], int, int]] = {
    "min": (min, 2, 20),
    "max": (max, 2, 20),
    "abs": (abs, 1, 1),
    "round": (round_half_up, 1, 2),
    "floor": (math.floor, 1, 1),
    "ceil": (math.ceil, 1, 1),
    "gcd": (_gcd, 2, 20),
    **{
        name: (_transcendental(name), 1, 1)
        for name in ("sqrt", "exp", "log", "log10", "sin", "cos", "tan", "asin", "acos", "atan")
    },
}
"""Functions with the least and the greatest number of arguments."""

_TESTS: Mapping[str, tuple[Callable[..., bool], int, int]] = {
    "divides": (lambda multiple, divisor: multiple % divisor == 0, 2, 2),
    "is_int": (lambda number: number.denominator == 1, 1, 1),
}

RESERVED = frozenset(_FUNCTIONS) | frozenset(_TESTS) | {"pi"}
"""Names that no slot may have."""

_LITERAL = re.compile(r"(\d+(\.\d*)?|\.\d+)(e[+-]?\d{1,3})?", re.IGNORECASE)


def _number(value: Result, name: str) -> Number:
    """The number that a slot's value stands for in arithmetic."""
    if isinstance(value, Pair):
        return value.number
    if isinstance(value, str) or isinstance(value, bool):
        raise _Undefined(f"'{name}' is not a number")
    return value


def _equal(left: Result, right: Result) -> bool:
    if isinstance(left, Pair) != isinstance(right, Pair):
        pair, other = (left, right) if isinstance(left, Pair) else (right, left)
        assert isinstance(pair, Pair)
        return other == (pair.word if isinstance(other, str) else pair.number)
    return left == right


# --------------------------------------------------------------------------------------------------
# From syntax tree to closures


class _Compiler:
    """Turns one syntax tree into closures; `depth` counts the levels above a node."""

    def __init__(self, source: str, names: Collection[str]) -> None:
        self.source = source
        self.names = names
        self.mentioned: set[str] = set()

    def visit(self, node: ast.expr, depth: int) -> tuple[_Closure, Kind]:
        if depth > MAX_DEPTH:
            raise _Undefined(f"nested more than {MAX_DEPTH} levels deep")
        match node:
            case ast.Constant():
                return self.constant(node)
            case ast.Name(id=name):
                return self.name(name)
            case ast.BinOp(op=op) if type(op) in _BINARY:
                if isinstance(op, ast.Pow) and any(
                    isinstance(part, ast.Pow) for part in ast.walk(node) if part is not op
                ):
                    raise _Undefined("a power of a power is not allowed")
                return self.binary(_BINARY[type(op)], node, depth), "number"
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self.number(operand, depth + 1)
                return lambda values: -inner(values), "number"
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.number(operand, depth + 1), "number"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                condition = self.condition(operand, depth + 1)
                return lambda values: not condition(values), "boolean"
            case ast.BoolOp(op=op, values=parts):
                conditions = [self.condition(part, depth + 1) for part in parts]
                if isinstance(op, ast.And):
                    return lambda values: all(condition(values) for condition in conditions), "boolean"
                return lambda values: any(condition(values) for condition in conditions), "boolean"
            case ast.Compare():
                return self.comparison(node, depth), "boolean"
            case ast.IfExp(test=test, body=body, orelse=orelse):
                condition = self.condition(test, depth + 1)
                then, then_kind = self.visit(body, depth + 1)
                otherwise, other_kind = self.visit(orelse, depth + 1)
                kind: Kind = then_kind if then_kind == other_kind else "any"
                return lambda values: then(values) if condition(values) else otherwise(values), kind
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in RESERVED - {"pi"}:
                return self.call(name, arguments, depth)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=index)) if index in (0, 1):
                return self.part(name, bool(index))
        raise _Undefined(f"'{ast.unparse(node)[:60]}' is not part of the language")

    def number(self, node: ast.expr, depth: int) -> _Numeric:
        closure, kind = self.visit(node, depth)
        text = ast.unparse(node)
        if kind in ("boolean", "word"):
            raise _Undefined(f"'{text}' is not a number")
        if kind == "number":
            return closure  # type: ignore[return-value]
        if isinstance(node, ast.Name):

            def slot(values: Values) -> Number:
                value = values[text]
                return value if value.__class__ is int else _number(value, text)  # type: ignore[return-value]

            return slot
        return lambda values: _number(closure(values), text)

    def condition(self, node: ast.expr, depth: int) -> Callable[[Values], bool]:
        closure, kind = self.visit(node, depth)
        if kind != "boolean":
            raise _Undefined(f"'{ast.unparse(node)}' is neither true nor false: compare it with something")
        return closure  # type: ignore[return-value]

    def constant(self, node: ast.Constant) -> tuple[_Closure, Kind]:
        value = node.value
        if isinstance(value, str):
            return lambda values: value, "word"
        written = self.source.encode()[node.col_offset : node.end_col_offset].decode()
        # Read from the source, because a float has already lost the exact decimal.
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not _LITERAL.fullmatch(written):
            raise _Undefined(f"'{written}' is not part of the language")
        number = _bounded(Fraction(written))
        return lambda values: number, "number"

    def name(self, name: str) -> tuple[_Closure, Kind]:
        if name == "pi":
            return lambda values: _PI, "number"
        self.mention(name)
        return operator.itemgetter(name), "any"

    def mention(self, name: str) -> None:
        if name not in self.names:
            known = ", ".join(sorted(self.names)) or "none"
            raise _Undefined(f"there is no slot '{name}' (slots: {known})")
        self.mentioned.add(name)

    def part(self, name: str, is_number: bool) -> tuple[_Closure, Kind]:
        self.mention(name)

        def evaluate(values: Values) -> Result:
            value = values[name]
            if not isinstance(value, Pair):
                raise _Undefined(f"'{name}' is not a pair")
            return value.number if is_number else value.word

        return evaluate, "number" if is_number else "word"

    def binary(self, operate: Callable[[Number, Number], Number], node: ast.BinOp, depth: int) -> _Numeric:
        left, right = self.number(node.left, depth + 1), self.number(node.right, depth + 1)

        def evaluate(values: Values) -> Number:
            result = operate(left(values), right(values))
            return result if result.__class__ is int else _bounded(result)

        return evaluate

    def comparison(self, node: ast.Compare, depth: int) -> Callable[[Values], bool]:
        operands = [node.left, *node.comparators]
        links = [
            self.link(op, left, right, depth) for op, left, right in zip(node.ops, operands, operands[1:], strict=False)
        ]
        return links[0] if len(links) == 1 else lambda values: all(link(values) for link in links)

    def link(self, op: ast.cmpop, left: ast.expr, right: ast.expr, depth: int) -> Callable[[Values], bool]:
        kinds = {self.visit(left, depth + 1)[1], self.visit(right, depth + 1)[1]}
        if type(op) in _ORDER or (type(op) in _EQUALITY and "number" in kinds):
            compare = _ORDER.get(type(op)) or _EQUALITY[type(op)]
            first, second = self.number(left, depth + 1), self.number(right, depth + 1)
            return lambda values: compare(first(values), second(values))
        if type(op) not in _EQUALITY or "boolean" in kinds:
            raise _Undefined("only numbers and words can be compared, with == != < <= > >=")
        one, other = self.visit(left, depth + 1)[0], self.visit(right, depth + 1)[0]
        wanted = isinstance(op, ast.Eq)
        return lambda values: _equal(one(values), other(values)) is wanted

    def call(self, name: str, arguments: list[ast.expr], depth: int) -> tuple[_Closure, Kind]:
        function, least, most = _FUNCTIONS.get(name) or _TESTS[name]
        if not least <= len(arguments) <= most:
            raise _Undefined(f"{name} takes {least if least == most else f'{least} to {most}'} arguments")
        inner = [self.number(argument, depth + 1) for argument in arguments]
        kind: Kind = "number" if name in _FUNCTIONS else "boolean"
        if len(inner) == 1:
            only = inner[0]
            return lambda values: function(only(values)), kind
        if len(inner) == 2:
            first, second = inner
            return lambda values: function(first(values), second(values)), kind
        return lambda values: function(*(argument(values) for argument in inner)), kind
