"""Who answers: decoders, checkpoints, generation."""

from robust_jax.models.local import LocalModel
from robust_jax.models.registry import load_model, register_mock

__all__ = ["LocalModel", "load_model", "register_mock"]
