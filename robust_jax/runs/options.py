"""The options that every protocol shares, and which of them change results."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from robust_jax.errors import InputError
from robust_jax.types import ServerSettings

NEUTRAL: Mapping[str, bool] = {"changes_results": False}
"""Metadata of a field that leaves results as they are: `field(default=…, metadata=NEUTRAL)`."""

Plain = None | bool | int | float | str | list[Any] | dict[str, Any]
"""What YAML and JSON files hold; lists and dictionaries hold the same."""


@dataclass(frozen=True)
class RunOptions(ServerSettings):
    """Options of every command that asks a model; a protocol's own options extend this class.

    Raises:
        InputError: a number is out of its range.
    """

    model: str = "builtin:tiny"
    """Who answers: builtin:tiny, a checkpoint directory, hf:ORG/NAME, a GGUF file, pip:smollm2, openai:NAME at
    --base-url (see `models list`)."""
    out: Path | None = field(default=None, metadata=NEUTRAL)
    """Run directory: made, or resumed where it holds an unfinished run of the same options."""
    seed: int = 0
    """The one seed that every random draw is derived from."""
    limit: int | None = None
    """Only the first so many of what is asked (templates, tasks of each family, problems); none takes all."""
    attempts: int = 1
    """Independent answers to each problem."""
    temperature: float = 0.0
    """Sampling temperature; 0 is greedy."""
    max_tokens: int | None = None
    """Longest reply in tokens; none leaves it to the protocol."""
    batch_size: int | None = field(default=None, metadata=NEUTRAL)
    """Prompts answered at once; none fits it to the memory."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Number format of the model's weights and activations."""
    mesh: str | None = field(default=None, metadata=NEUTRAL)
    """How the devices are arranged, such as data=2,model=4: rows are split over data, weights over model; -1 takes the
    devices that remain; none puts all on data."""
    coordinator: str | None = field(default=None, metadata=NEUTRAL)
    """Makes this one of several processes of the same command: HOST:PORT where process 0 is reached, or auto, which
    asks SLURM, Open MPI, GKE or the TPU pod; none works alone."""
    processes: int | None = field(default=None, metadata=NEUTRAL)
    """How many processes there are; needed with the address of a coordinator."""
    process: int | None = field(default=None, metadata=NEUTRAL)
    """Which of them this is, from 0."""
    process_timeout: int = field(default=100, metadata=NEUTRAL)
    """Seconds of silence after which a process counts as dead and ends the others; they have three times as long to
    come together."""
    dry_run: bool = field(default=False, metadata=NEUTRAL)
    """Print the prompts, the number of generations and an estimate of tokens; touch no model."""

    def __post_init__(self) -> None:
        for name in ("limit", "attempts", "max_tokens", "batch_size", "processes"):
            check_least(name, getattr(self, name), 1)
        check_least("process", self.process, 0)
        check_least("process_timeout", self.process_timeout, 5)
        self._check_server()
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise InputError(f"--temperature must be a finite number from 0, not {self.temperature}")
        self._check_processes()

    def _check_server(self) -> None:
        check_least("concurrency", self.concurrency, 1)
        check_least("retries", self.retries, 0)
        for name in ("request_timeout", "time_limit", "spending_cap"):
            number = getattr(self, name)
            if number is not None and not number > 0:
                raise InputError(f"{flag(name)} must be more than 0, not {number}")
        if self.base_url is not None and not self.base_url.startswith(("http://", "https://")):
            raise InputError(f"--base-url must begin with http:// or https://, which {self.base_url!r} does not")

    def _check_processes(self) -> None:
        numbers = (self.processes, self.process)
        if self.coordinator in (None, "auto"):
            if numbers != (None, None):
                raise InputError("--processes and --process need --coordinator HOST:PORT, the address of process 0")
        elif not re.fullmatch(r".+:\d+", self.coordinator or "") or None in numbers:
            raise InputError("--coordinator takes HOST:PORT with --processes N and --process K, or auto")
        elif self.process is not None and self.processes is not None and self.process >= self.processes:
            raise InputError(f"--process {self.process}: {self.processes} processes are numbered from 0")


@dataclass(frozen=True)
class SuiteOptions(RunOptions):
    """Options of every command that asks about a suite of templates.

    Raises:
        InputError: a number is out of its range.
    """

    suite: str = "grade_school"
    """What is asked: the name of a bundled suite, or a YAML file of templates."""
    shots: int | None = None
    """Worked examples shown before each problem; none leaves the number to the model and the suite."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least("shots", self.shots, 0)


def check_least(name: str, number: int | None, least: int) -> None:
    """Refuse an option, given by its field, whose number is too small; None leaves the choice to someone else.

    Raises:
        InputError: it is.
    """
    if number is not None and number < least:
        raise InputError(f"{flag(name)} must be at least {least}, not {number}")


def flag(name: str) -> str:
    """The spelling of a field as a command-line option: batch_size → --batch-size."""
    return "--" + name.replace("_", "-")


def fingerprint(options: RunOptions) -> dict[str, Plain]:
    """The options that change results, by field name; all others leave results as they are."""
    return {f.name: plain(getattr(options, f.name)) for f in fields(options) if f.metadata.get("changes_results", True)}


def plain(value: Any) -> Plain:
    """A value as files hold it: paths and fractions become text, tuples lists, dataclasses and mappings dictionaries.

    Raises:
        TypeError: the value holds something that no file of a run keeps.
    """
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Path() | Fraction():
            return str(value)
        case tuple() | list():
            return [plain(part) for part in value]
        case Mapping():
            return {str(key): plain(part) for key, part in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    raise TypeError(f"a run directory keeps no {type(value).__name__}")
