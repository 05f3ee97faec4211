"""What the report of the systematicity protocol draws: the shape of its `results.json` and of the tasks beside it.

As in `robust_jax.report.inputs`, shares are between 0 and 1 and a number that is not defined is null.
"""

from typing import Literal, TypedDict

from robust_jax.report.inputs import Counts, Interval, Settings
from robust_jax.types import Status


class Metrics(TypedDict):
    """The systematicity metrics, averaged over tasks (paper Section 3.5)."""

    any: Interval
    """Share of tasks of which some variation is passed."""
    fraction: Interval
    """Share of variations that are passed."""
    all: Interval
    """Share of tasks of which every variation is passed."""
    gap: Interval
    """any − all."""
    undecided: int
    """Tasks left out, because attempts that do not count leave a variation undecided."""


class VarianceShares(TypedDict):
    """Variance components over the largest variance there can be, averaged over tasks (Table 1)."""

    total: Interval
    within: Interval
    """Within a variation: chance."""
    between: Interval
    """Between variations."""
    undefined: int
    """Tasks that are always solved or never, and have no share."""
    incomplete: int
    """Tasks left out, because an attempt does not count."""


class KindResults(TypedDict):
    """One kind of variation of one family (Figure 8A)."""

    kind: str
    metrics: Metrics
    variance: VarianceShares


class Tokens(TypedDict):
    """What was read and written for a family."""

    attempts: int
    prompt: int
    completion: int
    dollars: float | None
    """What it cost; null where no prices were given."""


class FamilyResults(TypedDict):
    """One task family (Figures 1 and 4)."""

    family: str
    parameters: Settings
    tasks: int
    metrics: Metrics
    """Averaged over the kinds of variation."""
    kinds: list[KindResults]
    tokens: Tokens


class SystematicityResults(TypedDict):
    """`results.json` of `systematicity run`."""

    kind: Literal["systematicity run"]
    model: str
    suite: str
    """The families' names."""
    settings: Settings
    counts: Counts
    families: list[FamilyResults]


class AttemptShown(TypedDict):
    """One reply."""

    response: str
    extracted: str | None
    status: Status
    correct: bool


class VariationShown(TypedDict):
    """One variation with all replies to it."""

    variation: str
    rule: str
    prompt: str
    gold: str
    passed: bool | None
    """Null where attempts that do not count leave it undecided."""
    attempts: list[AttemptShown]


class TaskShown(TypedDict):
    """What the page's browser shows of one task: its variations side by side."""

    task: str
    family: str
    variations: list[VariationShown]


class NamedRun(TypedDict):
    """A run in a comparison."""

    name: str
    """What sets it apart from the others, such as its model."""
    results: SystematicityResults
