"""Mahalanobis distances of very many mean embeddings that are made of few pieces (paper Section 4.1, f̃ = MD_E).

Where a text is a choice of pieces, its mean embedding is E = Σ_g s_g / Σ_g n_g over the chosen pieces' sums s_g and
token counts n_g. With t_g = s_g − n_g · mean, the distance of a text is a sum over pairs of its pieces,

    MD(E) = Σ_g Σ_h ⟨t_g, t_h⟩ / (Σ_g n_g)²,    ⟨x, y⟩ = x Σ⁻¹ y,

and the inner products are computed once a fit: what is left for a text is to look them up.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Float, Float64, Int

from robust_jax.difficulty.mahalanobis import MahalanobisFit

ROWS_AT_ONCE = 1 << 15
"""Texts that are looked up together: their columns stay in a core's cache."""
LARGEST_TABLE = 1 << 20
"""Inner products of two terms that are tabulated; of larger ones only those that occur are computed."""


@dataclass(frozen=True, eq=False)
class Term:
    """One part of a text with its possible pieces."""

    sums: Float[np.ndarray, "V D"]
    """Sum of the embeddings of each piece's tokens."""
    counts: Int[np.ndarray, " V"]
    """Number of each piece's tokens."""


class AdditiveDistances:
    """Squared Mahalanobis distances of mean embeddings from one fit, by looking inner products up.

    Args:
        fit: what distances are measured from.
        terms: G parts, of which every text has one piece each; at least one.
    """

    def __init__(self, fit: MahalanobisFit, terms: Sequence[Term]) -> None:
        self._counts = [term.counts.astype(np.float64) for term in terms]
        whitened = [_whitened(fit, term) for term in terms]
        self._squares = [np.einsum("VK,VK->V", part, part) for part in whitened]
        self._products = [
            (first, second, _Products(whitened[first], whitened[second]))
            for first, second in combinations(range(len(terms)), 2)
        ]

    def score(self, choices: Int[np.ndarray, "C G"]) -> Float64[np.ndarray, " C"]:
        """The distance of every text.

        Args:
            choices: for each text the number of its piece in each term.
        """
        found = np.empty(len(choices))
        for start in range(0, len(choices), ROWS_AT_ONCE):
            columns = np.ascontiguousarray(choices[start : start + ROWS_AT_ONCE].T)
            total = np.zeros(columns.shape[1])
            length = np.zeros(columns.shape[1])
            for column, squares, counts in zip(columns, self._squares, self._counts, strict=True):
                total += squares[column]
                length += counts[column]
            for first, second, products in self._products:
                total += products(columns[first], columns[second])
            found[start : start + ROWS_AT_ONCE] = total / length**2
        return found


class _Products:
    """Twice the inner products between the pieces of two terms."""

    def __init__(self, first: Float64[np.ndarray, "V K"], second: Float64[np.ndarray, "W K"]) -> None:
        self._width = len(second)
        self._vectors = None
        if len(first) * len(second) <= LARGEST_TABLE:
            self._table = (2 * first @ second.T).ravel()
        else:
            self._vectors = (first, second)

    def __call__(self, first: Int[np.ndarray, " C"], second: Int[np.ndarray, " C"]) -> Float64[np.ndarray, " C"]:
        place = first * self._width + second
        if self._vectors is None:
            return self._table[place]
        distinct, back = np.unique(place, return_inverse=True)
        left, right = (
            vectors[chosen] for vectors, chosen in zip(self._vectors, np.divmod(distinct, self._width), strict=True)
        )
        return 2 * np.einsum("CK,CK->C", left, right)[back]


def _whitened(fit: MahalanobisFit, term: Term) -> Float64[np.ndarray, "V K"]:
    """Vectors whose inner products are ⟨t, t'⟩: coordinates in the fit's basis, and what they leave of t."""
    centred = term.sums - term.counts[:, None] * fit.mean
    basis = fit.exact_basis
    coordinates = centred @ basis.T
    residual = centred - coordinates @ basis
    return np.hstack([coordinates * np.sqrt(fit.weights), residual * np.sqrt(fit.residual_weight)])
