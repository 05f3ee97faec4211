"""Low-rank adapters: W stays as it is, and W + (alpha/rank)·up·down is what is learnt (Hu et al., 2021)."""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Float, PRNGKeyArray

from robust_jax.errors import InputError
from robust_jax.models.decoder import Block, Decoder, Linear
from robust_jax.models.sharding import LOGICAL_AXES
from robust_jax.randomness import derived_seed

TARGETS = tuple(name for name in LOGICAL_AXES if name not in ("embed_tokens", "lm_head"))
"""The matrices of every block."""


class LowRankParam(nnx.Param):
    """A parameter of an adapter."""


class LowRankLinear(nnx.Module):
    """A frozen linear map with an adapter beside it."""

    def __init__(self, base: Linear, rank: int, alpha: float, *, key: PRNGKeyArray):
        size_out, size_in = base.weight.shape
        bound = size_in**-0.5
        self.base = base
        self.down = LowRankParam(jax.random.uniform(key, (rank, size_in), minval=-bound, maxval=bound))
        # Zero, so that training begins at the base model.
        self.up = LowRankParam(jnp.zeros((size_out, rank)))
        self.scale = alpha / rank

    def __call__(self, x: Float[Array, "*lead I"]) -> Float[Array, "*lead O"]:
        low = jnp.einsum("...I,RI->...R", x, self.down[...])
        return self.base(x) + self.scale * jnp.einsum("...R,OR->...O", low, self.up[...])

    def merged(self) -> Linear:
        """One linear map that does the same; the sum is taken in fp32 and stored as the base was."""
        weight = self.base.weight[...]
        change = jnp.einsum(
            "OR,RI->OI", self.up[...].astype(jnp.float32), self.down[...].astype(jnp.float32), precision="highest"
        )
        linear = nnx.clone(self.base)
        linear.weight.set_value((weight.astype(jnp.float32) + self.scale * change).astype(weight.dtype))
        return linear


def with_adapters(decoder: Decoder, rank: int, alpha: float, targets: Sequence[str], seed: int) -> Decoder:
    """The decoder with an adapter beside every target matrix; its weights are shared, not copied.

    Raises:
        InputError: there is no such matrix, or the rank is larger than a matrix.
    """
    for name in targets:
        if name not in TARGETS:
            raise InputError(f"--lora-targets {name}: the matrices of a block are {', '.join(TARGETS)}")

    def adapt(linear: nnx.Module, layer: int, name: str) -> nnx.Module:
        if not isinstance(linear, Linear) or name not in targets:
            return linear
        if rank > min(linear.weight.shape):
            raise InputError(f"--lora-rank {rank}: {name} has shape {linear.weight.shape}; take a smaller rank")
        key = jax.random.key(derived_seed(seed, "adapter", layer, name))
        return LowRankLinear(linear, rank, alpha, key=key)

    return _replaced(decoder, adapt)


def without_adapters(decoder: Decoder) -> Decoder:
    """The decoder with every adapter merged into its matrix; one without adapters stays as it is."""
    return _replaced(
        decoder, lambda linear, layer, name: linear.merged() if isinstance(linear, LowRankLinear) else linear
    )


def _replaced(decoder: Decoder, replace: Callable[[nnx.Module, int, str], nnx.Module]) -> Decoder:
    """A decoder whose blocks have other linear maps; the given one is left as it is."""
    graph, state = nnx.split(decoder)
    changed: Decoder = nnx.merge(graph, state)
    for number, block in enumerate(changed.layers):
        assert isinstance(block, Block)
        for part in (block.self_attn, block.mlp):
            for name in TARGETS:
                if hasattr(part, name):
                    setattr(part, name, replace(getattr(part, name), number, name))
    return changed
