"""Boolean concept learning (paper Section 4.4): sorting objects by a hidden rule about their features."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeVar

import numpy as np

from robust_jax.errors import InputError
from robust_jax.systematicity.rules.boolean import (
    FEATURES,
    LABELS,
    Combination,
    Concept,
    Constant,
    Expression,
    Label,
    Object,
    Predicate,
)
from robust_jax.systematicity.solvers.boolean import fewest_predicates
from robust_jax.systematicity.task import Change, Deal, Draft, Kind, Parts, Task

QUERIES = 8
FEWEST_OF_A_CLASS = 2
"""Queries of either class, at least, when they are balanced."""

T = TypeVar("T")


@dataclass(frozen=True)
class Parameters:
    """Settings of the boolean family.

    Raises:
        InputError: there are no such tasks.
    """

    fewest: int = 2
    """Predicates of a concept, at least."""
    most: int = 4
    """Predicates of a concept, at most."""
    constants: bool = False
    """Whether the concepts true and false are drawn too, together as often as those of one number of predicates."""
    queries: Literal["balanced", "rest"] = "balanced"
    """balanced: at least two queries of each class, the support being the rest of the decision boundary; rest: the
    whole boundary is shown and what lies off it is asked, as in the paper."""

    def __post_init__(self) -> None:
        if not 1 <= self.fewest <= self.most <= 4:
            raise InputError(
                f"concepts of {self.fewest} to {self.most} predicates: give 1 ≤ boolean.fewest ≤ boolean.most ≤ 4"
            )


def objects(features: Sequence[str]) -> list[Object]:
    """All 27 objects of three features."""
    return [tuple(zip(features, values, strict=True)) for values in product(*(FEATURES[name] for name in features))]


def neighbours(x: Object) -> Iterator[Object]:
    """The objects that differ from `x` in one feature."""
    for place, (feature, value) in enumerate(x):
        for other in FEATURES[feature]:
            if other != value:
                yield (*x[:place], (feature, other), *x[place + 1 :])


def boundary(concept: Concept, things: Sequence[Object]) -> list[Object]:
    """The objects with a neighbour of the other class."""
    return [x for x in things if any(concept(other) != concept(x) for other in neighbours(x))]


def draw_expression(predicates: int, features: Sequence[str], generator: np.random.Generator) -> Expression:
    """An expression of so many predicates, as the grammar draws it; 0 predicates make a constant.

    All trees of one size are equally likely under the grammar, so a tree is cut where a random one would be.
    """
    if predicates == 0:
        return Constant(bool(generator.integers(2)))
    if predicates == 1:
        feature = features[int(generator.integers(3))]
        return Predicate(feature, FEATURES[feature][int(generator.integers(3))])
    cuts = np.array([_trees(left) * _trees(predicates - left) for left in range(1, predicates)], float)
    left = 1 + int(generator.choice(len(cuts), p=cuts / cuts.sum()))
    operator: Literal["and", "or"] = "and" if generator.integers(2) else "or"
    return Combination(
        operator,
        draw_expression(left, features, generator),
        draw_expression(predicates - left, features, generator),
    )


def _trees(leaves: int) -> int:
    """Binary trees of so many leaves."""
    return 1 if leaves == 1 else sum(_trees(left) * _trees(leaves - left) for left in range(1, leaves))


def _draw_features(generator: np.random.Generator) -> list[str]:
    """Three features, shape always among them, in the order in which objects list them."""
    others = [name for name in FEATURES if name != "shape"]
    chosen = {others[place] for place in generator.permutation(len(others))[:2].tolist()}
    return [name for name in FEATURES if name == "shape" or name in chosen]


@dataclass(frozen=True)
class Substitution:
    """Other features and values: φ rebinds them in every object and predicate; the labels stay."""

    pairs: tuple[tuple[tuple[str, str], tuple[str, str]], ...]
    """Every feature and value with the feature and value that take their place."""

    def apply(self, parts: Parts[Object, Label]) -> Parts[Object, Label]:
        concept = parts.rule
        assert isinstance(concept, Concept)
        table = dict(self.pairs)
        support, queries = (
            tuple(_ordered(table[pair] for pair in x) for x in things) for things in (parts.support, parts.queries)
        )
        return Parts(Concept(_rebound(concept.expression, table)), support, queries)

    def inverse(self) -> "Substitution":
        return Substitution(tuple((new, old) for old, new in self.pairs))


def _ordered(pairs: Iterable[tuple[str, str]]) -> Object:
    names = list(FEATURES)
    return tuple(sorted(pairs, key=lambda pair: names.index(pair[0])))


def _rebound(expression: Expression, table: Mapping[tuple[str, str], tuple[str, str]]) -> Expression:
    match expression:
        case Predicate(feature, value):
            return Predicate(*table[feature, value])
        case Combination(operator, left, right):
            return Combination(operator, _rebound(left, table), _rebound(right, table))
    return expression


class BooleanFamily:
    """Implements `task.Family`."""

    name = "boolean"
    parameters = Parameters
    title = "Sort objects into those that are wudsy and those that are not, by a hidden rule."
    answer_form = '"wudsy" or "not wudsy"'

    def kinds(self, parameters: Parameters) -> tuple[Kind, ...]:
        return ("substitution", "reordering")

    def draft(self, parameters: Parameters, deal: Deal, generator: np.random.Generator) -> Draft[Object, Label] | None:
        """A concept that no expression of fewer predicates equals, and objects about its decision boundary."""
        features = _draw_features(generator)
        sizes = [*([0] if parameters.constants else []), *range(parameters.fewest, parameters.most + 1)]
        size = sizes[int(generator.integers(len(sizes)))]
        concept = Concept(draw_expression(size, features, generator))
        if fewest_predicates(x for x in objects(features) if concept(x) == LABELS[True]) < size:
            return None
        things = _shuffled(objects(features), generator)
        if isinstance(concept.expression, Constant):
            support = [things[0], *neighbours(things[0])]
            queries = [x for x in things if x not in support][:QUERIES]
            return Draft(concept, tuple(support), tuple(queries))
        support = boundary(concept, things)
        if parameters.queries == "rest":
            queries = [x for x in things if x not in support][:QUERIES]
        else:
            queries = things[:QUERIES]
            labels = [concept(x) for x in queries]
            if any(labels.count(label) < FEWEST_OF_A_CLASS for label in LABELS):
                return None
            support = [x for x in support if x not in queries]
        if len(queries) < QUERIES or not _is_bound_firmly([*support, *queries]):
            return None
        return Draft(concept, tuple(support), tuple(queries))

    def change(self, task: Task[Object, Label], kind: Kind, generator: np.random.Generator) -> Change[Object, Label]:
        old = [feature for feature, _ in task.queries[0]]
        new = _shuffled(_draw_features(generator), generator)
        pairs = []
        for feature, other in zip(old, new, strict=True):
            values = _shuffled(FEATURES[other], generator)
            pairs += [
                ((feature, value), (other, substitute))
                for value, substitute in zip(FEATURES[feature], values, strict=True)
            ]
        return Substitution(tuple(pairs))

    def instructions(self, task: Task[Object, Label]) -> str:
        features = [feature for feature, _ in task.queries[0]]
        predicates = "\n".join(f"  BOOL → is_{feature}({value})" for feature in features for value in FEATURES[feature])
        return INSTRUCTIONS.format(predicates=predicates)

    def show_input(self, x: Object) -> str:
        return ", ".join(f"{feature}: {value}" for feature, value in x)

    def show_output(self, y: Label) -> str:
        return y

    def read_input(self, text: str) -> Object:
        pairs = [part.split(": ") for part in text.split(", ")]
        return tuple((feature, value) for feature, value in pairs)

    def read_output(self, value: object) -> Label | None:
        """A label, or true and false for it."""
        if isinstance(value, bool):
            return LABELS[value]
        text = " ".join(value.lower().split()) if isinstance(value, str) else ""
        return next((label for label in LABELS if text == label), None)

    def output_schema(self, task: Task[Object, Label]) -> Mapping[str, object]:
        return {"type": "string", "enum": list(LABELS)}


def _shuffled(items: Sequence[T], generator: np.random.Generator) -> list[T]:
    return [items[place] for place in generator.permutation(len(items)).tolist()]


def _is_bound_firmly(things: Sequence[Object]) -> bool:
    """Whether every value occurs and no two features go together, so that every binding gives another task."""
    columns = list(zip(*things, strict=True))
    pairs = [(first, second) for place, first in enumerate(columns) for second in columns[place + 1 :]]
    return all(len(set(column)) == 3 for column in columns) and all(
        len(set(zip(first, second, strict=True))) > 3 for first, second in pairs
    )


INSTRUCTIONS = """Every object has three features. Whether it is wudsy depends on its features alone, by a rule that \
is the same for all objects of the task. The rule is the simplest one of the following grammar that explains all \
examples: the one with the fewest predicates.
  START → true
  START → false
  START → BOOL
  BOOL → and(BOOL, BOOL)
  BOOL → or(BOOL, BOOL)
{predicates}
There is no negation. An example shows an object and behind the arrow whether it is wudsy. Find the rule and say of \
every query whether it is "wudsy" or "not wudsy"."""


FAMILY = BooleanFamily()
