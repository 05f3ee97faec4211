"""What the report draws: the shapes of `results.json` and of the examples beside it.

The report computes no statistics. Whatever it shows as a figure with an interval is stored as one, by a protocol.
Shares (accuracies, error rates, drops) are between 0 and 1. Where a number is not defined it is null, and the report
says "not available"; NaN and the infinities count as null. Further keys are allowed and ignored.
"""

import math
from typing import Literal, NotRequired, TypeAlias, TypedDict

from robust_jax.analysis import intervals
from robust_jax.types import Status

Number: TypeAlias = int | float
"""A number as JSON gives it: a whole one may come as an integer."""

Counts: TypeAlias = dict[str, dict[str, int]]
"""Attempts by arm and status: {"beam": {"ok": 3815, "truncated": 25}}."""

Settings: TypeAlias = dict[str, str | int | float | bool | None]
"""Options that shaped the results, by name, as they are to be read."""


class Interval(TypedDict):
    """A figure with its 95% interval."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    """How many observations stand behind it."""


def as_json(interval: intervals.Interval) -> Interval:
    """An interval of the analysis as results.json holds it."""
    return {"value": interval.value, "low": interval.low, "high": interval.high, "n": interval.n}


# --------------------------------------------------------------------------------------------------
# lpds search (paper Section 4.2)


class ArmAccuracies(TypedDict):
    """Mean accuracy on each arm's variations."""

    base: Interval
    """The base problems; value null where the suite has none."""
    random: Interval
    beam: Interval


class Drops(TypedDict):
    """How far accuracy falls from the base problems: base − arm, so that positive means worse (Figure 13)."""

    random: Interval
    beam: Interval
    ratio: Interval | None
    """Drop under search divided by the drop at random; null where it is undefined."""


class SearchTemplate(TypedDict):
    """What search and random sampling found in one template."""

    id: str
    base_accuracy: float | None
    random_error: float | None
    beam_error: float | None
    explored: int
    """Distinct variations that the search asked."""
    references: int
    """Correct replies that the difficulty was fitted to at first."""
    note: str
    """What a reader must know of this template, such as too few references; empty if nothing."""


class TemplateCurve(TypedDict):
    """The course of the search in one template, as long as the medians' list of iterations."""

    id: str
    max_difficulty: list[float | None]
    beam_accuracy: list[float | None]


class SearchCurves(TypedDict):
    """Medians over templates after each iteration (Figure 10). Lists of one length."""

    iteration: list[int]
    max_difficulty: list[float | None]
    """Largest difficulty in the beam."""
    beam_accuracy: list[float | None]
    """Mean accuracy of the variations in the beam."""
    max_difficulty_low: list[float | None]
    max_difficulty_high: list[float | None]
    beam_accuracy_low: list[float | None]
    beam_accuracy_high: list[float | None]
    templates: NotRequired[list[TemplateCurve]]


class QuantileCurve(TypedDict):
    """Accuracy by quantile of difficulty, averaged over templates (Figure 18). Lists of one length."""

    quantile: list[int]
    """1, 2, … from the easiest to the hardest."""
    accuracy: list[float | None]
    low: list[float | None]
    high: list[float | None]


class AccuracyDistribution(TypedDict):
    """Accuracies when one variation a template is drawn, many times (Figure 14)."""

    random: list[float]
    beam: list[float]


class SlotShare(TypedDict):
    """How much one slot of a template decides, on random variations."""

    template: str
    slot: str
    error: Interval
    """Share of the variance of right and wrong that its values explain; n counts variations."""
    difficulty: Interval
    """Share of the variance of the difficulty's percentile."""


class ValueEffect(TypedDict):
    """What one value of a slot does: random variations that have it minus those that do not."""

    template: str
    slot: str
    value: str
    """As it is printed; a range such as 2 to 11 of a slot with many numbers."""
    random_share: float
    """How many of the random variations have it."""
    search_share: float
    """How many of those that search explored."""
    error: Interval
    """Change of the error rate; n counts the random variations that have the value."""
    difficulty: Interval
    """Change of the difficulty's percentile among the random variations, as a share of 1."""
    is_clear: bool
    """Whether the change of the error rate stands out of what chance does among so many values."""


class Attribution(TypedDict):
    """Which slots and values make variations hard."""

    slots: list[SlotShare]
    values: list[ValueEffect]
    """The largest changes of the error rate first."""


class SearchResults(TypedDict):
    """`results.json` of `lpds search`."""

    kind: Literal["lpds search"]
    model: str
    suite: str
    settings: Settings
    counts: Counts
    accuracy: ArmAccuracies
    drops: Drops | None
    """Null where the suite has no base problems."""
    error_difference: Interval
    """Error rate under search − error rate at random, paired by template."""
    templates: list[SearchTemplate]
    search_curves: SearchCurves
    quantile_curve: QuantileCurve
    drs: Interval
    """Difficulty-robustness score: normalised area under the quantile curve (Table 13)."""
    auc: dict[str, Interval]
    """How well each metric, by its label, ranks wrong replies above right ones."""
    accuracy_distribution: AccuracyDistribution
    distributions: dict[str, "Distribution"]
    """Metrics, by label, over the random variations."""
    attribution: Attribution


# --------------------------------------------------------------------------------------------------
# lpds measure (paper Section 3.2)


class Distribution(TypedDict):
    """How many right and wrong answers lie in each bin of a metric (Figures 7 and 27)."""

    edges: list[float]
    """One more than there are bins. The outer bins also hold what lies beyond them."""
    right: list[int]
    wrong: list[int]


class MetricPower(TypedDict):
    """One row of Table 1."""

    span: Literal["Input", "Output"]
    metric: str
    """Its label, such as MD_H."""
    layer: int | None
    """The block whose hidden states it reads; null for a metric that reads none."""
    auc: Interval
    behind: Interval | None
    """AUC of the best row minus this one's, paired by template; null for the best row."""
    odds_ratio: Interval
    """Effect of one standard deviation on the odds of a right answer; its value is null where it is undefined."""
    missing: int
    """Answers for which the metric is not defined, such as empty replies."""
    note: str
    """Why a figure is undefined, or what must be known of it; empty if nothing."""
    distribution: Distribution | None


class MeasureTemplate(TypedDict):
    """One template's share in the measurement."""

    id: str
    accuracy: float | None
    variations: int
    """Variations that were measured."""
    references: int
    note: str


class MeasureResults(TypedDict):
    """`results.json` of `lpds measure`."""

    kind: Literal["lpds measure"]
    model: str
    suite: str
    settings: Settings
    counts: Counts
    accuracy: Interval
    metrics: list[MetricPower]
    templates: list[MeasureTemplate]


Results: TypeAlias = SearchResults | MeasureResults

# --------------------------------------------------------------------------------------------------
# Several searches side by side


class ComparedSearches(TypedDict):
    """Searches that differ in their seed alone, taken together: templates' means over the seeds."""

    name: str
    """What tells them from the others."""
    model: str
    suite: str
    seeds: list[int]
    base: Interval
    """Accuracy on the base problems; value null where there are none."""
    random_error: Interval
    beam_error: Interval
    difference: Interval
    """Error rate under search − error rate at random, paired by template."""
    ratio: Interval | None
    """Drop under search divided by the drop at random; null where it is undefined."""
    behind: Interval | None
    """Error rate under search minus that of the first searches, paired by template; null for those."""
    drs: Interval
    """Difficulty-robustness score; of several seeds the mean, without an interval."""
    explored: int
    """Variations that search had answered, all templates and seeds."""
    templates: dict[str, float | None]
    """Error rate under search of each template."""
    beam_accuracy: list[list[float | None]]
    """Median accuracy of the beam after each iteration, a list a seed."""
    quantile_accuracy: list[list[float | None]]
    """Accuracy by quantile of difficulty, a list a seed."""


class Comparison(TypedDict):
    """Several searches side by side."""

    kind: Literal["lpds comparison"]
    searches: list[ComparedSearches]


# --------------------------------------------------------------------------------------------------
# Examples


class Attempt(TypedDict):
    """One problem with the model's reply."""

    variation: str
    """Key of the variation, unique in its template."""
    question: str
    response: str
    gold: str
    extracted: str | None
    status: Status
    correct: bool
    difficulty: float | None


class VariationExample(Attempt):
    """A variation beside the right reply it comes nearest to."""

    reference: Attempt | None


class TemplateExamples(TypedDict):
    """What the page's browser shows of one template.

    Variations come in the order in which they are to be listed, the worst first. With some from the middle and the
    low end of difficulty at the end of the list, a reader sees how replies change with it (Figure 77).
    """

    template: str
    base: Attempt | None
    variations: list[VariationExample]


AnswerRow: TypeAlias = tuple[int, str, list[str], float | None, Literal[0, 1, 2], str | None, str]
"""Number of the template, arm, slots' values, difficulty, wrong (0), right (1) or not counted (2), read, gold."""


class Answers(TypedDict):
    """Every answer of a run in brief, for a table that holds very many."""

    slots: list[tuple[str, list[str]]]
    """The templates with the names of their slots, as `rows` number them."""
    rows: list[AnswerRow]


NO_ANSWERS: Answers = {"slots": [], "rows": []}


def finite(number: Number | None) -> Number | None:
    """The number, or None where there is none to be drawn."""
    return number if number is not None and math.isfinite(number) else None
