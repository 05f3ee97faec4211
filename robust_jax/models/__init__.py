"""Who answers: decoders, checkpoints, generation."""

from robust_jax.models.local import LocalModel
from robust_jax.models.prices import Price, read_price
from robust_jax.models.registry import (
    follow_leader,
    known_models,
    load_model,
    model_defaults,
    model_tokenizer,
    register_mock,
)
from robust_jax.models.wheels import fetch_wheel

__all__ = [
    "LocalModel",
    "Price",
    "fetch_wheel",
    "follow_leader",
    "known_models",
    "load_model",
    "model_defaults",
    "model_tokenizer",
    "read_price",
    "register_mock",
]
