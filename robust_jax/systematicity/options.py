"""Options of the systematicity protocol, and the families that they choose with their settings."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from robust_jax.analysis.variance import Estimator
from robust_jax.errors import InputError, nearest
from robust_jax.runs import RunOptions, check_least, convert
from robust_jax.systematicity.families import FAMILIES, family
from robust_jax.systematicity.task import KINDS, Family, Kind
from robust_jax.types import Effort


class Chosen(NamedTuple):
    """One family as the options choose it."""

    family: Family[Any, Any]
    parameters: Any
    kinds: tuple[Kind, ...]


@dataclass(frozen=True)
class TaskOptions:
    """Options that say which tasks and variations there are.

    Raises:
        InputError: an unknown family, kind or setting, or a number out of its range.
    """

    families: tuple[str, ...] = ("grammar", "raven", "programs", "boolean")
    """Task families."""
    kinds: tuple[str, ...] = ()
    """Kinds of variation: substitution, rebinding, recomposition, reordering; none given takes all of each family."""
    tasks: int = 24
    """Tasks of each family."""
    variations: int = 5
    """K: variations of each kind and task, the first of which is the task as it was generated."""
    difficulty: tuple[str, ...] = ()
    """Settings of families as FAMILY.SETTING=VALUE, such as raven.features=3 or grammar.extra=8."""
    seed: int = 0
    """The one seed that every random draw is derived from."""
    limit: int | None = None
    """Only the first so many tasks of each family; none takes all."""

    def __post_init__(self) -> None:
        for name in ("tasks", "variations", "limit"):
            check_least(name, getattr(self, name), 1)
        if len(set(self.families)) < len(self.families) or not self.families:
            raise InputError(f"--families: name one or several of {', '.join(FAMILIES)}, each once")
        chosen = self.chosen
        known = sorted({kind for family, parameters, _ in chosen for kind in family.kinds(parameters)})
        for kind in self.kinds:
            if kind not in known:
                have = f"they have {', '.join(known)}" if known else "they have no variations"
                raise InputError(f"--kinds {kind}: no chosen family has it under its settings; {have}")

    @property
    def count(self) -> int:
        """Tasks of each family that are made."""
        return self.tasks if self.limit is None else min(self.tasks, self.limit)

    @property
    def chosen(self) -> list[Chosen]:
        """The families with their settings, and those of the chosen kinds that each has."""
        for kind in self.kinds:
            if kind not in KINDS:
                raise InputError(f"--kinds: unknown kind {kind!r} (nearest: {nearest(kind, KINDS)})")
        settings = _read_settings(self.difficulty, self.families)
        chosen = []
        for name in self.families:
            found = family(name)
            parameters = found.parameters(**settings.get(name, {}))
            kinds = tuple(kind for kind in found.kinds(parameters) if not self.kinds or kind in self.kinds)
            chosen.append(Chosen(found, parameters, kinds))
        return chosen


@dataclass(frozen=True)
class GenerateOptions(TaskOptions):
    """Write tasks, their variations and their prompts, one a line, without a model."""

    out: Path | None = None
    """File to write (JSONL); none prints."""


@dataclass(frozen=True)
class SystematicityOptions(TaskOptions, RunOptions):
    """Have a model solve every variation of rule-induction tasks, and see how systematic it is."""

    attempts: int = 5
    """N: independent attempts at each variation; it is passed if more than half are right."""
    temperature: float = 1.0
    """Sampling temperature; 0 is greedy."""
    effort: Effort | None = None
    """How long a reasoning model is to think, where it can be told; none leaves it to the model."""
    variance: Estimator = "unbiased"
    """Estimators of the variance components: unbiased, or those that Table 1 of the paper agrees with."""

    def __post_init__(self) -> None:
        RunOptions.__post_init__(self)
        TaskOptions.__post_init__(self)
        for chosen in self.chosen:
            if not chosen.family.kinds(chosen.parameters):
                raise InputError(f"{chosen.family.name} has no variations under its settings: change its --difficulty")


def _read_settings(difficulty: Sequence[str], families: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The settings of each family, by field name."""
    settings: dict[str, dict[str, Any]] = {}
    for text in difficulty:
        place, equals, value = text.partition("=")
        name, dot, setting = place.partition(".")
        if not (equals and dot):
            raise InputError(
                f"--difficulty {text}: settings have the form FAMILY.SETTING=VALUE, as in raven.features=3"
            )
        if name not in families:
            raise InputError(f"--difficulty {text}: {name!r} is no chosen family (nearest: {nearest(name, families)})")
        parameters = family(name).parameters
        hints = get_type_hints(parameters)
        if setting not in hints:
            known = ", ".join(f"{name}.{field.name}={field.default}" for field in fields(parameters))
            raise InputError(f"--difficulty {text}: {name} has no such setting; its settings and defaults: {known}")
        settings.setdefault(name, {})[setting] = convert(f"--difficulty {place}", hints[setting], [value])
    return settings
