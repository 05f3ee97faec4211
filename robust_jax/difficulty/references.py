"""Correct replies of one template, fitted, and the difficulty of other replies measured against them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeVar

import numpy as np
from jaxtyping import Float, Int

from robust_jax.difficulty.levenshtein import EncodedReferences
from robust_jax.difficulty.mahalanobis import MahalanobisFit, Shrinkage, TooFewReferences
from robust_jax.difficulty.metrics import Representation, metric
from robust_jax.difficulty.neighbours import knn_distance
from robust_jax.difficulty.observations import Observations
from robust_jax.difficulty.tokens import math_tokens
from robust_jax.errors import InputError
from robust_jax.types import ReferenceSet

Candidate = TypeVar("Candidate")

ReferencePolicy = Literal["half", "paper"]
"""Whether at most half of the correct replies become references, or all there are."""


def select_references(
    candidates: Sequence[Candidate], maximum: int = 200, policy: ReferencePolicy = "half"
) -> list[Candidate]:
    """Which of the correct responses become references: the first ones, in the order in which they were drawn.

    Args:
        candidates: all correct responses of a template, in the order of their random drawing.
        maximum: at most so many references (N, paper Section 3.1).
        policy: half takes at most half of the candidates, so that correct responses remain to be ranked; paper takes
            all there are (Section C.3.2).
    """
    available = len(candidates) // 2 if policy == "half" else len(candidates)
    return list(candidates[: min(maximum, available)])


@dataclass(frozen=True, eq=False)
class References:
    """A reference set with its models, each fitted when it is first needed and then kept."""

    reference_set: ReferenceSet
    layer_index: int
    """Which of the recorded layers MD_H and KNN_H look at, counted from 0."""
    shrinkage: Shrinkage
    ridge: float
    _fits: dict[Representation, MahalanobisFit] = field(default_factory=dict, repr=False)

    @classmethod
    def fit(
        cls,
        reference_set: ReferenceSet,
        layer_index: int = 0,
        shrinkage: Shrinkage = "ledoit-wolf",
        ridge: float = 1e-2,
    ) -> "References":
        """References of one template; see `MahalanobisFit.fit` for shrinkage and ridge.

        Raises:
            ValueError: two references have the same key.
        """
        if len(set(reference_set.keys)) < len(reference_set.keys):
            raise ValueError("two references have the same key")
        return cls(reference_set, layer_index, shrinkage, ridge)

    def extended(self, more: ReferenceSet) -> "References":
        """These references and more. Models that were fitted are extended, which is cheaper than a new fit.

        Raises:
            ValueError: a key is that of a reference already.
        """
        old = self.reference_set
        both = ReferenceSet(
            keys=old.keys + more.keys,
            texts=old.texts + more.texts,
            hidden=np.concatenate([old.hidden, more.hidden]),
            embeddings=np.concatenate([old.embeddings, more.embeddings]),
        )
        extended = References.fit(both, self.layer_index, self.shrinkage, self.ridge)
        for of, fit in self._fits.items():
            extended._fits[of] = fit.extend(extended.vectors(of)[len(self) :])
        return extended

    @property
    def keys(self) -> tuple[str, ...]:
        """The references' keys, in the order they were added."""
        return self.reference_set.keys

    def __len__(self) -> int:
        return len(self.keys)

    def score(self, metric_names: Sequence[str], observations: Observations) -> dict[str, Float[np.ndarray, " C"]]:
        """Raw values of metrics by name, for C responses to variations of the same template.

        An observation whose key is that of a reference is compared with the other references alone. NaN stands for an
        empty reply.

        Raises:
            TooFewReferences: a metric cannot be computed with these references; see `left_out`.
            InputError: there is no such metric, or observations or references lack what it needs.
        """
        metrics = [metric(name) for name in metric_names]
        for each in metrics:
            missing = sorted(need for need in each.needs if getattr(observations, need) is None)
            if missing:
                raise InputError(f"{each.name} needs what this model or run does not give: {', '.join(missing)}.")
        distances = _Distances(self, observations)
        return {each.name: each.compute(observations, distances) for each in metrics}

    def left_out(self, metric_names: Sequence[str]) -> dict[str, str]:
        """Those of the metrics that cannot be computed with these references, each with the reason in one line.

        Raises:
            InputError: there is no such metric.
        """
        nothing = Observations(
            keys=(),
            text=(),
            hidden=self.reference_set.hidden[:0],
            embeddings=self.reference_set.embeddings[:0],
            output_statistics=np.empty((0, 3)),
            input_statistics=np.empty((0, 3)),
        )
        reasons = {}
        for each in map(metric, metric_names):
            try:
                each.compute(nothing, _Distances(self, nothing))
            except InputError as error:
                reasons[each.name] = str(error)
        return reasons

    def mahalanobis(self, of: Representation) -> MahalanobisFit:
        """The Gaussian of the references' hidden states at the chosen layer, or of their embeddings.

        Raises:
            TooFewReferences: too few of them are distinct.
        """
        if of not in self._fits:
            self._fits[of] = MahalanobisFit.fit(self.vectors(of), self.shrinkage, self.ridge)
        return self._fits[of]

    def vectors(self, of: Representation) -> Float[np.ndarray, "R D"]:
        """The references' hidden states at the chosen layer, or their embeddings.

        Raises:
            InputError: the layer was not recorded.
        """
        return self._select(of, self.reference_set)

    def _select(self, of: Representation, source: ReferenceSet | Observations) -> Float[np.ndarray, "_ D"]:
        if of == "embeddings":
            assert source.embeddings is not None  # one of the metric's needs
            return source.embeddings
        assert source.hidden is not None  # one of the metric's needs
        layers = source.hidden.shape[1]
        if not 0 <= self.layer_index < layers:
            raise InputError(f"hidden states of {layers} layers were recorded: there is no number {self.layer_index}.")
        return source.hidden[:, self.layer_index]

    @cached_property
    def _encoded(self) -> EncodedReferences:
        return EncodedReferences.of([math_tokens(text) for text in self.reference_set.texts])

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {key: position for position, key in enumerate(self.keys)}


class _Distances:
    """See `metrics.Distances`."""

    def __init__(self, references: References, observations: Observations) -> None:
        self._references = references
        self._observations = observations

    def levenshtein(self) -> Float[np.ndarray, "C R"]:
        return self._levenshtein

    def mahalanobis(self, of: Representation) -> Float[np.ndarray, " C"]:
        fit = self._references.mahalanobis(of)
        return fit.score(self._vectors(of), self._left_out)

    def nearest(self, of: Representation) -> Float[np.ndarray, " C"]:
        self._need_references()
        return knn_distance(self._vectors(of), self._references.vectors(of), left_out=self._left_out)

    @cached_property
    def _levenshtein(self) -> Float[np.ndarray, "C R"]:
        self._need_references()
        texts = self._observations.text
        assert texts is not None  # one of the metric's needs
        table = self._references._encoded.normalised_distances([math_tokens(text) for text in texts])
        table[[not text for text in texts]] = np.nan
        rows = np.flatnonzero(self._left_out >= 0)
        table[rows, self._left_out[rows]] = np.nan
        return table

    @cached_property
    def _left_out(self) -> Int[np.ndarray, " C"]:
        positions = self._references._positions
        return np.array([positions.get(key, -1) for key in self._observations.keys], np.int64)

    def _vectors(self, of: Representation) -> Float[np.ndarray, "C D"]:
        vectors = self._references._select(of, self._observations)
        width = self._references.vectors(of).shape[1]
        if vectors.shape[1] != width:
            raise InputError(
                f"the references' {of} have width {width}, these {vectors.shape[1]}: compare the texts (LD_min)."
            )
        return vectors

    def _need_references(self) -> None:
        if not len(self._references):
            raise TooFewReferences("there are no references: take them from solution traces or another model's run.")
