"""Options of the fine-tuning commands."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal

import tyro

from robust_jax.errors import InputError
from robust_jax.finetune.lora import TARGETS
from robust_jax.finetune.optimizer import ScheduleKind
from robust_jax.finetune.splits import TRAIN_SETS, SplitBy, SplitOptions
from robust_jax.runs import NEUTRAL, RunOptions, check_least, plain
from robust_jax.runs.options import Plain, flag
from robust_jax.runs.tracking import TrackerKind

LARGEST = 3.4e38
"""About the largest number that float32 holds."""
MOST_ROWS = 2**25
"""A run is laid out before it begins, which takes memory for every row that it will see."""


@dataclass(frozen=True)
class DataOptions:
    """Make training, validation and test sets of what a search explored (LPDS, Section 5 and C.5.1).

    Raises:
        InputError: a number is out of its range, or a directory is missing.
    """

    search: Path | None = None
    """Run directory of a finished `lpds search`."""
    out: Path | None = None
    """Where the sets are written."""
    seed: int = 0
    """The one seed that every random draw is derived from."""
    split: SplitBy = "variations"
    """variations: every template's are split 70/15/15, as in the paper; templates: whole templates are held out."""
    per_template: int = 100
    """Most initially wrong variations of a template in the training pool."""
    evaluated: int = 10
    """Most variations of a template in the validation set and in the test set."""
    evaluated_wrong: int | None = None
    """Most initially wrong variations of a template in the difficulty thirds of the test pool; none takes all."""
    run_python: bool = False
    """Read a suite of Python functions, which runs their authors' code."""

    def __post_init__(self) -> None:
        for name in ("per_template", "evaluated", "evaluated_wrong"):
            check_least(name, getattr(self, name), 1)
        for name in ("search", "out"):
            if getattr(self, name) is None:
                raise InputError(f"finetune data needs --{name} DIR")

    @property
    def splitting(self) -> SplitOptions:
        return SplitOptions(self.split, self.per_template, self.evaluated, self.evaluated_wrong)


@dataclass(frozen=True)
class ModelRunOptions(RunOptions):
    """Options of every command that trains or asks a model on the sets that `finetune data` made."""

    data: Path | None = field(default=None, metadata=NEUTRAL)
    """What `finetune data` made."""
    shots: int | None = None
    """Worked examples before each problem, in training as in evaluation; none takes what the search took."""
    run_python: bool = field(default=False, metadata=NEUTRAL)
    """Read a suite of Python functions, which runs their authors' code."""
    track: TrackerKind = field(default="none", metadata=NEUTRAL)
    """wandb tells Weights & Biases about the run, offline unless it has a key; see `wandb sync`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least("shots", self.shots, 0)
        if self.coordinator is not None:
            raise InputError("finetune works in one process, over all of its devices: leave out --coordinator")
        if self.limit is not None:
            raise InputError("finetune takes its sets whole: leave out --limit; `finetune data` has --evaluated")
        for name in ("data", "out"):
            if getattr(self, name) is None:
                raise InputError(f"finetune needs --{name} DIR")


@dataclass(frozen=True)
class EvaluateOptions(ModelRunOptions):
    """Have a model solve the test set, its difficulty thirds and the base problems."""


@dataclass(frozen=True)
class TrainOptions(ModelRunOptions):
    """Train a model on one of the training sets and evaluate it before and after (LPDS, Section 5).

    Raises:
        InputError: a number is out of its range, or there is no such training set.
    """

    train: str = "q_high"
    """Training set: q_low, q_mid, q_high, a mixture such as mix_20_30_50 (percent of the three), or random."""
    steps: int = 300
    """Optimizer steps."""
    batch: int = 16
    """Problems of a micro-batch."""
    accumulation: int = 1
    """Micro-batches of an optimizer step."""
    rate: float = 1e-5
    """Peak learning rate."""
    schedule: ScheduleKind = "cosine"
    """What follows the warm-up."""
    warm_up: float = 0.03
    """Share of the steps over which the rate rises."""
    weight_decay: float = 0.1
    """Of matrices; biases and norms do not decay."""
    clip: float = 1.0
    """Largest norm of a step's gradient."""
    lora_rank: int = 0
    """Rank of the adapters that are trained instead of the weights; 0 trains all weights."""
    lora_alpha: float = 16.0
    """What the adapters' product is multiplied by, times the rank."""
    lora_targets: tuple[str, ...] = TARGETS
    """Matrices of every block that get an adapter."""
    compute: Literal["float32", "bfloat16"] = "float32"
    """Number format of the products; weights and optimizer keep float32."""
    remat: bool = False
    """Compute activations anew in the backward pass instead of keeping them: less memory, a third more time."""
    evaluate_every: int = 100
    """Steps between validations; the last step is always followed by one."""
    save_every: int = field(default=50, metadata=NEUTRAL)
    """Steps between checkpoints that can be resumed from; every validation leaves one, too."""
    use: Literal["best", "last"] = "best"
    """Which checkpoint is evaluated on the test set and exported: the best by validation accuracy, or the last."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("steps", "batch", "accumulation", "evaluate_every", "save_every"):
            check_least(name, getattr(self, name), 1)
        check_least("lora_rank", self.lora_rank, 0)
        if (rows := self.steps * self.batch * self.accumulation) > MOST_ROWS:
            raise InputError(f"--steps × --batch × --accumulation is {rows:,} rows: take at most {MOST_ROWS:,}")
        for name in ("rate", "clip", "lora_alpha"):
            if not 0 < getattr(self, name) < LARGEST:
                raise InputError(f"{flag(name)} must be a number above 0 that float32 holds")
        for name in ("warm_up", "weight_decay"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{flag(name)} must be a number from 0 to 1")
        if self.train not in TRAIN_SETS:
            raise InputError(f"--train {self.train}: the training sets are {', '.join(TRAIN_SETS)}")
        if self.lora_rank and not self.lora_targets:
            raise InputError("--lora-rank needs at least one of --lora-targets")

    def label(self) -> str:
        """What distinguishes this run in a tracker."""
        return f"{self.train} rate {self.rate:g} k {self.accumulation} seed {self.seed}"


@dataclass(frozen=True)
class SweepOptions(TrainOptions):
    """Find the hyper-parameters of a training set by Bayesian optimisation of its validation accuracy (C.5.2).

    Run the same command several times at once, on one machine or on several that share --out, to work in parallel.
    """

    trials: int = 75
    """Finished trainings after which to stop, over all processes."""
    rates: tuple[float, ...] = (1e-3, 1e-4, 5e-5, 1e-5)
    """Peak learning rates to choose from."""
    accumulations: tuple[int, ...] = (4, 8, 12)
    """Numbers of micro-batches a step to choose from."""
    warm_ups: tuple[float, ...] = (0.0, 0.01, 0.03, 0.05)
    """Warm-up shares to choose from."""
    weight_decays: tuple[float, ...] = (0.0, 0.05, 0.1, 0.3)
    """Weight decays to choose from."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least("trials", self.trials, 1)
        for name in ("rates", "accumulations", "warm_ups", "weight_decays"):
            if not getattr(self, name):
                raise InputError(f"{flag(name)} needs at least one value")
            for value in getattr(self, name):
                self._check_choice(name, value)

    def _check_choice(self, listed: str, value: float | int) -> None:
        """Refuse a value that no training of the sweep could have, by the name of the option that lists it."""
        try:
            TrainOptions(**{**train_options(self), listed.removesuffix("s"): value})  # type: ignore[arg-type]
        except InputError as error:
            raise InputError(f"{flag(listed)}, {value:g}: {error}") from None


@dataclass(frozen=True)
class ExportOptions:
    """Write a trained model as a Hugging Face checkpoint: safetensors, configuration, tokenizer; adapters are merged.

    Raises:
        InputError: a directory is missing.
    """

    run: tyro.conf.Positional[Path]
    """Run directory of `finetune run`."""
    out: Path | None = None
    """Where the checkpoint is written."""
    use: Literal["best", "last"] | None = None
    """Which checkpoint; none takes the one that the run was evaluated with."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Number format of the stored weights."""

    def __post_init__(self) -> None:
        if self.out is None:
            raise InputError("finetune export needs --out DIR")


@dataclass(frozen=True)
class TableOptions:
    """Put finished runs together as the paper's Tables 2, 5, 6 and 7, a row a training set; seeds are pooled."""

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Run directories of `finetune run` and `finetune evaluate`."""
    out: Path | None = None
    """Where tables.md and results.json are written; none only prints."""

    def __post_init__(self) -> None:
        if not self.runs:
            raise InputError("name at least one run directory")


def hyper_parameters(options: TrainOptions) -> dict[str, Plain]:
    """What a sweep chooses, in the columns of Table 5."""
    return {name: plain(getattr(options, name)) for name in ("rate", "accumulation", "warm_up", "weight_decay")}


def train_options(sweep: SweepOptions) -> dict[str, object]:
    """The options of a sweep that its trainings share, by field name."""
    return {f.name: getattr(sweep, f.name) for f in fields(TrainOptions)}
