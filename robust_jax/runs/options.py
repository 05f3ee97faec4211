"""The options that every protocol shares, and which of them change results."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from robust_jax.errors import InputError

NEUTRAL: Mapping[str, bool] = {"changes_results": False}
"""Metadata of a field that leaves results as they are: `field(default=…, metadata=NEUTRAL)`."""

Plain = None | bool | int | float | str | list[Any] | dict[str, Any]
"""What YAML and JSON files hold; lists and dictionaries hold the same."""


@dataclass(frozen=True)
class RunOptions:
    """Options of every command that asks a model; a protocol's own options extend this class.

    Raises:
        InputError: a number is out of its range.
    """

    model: str = "builtin:tiny"
    """Who answers: builtin:tiny, or the directory of a Hugging Face checkpoint."""
    suite: str = "grade_school"
    """What is asked: the name of a bundled suite, or a YAML file of templates."""
    shots: int | None = None
    """Worked examples shown before each problem; none leaves the number to the model and the suite."""
    out: Path | None = field(default=None, metadata=NEUTRAL)
    """Run directory: made, or resumed where it holds an unfinished run of the same options."""
    seed: int = 0
    """The one seed that every random draw is derived from."""
    limit: int | None = None
    """Only the first so many templates of the suite; none takes all."""
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
    dry_run: bool = field(default=False, metadata=NEUTRAL)
    """Print the prompts, the number of generations and an estimate of tokens; touch no model."""

    def __post_init__(self) -> None:
        at_least = {"shots": 0, "limit": 1, "attempts": 1, "max_tokens": 1, "batch_size": 1}
        for name, least in at_least.items():
            number = getattr(self, name)
            if number is not None and number < least:
                raise InputError(f"{flag(name)} must be at least {least}, not {number}")
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise InputError(f"--temperature must be a finite number from 0, not {self.temperature}")


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
