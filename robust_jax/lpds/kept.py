"""A finished run as it lies on disk: what results and examples are computed from, without a model."""

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from robust_jax.analysis.intervals import Interval
from robust_jax.difficulty import Implementation, Observations, References, metric
from robust_jax.lpds import arms
from robust_jax.lpds.features import reference_set
from robust_jax.lpds.record import ReferenceRecord, check_finished, read_references
from robust_jax.report import Interval as IntervalJson
from robust_jax.runs import FEATURES_FOLDER, SAMPLES_FILE, FeatureStore, SampleStore, read_config
from robust_jax.types import Sample


class KeptRun:
    """A run directory, read only.

    Args:
        path: where it lies.
        levenshtein: what computes the Levenshtein distances.

    Raises:
        InputError: it is no run directory, its run has not finished, or something of it is damaged or lost.
    """

    def __init__(self, path: Path, levenshtein: Implementation = "auto") -> None:
        self.path = path
        self.levenshtein = levenshtein
        self.options: dict[str, Any] = read_config(path)["fingerprint"]
        self.samples = SampleStore(path / SAMPLES_FILE)
        self.features = FeatureStore(path / FEATURES_FOLDER)
        check_finished(path, self.samples, self.features)

    @property
    def command(self) -> str:
        """The command that made it."""
        return str(self.options["command"])

    @property
    def settings(self) -> dict[str, str | int | float | bool | None]:
        """The options that shaped the results."""
        return {name: value for name, value in self.options.items() if not isinstance(value, (list, dict))}

    @cached_property
    def reference_record(self) -> dict[str, ReferenceRecord]:
        return read_references(self.path)

    def reference_samples(self, item: str) -> list[Sample]:
        """The replies that are references of a template after the last fit."""
        record = self.reference_record[item]
        keys = [(arms.REFERENCE, item, key, 0) for key in record.initial]
        keys += [(arms.BEAM, item, key, 0) for key in record.added]
        return [sample for key in keys if (sample := self.samples.get(key)) is not None]

    def references(self, item: str) -> References:
        """The references of a template after the last fit."""
        chosen = reference_set(self.features, self.reference_samples(item))
        return References.fit(chosen, layer_index=0, shrinkage=self.options["shrinkage"], levenshtein=self.levenshtein)


def all_scores(references: References, names: Iterable[str], seen: Observations) -> dict[str, Float[np.ndarray, " C"]]:
    """Raw values of those of the metrics that the observations and the references suffice for."""
    given = [name for name in names if all(getattr(seen, need) is not None for need in metric(name).needs)]
    lacking = references.left_out(given)
    return references.score([name for name in given if name not in lacking], seen)


def as_json(interval: Interval) -> IntervalJson:
    """An interval as results.json holds it."""
    return {"value": interval.value, "low": interval.low, "high": interval.high, "n": interval.n}


def counts_by_status(samples: Iterable[Sample]) -> dict[str, dict[str, int]]:
    """How many attempts of each arm ended in each status."""
    counts: dict[str, dict[str, int]] = {}
    for sample in samples:
        of_arm = counts.setdefault(sample.arm, {})
        of_arm[sample.status] = of_arm.get(sample.status, 0) + 1
    return counts
