"""One training step: the loss on what the model should have said, and the update that follows from it."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int

from robust_jax.models.decoder import Decoder


class Batch(NamedTuple):
    """Padded rows of prompt and reply."""

    tokens: Int[Array, "B T"]
    is_target: Bool[Array, "B T"]
    """True at the tokens that the model learns to predict: the reply and its stop token, never prompt or padding."""


class TrainState(NamedTuple):
    """Everything a step changes."""

    decoder: Decoder
    optimizer: optax.OptState


def loss(decoder: Decoder, batch: Batch) -> Float[Array, ""]:
    """Mean negative log-likelihood of the target tokens, nats."""
    positions = jnp.broadcast_to(jnp.arange(batch.tokens.shape[1]), batch.tokens.shape)
    logits = decoder.logits(decoder(batch.tokens, positions).hidden[:, :-1])
    nll = optax.softmax_cross_entropy_with_integer_labels(logits, batch.tokens[:, 1:])
    is_target = batch.is_target[:, 1:]
    return jnp.sum(nll * is_target) / jnp.maximum(jnp.sum(is_target), 1)


def adamw(
    peak: float, steps: int, *, warm_up: float = 0.03, weight_decay: float = 0.1, clip: float = 1.0, beta2: float = 0.95
) -> optax.GradientTransformation:
    """AdamW with linear warm-up over a share of the steps, cosine decay to a tenth, and decay on matrices only."""
    rate = optax.warmup_cosine_decay_schedule(0.0, peak, max(1, round(warm_up * steps)), steps, peak / 10)
    return optax.chain(
        optax.clip_by_global_norm(clip),
        optax.adamw(
            rate, b2=beta2, weight_decay=weight_decay, mask=lambda tree: jax.tree.map(lambda x: x.ndim > 1, tree)
        ),
    )


def train_step(
    state: TrainState, batch: Batch, optimizer: optax.GradientTransformation
) -> tuple[TrainState, Float[Array, ""]]:
    """The state after one update, and the loss before it."""
    value, gradients = jax.value_and_grad(loss)(state.decoder, batch)
    updates, optimizer_state = optimizer.update(gradients, state.optimizer, state.decoder)
    return TrainState(optax.apply_updates(state.decoder, updates), optimizer_state), value
