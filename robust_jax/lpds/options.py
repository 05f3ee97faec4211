"""Options of the LPDS protocol; what both commands share stands first."""

from dataclasses import dataclass, field
from typing import Literal

from robust_jax.difficulty import Implementation, ReferencePolicy, Shrinkage, metric
from robust_jax.errors import InputError
from robust_jax.problems import ExtractionMode
from robust_jax.runs import NEUTRAL, SuiteOptions, check_least
from robust_jax.search import BeamConfig


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
    references: ReferencePolicy = "half"
    """half: at most half of the correct replies become references, so that others remain to be ranked; paper: all N."""
    layer: int | None = None
    """Block whose mean hidden state MD_H is taken from; none takes two thirds of the depth, rounded."""
    shrinkage: Shrinkage = "ledoit-wolf"
    """How the singular covariance of the Mahalanobis distances is repaired; pinv is for comparison only."""
    levenshtein: Implementation = field(default="auto", metadata=NEUTRAL)
    """What computes Levenshtein distances, all alike: rapidfuzz (CPU), triton (NVIDIA GPU) or xla (any device);
    auto takes the fastest for JAX's device."""
    extract: ExtractionMode = "standard"
    """How the answer is read from a reply; last-number is the paper's rule."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("reference_count", "reference_attempts"):
            check_least(name, getattr(self, name), 1)


@dataclass(frozen=True)
class MeasureOptions(LpdsOptions):
    """Sample variations of every template, have them answered and see which metric predicts failure (Section 3)."""

    variations: int = 1000
    """Variations a template that are measured."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least("variations", self.variations, 1)


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
    """Share of the neighbours that are drawn at random instead of taken by the cheap estimate."""
    difficulty: str = "MD_H"
    """Metric that the search maximises."""
    goalpost: Literal["on", "off"] = "on"
    """Whether the references are fitted again with every 50 newly correct replies."""
    budget: int | None = None
    """Most variations a template that the search may have answered; none leaves it to T, w and b."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if metric(self.difficulty).needs & {"input_statistics"}:
            raise InputError(f"--difficulty {self.difficulty}: the search records no statistics of problems; try MD_H")
        self.beam  # noqa: B018 — checks itself
        check_least("budget", self.budget, 1)
        if self.attempts != 1:
            raise InputError("lpds search scores every variation by one reply: leave --attempts at 1")

    @property
    def beam(self) -> BeamConfig:
        return BeamConfig(self.iterations, self.width, self.branching, self.explore, self.select)
