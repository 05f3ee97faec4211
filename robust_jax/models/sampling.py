"""Choosing the next token."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt32

from robust_jax.types import Sampling


def next_tokens(
    logits: Float[Array, "B V"], seeds: UInt32[Array, " B"], positions: Int[Array, " B"], sampling: Sampling
) -> Int[Array, " B"]:
    """The tokens that follow: the likeliest at temperature 0, otherwise drawn from the truncated distribution.

    A row's draw depends on its own seed and position alone, never on the batch it is in.
    """
    if sampling.temperature == 0.0:
        return jnp.argmax(logits, axis=-1).astype(jnp.int32)
    logits = logits / sampling.temperature
    if sampling.top_k:
        smallest = jax.lax.top_k(logits, min(sampling.top_k, logits.shape[-1]))[0][:, -1:]
        logits = jnp.where(logits < smallest, -jnp.inf, logits)
    if sampling.top_p < 1.0:
        descending = jnp.sort(logits, axis=-1, descending=True)
        mass_before = jnp.cumsum(jax.nn.softmax(descending, axis=-1), axis=-1) - jax.nn.softmax(descending, axis=-1)
        # The token that crosses the threshold stays, so the likeliest one always does.
        kept = jnp.where(mass_before < sampling.top_p, descending, jnp.inf)
        logits = jnp.where(logits < jnp.min(kept, axis=-1, keepdims=True), -jnp.inf, logits)
    draw = jax.vmap(
        lambda seed, position, row: jax.random.categorical(jax.random.fold_in(jax.random.key(seed), position), row)
    )
    return draw(seeds, positions, logits).astype(jnp.int32)
