"""The rule of the raven family: what stands in the third panel of a row, given the first two (paper Section 4.2)."""

from collections.abc import Sequence
from dataclasses import dataclass

VALUES = 10
"""M: a feature is a number from 0 to M − 1, and sums and steps wrap around."""
STEPS = (1, 2, -1, -2)
"""Of the progressions."""

Panel = tuple[int, ...]
"""The features of one panel in the order in which it shows them."""
Row = tuple[Panel, Panel]
"""The first two panels of a row."""
Order = tuple[int, ...]
"""For each place of a panel, the feature that stands there."""


@dataclass(frozen=True)
class RowRule:
    """How one feature goes along a row."""

    name: str
    """constant, progression, addition, subtraction, minimum, maximum or distribute-three."""
    step: int = 0
    """Of a progression."""
    values: tuple[int, ...] = ()
    """The three values of distribute-three."""

    def third(self, first: int, second: int) -> int | None:
        """The value in the third panel; None where the first two do not follow the rule."""
        match self.name:
            case "constant":
                return first if first == second else None
            case "progression":
                return (second + self.step) % VALUES if (first + self.step - second) % VALUES == 0 else None
            case "addition":
                return (first + second) % VALUES
            case "subtraction":
                return (first - second) % VALUES
            case "minimum":
                return min(first, second)
            case "maximum":
                return max(first, second)
            case _:
                left = set(self.values) - {first, second}
                return left.pop() if len(self.values) == 3 and len(left) == 1 else None

    def __str__(self) -> str:
        details = f" {self.step:+d}" if self.step else f" {list(self.values)}" if self.values else ""
        return self.name + details


FIXED_RULES = (
    RowRule("constant"),
    *(RowRule("progression", step) for step in STEPS),
    RowRule("addition"),
    RowRule("subtraction"),
    RowRule("minimum"),
    RowRule("maximum"),
)
"""All but distribute-three, which differs from task to task in its values."""


@dataclass(frozen=True)
class Matrix:
    """One rule a feature, and for each column the order in which its panels show the features."""

    rules: tuple[RowRule, ...]
    columns: tuple[Order, Order, Order]

    def __call__(self, row: Row, /) -> Panel:
        first, second = (_features(panel, order) for panel, order in zip(row, self.columns, strict=False))
        third = [rule.third(*pair) for rule, *pair in zip(self.rules, first, second, strict=True)]
        if None in third:
            raise ValueError(f"{row} does not follow {self}")
        return tuple(value for feature in self.columns[2] if (value := third[feature]) is not None)

    def __str__(self) -> str:
        orders = " | ".join(" ".join(str(feature + 1) for feature in order) for order in self.columns)
        return f"{', '.join(map(str, self.rules))}; features in the order {orders}"


def shown(features: Sequence[int], order: Order) -> Panel:
    """Features as a panel of a column shows them."""
    return tuple(features[feature] for feature in order)


def _features(panel: Panel, order: Order) -> list[int]:
    return [panel[order.index(feature)] for feature in range(len(order))]
