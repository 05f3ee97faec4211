"""AdamW with warm-up, a schedule, clipping, and decay on matrices alone."""

import math
from typing import Literal

import jax
import jax.numpy as jnp
import optax

ScheduleKind = Literal["cosine", "constant"]


def learning_rate(
    peak: float, steps: int, *, warm_up: float = 0.03, schedule: ScheduleKind = "cosine", final: float = 0.0
) -> optax.Schedule:
    """The rate of every step, which counts from 0: linear warm-up to `peak`, then half a cosine, or constant.

    Args:
        warm_up: the share of the steps, rounded up, over which the rate rises; the step after them has the peak.
        final: what a cosine ends at after the last step, as a share of the peak.
    """
    rising = math.ceil(warm_up * steps)

    def rate(step: jax.typing.ArrayLike) -> jax.Array:
        count = jnp.asarray(step, jnp.float32)
        rise = (count + 1) / (rising + 1)
        done = jnp.clip((count - rising) / max(1, steps - rising), 0.0, 1.0)
        fall = final + (1 - final) * (1 + jnp.cos(jnp.pi * done)) / 2
        return peak * jnp.where(count < rising, rise, fall if schedule == "cosine" else 1.0)

    return rate


def adamw(
    rate: optax.Schedule, *, weight_decay: float = 0.1, clip: float = 1.0, beta2: float = 0.999
) -> optax.GradientTransformation:
    """AdamW; gradients are clipped to a global norm first, and biases and norms do not decay."""
    return optax.chain(
        optax.clip_by_global_norm(clip),
        optax.adamw(
            rate, b2=beta2, weight_decay=weight_decay, mask=lambda tree: jax.tree.map(lambda leaf: leaf.ndim > 1, tree)
        ),
    )
