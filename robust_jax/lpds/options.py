"""Options of the LPDS protocol; what both commands share stands first."""

import math
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import tyro

from robust_jax.analysis.auc import NanPolicy
from robust_jax.analysis.odds_ratio import Estimator
from robust_jax.difficulty import Implementation, ReferencePolicy, Shrinkage, metric, usable
from robust_jax.errors import InputError
from robust_jax.problems import ExtractionMode, PromptForm, ShotsAs
from robust_jax.runs import NEUTRAL, SuiteOptions, check_least, plain
from robust_jax.runs.options import Plain
from robust_jax.runs.tracking import TrackerKind
from robust_jax.search import BeamConfig
from robust_jax.types import Capabilities

CHEAP_METRIC = "MD_E"
"""f̃ of the search (Section 4.1)."""


@dataclass(frozen=True)
class LpdsOptions(SuiteOptions):
    """Options of every LPDS command.

    Raises:
        InputError: a number is out of its range.
    """

    reference_count: int = 200
    """N: correct replies a template that difficulty is measured from."""
    reference_attempts: int = 1000
    """Variations a template that may be asked to find them."""
    reference: str = "self"
    """Whose correct replies they are: self, the model's own; trace, worked solutions; or the directory of another
    model's run of the same suite. The last two are put into the model's mouth to read its hidden states."""
    references: ReferencePolicy = "half"
    """half: at most half of the correct replies become references, so that others remain to be ranked; paper: all N."""
    layers: tuple[int, ...] = ()
    """Blocks after which mean hidden states are recorded, the first leading a search; none takes the paper's block,
    at two thirds of the depth."""
    shrinkage: Shrinkage = "ledoit-wolf"
    """How the singular covariance of the Mahalanobis distances is repaired; pinv is for comparison only."""
    ridge: float = 0.01
    """Under --shrinkage ridge: what is added to the covariance's diagonal, as a share of its mean."""
    proxy: str | None = None
    """Local model whose input embeddings are taken (MD_E, KNN_E), for a model that gives none, such as a served one."""
    levenshtein: Implementation = field(default="auto", metadata=NEUTRAL)
    """What computes Levenshtein distances, all alike: rapidfuzz (CPU), triton (NVIDIA GPU) or xla (any device);
    auto takes the fastest for JAX's device."""
    extract: ExtractionMode = "standard"
    """How the answer is read from a reply; last-number is the paper's rule."""
    shots_as: ShotsAs = "one"
    """How a chat model sees worked examples: in one message with the problem, or as turns of a conversation."""
    system: str | None = None
    """System message that every prompt begins with."""
    chat_template: Literal["auto", "off"] = "auto"
    """auto: prompts take the form of the model's chat template, if it has one; off: plain text."""
    run_python: bool = field(default=False, metadata=NEUTRAL)
    """Read a suite of Python functions, which runs their authors' code."""
    grid_values: int = 100
    """Most values of the grid that stands for a continuous draw of a Python function."""
    track: TrackerKind = field(default="none", metadata=NEUTRAL)
    """wandb: tell Weights & Biases how the run goes; offline unless there is a key."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("grid_values", "reference_count", "reference_attempts"):
            check_least(name, getattr(self, name), 1)
        check_ridge(self.ridge)

    @property
    def prompt_form(self) -> PromptForm:
        return PromptForm(self.shots_as, self.system, chat=self.chat_template == "auto")

    @property
    def needed_metrics(self) -> tuple[str, ...]:
        """Metrics without which the command can do nothing."""
        return ()

    def choices_for(self, capabilities: Capabilities) -> dict[str, Any]:
        """What the user left open and a model of these capabilities decides, by field name."""
        return {}


def check_ridge(ridge: float) -> None:
    """Refuse a ridge under which the covariance stays singular.

    Raises:
        InputError: it is not a finite positive number.
    """
    if not (math.isfinite(ridge) and ridge > 0):
        raise InputError(f"--ridge must be a finite number above 0, not {ridge}")


@dataclass(frozen=True)
class MeasureOptions(LpdsOptions):
    """Sample variations of every template, have them answered and see which metric predicts failure (Section 3)."""

    variations: int = 1000
    """Variations a template that are measured."""
    odds: Estimator = "agh"
    """How odds ratios are estimated: agh, maximum likelihood; vb, the paper's variational Bayes, minutes slower."""
    nan: NanPolicy = "drop"
    """What becomes of an empty reply, whose metrics are NaN: drop leaves it out of an AUC, hard ranks it as hardest."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least("variations", self.variations, 1)


@dataclass(frozen=True)
class ReportOptions:
    """Compute and draw the figures of finished runs from what is stored, without a model.

    Raises:
        InputError: no run is named, a metric is unknown, or the ridge is not positive.
    """

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run directories."""
    out: Path | None = None
    """For several runs of one kind: directory of a page that shows them side by side."""
    metrics: tuple[str, ...] = ()
    """For lpds measure: the metrics of the table; none shows all."""
    layers: tuple[int, ...] = ()
    """For lpds measure: which of the recorded blocks; none shows all."""
    shrinkage: Shrinkage | None = None
    """For lpds measure: another estimate of the covariance than the run's."""
    ridge: float | None = None
    """For lpds measure: another ridge than the run's."""
    odds: Estimator | None = None
    """For lpds measure: another estimator of the odds ratios than the run's."""
    nan: NanPolicy | None = None
    """For lpds measure: what becomes of empty replies, if not as in the run."""
    levenshtein: Implementation = "auto"
    """What computes Levenshtein distances; see lpds measure."""

    def __post_init__(self) -> None:
        if not self.runs:
            raise InputError("name at least one run directory")
        for name in self.metrics:
            metric(name)
        if self.ridge is not None:
            check_ridge(self.ridge)
        usable(self.levenshtein)

    @property
    def changes(self) -> dict[str, Plain]:
        """The options of a run that are to be taken otherwise, by field name."""
        chosen = {
            f.name: plain(getattr(self, f.name)) for f in fields(self) if f.name not in ("runs", "levenshtein", "out")
        }
        return {name: value for name, value in chosen.items() if value not in (None, [])}


@dataclass(frozen=True)
class SearchOptions(LpdsOptions):
    """Search every template for variations that break the model, and compare with random sampling (Section 4)."""

    iterations: int = 15
    """T: how often the beam is expanded."""
    width: int = 16
    """w: variations that the beam keeps."""
    branching: int = 16
    """b: candidates that every variation of the beam contributes to an iteration."""
    explore: float = 0.2
    """Share of the candidates that are drawn from the whole template."""
    select: float = 0.4
    """Share of the neighbours that are drawn at random instead of taken by the cheap estimate; 1 does without it."""
    difficulty: str | None = None
    """Metric that the search maximises; none takes MD_H, or LD_min for a model that gives no hidden states."""
    goalpost: Literal["on", "off"] = "on"
    """Whether the references are fitted again with every 50 newly correct replies."""
    budget: int | None = None
    """Most variations a template that the search may have answered; none leaves it to T, w and b."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.difficulty is not None and "input_statistics" in metric(self.difficulty).needs:
            raise InputError(f"--difficulty {self.difficulty}: the search records no statistics of problems; try MD_H")
        self.beam  # noqa: B018 — checks itself
        check_least("budget", self.budget, 1)
        if self.attempts != 1:
            raise InputError("lpds search scores every variation by one reply: leave --attempts at 1")

    @property
    def is_cheaply_scored(self) -> bool:
        """Whether any candidate is chosen by its cheap estimate; with --select 1 none is."""
        return self.beam.hardest > 0

    @property
    def needed_metrics(self) -> tuple[str, ...]:
        assert self.difficulty is not None  # chosen by now
        return (self.difficulty, CHEAP_METRIC) if self.is_cheaply_scored else (self.difficulty,)

    def choices_for(self, capabilities: Capabilities) -> dict[str, Any]:
        return {"difficulty": self.difficulty or ("MD_H" if capabilities.hidden_states else "LD_min")}

    @property
    def beam(self) -> BeamConfig:
        return BeamConfig(self.iterations, self.width, self.branching, self.explore, self.select)
