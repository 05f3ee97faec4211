"""Where a model breaks: beam search and its random baseline over any search space."""

from robust_jax.search.baseline import random_points
from robust_jax.search.beam import BeamConfig, BeamSearch, Candidate, Scored
from robust_jax.search.goalpost import Goalpost

__all__ = ["BeamConfig", "BeamSearch", "Candidate", "Goalpost", "Scored", "random_points"]
