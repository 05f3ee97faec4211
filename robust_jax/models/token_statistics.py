"""Log-probability, entropy and self-certainty of next-token distributions (paper C.3.1)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

SELF_CERTAINTY_TOP_K = 50


def token_statistics(logits: Float[Array, "*lead V"], tokens: Int[Array, "*lead"]) -> Float[Array, "*lead 3"]:
    """Log-probability of `tokens`, entropy and self-certainty of the distributions they were drawn from (nats, fp32).

    Self-certainty of one token is −(1/k) Σ_{v in top k} log(k·P(v)), with P over the whole vocabulary.
    """
    logits = logits.astype(jnp.float32)
    # Sums over the vocabulary, from its largest logit on: no second array of its size is written, nothing cancels.
    largest = jnp.max(logits, axis=-1, keepdims=True)
    exponentials = jnp.exp(logits - largest)
    total = jnp.sum(exponentials, axis=-1)
    entropy = jnp.log(total) - jnp.sum(exponentials * (logits - largest), axis=-1) / total
    chosen = (jnp.take_along_axis(logits, tokens[..., None], axis=-1) - largest)[..., 0] - jnp.log(total)
    k = min(SELF_CERTAINTY_TOP_K, logits.shape[-1])
    top, _ = jax.lax.top_k(logits, k)
    self_certainty = jnp.log(total) - jnp.mean(top - largest, axis=-1) - jnp.log(jnp.float32(k))
    return jnp.stack([chosen, entropy, self_certainty], axis=-1)
