"""Which of many fillings a constraint rules out for certain, for thousands of them at once.

Every number becomes an interval of floats that holds it, a row a filling, and every condition becomes two questions:
can it be true, can it be false. Intervals only ever grow by rounding, so that a filling that is ruled out here is never
valid; whatever is left is checked exactly elsewhere.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce

import numpy as np
from jaxtyping import Bool, Float, Int

from robust_jax.problems.domains import Grid
from robust_jax.problems.expressions import Expression
from robust_jax.types import Pair, Value

_Bounds = tuple[Float[np.ndarray, "_"], Float[np.ndarray, "_"]]
"""Least and greatest float that the number may be; of length 1 for a number that is the same in every filling."""
_Truth = tuple[Bool[np.ndarray, "_"], Bool[np.ndarray, "_"]]
"""Whether a condition may be true, and whether it may be false."""


_EXACT = 2**53
"""Whole numbers below it are floats without any rounding."""


@dataclass(frozen=True)
class Table:
    """A slot's domain, ready to be looked up in."""

    domain: Sequence[Value]

    @cached_property
    def bounds(self) -> _Bounds:
        """Of every value, for a domain that is written out."""
        least, most = np.array([_float_bounds(value) for value in self.domain]).T
        return least, most

    @cached_property
    def words(self) -> np.ndarray:
        return np.array([value.word if isinstance(value, Pair) else value for value in self.domain], object)


@dataclass(frozen=True)
class Column:
    """One slot's values in many fillings."""

    table: Table
    indices: Int[np.ndarray, " C"]
    """Positions in the slot's domain."""

    @cached_property
    def bounds(self) -> _Bounds:
        domain = self.table.domain
        if isinstance(domain, Grid):
            places = self.indices.astype(float)
            start, step, length = domain.start, domain.step, len(domain)
            is_whole = isinstance(start, int) and isinstance(step, int)
            if is_whole and start > -_EXACT and start + step * length < _EXACT and length < _EXACT:
                numbers = int(start) + int(step) * places
                return numbers, numbers
            return _sum(_constant(start), _product(_constant(step), _rounded(places, places)))
        least, most = self.table.bounds
        return least[self.indices], most[self.indices]

    def equals(self, word: str) -> _Truth:
        """Whether the slot's word is this one."""
        if isinstance(self.table.domain, Grid):
            return np.zeros(len(self.indices), bool), np.ones(len(self.indices), bool)
        equal = (self.table.words == word)[self.indices].astype(bool)
        return equal, ~equal

    @property
    def is_numeric(self) -> bool:
        return isinstance(self.table.domain[0], (int, Fraction))


def possible(constraint: Expression, columns: Mapping[str, Column], count: int) -> Bool[np.ndarray, " C"]:
    """Which of `count` fillings the constraint may hold for; False only where it certainly does not.

    Args:
        constraint: a condition over the columns' slots.
        columns: by slot.
    """
    with np.errstate(all="ignore"):
        may_hold, _ = _Evaluation(columns, count).condition(ast.parse(constraint.source, mode="eval").body)
    return may_hold


def _float_bounds(value: Value) -> tuple[float, float]:
    if isinstance(value, Pair):
        value = value.number
    if isinstance(value, str) or max(abs(value.numerator), value.denominator) > 10**300:
        return -np.inf, np.inf
    nearest = value.numerator / value.denominator
    if Fraction(nearest) == value:
        return nearest, nearest
    return float(np.nextafter(nearest, -np.inf)), float(np.nextafter(nearest, np.inf))


def _constant(value: Value) -> _Bounds:
    least, most = _float_bounds(value)
    return np.array([least]), np.array([most])


def _rounded(least: np.ndarray, most: np.ndarray) -> _Bounds:
    """Bounds of a computed number: a unit in the last place further out, infinite where there is no number."""
    least = np.nextafter(np.where(np.isnan(least), -np.inf, least), -np.inf)
    most = np.nextafter(np.where(np.isnan(most), np.inf, most), np.inf)
    return least, most


def _sum(one: _Bounds, other: _Bounds) -> _Bounds:
    return _rounded(one[0] + other[0], one[1] + other[1])


def _difference(one: _Bounds, other: _Bounds) -> _Bounds:
    return _rounded(one[0] - other[1], one[1] - other[0])


def _product(one: _Bounds, other: _Bounds) -> _Bounds:
    corners = [a * b for a in one for b in other]
    return _rounded(np.minimum.reduce(corners), np.maximum.reduce(corners))


def _quotient(one: _Bounds, other: _Bounds) -> _Bounds:
    corners = [a / b for a in one for b in other]
    least, most = np.minimum.reduce(corners), np.maximum.reduce(corners)
    may_be_zero = (other[0] <= 0) & (other[1] >= 0)
    return _rounded(np.where(may_be_zero, -np.inf, least), np.where(may_be_zero, np.inf, most))


def _floor(number: _Bounds) -> _Bounds:
    return np.floor(number[0]), np.floor(number[1])


def _ceil(number: _Bounds) -> _Bounds:
    return np.ceil(number[0]), np.ceil(number[1])


def _trunc(number: _Bounds) -> _Bounds:
    return np.trunc(number[0]), np.trunc(number[1])


def _absolute(number: _Bounds) -> _Bounds:
    least, most = np.abs(number[0]), np.abs(number[1])
    holds_zero = (number[0] <= 0) & (number[1] >= 0)
    return np.where(holds_zero, 0.0, np.minimum(least, most)), np.maximum(least, most)


def _remainder(one: _Bounds, other: _Bounds) -> _Bounds:
    return _difference(one, _product(other, _floor(_quotient(one, other))))


def _may_be_whole(number: _Bounds) -> _Truth:
    may_be = np.floor(number[1]) >= number[0]
    return may_be, np.ones_like(may_be)


def _all(answers: Sequence[np.ndarray]) -> np.ndarray:
    return np.logical_and.reduce(answers)


def _any(answers: Sequence[np.ndarray]) -> np.ndarray:
    return np.logical_or.reduce(answers)


_BINARY: Mapping[type[ast.operator], Callable[[_Bounds, _Bounds], _Bounds]] = {
    ast.Add: _sum,
    ast.Sub: _difference,
    ast.Mult: _product,
    ast.Div: _quotient,
    ast.FloorDiv: lambda one, other: _floor(_quotient(one, other)),
    ast.Mod: _remainder,
}
_FUNCTIONS: Mapping[str, Callable[..., _Bounds]] = {
    "floor": _floor,
    "ceil": _ceil,
    "trunc": _trunc,
    "abs": _absolute,
    "min": lambda *numbers: (reduce(np.minimum, [n[0] for n in numbers]), reduce(np.minimum, [n[1] for n in numbers])),
    "max": lambda *numbers: (reduce(np.maximum, [n[0] for n in numbers]), reduce(np.maximum, [n[1] for n in numbers])),
}
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[_Bounds, _Bounds], _Truth]] = {
    ast.Lt: lambda one, other: (one[0] < other[1], one[1] >= other[0]),
    ast.LtE: lambda one, other: (one[0] <= other[1], one[1] > other[0]),
    ast.Gt: lambda one, other: (one[1] > other[0], one[0] <= other[1]),
    ast.GtE: lambda one, other: (one[1] >= other[0], one[0] < other[1]),
    ast.Eq: lambda one, other: ((one[0] <= other[1]) & (one[1] >= other[0]), np.ones_like(one[0] < other[0])),
    ast.NotEq: lambda one, other: (
        (one[0] != one[1]) | (other[0] != other[1]) | (one[0] != other[0]),
        (one[0] <= other[1]) & (one[1] >= other[0]),
    ),
}


@dataclass(frozen=True)
class _Evaluation:
    """Evaluates syntax trees; what it does not know may be any number, or true as well as false."""

    columns: Mapping[str, Column]
    count: int

    def condition(self, node: ast.expr) -> _Truth:
        match node:
            case ast.BoolOp(op=op, values=parts):
                truths = [self.condition(part) for part in parts]
                true, false = [truth[0] for truth in truths], [truth[1] for truth in truths]
                is_and = isinstance(op, ast.And)
                return (_all(true), _any(false)) if is_and else (_any(true), _all(false))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                true_, false_ = self.condition(operand)
                return false_, true_
            case ast.Compare(left=left, ops=ops, comparators=others):
                sides = [left, *others]
                links = [self.link(*link) for link in zip(ops, sides, sides[1:], strict=False)]
                return _all([link[0] for link in links]), _any([link[1] for link in links])
            case ast.Call(func=ast.Name(id="is_int"), args=[argument]):
                return self.broadcast(_may_be_whole(self.number(argument)))
            case ast.Call(func=ast.Name(id="divides"), args=[one, other]):
                return self.broadcast(_may_be_whole(_quotient(self.number(one), self.number(other))))
        return self.unknown

    def link(self, op: ast.cmpop, left: ast.expr, right: ast.expr) -> _Truth:
        match left, right:
            case (ast.Name(id=name), ast.Constant(value=str(word))) | (
                ast.Constant(value=str(word)),
                ast.Name(id=name),
            ):
                equal, unequal = self.columns[name].equals(word)
                return (equal, unequal) if isinstance(op, ast.Eq) else (unequal, equal)
        if isinstance(op, (ast.Eq, ast.NotEq)) and not (self.is_number(left) and self.is_number(right)):
            return self.unknown
        return self.broadcast(_COMPARISONS[type(op)](self.number(left), self.number(right)))

    def number(self, node: ast.expr) -> _Bounds:
        match node:
            case ast.Constant(value=int(value)):
                return _constant(value)
            case ast.Constant(value=float(value)):
                return _rounded(np.array([value]), np.array([value]))
            case ast.Name(id=name) if name in self.columns:
                return self.columns[name].bounds
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=1)):
                return self.columns[name].bounds
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                least, most = self.number(operand)
                return -most, -least
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.number(operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return _BINARY[type(op)](self.number(left), self.number(right))
            case ast.Call(func=ast.Name(id=name), args=arguments) if name in _FUNCTIONS:
                return _FUNCTIONS[name](*[self.number(argument) for argument in arguments])
        return np.array([-np.inf]), np.array([np.inf])

    def is_number(self, node: ast.expr) -> bool:
        """Whether an expression is surely a number, not a word or a pair that equality would read otherwise."""
        match node:
            case ast.Name(id=name):
                return name in self.columns and self.columns[name].is_numeric
            case ast.Constant(value=value):
                return not isinstance(value, str)
            case ast.IfExp() | ast.Subscript():
                return False
        return True

    def broadcast(self, truth: _Truth) -> _Truth:
        may_hold, may_fail = (np.broadcast_to(part, self.count) for part in truth)
        return may_hold, may_fail

    @property
    def unknown(self) -> _Truth:
        return np.ones(self.count, bool), np.ones(self.count, bool)
