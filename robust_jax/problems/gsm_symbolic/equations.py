"""Equations between slots: a slot that an equation determines is computed, so that the others can be varied freely.

`x + y + ans == total` leaves no valid change of one slot alone. With `ans` read as `total - (x + y)`, and the condition
that this lies in the range of `ans`, every one of the other slots can change.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from robust_jax.problems.domains import Grid
from robust_jax.problems.gsm_symbolic.python_source import substituted
from robust_jax.types import Number, Value

_MAX_LENGTH = 300
"""Characters of what computes a slot."""
_MAX_LISTED = 60
"""Values of a domain that is no range up to which the condition names each."""


def solve(
    conditions: Sequence[ast.expr], domains: Mapping[str, Sequence[Value]], latent: Collection[str]
) -> tuple[dict[str, ast.expr], list[ast.expr]]:
    """What computes the determined slots, and the conditions on the slots that are left.

    An equation determines at most one slot. It is preferably a latent one, which the text does not mention, then one
    that is a side of its own, then one whose coefficient is 1 or −1, the one that is defined last first.

    Args:
        conditions: conditions in Python.
        domains: the slots' domains, in the order in which the slots are defined.
        latent: slots that the problem's text does not mention.
    """
    solved: dict[str, ast.expr] = {}
    left = list(conditions)
    for condition in conditions:
        equation = substituted(condition, solved)
        found = _solve_one(equation, domains, latent, solved)
        if found is None:
            continue
        name, value = found
        if len(ast.unparse(value)) > _MAX_LENGTH:
            continue
        solved = {other: substituted(expression, {name: value}) for other, expression in solved.items()}
        solved[name] = value
        left.remove(condition)
        left += _membership(name, domains[name])
    return solved, left


def _solve_one(
    equation: ast.expr, domains: Mapping[str, Sequence[Value]], latent: Collection[str], solved: Collection[str]
) -> tuple[str, ast.expr] | None:
    match equation:
        case ast.Compare(left=one, ops=[ast.Eq()], comparators=[other]):
            difference = ast.BinOp(one, ast.Sub(), other)
        case _:
            return None
    best: tuple[int, str, ast.expr] | None = None
    for name, domain in domains.items():
        if name in solved or not _is_numeric(domain):
            continue
        terms = _linear(difference, name)
        if terms is None or terms.coefficient is None or _constant(terms.coefficient) == 0:
            continue
        is_alone = any(isinstance(side, ast.Name) and side.id == name for side in (one, other))
        is_unit = _constant(terms.coefficient) in (1, -1)
        rank = 3 * (name in latent) + (2 if is_alone else is_unit)
        if best is None or rank >= best[0]:
            best = (rank, name, _root(terms.coefficient, terms.rest))
    return None if best is None else best[1:]


def _is_numeric(domain: Sequence[Value]) -> bool:
    """Whether a computed number can stand for the slot: words could not be printed."""
    return isinstance(domain, Grid) or (len(domain) <= _MAX_LISTED and isinstance(domain[0], (int, Fraction)))


class _Linear(NamedTuple):
    """coefficient · name + rest; None stands for zero."""

    coefficient: ast.expr | None
    rest: ast.expr | None

    def each(self, change: Callable[[ast.expr], ast.expr]) -> _Linear:
        return _Linear(*(None if term is None else change(term) for term in self))


def _linear(node: ast.expr, name: str) -> _Linear | None:
    """An expression as a linear function of a name; None if it is none."""
    if not _mentions(node, name):
        return _Linear(None, node)
    match node:
        case ast.Name():
            return _Linear(ast.Constant(1), None)
        case ast.UnaryOp(op=ast.USub(), operand=operand) if terms := _linear(operand, name):
            return terms.each(_negated)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as op, right=right):
            one, other = _linear(left, name), _linear(right, name)
            if one is None or other is None:
                return None
            other = other.each(_negated) if isinstance(op, ast.Sub) else other
            return _Linear(_sum(one.coefficient, other.coefficient), _sum(one.rest, other.rest))
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div() as op, right=right) if not _mentions(right, name):
            terms = _linear(left, name)
            is_product = isinstance(op, ast.Mult)
            return terms and terms.each(
                lambda term: right if is_product and _constant(term) == 1 else ast.BinOp(term, op, right)
            )
        case ast.BinOp(left=left, op=ast.Mult(), right=right) if not _mentions(left, name):
            terms = _linear(right, name)
            return terms and terms.each(
                lambda term: left if _constant(term) == 1 else ast.BinOp(left, ast.Mult(), term)
            )
    return None


def _mentions(node: ast.expr, name: str) -> bool:
    return any(isinstance(inner, ast.Name) and inner.id == name for inner in ast.walk(node))


def _negated(node: ast.expr) -> ast.expr:
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return operand
    return ast.UnaryOp(ast.USub(), node)


def _sum(one: ast.expr | None, other: ast.expr | None) -> ast.expr | None:
    return one or other if one is None or other is None else ast.BinOp(one, ast.Add(), other)


def _constant(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand) if (operand_ := _constant(operand)) is not None:
            return -operand_
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            one, other = _constant(left), _constant(right)
            return None if one is None or other is None else one + other
    return None


def _root(coefficient: ast.expr, rest: ast.expr | None) -> ast.expr:
    """Where coefficient · name + rest is zero."""
    match rest, _constant(coefficient):
        case None, _:
            return ast.Constant(0)
        case ast.expr(), 1:
            return _negated(rest)
        case ast.expr(), -1:
            return rest
    assert rest is not None
    return _negated(ast.BinOp(rest, ast.Div(), coefficient))


def _membership(name: str, domain: Sequence[Value]) -> list[ast.expr]:
    """The conditions that the slot's computed value lies in its domain."""
    if isinstance(domain, Grid):
        first, last, step = domain.start, domain.start + domain.step * (len(domain) - 1), domain.step
        sources = [
            f"{_exact(first)} <= {name} <= {_exact(last)}",
            f"is_int(({name} - {_exact(first)}) / {_exact(step)})",
        ]
    else:
        sources = [" or ".join(f"{name} == {_exact(value)}" for value in domain if not isinstance(value, (str, tuple)))]
    return [ast.parse(source, mode="eval").body for source in sources]


def _exact(number: Number) -> str:
    return f"({number})"
