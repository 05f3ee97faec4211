"""What the report draws of RRB runs: the shapes of `results.json` (see `robust_jax.report.inputs`)."""

from typing import Literal, NotRequired, TypedDict

from robust_jax.report.inputs import Counts, Interval, Settings
from robust_jax.types import Status


class Change(TypedDict):
    """How accuracy changes on the same problems, in shares of 1; negative means worse."""

    change: Interval
    fell: int
    """Problems that were answered better before."""
    rose: int
    p: float | None
    """McNemar's exact test; none where no problem could be compared."""


class FormShown(TypedDict):
    """One form in which a problem was asked, with a reply."""

    form: str
    """As it is, or the rewriting's name; or the condition."""
    question: str
    response: str
    gold: str
    extracted: str | None
    status: Status
    correct: bool


class ProblemShown(TypedDict):
    """What the page shows of one problem."""

    problem: str
    forms: list[FormShown]


class Rewriting(Change):
    """One perturbation against the problems as they are."""

    name: str
    category: str
    accuracy: Interval
    p_adjusted: float | None
    """By Holm, over all perturbations of the run."""
    tokens: Interval
    """Length of a reply."""


class CategoryChange(Change):
    """The mean over the perturbations of one category."""

    category: str
    accuracy: Interval


class RewrittenProblem(TypedDict):
    """One problem as it is and rewritten."""

    id: str
    original: float | None
    rewritten: float | None
    """Mean accuracy over the perturbations."""
    lost: str
    """Perturbations under which it is answered worse."""


class RewritingResults(TypedDict):
    """`results.json` of `rrb run`."""

    kind: Literal["rrb run"]
    model: str
    suite: str
    settings: Settings
    counts: Counts
    original: Interval
    """Accuracy on the problems as they are."""
    original_tokens: Interval
    perturbations: list[Rewriting]
    categories: list[CategoryChange]
    """Paper Figure 4."""
    average: Change
    """Of the mean over all perturbations (paper Figure 5)."""
    problems: list[RewrittenProblem]


class Condition(TypedDict):
    """Accuracy on the last problem where something stands before it."""

    n: int
    """Problems in the context."""
    condition: str
    """alone, sequence, neutral or solved."""
    accuracy: Interval
    prompt_tokens: Interval


class Effect(Change):
    """A step from one condition to another at one number of problems."""

    n: int
    effect: str
    """total, length, content or own reasoning."""


class DilutedProblem(TypedDict):
    """One problem alone and as the last of several."""

    id: str
    alone: float | None
    last: list[float | None]
    """For 2, 3, … problems."""


class AttentionShare(TypedDict):
    """Where the attention of the last answer's tokens goes in one layer; the four shares add up to 1."""

    n: int
    condition: str
    """alone, sequence or solved."""
    layer: int
    own_problem: Interval
    earlier_problems: Interval
    earlier_reasoning: Interval
    rest: Interval
    """Instructions, the first token, and what the answer has written itself."""


class DilutionResults(TypedDict):
    """`results.json` of `rrb dilute`."""

    kind: Literal["rrb dilute"]
    model: str
    suite: str
    settings: Settings
    counts: Counts
    conditions: list[Condition]
    effects: list[Effect]
    problems: list[DilutedProblem]
    attention: NotRequired[list[AttentionShare]]
