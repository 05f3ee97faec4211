"""Attention: what the tokens of a forward pass see, and grouped-query attention over it."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from einops import rearrange
from jaxtyping import Array, Bool, Float, Int


class KeyValues(NamedTuple):
    """One layer's keys and values: of a batch's rows, or (without B) of a prefix that all rows share.

    Slots run along the axis that each product streams over: a decoding step reads them three times as fast as in
    the order [B, S, K, H].
    """

    keys: Float[Array, "*B K H S"]
    values: Float[Array, "*B K S H"]


class Prefix(NamedTuple):
    """The tokens that all rows begin with."""

    layers: list[KeyValues]
    length: Int[Array, ""]
    """How many of their slots are filled."""


class Context(NamedTuple):
    """What the tokens of a forward pass can see besides themselves."""

    cache: list[KeyValues]
    """A layer each, rows' own slots; the new tokens are written into them."""
    slots: Int[Array, "B T"]
    """Where each new token is written; a slot beyond the cache drops it. Layers with a window take slot s of a row to
    hold the token at position s, counted from the end of the prefix."""
    mask: Bool[Array, "B T S"]
    """Which of the row's slots each new token attends to, itself included."""
    prefix: Prefix | None = None
    """What every new token attends to besides."""


class View(NamedTuple):
    """What each new token attends to in a layer."""

    own: Bool[Array, "B T S"]
    """Of the row's own slots; without a context, of the new tokens themselves."""
    prefix: Bool[Array, "#B #T P"] | None = None
    """Of the slots of the shared prefix."""


def view(
    window: int | None,
    positions: Int[Array, "B T"],
    context: Context | None,
    sequences: Int[Array, "B T"] | None = None,
) -> View:
    """What a layer with that window, or without one, attends to.

    Args:
        sequences: which of several sequences in a row each token belongs to; no token sees another sequence.
    """
    batch, length = positions.shape
    if context is None:
        distance = jnp.arange(length)[:, None] - jnp.arange(length)
        near = distance >= 0 if window is None else (distance >= 0) & (distance < window)
        if sequences is not None:
            near = near & (sequences[:, :, None] == sequences[:, None, :])
        return View(jnp.broadcast_to(near, (batch, length, length)))
    start: Array | int = 0
    prefix = None
    if context.prefix is not None:
        start = context.prefix.length
        slots = jnp.arange(context.prefix.layers[0].keys.shape[-1])
        prefix = (slots < start)[None, None]
        if window is not None:
            prefix &= positions[:, :, None] - slots < window
    own = context.mask
    if window is not None:
        own &= positions[:, :, None] - (start + jnp.arange(own.shape[-1])) < window
    return View(own, prefix)


def attend(
    queries: Float[Array, "B T N H"], own: KeyValues, seen: View, prefix: KeyValues | None = None
) -> Float[Array, "B T N H"]:
    """Grouped-query attention over a row's own slots and, where given, a prefix that all rows share.

    The prefix is never copied to the rows: the queries of all rows meet it in one product for each key/value head. Both
    parts share one softmax (fp32), which is divided by its sum only after the values have been mixed.
    """
    batch, length, heads, width = queries.shape
    kv_heads = own.keys.shape[1]
    groups = heads // kv_heads
    by_row = rearrange(queries * width**-0.5, "B T (K G) H -> B K (G T) H", K=kv_heads)
    scores = jnp.einsum("BKXH,BKHS->BKXS", by_row, own.keys, preferred_element_type=jnp.float32)
    scores = jnp.where(jnp.tile(seen.own, (1, groups, 1))[:, None], scores, -jnp.inf)
    # A softmax is the same whatever is taken off its scores: the gradient need not pass through it.
    largest = jax.lax.stop_gradient(jnp.max(scores, axis=-1, keepdims=True))
    if prefix is None:
        weights = jnp.exp(scores - largest)
        mixed, total = _mix("BKXS,BKSH->BKXH", weights, own.values), jnp.sum(weights, axis=-1, keepdims=True)
    else:
        assert seen.prefix is not None
        joined = rearrange(by_row, "B K X H -> K (B X) H")
        shared = jnp.einsum("KXH,KHS->KXS", joined, prefix.keys, preferred_element_type=jnp.float32)
        shared = jnp.where(_for_joined_rows(seen.prefix, batch, length, groups), shared, -jnp.inf)
        rows = partial(rearrange, pattern="K (B X) H -> B K X H", B=batch)
        largest = jnp.maximum(largest, rows(jnp.max(shared, axis=-1, keepdims=True)))
        weights = jnp.exp(scores - largest)
        shared_weights = jnp.exp(shared - rearrange(largest, "B K X H -> K (B X) H"))
        total = jnp.sum(weights, axis=-1, keepdims=True) + rows(jnp.sum(shared_weights, axis=-1, keepdims=True))
        mixed = _mix("BKXS,BKSH->BKXH", weights, own.values)
        mixed += rows(_mix("KXS,KSH->KXH", shared_weights, prefix.values))
    return rearrange((mixed / total).astype(queries.dtype), "B K (G T) H -> B T (K G) H", T=length)


def _mix(product: str, weights: Float[Array, "... S"], values: Float[Array, "... S H"]) -> Float[Array, "... H"]:
    """The values in those proportions, summed in fp32."""
    return jnp.einsum(product, weights.astype(values.dtype), values, preferred_element_type=jnp.float32)


def _for_joined_rows(seen: Bool[Array, "#B #T P"], batch: int, length: int, groups: int) -> Bool[Array, "#X P"]:
    """A prefix's mask for the queries of all rows in one axis; it stays one line where all see the same."""
    if seen.shape[:2] == (1, 1):
        return seen[0]
    return rearrange(
        jnp.tile(jnp.broadcast_to(seen, (batch, length, seen.shape[2])), (1, groups, 1)), "B X P -> (B X) P"
    )
