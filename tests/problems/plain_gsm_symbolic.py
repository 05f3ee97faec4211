"""GSM-Symbolic files as the plain Python that they are written in: the reference for what is read from them.

Their expressions are run here as they stand, with fractions in the place of floats.
"""

import ast
import json
import re
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from robust_jax.problems.expressions import RESERVED
from robust_jax.problems.gsm_symbolic.word_lists import WORD_LISTS
from robust_jax.types import Pair, Value, Variation


class Worded(Fraction):
    """The number that a word stands for; some files write `[1]` behind it."""

    def __getitem__(self, index: int) -> Fraction:
        assert index == 1
        return Fraction(self)


def span(*ends: Any) -> list[Fraction]:
    """Python's range and numpy's arange."""
    start, stop, step = map(Fraction, {1: (0, *ends, 1), 2: (*ends, 1), 3: ends}[len(ends)])
    return [start + step * place for place in range(-((start - stop) // step))]


def same(pool: list[Any], count: int = 1) -> list[Any]:
    return pool


INIT: dict[str, Any] = {
    **{name: [*values] for name, values in WORD_LISTS.items()},
    **dict.fromkeys(["range", "frange"], span),
    **dict.fromkeys(["sample", "sample_sequential", "shuffle_list", "list", "fix_floats"], same),
    "numbers_within": lambda least, most: span(least, most + 1),
    "np": type("", (), {"arange": span, "random": type("", (), {"randint": lambda low, high, count: span(low, high)})}),
}
FUNCTIONS: dict[str, Any] = {
    "is_int": lambda number: Fraction(number).denominator == 1,
    "divides": lambda multiple, divisor: multiple % divisor == 0,
}


class _Exact(ast.NodeTransformer):
    """Numbers as fractions, but for positions in lists."""

    def __init__(self, kinds: type | tuple[type, ...]) -> None:
        self.kinds = kinds

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if not isinstance(node.value, self.kinds) or isinstance(node.value, bool):
            return node
        return ast.Call(ast.Name("Fraction", ast.Load()), [ast.Constant(str(node.value))], [])

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        node.value = self.visit(node.value)
        return node


class Source(NamedTuple):
    """An expression, and the two sides of one that is an equation."""

    names: frozenset[str]
    whole: CodeType
    sides: tuple[CodeType, ...]

    def __call__(self, names: Mapping[str, Any]) -> Any:
        return _run(self.whole, names)

    def root(self, name: str, names: Mapping[str, Any]) -> Fraction:
        """The number for which a linear equation holds."""
        left, right = self.sides
        at = [_run(left, {**names, name: Fraction(k)}) - _run(right, {**names, name: Fraction(k)}) for k in (0, 1)]
        return at[0] / (at[0] - at[1])


def _run(code: CodeType, names: Mapping[str, Any]) -> Any:
    return eval(code, {"Fraction": Fraction, **FUNCTIONS}, dict(names))


def _source(text: str) -> Source:
    tree = ast.parse(text.replace("$", "").strip("{} "), mode="eval").body
    names = frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name)) - {"int", "round", "Fraction"}
    sides = [tree.left, *tree.comparators] if isinstance(tree, ast.Compare) and isinstance(tree.ops[0], ast.Eq) else []
    sides = [side for side in sides if not isinstance(side, ast.Constant) or not isinstance(side.value, bool)]
    codes = tuple(_compiled(side, (int, float)) for side in sides) if len(sides) == 2 else ()
    return Source(names - FUNCTIONS.keys(), _compiled(tree, (int, float)), codes)


def _compiled(tree: ast.expr, exact: type | tuple[type, ...]) -> CodeType:
    copy = ast.parse(ast.unparse(tree), mode="eval")
    return compile(ast.fix_missing_locations(_Exact(exact).visit(copy)), "file", "eval")


class PlainFile:
    """One file."""

    def __init__(self, path: Path) -> None:
        file = json.loads(path.read_text())
        sections: dict[str, list[str]] = {"": [], "init": [], "conditions": [], "answer": []}
        section = ""
        for line in file["question_annotated"].split("\n"):
            header = re.match(r"#\s*(init|conditions|answer)\s*[:=](.*)", line.strip())
            section = header[1] if header else section
            sections[section].append(header[2] if header else line.strip().removeprefix("-"))
        self.domains: dict[str, list[Any]] = {}
        self.distinct: list[list[str]] = []
        for line in filter(str.strip, sections["init"]):
            left, _, right = line.partition("=")
            names = [name.strip() for name in left.replace("$", "").split(",")]
            code = _compiled(ast.parse(right.strip(), mode="eval").body, float)
            domain = eval(code, {"Fraction": Fraction, **INIT})
            pairs = [Pair(str(v[0]), Fraction(v[1])) if type(v) is tuple else v for v in domain]
            self.domains |= dict.fromkeys(names, pairs)
            self.distinct += [names] if len(names) > 1 and "sequential" not in right else []
        self.conditions = [_source(line) for line in filter(str.strip, sections["conditions"])]
        self.answer = _source("".join(sections["answer"]))
        [final] = re.findall(r"\{[^{}]*\}", file["answer_annotated"].rpartition("####")[2])
        self.final = _source(final)

    def values(self, variation: Variation) -> dict[str, Any]:
        """The values of the file's names: those of the slots, and of the names that equations determine."""
        values = {name: _plain(value) for name, value in drawn(variation).items()}
        for _ in self.conditions:
            for condition in self.conditions:
                unknown = [*(condition.names - values.keys())]
                if len(unknown) == 1 and condition.sides:
                    values[unknown[0]] = condition.root(unknown[0], values)
        return values

    def check(self, variation: Variation) -> tuple[Fraction, Fraction]:
        """Assert that a filling is one of the file's; gives the number that its solution ends in, and `#answer`."""
        values, own = self.values(variation), drawn(variation)
        for name in values:
            given = own.get(name, values[name])
            in_words = isinstance(given, Pair) and given.number in self.domains[name]
            assert given in self.domains[name] or in_words, name
        for group in self.distinct:
            several = [own[name] for name in group if name in own]
            assert len({*several}) == len(several), group
        for condition in self.conditions:
            assert condition(values) is True, condition
        return self.final(values), self.answer(values)


def drawn(variation: Variation) -> dict[str, Value]:
    """The slots' values by the names that the file gives them."""
    return {
        name.removesuffix("_") if name.removesuffix("_") in RESERVED else name: value
        for name, value in variation.values.items()
    }


def _plain(value: Value) -> Any:
    if isinstance(value, Pair):
        return Worded(value.number)
    return value if isinstance(value, str) else Fraction(value)
