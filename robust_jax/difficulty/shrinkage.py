"""How far a sample covariance is drawn towards a multiple of the identity: Σ = (1 − ρ) S + ρ μ I, with μ = tr S / D."""

from typing import Literal

import numpy as np
from jaxtyping import Float64

Shrinkage = Literal["ledoit-wolf", "oas", "ridge", "pinv"]
"""How Σ is made from S and its mean variance μ = tr S / D.

ledoit-wolf and oas: (1 − ρ) S + ρ μ I with the ρ of that estimator; ridge: S + ridge · μ I; pinv: the pseudo-inverse
of S, for comparison only: it gives every reference of a small set the same distance, and leaving their span is free."""

MINIMUM_INTENSITY = 1e-3
"""ρ is never smaller: two references, or references on a line, have an estimate of 0, and Σ would be singular."""


def ledoit_wolf(gram: Float64[np.ndarray, "R R"], dimension: int) -> float:
    """The intensity ρ of Ledoit and Wolf (2004) from the Gram matrix of centred references."""
    count = len(gram)
    mean_variance = np.trace(gram) / (count * dimension)
    squared_norm = np.sum(gram**2) / count**2
    error = (np.sum(np.diag(gram) ** 2) / count - squared_norm) / count
    dispersion = squared_norm - dimension * mean_variance**2
    return float(min(error / dispersion, 1)) if error > 0 and dispersion > 0 else 0.0


def oas(gram: Float64[np.ndarray, "R R"], dimension: int) -> float:
    """The intensity ρ of the oracle approximating shrinkage (Chen et al. 2010) from the same Gram matrix."""
    count = len(gram)
    mean_variance = np.trace(gram) / (count * dimension)
    squared_norm = np.sum(gram**2) / count**2
    # With numerator and denominator times D², as scikit-learn has it: terms of order 1/D are left out.
    numerator = squared_norm + dimension**2 * mean_variance**2
    denominator = (count + 1) * (squared_norm - dimension * mean_variance**2)
    return float(min(numerator / denominator, 1)) if denominator > 0 else 1.0
