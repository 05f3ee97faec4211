"""A finished run as it lies on disk: what results and examples are computed from, without a model."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from jaxtyping import Float

from robust_jax.difficulty import Implementation, Observations, References, metric
from robust_jax.errors import InputError
from robust_jax.lpds import arms
from robust_jax.lpds.features import kept_observations, reference_set
from robust_jax.lpds.record import ReferenceRecord, read_references
from robust_jax.runs import FEATURES_FOLDER, SAMPLES_FILE, FeatureStore, SampleStore, check_finished, read_config
from robust_jax.types import Sample


class KeptRun:
    """A run directory, read only.

    Raises:
        InputError: it is no run directory, its run has not finished, or something of it is damaged or lost.
    """

    def __init__(
        self, path: Path, changes: Mapping[str, Any] = MappingProxyType({}), levenshtein: Implementation = "auto"
    ) -> None:
        """Read the run's record.

        Args:
            path: the run directory.
            changes: options by field name that are to be taken otherwise than the run did; layers must be among those
                that were recorded.
            levenshtein: what computes the Levenshtein distances.
        """
        self.path = path
        self.levenshtein = levenshtein
        made_with: dict[str, Any] = read_config(path)["fingerprint"]
        self.samples = SampleStore(path / SAMPLES_FILE)
        self.features = FeatureStore(path / FEATURES_FOLDER)
        check_finished(path, self.samples, self.features)
        if missing := sorted({"command", "model", "suite", "suite_digest", "seed", "layers"} - made_with.keys()):
            raise InputError(f"{path} was made by another version ({missing[0]} is missing): run its command again")
        self.options: dict[str, Any] = {**made_with, **changes}
        recorded: list[int] = made_with["layers"]
        for layer in self.options["layers"]:
            if layer not in recorded:
                known = " ".join(map(str, recorded)) or "none"
                raise InputError(f"--layers {layer}: {path} recorded {known}; measure again to record others")
        self._layer_places = [recorded.index(layer) for layer in self.options["layers"]]

    @property
    def command(self) -> str:
        """The command that made it."""
        return str(self.options["command"])

    @property
    def settings(self) -> dict[str, str | int | float | bool | None]:
        """The options that shaped the results."""
        return {
            name: " ".join(map(str, value)) if isinstance(value, list) else value
            for name, value in self.options.items()
            if not isinstance(value, dict)
        }

    @property
    def layers(self) -> list[int]:
        """The recorded blocks that are looked at."""
        return list(self.options["layers"])

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
        """The references of a template after the last fit, with the layers that are looked at."""
        chosen = reference_set(self.features, self.reference_samples(item))
        if self._layer_places and len(chosen.keys):
            chosen = replace(chosen, hidden=chosen.hidden[:, self._layer_places])
        elif self._layer_places:  # no reference tells how wide the states are
            chosen = replace(chosen, hidden=np.zeros((0, len(self._layer_places), 0), np.float32))
        return References.fit(
            chosen,
            shrinkage=self.options["shrinkage"],
            ridge=float(self.options["ridge"]),
            levenshtein=self.levenshtein,
        )

    def observations(self, samples: Sequence[Sample]) -> Observations:
        """What the metrics read of kept samples of one template, with the layers that are looked at."""
        seen = kept_observations(self.features, samples)
        if seen.hidden is None:
            return seen
        return replace(seen, hidden=seen.hidden[:, self._layer_places])


def computable(references: References, names: Iterable[str], seen: Observations) -> tuple[list[str], dict[str, str]]:
    """Those of the metrics that can be had, and of those that the references do not suffice for the reasons."""
    given = [name for name in names if all(getattr(seen, need) is not None for need in metric(name).needs)]
    lacking = references.left_out(given)
    return [name for name in given if name not in lacking], lacking


def all_scores(references: References, names: Iterable[str], seen: Observations) -> dict[str, Float[np.ndarray, " C"]]:
    """Raw values of those of the metrics that can be had."""
    return references.score(computable(references, names, seen)[0], seen)
