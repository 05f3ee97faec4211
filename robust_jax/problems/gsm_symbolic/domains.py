"""The right sides of `#init` lines: `range(20, 81)`, `sample(names, 2)`, `fix_floats(np.arange(0.2, 1, 0.01))`.

They are Python by form only. Nothing is run: each form in use is read off the syntax tree.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from robust_jax.errors import InputError
from robust_jax.problems.arithmetic import whole
from robust_jax.problems.domains import Grid
from robust_jax.problems.gsm_symbolic.word_lists import WORD_LISTS, number_word
from robust_jax.types import Number, Pair, Value

MAX_VALUES = 10_000
"""Values that are written out one by one; a range is lazy and may be longer."""

Domain = Sequence[Value]


@dataclass(frozen=True)
class Draw:
    """What a right side draws from."""

    domain: Domain
    count: int = 1
    """How many values are drawn at once."""
    is_sequence: bool = False
    """Whether they follow one another in the list, which is read as a circle; otherwise they differ pairwise."""


def read_draw(source: str) -> Draw:
    """The draw that the right side of an `#init` line describes.

    Raises:
        InputError: it is none of the known forms.
    """
    try:
        tree = ast.parse(source.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(f"'{source[:60]}' is not an expression") from None
    match tree:
        case ast.Call(func=ast.Name(id="sample"), args=[pool, ast.Constant(value=int(count))]):
            draw = Draw(_domain(pool), count)
        case ast.Call(func=ast.Name(id="sample_sequential"), args=[pool, ast.Constant(value=int(count))]):
            draw = Draw(_domain(pool), count, is_sequence=True)
        case ast.Call(func=ast.Name(id="sample"), args=[pool]):
            draw = Draw(_domain(pool))
        case _:
            draw = Draw(_domain(tree))
    if not 1 <= draw.count <= len(draw.domain):
        raise InputError(f"'{source[:60]}' draws {draw.count} of {len(draw.domain)} values")
    return draw


def _domain(tree: ast.expr) -> Domain:
    match tree:
        case ast.Name(id=name) if name in WORD_LISTS:
            return WORD_LISTS[name]
        case ast.List(elts=items):
            return _distinct([_item(item) for item in items])
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _distinct([*_listed(left), *_listed(right)])
        case ast.BinOp(left=left, op=ast.Mult(), right=ast.Constant(value=int())):
            return _domain(left)  # A list repeated holds the same values.
        case ast.Subscript(value=inner, slice=ast.Slice(lower=lower, upper=upper, step=None)):
            return _listed(inner)[_bound(lower) : _bound(upper)]
        case ast.Call(func=ast.Name(id="list" | "fix_floats" | "shuffle_list" | "sample"), args=[inner], keywords=[]):
            return _domain(inner)
        case ast.Call(func=func, args=arguments, keywords=[]) if (name := ast.unparse(func)) in _NUMBERS:
            least, most = (1, 3) if name == "range" else (2, 3)
            if least <= len(arguments) <= most:
                return _NUMBERS[name](*[_number(argument) for argument in arguments])
    raise InputError(f"'{ast.unparse(tree)[:60]}' is no known list or range")


def _listed(tree: ast.expr) -> Sequence[Value]:
    domain = _domain(tree)
    if len(domain) > MAX_VALUES:
        raise InputError(f"'{ast.unparse(tree)[:60]}' has more than {MAX_VALUES} values")
    return tuple(domain)


def _item(tree: ast.expr) -> Value:
    match tree:
        case ast.Tuple(elts=[ast.Constant(value=str(word)), number]):
            return Pair(word, _number(number))
        case ast.Tuple(elts=[ast.Constant(value=int(word)), number]):
            return Pair(str(word), _number(number))
        case ast.Constant(value=str(word)):
            return word
    return _number(tree)


def _number(tree: ast.expr) -> Number:
    match tree:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool) and abs(value) < 10**15:
            return whole(Fraction(str(value)))
    raise InputError(f"'{ast.unparse(tree)[:60]}' is not a number")


def _bound(tree: ast.expr | None) -> int | None:
    if tree is None:
        return None
    number = _number(tree)
    if not isinstance(number, int):
        raise InputError(f"'{ast.unparse(tree)[:60]}' is not a whole number")
    return number


def _distinct(values: Sequence[Value]) -> Domain:
    if len({isinstance(value, str) for value in values}) > 1 or len({isinstance(v, Pair) for v in values}) > 1:
        raise InputError("a list holds words, numbers or pairs, not several of them")
    return tuple(dict.fromkeys(values))


def _range(*ends: Number) -> Grid:
    """Python's range, and numpy's arange: the end is not included."""
    start, stop, step = {1: (0, *ends, 1), 2: (*ends, 1), 3: ends}.get(len(ends), (0, 0, 0))
    if step <= 0 or stop <= start:
        raise InputError(f"a range of {', '.join(map(str, ends))} holds nothing")
    count = math.ceil(Fraction(stop - start) / step)
    if count > 10**15:
        raise InputError("a range holds too many values")
    return Grid(start, step, count)


def _random_integers(low: Number, high: Number, count: Number = 1) -> Grid:
    """Every number that could be among the `count` drawn ones."""
    return _range(low, high)


def _numbers_in_words(least: Number, most: Number, *_: Number) -> Domain:
    """Both ends included."""
    try:
        return tuple(Pair(number_word(number), number) for number in range(int(least), int(most) + 1))
    except ValueError as error:
        raise InputError(f"numbers_within: {error}") from None


_NUMBERS: Mapping[str, Callable[..., Domain]] = {
    "range": _range,
    "frange": _range,
    "np.arange": _range,
    "np.random.randint": _random_integers,
    "numbers_within": _numbers_in_words,
}
