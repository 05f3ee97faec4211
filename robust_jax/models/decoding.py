"""What runs on the device while a batch of rows is decoded: reading prompts, chunks of steps, sums of features.

Every function here is compiled once a shape; the shapes come from the few sizes that `generation` uses.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from robust_jax.models.attention import Context, KeyValues, Prefix
from robust_jax.models.config import DecoderConfig
from robust_jax.models.decoder import Decoder, empty_cache
from robust_jax.models.sampling import DrawKind, Draws, next_tokens
from robust_jax.models.sharding import CACHE, ROWS, split
from robust_jax.models.token_statistics import token_statistics
from robust_jax.types import FeatureRequest

CHUNK = 16
"""Decoding steps between two looks at the rows by the host."""


class Rows(NamedTuple):
    """The rows being decoded. Every array begins with the batch."""

    cache: list[KeyValues]
    token: Int[Array, " B"]
    """The next token to feed: chosen, not yet seen by the model."""
    statistics: Float[Array, "B 3"]
    """Statistics of that token."""
    hidden_sum: Float[Array, "B l D"]
    """Sums over the reply so far of the requested layers' states."""
    filled: Int[Array, " B"]
    """Slots in use."""
    written: Int[Array, " B"]
    """Reply tokens fed so far."""
    limit: Int[Array, " B"]
    """Reply tokens allowed."""
    active: Bool[Array, " B"]
    """False once the chosen token is a stop token or the limit is reached."""
    stopped: Bool[Array, " B"]
    """Whether it was a stop token."""
    draws: Draws


class NewPrompts(NamedTuple):
    """Prompts to read, and the rows that reply to them: one prompt may go to several rows."""

    tokens: Int[Array, "P T"]
    """Padded on the right."""
    lengths: Int[Array, " P"]
    source: Int[Array, " R"]
    """Which of the prompts each new row replies to."""
    place: Int[Array, " R"]
    """Which row of the batch it becomes; a place outside the batch is dropped."""
    limit: Int[Array, " R"]
    draws: Draws


class Chunk(NamedTuple):
    """What one chunk of steps wrote, for the host to look at; steps that did not run wrote nothing."""

    tokens: Int[Array, "c B"]
    is_written: Bool[Array, "c B"]
    statistics: Float[Array, "c B 3"]
    states: Float[Array, "c B l D"]


@partial(jax.jit, static_argnums=(0, 1, 2, 3, 4))  # under jit every array gets a buffer of its own, to be donated
def empty_rows(config: DecoderConfig, batch: int, slots: int, layers: int, dtype: jnp.dtype) -> Rows:
    """A batch in which nothing is being decoded."""
    integers, flags = jnp.zeros(batch, jnp.int32), jnp.zeros(batch, bool)
    rows = Rows(
        cache=empty_cache(config, batch, slots, dtype),
        token=integers,
        statistics=jnp.zeros((batch, 3)),
        hidden_sum=jnp.zeros((batch, layers, config.hidden_size)),
        filled=integers,
        written=integers,
        limit=integers,
        active=flags,
        stopped=flags,
        draws=Draws(jnp.zeros(batch, jnp.uint32), jnp.zeros(batch), jnp.ones(batch), integers),
    )
    return _in_place(rows)


@jax.jit
def read_prefix(decoder: Decoder, tokens: Int[Array, "1 S"], longest: Int[Array, ""]) -> list[KeyValues]:
    """Keys and values of a prefix that sequences of at most `longest` tokens share; padded slots hold garbage that the
    prefix length masks.
    """
    output = decoder(tokens, jnp.arange(tokens.shape[1])[None], lengths=longest[None])
    return [KeyValues(layer.keys[0], layer.values[0]) for layer in output.cache]


@partial(jax.jit, static_argnames=("statistics", "kind", "eos"), donate_argnames="rows")
def read_prompts(
    decoder: Decoder,
    rows: Rows,
    prefix: Prefix | None,
    longest: Int[Array, ""],
    new: NewPrompts,
    *,
    statistics: bool,
    kind: DrawKind,
    eos: tuple[int, ...],
) -> Rows:
    """Read new prompts into rows of the batch and choose each row's first token; no sequence outgrows `longest`."""
    count, length = new.tokens.shape
    steps = jnp.broadcast_to(jnp.arange(length), (count, length))
    offset = 0 if prefix is None else prefix.length
    context = Context(
        cache=empty_cache(decoder.config, count, length, rows.cache[0].keys.dtype),
        slots=steps,
        mask=jnp.broadcast_to(jnp.tril(jnp.ones((length, length), bool)), (count, length, length)),
        prefix=prefix,
    )
    output = decoder(split(new.tokens, ROWS), offset + steps, context, lengths=jnp.broadcast_to(longest, count))
    last = jnp.take_along_axis(output.hidden, (new.lengths - 1)[:, None, None], axis=1)[:, 0]
    logits = decoder.logits(last)[new.source]
    first = jnp.zeros_like(new.source)
    chosen = next_tokens(logits, new.draws, first, kind)
    ends = _is_any(chosen, eos)
    cache = [
        KeyValues(
            old.keys.at[new.place, :, :, :length].set(read.keys[new.source], mode="drop"),
            old.values.at[new.place, :, :length].set(read.values[new.source], mode="drop"),
        )
        for old, read in zip(rows.cache, output.cache, strict=True)
    ]

    def put(old: Array, value: Array | int | float) -> Array:
        return old.at[new.place].set(value, mode="drop")

    rows = Rows(
        cache=cache,
        token=put(rows.token, chosen),
        statistics=put(rows.statistics, token_statistics(logits, chosen)) if statistics else rows.statistics,
        hidden_sum=put(rows.hidden_sum, 0),
        filled=put(rows.filled, new.lengths[new.source]),
        written=put(rows.written, 0),
        limit=put(rows.limit, new.limit),
        active=put(rows.active, ~ends),
        stopped=put(rows.stopped, ends),
        draws=jax.tree.map(put, rows.draws, new.draws),
    )
    return _in_place(rows)


@partial(jax.jit, static_argnames=("features", "kind", "eos"), donate_argnames="rows")
def decode_chunk(
    decoder: Decoder,
    rows: Rows,
    prefix: Prefix | None,
    longest: Int[Array, ""],
    enough: Int[Array, ""],
    *,
    features: FeatureRequest,
    kind: DrawKind,
    eos: tuple[int, ...],
) -> tuple[Rows, Chunk]:
    """Up to CHUNK steps; ends early when no more than `enough` rows are active."""
    batch, slots = rows.cache[0].keys.shape[0], rows.cache[0].keys.shape[-1]
    offset = 0 if prefix is None else prefix.length
    chunk = Chunk(
        tokens=jnp.zeros((CHUNK, batch), jnp.int32),
        is_written=jnp.zeros((CHUNK, batch), bool),
        statistics=jnp.zeros((CHUNK, batch, 3)),
        states=jnp.zeros((CHUNK, *rows.hidden_sum.shape), jnp.float32),
    )

    def unfinished(carry: tuple[Int[Array, ""], Rows, Chunk]) -> Bool[Array, ""]:
        step, rows, _ = carry
        return (step < CHUNK) & (jnp.sum(rows.active) > jnp.where(step == 0, 0, enough))

    def advance(carry: tuple[Int[Array, ""], Rows, Chunk]) -> tuple[Int[Array, ""], Rows, Chunk]:
        step, rows, chunk = carry
        context = Context(
            cache=rows.cache,
            slots=jnp.where(rows.active, rows.filled, slots)[:, None],
            mask=(jnp.arange(slots) <= rows.filled[:, None])[:, None],
            prefix=prefix,
        )
        positions, lengths = (offset + rows.filled)[:, None], jnp.broadcast_to(longest, batch)
        output = decoder(rows.token[:, None], positions, context, features.layers, lengths)
        logits = decoder.logits(output.hidden[:, 0])
        states = jnp.moveaxis(output.states[:, :, 0], 0, 1)
        chunk = Chunk(
            tokens=chunk.tokens.at[step].set(rows.token),
            is_written=chunk.is_written.at[step].set(rows.active),
            statistics=chunk.statistics.at[step].set(rows.statistics),
            states=chunk.states.at[step].set(states.astype(jnp.float32)),
        )
        written = rows.written + rows.active
        chosen = next_tokens(logits, rows.draws, written, kind)
        ends = _is_any(chosen, eos)
        rows = rows._replace(
            cache=output.cache,
            token=chosen,
            statistics=token_statistics(logits, chosen) if features.statistics else rows.statistics,
            filled=rows.filled + rows.active,
            written=written,
            active=rows.active & ~ends & (written < rows.limit),
            stopped=jnp.where(rows.active, ends, rows.stopped),
        )
        return step + 1, rows, chunk

    _, rows, chunk = jax.lax.while_loop(unfinished, advance, (jnp.int32(0), rows, chunk))
    return _in_place(rows), chunk


@partial(jax.jit, donate_argnames="rows")
def keep_states(
    rows: Rows, states: Float[Array, "c B l D"], is_kept: Bool[Array, "c B"], active: Bool[Array, " B"]
) -> Rows:
    """Add the states of the tokens that belong to the replies, once it is known which do."""
    kept = jnp.where(is_kept[:, :, None, None], states, 0.0)
    return _in_place(rows._replace(hidden_sum=rows.hidden_sum + jnp.sum(kept, axis=0), active=active))


@jax.jit
def take_rows(rows: Rows, order: Int[Array, " b"]) -> Rows:
    """A smaller batch of the rows that are still being decoded."""
    return _in_place(jax.tree.map(lambda array: array[order], rows))


def _in_place(rows: Rows) -> Rows:
    """The rows where they lie from one call to the next: split over the mesh, if there is one."""
    cache = [KeyValues(split(layer.keys, CACHE), split(layer.values, CACHE)) for layer in rows.cache]
    others = jax.tree.map(lambda array: split(array, ROWS), rows._replace(cache=[]))
    return others._replace(cache=cache)


def _is_any(tokens: Int[Array, " B"], ids: tuple[int, ...]) -> Bool[Array, " B"]:
    return jnp.isin(tokens, jnp.asarray(ids, jnp.int32)) if ids else jnp.zeros(tokens.shape, bool)
