"""Who answers: decoders, checkpoints, generation."""

from robust_jax.models.local import LocalModel
from robust_jax.models.registry import known_models, load_model, model_defaults, register_mock

__all__ = ["LocalModel", "known_models", "load_model", "model_defaults", "register_mock"]
