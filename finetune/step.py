"""One training step: the loss on what the model should have said, and the update that follows from it."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jaxtyping import Array, Float, Int

from robust_jax.finetune.lora import LowRankParam
from robust_jax.finetune.packing import Batch
from robust_jax.models.decoder import Decoder
from robust_jax.models.sharding import DATA, split


class Parts(NamedTuple):
    """A decoder taken apart into what training changes and what it leaves alone."""

    graph: nnx.GraphDef
    trained: nnx.State
    frozen: nnx.State


class TrainState(NamedTuple):
    """Everything that a step changes, and that a resumed run needs."""

    trained: nnx.State
    """fp32, whatever the products are computed in."""
    optimizer: optax.OptState


class Report(NamedTuple):
    """What a step tells."""

    loss: Float[Array, ""]
    """Before the update: mean negative log-likelihood of all target tokens of the step, nats."""
    gradient_norm: Float[Array, ""]
    """Before clipping."""


def take_apart(decoder: Decoder) -> Parts:
    """The decoder's adapters where it has any, otherwise all its weights, apart from the rest."""
    has_adapters = bool(jax.tree.leaves(nnx.state(decoder, LowRankParam)))
    return Parts(*nnx.split(decoder, LowRankParam if has_adapters else nnx.Param, ...))


def put_together(parts: Parts, dtype: jnp.dtype | None = None) -> Decoder:
    """The decoder of those parts, its floating-point weights in `dtype` where one is given."""
    trained, frozen = parts.trained, parts.frozen
    if dtype is not None:
        trained, frozen = (jax.tree.map(lambda leaf: leaf.astype(dtype), state) for state in (trained, frozen))
    decoder: Decoder = nnx.merge(parts.graph, trained, frozen)
    return decoder


def summed_loss(decoder: Decoder, batch: Batch, *, remat: bool = False) -> tuple[Float[Array, ""], Int[Array, ""]]:
    """Summed negative log-likelihood of the targets of one micro-batch, nats, and how many there are.

    Logits are computed where a target is predicted and nowhere else: behind a long prompt that is a small part of it.
    """
    output = decoder(batch.tokens, batch.positions, sequences=batch.sequences, remat=remat)
    hidden = jnp.take_along_axis(output.hidden, batch.places[:, :, None], axis=1)

    def likelihood(decoder: Decoder, hidden: Float[Array, "B M D"]) -> Float[Array, "B M"]:
        return optax.softmax_cross_entropy_with_integer_labels(decoder.logits(hidden), batch.targets)

    losses = (jax.checkpoint(likelihood) if remat else likelihood)(decoder, hidden)
    return jnp.sum(losses * batch.is_target), jnp.sum(batch.is_target)


def gradients(
    parts: Parts, batches: Batch, *, dtype: jnp.dtype | None = None, remat: bool = False
) -> tuple[Float[Array, ""], nnx.State]:
    """Mean loss over the targets of all micro-batches, and its gradient by the trained weights.

    Sums are accumulated and divided once, so k micro-batches of b rows give what one batch of k·b rows gives, however
    the targets are spread over them.

    Args:
        batches: stacked along a first axis.
        dtype: of the products; the weights stay as they are.
        remat: see `Decoder`.
    """

    def loss(trained: nnx.State, batch: Batch) -> tuple[Float[Array, ""], Int[Array, ""]]:
        return summed_loss(put_together(parts._replace(trained=trained), dtype), batch, remat=remat)

    def accumulate(
        sums: tuple[Float[Array, ""], Int[Array, ""], nnx.State], batch: Batch
    ) -> tuple[tuple[Float[Array, ""], Int[Array, ""], nnx.State], None]:
        batch = Batch(*(split(part, jax.sharding.PartitionSpec(DATA)) for part in batch))
        (value, count), gradient = jax.value_and_grad(loss, has_aux=True)(parts.trained, batch)
        return (sums[0] + value, sums[1] + count, jax.tree.map(jnp.add, sums[2], gradient)), None

    nothing = (jnp.zeros(()), jnp.zeros((), jnp.int32), jax.tree.map(jnp.zeros_like, parts.trained))
    if batches.tokens.shape[0] == 1:
        (total, count, summed), _ = accumulate(nothing, Batch(*(part[0] for part in batches)))
    else:
        (total, count, summed), _ = jax.lax.scan(accumulate, nothing, batches)
    count = jnp.maximum(count, 1)
    return total / count, jax.tree.map(lambda leaf: leaf / count, summed)


def train_step(
    state: TrainState,
    frozen: nnx.State,
    batches: Batch,
    *,
    graph: nnx.GraphDef,
    optimizer: optax.GradientTransformation,
    dtype: jnp.dtype | None = None,
    remat: bool = False,
) -> tuple[TrainState, Report]:
    """The state after one update, and what it was made from."""
    loss, gradient = gradients(Parts(graph, state.trained, frozen), batches, dtype=dtype, remat=remat)
    updates, optimizer_state = optimizer.update(gradient, state.optimizer, state.trained)
    trained = optax.apply_updates(state.trained, updates)
    return TrainState(trained, optimizer_state), Report(loss, optax.tree.norm(gradient))


def compiled_step(
    graph: nnx.GraphDef,
    optimizer: optax.GradientTransformation,
    *,
    dtype: jnp.dtype | None = None,
    remat: bool = False,
    shardings: TrainState | None = None,
) -> Callable[[TrainState, nnx.State, Batch], tuple[TrainState, Report]]:
    """`train_step` for one decoder and optimizer, compiled; the state it is given is used up.

    Args:
        shardings: where the state's arrays lie on a mesh, before a step as after it.
    """
    step = partial(train_step, graph=graph, optimizer=optimizer, dtype=dtype, remat=remat)
    if shardings is None:
        return jax.jit(step, donate_argnums=0)
    return jax.jit(step, donate_argnums=0, out_shardings=(shardings, None))
