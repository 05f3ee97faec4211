"""The expressions of templates: a small, exact language, read with Python's parser and never run as Python.

A source is parsed once into nested closures over a mapping of slot values. Whatever the whitelist does not name is
refused, and so is whatever could grow without bound.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, cast

from robust_jax.errors import InputError
from robust_jax.problems.arithmetic import BINARY, COMPARISONS, FUNCTIONS, PI, TESTS, Undefined, bounded
from robust_jax.types import Number, Pair, Value

MAX_LENGTH = 1_000
"""Characters of one expression."""
MAX_DEPTH = 40
"""Levels of nesting of one expression."""
WORDS = ("initial", "mixed")
"""Functions that give a word: the first letter of a word, and a number as a mixed fraction."""
RESERVED = frozenset({*FUNCTIONS, *TESTS, *WORDS, "pi"})
"""Names that no slot may have."""

Values = Mapping[str, Value]
Result = Value | bool
Kind = Literal["number", "boolean", "word", "any"]
"""What an expression gives, as far as that is known before any slot has a value: a bare slot can be `any` value."""

_Closure = Callable[[Values], Result]
_Numeric = Callable[[Values], Number]
_Condition = Callable[[Values], bool]
_LITERAL = re.compile(r"(\d+(\.\d*)?|\.\d+)(e[+-]?\d{1,3})?", re.IGNORECASE)


@dataclass(frozen=True)
class Expression:
    """A parsed expression."""

    source: str
    names: frozenset[str]
    """The slots it mentions."""
    kind: Kind
    where: str
    """What it belongs to, for messages."""
    _evaluate: _Closure = field(repr=False, compare=False)

    def __call__(self, values: Values) -> Result:
        """The exact value.

        Raises:
            InputError: it has none at these values (a division by zero, a word in arithmetic, a number too long).
        """
        try:
            return self._evaluate(values)
        except ArithmeticError as error:
            used = ", ".join(f"{name} = {values[name]}" for name in sorted(self.names))
            reason = "a division by zero" if isinstance(error, ZeroDivisionError) else error
            raise InputError(f"{self.where}: '{self.source}'{used and f' at {used}'}: {reason}") from None

    def number(self, values: Values) -> Number:
        """The exact value of an expression that was parsed as a number; raises as a call does."""
        return cast(Number, self(values))

    def holds(self, values: Values) -> bool:
        """Whether an expression that was parsed as a condition is true; what has no value is not true."""
        try:
            return self._evaluate(values) is True
        except ArithmeticError:
            return False


def parse(source: str, names: Collection[str], *, where: str, wanted: Kind = "any") -> Expression:
    """Parse one expression over the slots called `names`.

    Args:
        source: the expression.
        names: the slots it may mention.
        where: what it belongs to, such as `template apples`; messages begin with it.
        wanted: what it has to give.

    Raises:
        InputError: it is no expression of the language, or gives something else.
    """
    source = " ".join(source.split())
    if len(source) > MAX_LENGTH:
        raise InputError(f"{where}: '{source[:40]}…' is longer than {MAX_LENGTH} characters: split it")
    compiler = _Compiler(source, names)
    evaluate: _Closure
    kind = wanted
    try:
        tree = ast.parse(source, mode="eval").body
        if wanted == "number":
            evaluate = compiler.number(tree, 0)
        elif wanted == "boolean":
            evaluate = compiler.condition(tree, 0)
        else:
            evaluate, kind = compiler.visit(tree, 0)
    except SyntaxError as error:
        raise InputError(f"{where}: '{source}' is not an expression: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError):
        raise InputError(f"{where}: '{source[:80]}' is not an expression, or is nested too deeply") from None
    except Undefined as error:
        raise InputError(f"{where}: '{source[:80]}': {error}") from None
    return Expression(source, frozenset(compiler.mentioned), kind, where, evaluate)


class _Compiler:
    """Turns one syntax tree into closures; `depth` counts the levels above a node.

    The closures are lambdas, because whatever checks types at run time decorates every `def` anew, for each node.
    """

    def __init__(self, source: str, names: Collection[str]) -> None:
        self.source = source
        self.names = names
        self.mentioned: set[str] = set()

    def visit(self, node: ast.expr, depth: int) -> tuple[_Closure, Kind]:
        if depth > MAX_DEPTH:
            raise Undefined(f"nested more than {MAX_DEPTH} levels deep")
        match node:
            case ast.Constant():
                return self.constant(node)
            case ast.Name(id="pi"):
                return lambda values: PI, "number"
            case ast.Name(id=name):
                self.mention(name)
                return operator.itemgetter(name), "any"
            case ast.BinOp(op=op) if type(op) in BINARY:
                return self.binary(node, depth), "number"
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                negated = self.number(operand, depth + 1)
                return lambda values: -negated(values), "number"
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.number(operand, depth + 1), "number"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                denied = self.condition(operand, depth + 1)
                return lambda values: not denied(values), "boolean"
            case ast.BoolOp(op=op, values=parts):
                conditions = [self.condition(part, depth + 1) for part in parts]
                join = all if isinstance(op, ast.And) else any
                return lambda values: join(condition(values) for condition in conditions), "boolean"
            case ast.Compare():
                return self.comparison(node, depth), "boolean"
            case ast.IfExp(test=test, body=body, orelse=orelse):
                condition = self.condition(test, depth + 1)
                (then, kind), (otherwise, other) = self.visit(body, depth + 1), self.visit(orelse, depth + 1)
                kind = kind if kind == other else "any"
                return lambda values: (then if condition(values) else otherwise)(values), kind
            case ast.Call(func=ast.Name(id="initial"), args=[argument], keywords=[]):
                return self.initial(argument, depth), "word"
            case ast.Call(func=ast.Name(id="mixed"), args=[argument], keywords=[]):
                unmixed = self.number(argument, depth + 1)
                return lambda values: _mixed(unmixed(values)), "word"
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS or name in TESTS:
                return self.call(name, arguments, depth), "number" if name in FUNCTIONS else "boolean"
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int(index))) if index in (0, 1):
                return self.part(name, index), "number" if index else "word"
        raise Undefined(f"'{ast.unparse(node)[:60]}' is not part of the language")

    def number(self, node: ast.expr, depth: int) -> _Numeric:
        return self.numeric(*self.visit(node, depth), node)

    def numeric(self, closure: _Closure, kind: Kind, node: ast.expr) -> _Numeric:
        if kind == "number":
            return cast(_Numeric, closure)
        text = ast.unparse(node)
        if kind != "any":
            raise Undefined(f"'{text}' is not a number")
        return lambda values: value if (value := closure(values)).__class__ is int else _as_number(value, text)

    def condition(self, node: ast.expr, depth: int) -> _Condition:
        closure, kind = self.visit(node, depth)
        if kind != "boolean":
            raise Undefined(f"'{ast.unparse(node)}' is neither true nor false: compare it with something")
        return cast(_Condition, closure)

    def constant(self, node: ast.Constant) -> tuple[_Closure, Kind]:
        value = node.value
        if isinstance(value, str):
            return lambda values: value, "word"
        # Read from the source, because a float has already lost the exact decimal.
        written = self.source.encode()[node.col_offset : node.end_col_offset].decode()
        if isinstance(value, bool) or not _LITERAL.fullmatch(written):
            raise Undefined(f"'{written[:60]}' is not part of the language")
        number = bounded(Fraction(written))
        return lambda values: number, "number"

    def mention(self, name: str) -> None:
        if name not in self.names:
            raise Undefined(f"there is no slot '{name}' (slots: {', '.join(sorted(self.names)) or 'none'})")
        self.mentioned.add(name)

    def part(self, name: str, index: int) -> _Closure:
        """One side of a pair: 0 its word, 1 its number."""
        self.mention(name)

        return lambda values: _part(values[name], name, index)

    def initial(self, node: ast.expr, depth: int) -> _Closure:
        word, kind = self.visit(node, depth + 1)
        if kind not in ("word", "any"):
            raise Undefined(f"'{ast.unparse(node)}' is not a word")
        return lambda values: _initial(word(values))

    def binary(self, node: ast.BinOp, depth: int) -> _Numeric:
        if isinstance(node.op, ast.Pow) and any(
            isinstance(inner, ast.Pow) for part in (node.left, node.right) for inner in ast.walk(part)
        ):
            raise Undefined("a power of a power is not allowed")
        operate = BINARY[type(node.op)]
        left, right = self.number(node.left, depth + 1), self.number(node.right, depth + 1)
        return lambda values: (
            result if (result := operate(left(values), right(values))).__class__ is int else bounded(result)
        )

    def comparison(self, node: ast.Compare, depth: int) -> _Condition:
        operands = [node.left, *node.comparators]
        links = [
            self.link(op, left, right, depth + 1)
            for op, left, right in zip(node.ops, operands, operands[1:], strict=False)
        ]
        return links[0] if len(links) == 1 else lambda values: all(link(values) for link in links)

    def link(self, op: ast.cmpop, left: ast.expr, right: ast.expr, depth: int) -> _Condition:
        """One comparison of a chain: of numbers, or for equality also of words."""
        (one, kind), (other, other_kind) = self.visit(left, depth), self.visit(right, depth)
        is_equality = isinstance(op, (ast.Eq, ast.NotEq))
        if type(op) not in COMPARISONS or "boolean" in (kind, other_kind):
            raise Undefined("only numbers and words can be compared, with == != < <= > >=")
        if is_equality and "number" not in (kind, other_kind):
            wanted = isinstance(op, ast.Eq)
            return lambda values: _are_equal(one(values), other(values)) is wanted
        compare = COMPARISONS[type(op)]
        first, second = self.numeric(one, kind, left), self.numeric(other, other_kind, right)
        return lambda values: compare(first(values), second(values))

    def call(self, name: str, arguments: list[ast.expr], depth: int) -> _Closure:
        compute, least, most = FUNCTIONS.get(name) or TESTS[name]
        if not least <= len(arguments) <= most:
            raise Undefined(f"{name} takes {least if least == most else f'{least} to {most}'} arguments")
        inner = [self.number(argument, depth + 1) for argument in arguments]
        if len(inner) == 1:
            [only] = inner
            return lambda values: compute(only(values))
        if len(inner) == 2:
            first, second = inner
            return lambda values: compute(first(values), second(values))
        return lambda values: compute(*[argument(values) for argument in inner])


def _as_number(value: Result, text: str) -> Number:
    """The number that a value stands for in arithmetic."""
    if isinstance(value, Pair):
        return value.number
    if isinstance(value, (str, bool)):
        raise Undefined(f"'{text}' is not a number")
    return value


def _part(value: Value, name: str, index: int) -> Value:
    if not isinstance(value, Pair):
        raise Undefined(f"'{name}' is not a pair")
    return value[index]


def _initial(value: Result) -> str:
    word = value.word if isinstance(value, Pair) else value
    if not isinstance(word, str):
        raise Undefined(f"{word} is not a word")
    return word[:1]


def _mixed(number: Number) -> str:
    """A number as in 3, 1/2 or 3 1/2."""
    whole, over = divmod(abs(number.numerator), number.denominator)
    rest = Fraction(over, number.denominator)
    text = f"{whole} {rest}" if whole and rest else str(whole or rest)
    return f"-{text}" if number < 0 else text


def _are_equal(left: Result, right: Result) -> bool:
    """Equality of two words, two pairs or two numbers; a pair beside a word is its word, beside a number its number."""
    if isinstance(left, Pair) and not isinstance(right, Pair):
        left = left.word if isinstance(right, str) else left.number
    elif isinstance(right, Pair) and not isinstance(left, Pair):
        right = right.word if isinstance(left, str) else right.number
    if isinstance(left, str) != isinstance(right, str):
        raise Undefined("a word is compared with a number")
    return left == right
