"""Options of the RRB commands that ask a model; what both share stands first."""

from dataclasses import dataclass
from typing import Literal

from robust_jax.errors import InputError
from robust_jax.rrb.perturbations import Parameters
from robust_jax.rrb.problem_set import BUNDLED
from robust_jax.runs import RunOptions, check_least


@dataclass(frozen=True)
class RrbOptions(RunOptions):
    """Options of every RRB command that asks a model.

    Raises:
        InputError: a number is out of its range.
    """

    data: str = BUNDLED
    """The problems: competition (bundled), a .jsonl file with `problem` and `answer`, or a suite of templates."""


@dataclass(frozen=True)
class RewritingOptions(RrbOptions, Parameters):
    """Ask problems as they are and rewritten, and see how far accuracy falls under each rewriting."""

    perturbation: str = "all"
    """Which rewritings: all for the paper's 13, or some, joined by commas; compose:a+b does a and then b."""

    def __post_init__(self) -> None:
        RrbOptions.__post_init__(self)
        Parameters.__post_init__(self)


@dataclass(frozen=True)
class DilutionOptions(RrbOptions):
    """Ask several problems in one context, and see how accuracy on the last depends on those before it."""

    most: int = 4
    """n_max: the largest number of problems in one context."""
    controls: Literal["on", "off"] = "on"
    """Whether the last problem is also asked behind neutral text of the same length, and behind solved problems."""
    attention: bool = False
    """Record where the attention of the last answer goes, layer by layer; only a model that runs here can tell."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least("most", self.most, 2)
        if self.limit is not None and self.limit < self.most:
            raise InputError(f"--limit {self.limit}: a context of {self.most} problems needs as many; see --most")
