"""How far an answer strays from the right ones: token statistics, Levenshtein, Mahalanobis and k-NN distances."""

from robust_jax.difficulty.additive import AdditiveDistances, Term
from robust_jax.difficulty.levenshtein import Implementation, normalised_distances, usable
from robust_jax.difficulty.mahalanobis import MahalanobisFit, TooFewReferences, score_together
from robust_jax.difficulty.metrics import Metric, metric, metric_names, register
from robust_jax.difficulty.observations import Observations
from robust_jax.difficulty.references import ReferencePolicy, References, select_references
from robust_jax.difficulty.shrinkage import Shrinkage
from robust_jax.difficulty.tokens import math_tokens

__all__ = [
    "AdditiveDistances",
    "Implementation",
    "MahalanobisFit",
    "Metric",
    "Observations",
    "ReferencePolicy",
    "References",
    "Shrinkage",
    "Term",
    "TooFewReferences",
    "math_tokens",
    "metric",
    "metric_names",
    "normalised_distances",
    "register",
    "score_together",
    "select_references",
    "usable",
]
