"""f̃ = MD_E of very many variations of a template, without tokenising them where that can be had (Section 4.1)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Float

from robust_jax.difficulty import AdditiveDistances, Observations, References
from robust_jax.lpds.options import CHEAP_METRIC
from robust_jax.lpds.pieces import SeparableQuestion, separated
from robust_jax.types import Model, Point, Template, TokenEmbeddings

CheapScore = Callable[[Sequence[Point]], Float[np.ndarray, " C"]]
"""The cheap difficulty of fillings of one template; higher is harder."""


def unknown(points: Sequence[Point]) -> Float[np.ndarray, " C"]:
    """The cheap score of a search that does without one."""
    return np.full(len(points), np.nan)


@dataclass(frozen=True)
class CheapScorer:
    """Scores fillings of one template by the mean embedding of their text."""

    template: Template
    embedder: Model
    """Whose embeddings are taken."""

    @cached_property
    def question(self) -> SeparableQuestion | None:
        """The template's question in pieces that are tokenised once; None where every text has to be tokenised."""
        return separated(self.template, self.embedder) if isinstance(self.embedder, TokenEmbeddings) else None

    def fitted(self, references: References) -> CheapScore:
        """The score from the present references: all fillings of a call are scored together.

        Raises:
            TooFewReferences: there is no distribution to measure from.
        """
        by_tokenising = _ByTokenising(self.template, self.embedder, references)
        if self.question is None:
            return by_tokenising
        question = self.question
        distances = AdditiveDistances(references.mahalanobis("embeddings"), question.terms)

        def by_pieces(points: Sequence[Point]) -> Float[np.ndarray, " C"]:
            try:
                return distances.score(question.choices(points))
            except KeyError:  # a base problem outside the domains leads to such fillings
                return by_tokenising(points)

        return by_pieces


@dataclass(frozen=True)
class _ByTokenising:
    """The score of a template whose question is not separable; a filling is tokenised once."""

    template: Template
    embedder: Model
    references: References
    _known: dict[Point, float] = field(default_factory=dict)

    def __call__(self, points: Sequence[Point]) -> Float[np.ndarray, " C"]:
        new = [point for point in dict.fromkeys(points) if point not in self._known]
        if new:
            embeddings = self.embedder.embed([self.template.text(point) for point in new])
            seen = Observations(keys=("",) * len(new), embeddings=embeddings)
            scores = self.references.score([CHEAP_METRIC], seen)[CHEAP_METRIC]
            self._known.update(zip(new, scores.tolist(), strict=True))
        return np.array([self._known[point] for point in points], float)
