"""Symbolic Raven's progressive matrices (paper Section 4.2): completing the last panel of a 3 × 3 grid."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from robust_jax.errors import InputError
from robust_jax.systematicity.rules.raven import FIXED_RULES, VALUES, Matrix, Order, Panel, Row, RowRule, shown
from robust_jax.systematicity.task import Change, Deal, Draft, Kind, Parts, Task

DISTRIBUTE_THREE = len(FIXED_RULES)
"""Its number among the rules: the last."""


@dataclass(frozen=True)
class Parameters:
    """Settings of the raven family.

    Raises:
        InputError: there are no such tasks.
    """

    features: int = 2
    """F: numbers in a panel, 1 to 3 (Figure 10)."""

    def __post_init__(self) -> None:
        if self.features not in (1, 2, 3):
            raise InputError(f"raven.features must be 1, 2 or 3, not {self.features}")


def draw_columns(features: int, generator: np.random.Generator) -> tuple[Order, Order, Order]:
    """An order of the features for each column, never the same for all three, which would be easier."""
    while True:
        first, second, third = (tuple(generator.permutation(features).tolist()) for _ in range(3))
        if features == 1 or not first == second == third:
            return first, second, third


@dataclass(frozen=True)
class Rebinding:
    """Features bound to other places: φ permutes the panels of the first two columns, ψ those of the third."""

    orders: tuple[Order, Order, Order]
    """For each column: place i shows what stood at place order[i]."""

    def apply(self, parts: Parts[Row, Panel]) -> Parts[Row, Panel]:
        matrix = parts.rule
        assert isinstance(matrix, Matrix)
        first, second, third = (shown(column, order) for column, order in zip(matrix.columns, self.orders, strict=True))
        support, queries = (
            tuple((shown(row[0], self.orders[0]), shown(row[1], self.orders[1])) for row in rows)
            for rows in (parts.support, parts.queries)
        )
        return Parts(Matrix(matrix.rules, (first, second, third)), support, queries)

    def inverse(self) -> "Rebinding":
        first, second, third = (tuple(sorted(range(len(o)), key=o.__getitem__)) for o in self.orders)
        return Rebinding((first, second, third))


class RavenFamily:
    """Implements `task.Family`."""

    name = "raven"
    parameters = Parameters
    title = "Complete a 3 × 3 grid of panels by finding the rules that its rows follow."
    answer_form = "a list of the numbers of a panel"

    def kinds(self, parameters: Parameters) -> tuple[Kind, ...]:
        """A single feature can be bound to no other place."""
        return ("rebinding",) if parameters.features > 1 else ()

    def draft(self, parameters: Parameters, deal: Deal, generator: np.random.Generator) -> Draft[Row, Panel] | None:
        combinations = list(combinations_with_replacement(range(DISTRIBUTE_THREE + 1), parameters.features))
        numbers = combinations[deal(np.ones(len(combinations)).tolist())]
        rules, tracks = [], []
        for number in generator.permutation(numbers).tolist():
            rule, pairs = _draw_feature(number, generator)
            rules.append(rule)
            tracks.append(pairs)
        matrix = Matrix(tuple(rules), draw_columns(parameters.features, generator))
        rows: list[Row] = []
        for row in zip(*tracks, strict=True):
            first, second = zip(*row, strict=True)
            rows.append((shown(first, matrix.columns[0]), shown(second, matrix.columns[1])))
        if not _can_be_told_apart(matrix, rows):
            return None
        return Draft(matrix, tuple(rows[:2]), tuple(rows[2:]))

    def change(self, task: Task[Row, Panel], kind: Kind, generator: np.random.Generator) -> Change[Row, Panel]:
        matrix = task.rule
        assert isinstance(matrix, Matrix)
        wanted = draw_columns(len(matrix.rules), generator)
        first, second, third = (
            tuple(column.index(feature) for feature in order)
            for column, order in zip(matrix.columns, wanted, strict=True)
        )
        return Rebinding((first, second, third))

    def instructions(self, task: Task[Row, Panel]) -> str:
        count = len(task.queries[0][0])
        return INSTRUCTIONS.format(numbers="one number" if count == 1 else f"{count} numbers", last=VALUES - 1)

    def show_input(self, x: Row) -> str:
        return f"{list(x[0])} {list(x[1])}"

    def show_output(self, y: Panel) -> str:
        return str(list(y))

    def read_input(self, text: str) -> Row:
        first, second = json.loads("[" + text.replace("] [", "], [") + "]")
        return tuple(first), tuple(second)

    def read_output(self, value: object) -> Panel | None:
        """A list of whole numbers, or one alone."""
        given = value if isinstance(value, list) else [value]
        numbers = [number for number in given if isinstance(number, int) and not isinstance(number, bool)]
        return tuple(numbers) if len(numbers) == len(given) else None

    def output_schema(self, task: Task[Row, Panel]) -> Mapping[str, object]:
        count = len(task.queries[0][0])
        return {"type": "array", "items": {"type": "integer"}, "minItems": count, "maxItems": count}


def _draw_feature(number: int, generator: np.random.Generator) -> tuple[RowRule, list[tuple[int, int]]]:
    """A rule by its number, and what the first two panels of three rows show of its feature."""
    if number == DISTRIBUTE_THREE:
        values = tuple(generator.permutation(VALUES)[:3].tolist())
        rows = [generator.permutation(values)[:2].tolist() for _ in range(3)]
        return RowRule("distribute-three", values=values), [(first, second) for first, second in rows]
    rule = FIXED_RULES[number]
    pairs = generator.integers(VALUES, size=(3, 2)).tolist()
    if rule.name in ("constant", "progression"):
        return rule, [(first, (first + rule.step) % VALUES) for first, _ in pairs]
    return rule, [(first, second) for first, second in pairs]


def _can_be_told_apart(matrix: Matrix, rows: list[Row]) -> bool:
    """Whether no two features look the same in a column, so that every binding gives another task."""
    shown_columns = [[row[0] for row in rows], [row[1] for row in rows], [matrix(row) for row in rows[:2]]]
    return all(len(set(zip(*panels, strict=True))) == len(matrix.rules) for panels in shown_columns)


INSTRUCTIONS = """Every panel holds {numbers} from 0 to {last}. The numbers of a panel are the values of hidden \
features, one number a feature. Within a column, every panel lists the features in the same order, but the order may \
differ from column to column, so a feature may stand at different places in the first, second and third panel of a row.

Every feature follows one rule along its row, from the first panel to the third. The rule of a feature is the same in \
all three rows, while its values may differ from row to row; different features may follow different rules. \
The rules are:
- constant: the value is the same in all three panels of a row;
- progression: from panel to panel the value grows by 1, grows by 2, falls by 1 or falls by 2;
- addition: the third value is the sum of the first and the second;
- subtraction: the third value is the first minus the second;
- minimum: the third value is the smaller one of the first and the second;
- maximum: the third value is the larger one of the first and the second;
- distribute-three: the same three different values stand in every row, in any order.
Progressions, sums and differences wrap around: after {last} comes 0, and before 0 comes {last}.

An example shows a row: its first panel, its second panel, and behind the arrow its third panel. The query shows the \
first and the second panel of the last row. Work out the rule and the places of every feature, and answer with the \
third panel of the last row, its numbers in the order of the third column."""


FAMILY = RavenFamily()
