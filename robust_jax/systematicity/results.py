"""Every figure of a run, computed from what its directory keeps; no model is needed."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float

from robust_jax.analysis.systematicity import Systematicity, passes, systematicity
from robust_jax.analysis.variance import variance_decomposition
from robust_jax.errors import InputError
from robust_jax.models import Price
from robust_jax.randomness import rng
from robust_jax.report.inputs import as_json
from robust_jax.report.systematicity_inputs import (
    AttemptShown,
    FamilyResults,
    KindResults,
    Metrics,
    SystematicityResults,
    TaskShown,
    Tokens,
    VarianceShares,
    VariationShown,
)
from robust_jax.runs import FinishedRun, counts_by_status, read_config
from robust_jax.systematicity.exam import ORIGINAL
from robust_jax.systematicity.record import TASKS_FILE, VariationRecord, read_tasks
from robust_jax.systematicity.run import COMMAND
from robust_jax.types import Sample


class KeptRun(FinishedRun):
    """A finished run of this protocol as it lies on disk, read only.

    Raises:
        InputError: the directory holds none, or something of it is damaged or lost.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        if self.command != COMMAND:
            raise InputError(f"{path} holds a run of {self.command!r}, not of {COMMAND}")
        self.variations = read_tasks(path / TASKS_FILE, self.options["tasks_digest"])
        price = read_config(path)["config"]["price"]
        self.price = None if price is None else Price(**price)

    def attempts(self, variation: VariationRecord) -> list[Sample]:
        """All attempts at a variation."""
        keys = [(variation.arm, variation.item, variation.variation, n) for n in range(self.options["attempts"])]
        return [sample for key in keys if (sample := self.samples.get(key)) is not None]

    @property
    def settings(self) -> dict[str, str | int | float | bool | None]:
        """The options that shaped the results."""
        return {
            name: " ".join(map(str, value)) if isinstance(value, list) else value
            for name, value in self.options.items()
            if not isinstance(value, dict)
        }


def results(run: KeptRun) -> SystematicityResults:
    """The content of results.json."""
    families = list(dict.fromkeys(one.family for one in run.variations))
    return {
        "kind": "systematicity run",
        "model": str(run.options["model"]),
        "suite": ", ".join(families),
        "settings": run.settings,
        "counts": counts_by_status(run.samples),
        "families": [_family_results(run, family) for family in families],
    }


def _family_results(run: KeptRun, family: str) -> FamilyResults:
    of_family = [one for one in run.variations if one.family == family]
    kinds = {
        kind: [_outcomes(run, task) for task in _tasks(of_family, kind)]
        for kind in dict.fromkeys(one.arm for one in of_family if one.arm != ORIGINAL)
    }
    if not kinds:  # K = 1: every task as it was generated
        kinds = {ORIGINAL: [_outcomes(run, task) for task in _tasks(of_family, ORIGINAL)]}
    seed = int(run.options["seed"])
    overall = systematicity(kinds, generator=rng(seed, "bootstrap", family))
    samples = [sample for one in of_family for sample in run.attempts(one)]
    return {
        "family": family,
        "parameters": of_family[0].parameters,
        "tasks": len({one.item for one in of_family}),
        "metrics": _metrics(overall),
        "kinds": [_kind_results(run, family, kind, tasks) for kind, tasks in kinds.items()],
        "tokens": _tokens(samples, run.price),
    }


def _tasks(variations: Sequence[VariationRecord], kind: str) -> list[list[VariationRecord]]:
    """The variations of one kind, task by task, the task as it was generated first."""
    tasks: dict[str, list[VariationRecord]] = {}
    for one in variations:
        if one.arm in (ORIGINAL, kind):
            tasks.setdefault(one.item, []).append(one)
    return list(tasks.values())


def _outcomes(run: KeptRun, task: Iterable[VariationRecord]) -> Float[np.ndarray, "variations attempts"]:
    """1 right, 0 wrong, NaN for an attempt that does not count."""
    return np.array(
        [[sample.score if sample.counts else np.nan for sample in run.attempts(one)] for one in task], float
    )


def _kind_results(run: KeptRun, family: str, kind: str, tasks: Sequence[Float[np.ndarray, "_ _"]]) -> KindResults:
    seed = int(run.options["seed"])
    shares = variance_decomposition(
        tasks, estimator=run.options["variance"], generator=rng(seed, "bootstrap variance", family, kind)
    )
    variance: VarianceShares = {
        "total": as_json(shares.total),
        "within": as_json(shares.within),
        "between": as_json(shares.between),
        "undefined": shares.undefined,
        "incomplete": shares.incomplete,
    }
    overall = systematicity({kind: tasks}, generator=rng(seed, "bootstrap", family, kind))
    return {"kind": kind, "metrics": _metrics(overall), "variance": variance}


def _metrics(found: Systematicity) -> Metrics:
    return {
        "any": as_json(found.any),
        "fraction": as_json(found.fraction),
        "all": as_json(found.all),
        "gap": as_json(found.gap),
        "undecided": found.undecided,
    }


def _tokens(samples: Sequence[Sample], price: Price | None) -> Tokens:
    read, written = sum(s.prompt_tokens for s in samples), sum(s.completion_tokens for s in samples)
    dollars = None if price is None else price.of_tokens(read, written)
    return {"attempts": len(samples), "prompt": read, "completion": written, "dollars": dollars}


def shown_tasks(run: KeptRun) -> list[TaskShown]:
    """What the page shows of every task."""
    tasks: dict[str, list[VariationRecord]] = {}
    for one in run.variations:
        tasks.setdefault(one.item, []).append(one)
    return [
        {
            "task": item,
            "family": found[0].family,
            "variations": [_shown_variation(one, run.attempts(one)) for one in found],
        }
        for item, found in tasks.items()
    ]


def _shown_variation(one: VariationRecord, samples: Sequence[Sample]) -> VariationShown:
    outcomes = np.array([[sample.score if sample.counts else np.nan for sample in samples]], float)
    passed = passes(outcomes)[0]
    attempts: list[AttemptShown] = [
        {
            "response": sample.response or sample.message,
            "extracted": sample.extracted,
            "status": sample.status,
            "correct": sample.is_correct,
        }
        for sample in samples
    ]
    return {
        "variation": one.variation,
        "rule": one.rule,
        "prompt": one.prompt["user"],
        "gold": one.gold,
        "passed": None if np.isnan(passed) else bool(passed),
        "attempts": attempts,
    }


TELLING = ("model", "effort", "temperature", "difficulty", "seed")
"""Settings that runs are compared by, the first ones before the others."""


def run_names(runs: Sequence[KeptRun]) -> list[str]:
    """What sets each run apart from the others: the settings in which they differ, or else its directory."""
    told = [name for name in TELLING if len({str(run.settings.get(name)) for run in runs}) > 1]
    names = [", ".join(_setting(name, run.settings.get(name)) for name in told) for run in runs]
    return [name if name and names.count(name) == 1 else run.path.name for name, run in zip(names, runs, strict=True)]


def _setting(name: str, value: object) -> str:
    shown = "default" if value in (None, "") else str(value)
    return shown if name in ("model", "difficulty") else f"{name} {shown}"
