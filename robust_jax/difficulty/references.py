"""Correct replies of one template, fitted, and the difficulty of other replies measured against them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float, Int

from robust_jax.difficulty.levenshtein import EncodedReferences, Implementation
from robust_jax.difficulty.mahalanobis import MahalanobisFit, TooFewReferences, score_together
from robust_jax.difficulty.metrics import Metric, Representation, metric
from robust_jax.difficulty.neighbours import knn_distance
from robust_jax.difficulty.observations import Observations
from robust_jax.difficulty.shrinkage import Shrinkage
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
    levenshtein: Implementation
    """What computes the Levenshtein distances."""
    _fits: dict[tuple[Representation, int], MahalanobisFit] = field(default_factory=dict, repr=False)
    """By what is fitted and the number of its layer; embeddings have the layer 0."""

    @classmethod
    def fit(
        cls,
        reference_set: ReferenceSet,
        layer_index: int = 0,
        shrinkage: Shrinkage = "ledoit-wolf",
        ridge: float = 1e-2,
        levenshtein: Implementation = "auto",
    ) -> "References":
        """References of one template; see `MahalanobisFit.fit` for shrinkage and ridge.

        Raises:
            ValueError: two references have the same key.
        """
        if len(set(reference_set.keys)) < len(reference_set.keys):
            raise ValueError("two references have the same key")
        return cls(reference_set, layer_index, shrinkage, ridge, levenshtein)

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
        extended = References.fit(both, self.layer_index, self.shrinkage, self.ridge, self.levenshtein)
        for (of, layer), fit in self._fits.items():
            extended._fits[of, layer] = fit.extend(_select(of, layer, more))
        if "_encoded" in vars(self):  # it has been needed, see the cached property
            vars(extended)["_encoded"] = self._encoded.extended([math_tokens(text) for text in more.texts])
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
        metrics = _computable(metric_names, observations)
        distances = _Distances(_Comparison(self, observations, [self.layer_index]), self.layer_index)
        return {each.name: each.compute(observations, distances) for each in metrics}

    def score_layers(
        self, metric_names: Sequence[str], observations: Observations
    ) -> list[dict[str, Float[np.ndarray, " C"]]]:
        """What `score` gives for those of the metrics that read hidden states, at every recorded layer in turn.

        Raises:
            TooFewReferences, InputError: see `score`.
        """
        metrics = [each for each in _computable(metric_names, observations) if "hidden" in each.needs]
        layers = list(range(self.reference_set.hidden.shape[1]))
        comparison = _Comparison(self, observations, layers)
        return [
            {each.name: each.compute(observations, _Distances(comparison, layer)) for each in metrics}
            for layer in layers
        ]

    def left_out(self, metric_names: Sequence[str]) -> dict[str, str]:
        """Those of the metrics that cannot be computed with these references, each with the reason in one line.

        A metric of hidden states must be computable at every recorded layer.

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
        layers = sorted({self.layer_index, *range(self.reference_set.hidden.shape[1])})
        comparison = _Comparison(self, nothing, layers)
        reasons = {}
        for each in map(metric, metric_names):
            try:
                for layer in layers:
                    each.compute(nothing, _Distances(comparison, layer))
            except InputError as error:
                reasons[each.name] = str(error)
        return reasons

    @property
    def has_floored_shrinkage(self) -> bool:
        """Whether some Gaussian fitted so far would have had too little shrinkage; see `MahalanobisFit.is_floored`."""
        return any(fit.is_floored for fit in self._fits.values())

    def mahalanobis(self, of: Representation, layer: int | None = None) -> MahalanobisFit:
        """The Gaussian of the references' hidden states at a recorded layer, the chosen one unless said, or embeddings.

        Raises:
            TooFewReferences: too few of them are distinct.
            InputError: the layer was not recorded.
        """
        key = (of, 0 if of == "embeddings" else self.layer_index if layer is None else layer)
        if key not in self._fits:
            self._fits[key] = MahalanobisFit.fit(_select(*key, self.reference_set), self.shrinkage, self.ridge)
        return self._fits[key]

    @cached_property
    def _encoded(self) -> EncodedReferences:
        return EncodedReferences.of([math_tokens(text) for text in self.reference_set.texts])

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {key: position for position, key in enumerate(self.keys)}


class _Distances(NamedTuple):
    """See `metrics.Distances`: a comparison as a metric sees it, with hidden states at one layer."""

    comparison: "_Comparison"
    layer: int

    def levenshtein(self) -> Float[np.ndarray, "C R"]:
        return self.comparison.levenshtein

    def mahalanobis(self, of: Representation) -> Float[np.ndarray, " C"]:
        if of == "hidden":
            return self.comparison.hidden_mahalanobis[self.layer]
        return self.comparison.mahalanobis(of, [0])[0]

    def nearest(self, of: Representation) -> Float[np.ndarray, " C"]:
        return self.comparison.nearest(of, self.layer)


class _Comparison:
    """Observations against references. What several metrics need is computed once, and all layers together."""

    def __init__(self, references: References, observations: Observations, layers: Sequence[int]) -> None:
        self._references = references
        self._observations = observations
        self._layers = layers

    @cached_property
    def levenshtein(self) -> Float[np.ndarray, "C R"]:
        self._need_references()
        texts = self._observations.text
        assert texts is not None  # one of the metric's needs
        references = self._references
        table = references._encoded.normalised_distances([math_tokens(text) for text in texts], references.levenshtein)
        table[[not text for text in texts]] = np.nan
        rows = np.flatnonzero(self._left_out >= 0)
        table[rows, self._left_out[rows]] = np.nan
        return table

    @cached_property
    def hidden_mahalanobis(self) -> dict[int, Float[np.ndarray, " C"]]:
        """By layer."""
        return dict(zip(self._layers, self.mahalanobis("hidden", self._layers), strict=True))

    def mahalanobis(self, of: Representation, layers: Sequence[int]) -> list[Float[np.ndarray, " C"]]:
        fits = [self._references.mahalanobis(of, layer) for layer in layers]
        vectors = [self._vectors(of, layer)[0] for layer in layers]
        return score_together(fits, vectors, [self._left_out] * len(fits))

    def nearest(self, of: Representation, layer: int) -> Float[np.ndarray, " C"]:
        self._need_references()
        vectors, references = self._vectors(of, layer)
        return knn_distance(vectors, references, left_out=self._left_out)

    @cached_property
    def _left_out(self) -> Int[np.ndarray, " C"]:
        """For every observation the number of the reference that is the same variation, or −1."""
        positions = self._references._positions
        return np.array([positions.get(key, -1) for key in self._observations.keys], np.int64)

    def _vectors(self, of: Representation, layer: int) -> tuple[Float[np.ndarray, "C D"], Float[np.ndarray, "R D"]]:
        """Vectors of the observations and of the references."""
        vectors = _select(of, layer, self._observations)
        references = _select(of, layer, self._references.reference_set)
        if vectors.shape[1] != references.shape[1]:
            raise InputError(
                f"the references' {of} have width {references.shape[1]}, these {vectors.shape[1]}: "
                "compare the texts (LD_min)."
            )
        return vectors, references

    def _need_references(self) -> None:
        if not len(self._references):
            raise TooFewReferences("there are no references: take them from solution traces or another model's run.")


def _computable(metric_names: Sequence[str], observations: Observations) -> list[Metric]:
    metrics = [metric(name) for name in metric_names]
    for each in metrics:
        missing = sorted(need for need in each.needs if getattr(observations, need) is None)
        if missing:
            raise InputError(f"{each.name} needs what this model or run does not give: {', '.join(missing)}.")
    return metrics


def _select(of: Representation, layer: int, source: ReferenceSet | Observations) -> Float[np.ndarray, "_ D"]:
    """Embeddings, or hidden states at a recorded layer.

    Raises:
        InputError: the layer was not recorded.
    """
    if of == "embeddings":
        assert source.embeddings is not None  # one of the metric's needs
        return source.embeddings
    assert source.hidden is not None  # one of the metric's needs
    layers = source.hidden.shape[1]
    if not 0 <= layer < layers:
        raise InputError(f"hidden states of {layers} layers were recorded: there is no number {layer}.")
    return source.hidden[:, layer]
