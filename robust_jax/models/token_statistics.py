"""Log-probability, entropy and self-certainty of next-token distributions (paper C.3.1)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

SELF_CERTAINTY_TOP_K = 50


def token_statistics(logits: Float[Array, "*lead V"], tokens: Int[Array, "*lead"]) -> Float[Array, "*lead 3"]:
    """Log-probability of `tokens`, entropy and self-certainty of the distributions they were drawn from (nats, fp32).

    Self-certainty of one token is −(1/k) Σ_{v in top k} log(k·P(v)), with P over the whole vocabulary.
    """
    log_probabilities = jax.nn.log_softmax(logits.astype(jnp.float32), axis=-1)
    chosen = jnp.take_along_axis(log_probabilities, tokens[..., None], axis=-1)[..., 0]
    entropy = -jnp.sum(jnp.exp(log_probabilities) * log_probabilities, axis=-1)
    k = min(SELF_CERTAINTY_TOP_K, logits.shape[-1])
    top, _ = jax.lax.top_k(log_probabilities, k)
    self_certainty = -(jnp.mean(top, axis=-1) + jnp.log(jnp.float32(k)))
    return jnp.stack([chosen, entropy, self_certainty], axis=-1)
