"""Squared Mahalanobis distances from a set of references that is smaller than its dimension (paper Eq. 1 and 7).

With R references in D > R dimensions the sample covariance S = 1/R Σ z zᵀ is singular, and the paper does not say what
takes its place. Here Σ = a·S + b·I, where the shrinkage chooses a and b. Everything follows from the R×R Gram matrix of
the centred references: its eigenvectors give the directions u_j in which S has a variance λ_j > 0, and

    MD(x) = Σ_j (u_j · z)² / (a·λ_j + b) + ‖z − U Uᵀ z‖² / b,    z = x − mean.

The Gram matrix squares the condition number, so it is formed in float64 on the host; observations are projected in
float32 on the device.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32, Float64, Int

from robust_jax.difficulty.projection import Projection, project_each
from robust_jax.difficulty.shrinkage import MINIMUM_INTENSITY, Shrinkage, ledoit_wolf, oas
from robust_jax.errors import InputError

MINIMUM_REFERENCES = 5
_RELATIVE_NULL = 1e-12


class TooFewReferences(InputError):
    """There are too few distinct references for a distribution: to be reported, and its template left out."""


@dataclass(frozen=True, eq=False)
class MahalanobisFit:
    """A Gaussian fitted to references. Made by `fit`, never changed; `extend` makes another one."""

    references: Float[np.ndarray, "R D"]
    """As they were given."""
    shrinkage: Shrinkage
    ridge: float
    intensity: float
    """ρ, as it is used; ridge and pinv have none (0)."""
    is_floored: bool
    """Whether the estimator's ρ was below `MINIMUM_INTENSITY`, which then took its place."""
    mean_variance: float
    """μ, the mean of S's diagonal."""
    mean: Float64[np.ndarray, " D"]
    eigenvalues: Float64[np.ndarray, " r"]
    """The variances λ_j of S along the basis, all positive, in rising order."""
    scale: float
    """a in Σ = a·S + b·I."""
    floor: float
    """b in Σ = a·S + b·I: the variance off the basis. 0 under pinv, where leaving the span costs nothing."""
    coordinates: Float64[np.ndarray, "R r"]
    """The centred references in the basis."""
    _shift: Float64[np.ndarray, " D"]
    """A fixed point near the references from which the Gram matrix is taken, however many are added."""
    _gram: Float64[np.ndarray, "R R"]
    """Inner products of the shifted references."""
    _projection: Projection

    @classmethod
    def fit(
        cls, references: Float[np.ndarray, "R D"], shrinkage: Shrinkage = "ledoit-wolf", ridge: float = 1e-2
    ) -> "MahalanobisFit":
        """Fit to R references.

        Args:
            references: one row a reference.
            shrinkage: how the covariance becomes invertible.
            ridge: for shrinkage ridge alone: what is added to the covariance's diagonal, as a share of its mean.

        Raises:
            TooFewReferences: fewer than `MINIMUM_REFERENCES` of the references are distinct.
            InputError: a reference is not finite.
        """
        _check_finite(references)
        _check_distinct(references)
        mean = references.mean(axis=0, dtype=np.float64)
        centred = references - mean
        return cls._from_gram(references, mean, centred, mean, centred @ centred.T, shrinkage, ridge)

    def extend(self, more: Float[np.ndarray, "M D"]) -> "MahalanobisFit":
        """The fit to the references and `more`, as `fit` would give it; only the new inner products are formed.

        Raises:
            InputError: a reference is not finite.
        """
        _check_finite(more)
        references = np.concatenate([self.references, more])
        shifted = references - self._shift
        old_count = len(self.references)
        new = shifted[old_count:] @ shifted.T
        gram = np.block([[self._gram, new[:, :old_count].T], [new]])
        mean_shift = shifted.mean(axis=0)
        shifted -= mean_shift
        mean = self._shift + mean_shift
        return self._from_gram(references, mean, shifted, self._shift, gram, self.shrinkage, self.ridge)

    @classmethod
    def _from_gram(
        cls,
        references: Float[np.ndarray, "R D"],
        mean: Float64[np.ndarray, " D"],
        centred: Float64[np.ndarray, "R D"],
        shift: Float64[np.ndarray, " D"],
        gram: Float64[np.ndarray, "R R"],
        shrinkage: Shrinkage,
        ridge: float,
    ) -> "MahalanobisFit":
        count, dimension = references.shape
        row_means = gram.mean(axis=1)
        centred_gram = gram - row_means - row_means[:, None] + row_means.mean()
        mean_variance = float(np.trace(centred_gram)) / (count * dimension)
        if mean_variance <= 0:
            raise TooFewReferences("the references do not vary: more references that differ are needed.")

        estimate = {"ledoit-wolf": ledoit_wolf, "oas": oas}.get(shrinkage)
        estimated = estimate(centred_gram, dimension) if estimate else 0.0
        intensity = max(estimated, MINIMUM_INTENSITY) if estimate else 0.0
        floor = {"ridge": ridge, "pinv": 0.0}.get(shrinkage, intensity) * mean_variance

        directions, lengths, coordinates = _principal_axes(centred, centred_gram)
        norms = np.linalg.norm(coordinates, axis=0)
        return cls(
            references=references,
            shrinkage=shrinkage,
            ridge=ridge,
            intensity=intensity,
            is_floored=intensity > estimated,
            mean_variance=mean_variance,
            mean=mean,
            eigenvalues=norms**2 / count,
            scale=1 - intensity,
            floor=floor,
            coordinates=coordinates,
            _shift=shift,
            _gram=gram,
            _projection=Projection.onto(mean, directions, lengths),
        )

    @property
    def basis(self) -> Float32[np.ndarray, "r D"]:
        """The directions u_j, orthonormal rows."""
        return np.asarray(self._projection.basis)[: len(self.eigenvalues)]

    @property
    def exact_basis(self) -> Float64[np.ndarray, "r D"]:
        """The basis to double precision, which the device does not hold."""
        centred = self.references - self.mean
        return (self.coordinates / (self.eigenvalues * len(centred))).T @ centred

    @property
    def weights(self) -> Float64[np.ndarray, " r"]:
        """1 / (a·λ_j + b), what a squared coordinate counts."""
        return 1 / (self.scale * self.eigenvalues + self.floor)

    @property
    def residual_weight(self) -> float:
        """1 / b, what the squared distance from the references' span counts; 0 under pinv."""
        return 1 / self.floor if self.floor > 0 else 0.0

    def score(
        self, x: Float[np.ndarray, "C D"], left_out: Int[np.ndarray, " C"] | None = None
    ) -> Float64[np.ndarray, " C"]:
        """Squared Mahalanobis distance of every row; NaN for a row that holds NaN.

        Args:
            x: C observations.
            left_out: for every observation the number of the one reference that does not count for it, or −1. ρ and μ
                stay those of the full fit.
        """
        return score_together([self], [x], [left_out])[0]

    def leave_one_out(self) -> Float64[np.ndarray, " R"]:
        """The distance of every reference from the distribution of all others, with ρ and μ of the full fit.

        In-sample distances are far smaller than those of new observations from the same distribution; these are not.
        """
        count = len(self.references)
        return self._without(np.arange(count), self.coordinates, np.zeros(count))

    def _without(
        self,
        left_out: Int[np.ndarray, " C"],
        coordinates: Float64[np.ndarray, "C r"],
        residuals: Float64[np.ndarray, " C"],
    ) -> Float64[np.ndarray, " C"]:
        """Distances from the fit without one reference each, z_k.

        The mean moves by −z_k / (R−1), and the covariance becomes A − c·z_k z_kᵀ, where A is Σ with S scaled by
        R / (R−1) and c = a·R / (R−1)²: a rank-one downdate.
        """
        count = len(self.references)
        weights = 1 / (self.scale * self.eigenvalues * count / (count - 1) + self.floor)
        downdate = self.scale * count / (count - 1) ** 2
        reference = self.coordinates[left_out]
        moved = coordinates + reference / (count - 1)
        remaining = 1 - downdate * (reference**2 @ weights)
        if self.shrinkage == "pinv":
            # Without z_k the span has lost the direction Σ⁺ z_k, if nothing is left of the variance along it.
            lost = np.where((remaining < 1e-8)[:, None], reference * weights, 0)
            length = np.maximum(np.einsum("Cr,Cr->C", lost, lost), np.finfo(np.float64).tiny)
            moved = moved - lost * (np.einsum("Cr,Cr->C", lost, moved) / length)[:, None]
            remaining = np.where(remaining < 1e-8, 1, remaining)
        cross = np.einsum("Cr,Cr,r->C", moved, reference, weights)
        return moved**2 @ weights + downdate * cross**2 / remaining + residuals * self.residual_weight


def score_together(
    fits: Sequence[MahalanobisFit],
    x: Sequence[Float[np.ndarray, "_ D"]],
    left_out: Sequence[Int[np.ndarray, " _"] | None] | None = None,
) -> list[Float64[np.ndarray, " _"]]:
    """What `MahalanobisFit.score` gives for each of many fits, of as many templates or layers.

    The device projects the observations of many fits at once, so that it never waits for one template's few.

    Args:
        fits: F fits of one dimension.
        x: observations for each of them.
        left_out: see `MahalanobisFit.score`; one array, or None, a fit.

    Raises:
        ValueError: the arguments differ in length.
    """
    distances = []
    projected = project_each([fit._projection for fit in fits], x)
    for fit, (padded, residuals), out in zip(fits, projected, left_out or [None] * len(fits), strict=True):
        coordinates = padded[:, : len(fit.eigenvalues)]
        scores = coordinates**2 @ fit.weights + residuals * fit.residual_weight
        if out is not None:
            rows = np.flatnonzero(out >= 0)
            scores[rows] = fit._without(out[rows], coordinates[rows], residuals[rows])
        distances.append(scores)
    return distances


def _principal_axes(
    centred: Float64[np.ndarray, "R D"], gram: Float64[np.ndarray, "R R"]
) -> tuple[Float64[np.ndarray, "r D"], Float64[np.ndarray, " r"], Float64[np.ndarray, "R r"]]:
    """The orthogonal directions in which centred references vary, in rising order of variance, the directions' lengths,
    and the references' coordinates along them.

    Taken from the smaller of the R×R Gram matrix and the D×D scatter matrix: references grow as the goalpost moves.
    """
    count, dimension = centred.shape
    variances, vectors = np.linalg.eigh(gram if count <= dimension else centred.T @ centred)
    vectors = vectors[:, variances > _RELATIVE_NULL * variances[-1]]
    if count > dimension:
        return vectors.T, np.ones(vectors.shape[1]), centred @ vectors
    directions = vectors.T @ centred
    lengths = np.sqrt(np.einsum("rD,rD->r", directions, directions))
    return directions, lengths, vectors * lengths


def _check_finite(references: Float[np.ndarray, "R D"]) -> None:
    if not np.isfinite(references).all():
        raise InputError("a reference holds NaN or infinity: leave out replies without tokens.")


def _check_distinct(references: Float[np.ndarray, "R D"]) -> None:
    distinct: set[bytes] = set()
    for row in references:
        distinct.add((row + 0.0).tobytes())  # −0.0 + 0.0 is 0.0
        if len(distinct) == MINIMUM_REFERENCES:
            return
    raise TooFewReferences(
        f"{len(distinct)} distinct references, but at least {MINIMUM_REFERENCES} are needed: "
        "leave the template out or take its references from elsewhere."
    )
