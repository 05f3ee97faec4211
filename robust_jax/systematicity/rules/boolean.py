"""The rule of the boolean family: a concept, by which objects are sorted (paper Section 4.4)."""

from dataclasses import dataclass
from typing import Literal

FEATURES: dict[str, tuple[str, str, str]] = {
    "shape": ("circle", "square", "triangle"),
    "size": ("small", "medium", "large"),
    "colour": ("red", "green", "blue"),
    "material": ("wood", "metal", "glass"),
    "numerosity": ("one", "two", "three"),
}
"""The features that objects may have, with their values. Objects list them in this order."""

Object = tuple[tuple[str, str], ...]
"""Features with their values."""

Label = Literal["wudsy", "not wudsy"]
LABELS: tuple[Label, Label] = ("not wudsy", "wudsy")
"""What objects outside a concept, and inside it, are called."""


@dataclass(frozen=True)
class Constant:
    """true or false."""

    value: bool

    def holds(self, x: Object) -> bool:
        return self.value

    def __str__(self) -> str:
        return str(self.value).lower()


@dataclass(frozen=True)
class Predicate:
    """Whether a feature has a value."""

    feature: str
    value: str

    def holds(self, x: Object) -> bool:
        return (self.feature, self.value) in x

    def __str__(self) -> str:
        return f"is_{self.feature}({self.value})"


@dataclass(frozen=True)
class Combination:
    """Two expressions joined by and, or by or."""

    operator: Literal["and", "or"]
    left: "Expression"
    right: "Expression"

    def holds(self, x: Object) -> bool:
        both = self.left.holds(x), self.right.holds(x)
        return all(both) if self.operator == "and" else any(both)

    def __str__(self) -> str:
        return f"{self.operator}({self.left}, {self.right})"


Expression = Constant | Predicate | Combination


@dataclass(frozen=True)
class Concept:
    """Sorts objects by whether an expression holds."""

    expression: Expression

    def __call__(self, x: Object, /) -> Label:
        return LABELS[self.expression.holds(x)]

    def __str__(self) -> str:
        return str(self.expression)


# The grammar of expressions with the weights of its productions: START → true 1 | false 1 | BOOL ¼, and
# BOOL → and(BOOL, BOOL) 1/16 | or(BOOL, BOOL) 1/16 | one of the nine predicates 3 together.
PREDICATES = 9
_START, _BOOL = 1 + 1 + 1 / 4, 1 / 16 + 1 / 16 + 3
CONSTANT_PRIOR = 1 / _START
"""Probability of `true`, and of `false`."""
BOOL_PRIOR = (1 / 4) / _START
COMBINATION_PRIOR = (1 / 16) / _BOOL
"""Probability of `and`, and of `or`."""
PREDICATE_PRIOR = 3 / _BOOL / PREDICATES
"""Probability of one predicate."""
