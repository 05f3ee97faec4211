"""Batched generation that records features of the replies while they are written.

A fixed number of rows decodes in chunks of steps; rows that have finished are refilled with waiting prompts, so one
long reply never holds a batch. The token prefix that all prompts share is computed once and never copied to the rows.
Shapes come from a few buckets, so the number of compilations does not grow with the work.
"""

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from robust_jax.models.decoder import Context, Decoder, KeyValues, Prefix, empty_cache
from robust_jax.models.sampling import next_tokens
from robust_jax.models.token_statistics import token_statistics
from robust_jax.types import FeatureRequest, Sampling

CHUNK = 16
"""Decoding steps between two looks at the rows by the host."""
SLOT_MULTIPLE = 32
"""Caches come in multiples of so many slots: attention pays for every slot, filled or not."""
SMALLEST_PREFIX = 16
"""A shorter shared prefix costs more in dispatch than it saves."""

StopCheck = Callable[[list[int]], int | None]
"""Given a reply's tokens so far: how many of them stand before a stop text, or None if there is none."""


class Rows(NamedTuple):
    """The rows being decoded."""

    cache: list[KeyValues]
    token: Int[Array, " B"]
    """The next token to feed: chosen, not yet seen by the model."""
    statistics: Float[Array, "B 3"]
    """Statistics of that token."""
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
    seeds: UInt32[Array, " B"]


class Chunk(NamedTuple):
    """What one chunk of steps wrote, for the host to look at; only the first `steps` of its c lines are filled."""

    tokens: Int[Array, "c B"]
    is_written: Bool[Array, "c B"]
    statistics: Float[Array, "c B 3"]
    states: Float[Array, "c l B D"]


@dataclass
class Reply:
    """What was generated for one prompt."""

    token_ids: list[int] = field(default_factory=list)
    """Without the stop token."""
    stopped: bool = False
    """False if it was cut by the token limit."""
    hidden_sum: Float[np.ndarray, "l D"] | None = None
    statistics_sum: Float[np.ndarray, "3"] = field(default_factory=lambda: np.zeros(3))


def bucket(size: int, smallest: int = 16) -> int:
    """The least of smallest · {1, 1.5, 2, 3, 4, 6, 8 …} that holds `size`."""
    power = smallest
    while power < size:
        if power * 3 // 2 >= size:
            return power * 3 // 2
        power *= 2
    return power


def shared_prefix(prompts: Sequence[Sequence[int]]) -> int:
    """How many leading tokens all prompts share, leaving each at least one of its own."""
    shortest, longest = min(map(list, prompts)), max(map(list, prompts))
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(shortest, longest, strict=False)))
    return min(common, min(len(prompt) for prompt in prompts) - 1)


@dataclass(frozen=True)
class Generator:
    """Generates with one decoder."""

    decoder: Decoder
    batch_size: int

    def __call__(
        self,
        prompts: Sequence[Sequence[int]],
        sampling: Sampling,
        features: FeatureRequest,
        find_stop: StopCheck | None = None,
        on_reply: Callable[[int], None] = lambda index: None,
    ) -> list[Reply]:
        """Reply to every prompt, in order.

        Args:
            prompts: token ids; each at least one token and, with `sampling.max_tokens`, within the context.
            find_stop: looks for stop texts after every chunk.
            on_reply: told a prompt's index when its reply is complete.
        """
        if not prompts:
            return []
        config = self.decoder.config
        dtype = self.decoder.embed_tokens.dtype
        common = shared_prefix(prompts)
        if common < SMALLEST_PREFIX:
            common = 0
        prefix = None
        if common:
            padded = np.zeros((1, bucket(common)), np.int32)
            padded[0, :common] = prompts[0][:common]
            prefix = Prefix(_read_prefix(self.decoder, padded), jnp.int32(common))

        # Longest first, so that the last rows to finish are short ones.
        waiting = deque(sorted(range(len(prompts)), key=lambda index: -len(prompts[index])))
        longest = len(prompts[waiting[0]]) - common
        slots = SLOT_MULTIPLE * math.ceil((bucket(longest) + sampling.max_tokens) / SLOT_MULTIPLE)
        batch = min(self.batch_size, bucket(len(prompts), 8))
        refill = max(1, batch // 4)

        rows = Rows(
            cache=empty_cache(config, batch, slots, dtype),
            token=jnp.zeros(batch, jnp.int32),
            statistics=jnp.zeros((batch, 3)),
            filled=jnp.zeros(batch, jnp.int32),
            written=jnp.zeros(batch, jnp.int32),
            limit=jnp.zeros(batch, jnp.int32),
            active=jnp.zeros(batch, bool),
            stopped=jnp.zeros(batch, bool),
            seeds=jnp.zeros(batch, jnp.uint32),
        )
        sums = jnp.zeros((len(features.layers), batch, config.hidden_size), jnp.float32)
        replies = [Reply() for _ in prompts]
        owner: list[int | None] = [None] * batch
        active = np.zeros(batch, bool)

        while waiting or active.any():
            free = [row for row in range(batch) if owner[row] is None]
            while waiting and (len(free) >= refill or not active.any()) and free:
                chosen = [waiting.popleft() for _ in range(min(refill, len(free), len(waiting)))]
                places, free = free[: len(chosen)], free[len(chosen) :]
                for row, number in zip(places, chosen, strict=True):
                    owner[row] = number
                    active[row] = True
                arrays = _pad_prompts([prompts[index][common:] for index in chosen], chosen, places, refill, batch)
                rows, sums = _prefill(
                    self.decoder,
                    rows,
                    sums,
                    prefix,
                    *arrays,
                    sampling,
                    features.statistics,
                    config.eos_token_ids,
                )
            # With prompts waiting, stop early once enough rows are free to be refilled.
            enough = jnp.int32(batch - refill if waiting else 0)
            rows, chunk = _decode_chunk(self.decoder, rows, prefix, enough, sampling, features, config.eos_token_ids)
            tokens, is_written, statistics = jax.device_get((chunk.tokens, chunk.is_written, chunk.statistics))
            active, stopped = (np.array(x) for x in jax.device_get((rows.active, rows.stopped)))
            kept = is_written.copy()
            halted = np.zeros(batch, bool)
            for row in range(batch):
                index = owner[row]
                if index is None:
                    continue
                reply = replies[index]
                before = len(reply.token_ids)
                reply.token_ids.extend(tokens[is_written[:, row], row].tolist())
                reply.stopped = bool(stopped[row])
                end = find_stop(reply.token_ids) if find_stop else None
                if end is not None:
                    del reply.token_ids[end:]
                    reply.stopped = True
                    kept[max(0, end - before) :, row] = False
                    halted[row] = active[row]
                    active[row] = False
                reply.statistics_sum += statistics[kept[:, row], row].sum(axis=0, dtype=np.float64)
            if halted.any():
                rows = rows._replace(active=jnp.asarray(active))
            if features.layers:
                sums = _add_states(sums, chunk.states, kept)
            finished = [row for row in range(batch) if owner[row] is not None and not active[row]]
            if finished and features.layers:
                host_sums = np.asarray(sums)
            for row in finished:
                done = owner[row]
                assert done is not None
                if features.layers:
                    replies[done].hidden_sum = host_sums[:, row]
                owner[row] = None
                on_reply(done)
        return replies


def _pad_prompts(
    prompts: Sequence[Sequence[int]], indices: Sequence[int], places: Sequence[int], count: int, batch: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Right-padded tokens, lengths, rows to fill (`batch`, which is dropped, for padding) and prompt numbers."""
    tokens = np.zeros((count, bucket(max(map(len, prompts)))), np.int32)
    lengths, rows, numbers = np.ones(count, np.int32), np.full(count, batch, np.int32), np.zeros(count, np.uint32)
    for line, (prompt, index, row) in enumerate(zip(prompts, indices, places, strict=True)):
        tokens[line, : len(prompt)] = prompt
        lengths[line], rows[line], numbers[line] = len(prompt), row, index
    return tokens, lengths, rows, numbers


@jax.jit
def _read_prefix(decoder: Decoder, tokens: Int[Array, "1 P"]) -> list[KeyValues]:
    """Keys and values of the shared prefix; padded slots hold garbage that the prefix length masks."""
    positions = jnp.arange(tokens.shape[1])[None]
    return [KeyValues(layer.keys[0], layer.values[0]) for layer in decoder(tokens, positions).cache]


@partial(jax.jit, static_argnums=(8, 9, 10), donate_argnums=(1, 2))
def _prefill(
    decoder: Decoder,
    rows: Rows,
    sums: Float[Array, "l B D"],
    prefix: Prefix | None,
    tokens: Int[Array, "b T"],
    lengths: Int[Array, " b"],
    places: Int[Array, " b"],
    numbers: UInt32[Array, " b"],
    sampling: Sampling,
    statistics: bool,
    eos: tuple[int, ...],
) -> tuple[Rows, Float[Array, "l B D"]]:
    """Read new prompts into rows and choose each one's first token; a place outside the batch is dropped."""
    count, length = tokens.shape
    steps = jnp.broadcast_to(jnp.arange(length), (count, length))
    offset = 0 if prefix is None else prefix.length
    context = Context(
        cache=empty_cache(decoder.config, count, length, rows.cache[0].keys.dtype),
        slots=steps,
        mask=jnp.broadcast_to(jnp.tril(jnp.ones((length, length), bool)), (count, length, length)),
        prefix=prefix,
    )
    output = decoder(tokens, offset + steps, context)
    last = jnp.take_along_axis(output.hidden, (lengths - 1)[:, None, None], axis=1)[:, 0]
    logits = decoder.logits(last)
    seeds = jnp.uint32(sampling.seed) * jnp.uint32(0x9E3779B1) + numbers
    chosen = next_tokens(logits, seeds, jnp.zeros(count, jnp.int32), sampling)
    ends = _is_any(chosen, eos)
    cache = [
        KeyValues(
            old.keys.at[places, :, :, :length].set(new.keys, mode="drop"),
            old.values.at[places, :, :length].set(new.values, mode="drop"),
        )
        for old, new in zip(rows.cache, output.cache, strict=True)
    ]

    def put(old: Array, new: Array | int | bool) -> Array:
        return old.at[places].set(new, mode="drop")

    rows = Rows(
        cache=cache,
        token=put(rows.token, chosen),
        statistics=put(rows.statistics, token_statistics(logits, chosen)) if statistics else rows.statistics,
        filled=put(rows.filled, lengths),
        written=put(rows.written, 0),
        limit=put(rows.limit, sampling.max_tokens),
        active=put(rows.active, ~ends),
        stopped=put(rows.stopped, ends),
        seeds=put(rows.seeds, seeds),
    )
    return rows, sums.at[:, places].set(0.0, mode="drop")


@partial(jax.jit, static_argnums=(4, 5, 6), donate_argnums=1)
def _decode_chunk(
    decoder: Decoder,
    rows: Rows,
    prefix: Prefix | None,
    enough: Int[Array, ""],
    sampling: Sampling,
    features: FeatureRequest,
    eos: tuple[int, ...],
) -> tuple[Rows, Chunk]:
    """Up to CHUNK steps; ends early when no more than `enough` rows are active."""
    batch, slots = rows.cache[0].keys.shape[0], rows.cache[0].keys.shape[-1]
    offset = 0 if prefix is None else prefix.length
    chunk = Chunk(
        tokens=jnp.zeros((CHUNK, batch), jnp.int32),
        is_written=jnp.zeros((CHUNK, batch), bool),
        statistics=jnp.zeros((CHUNK, batch, 3)),
        states=jnp.zeros((CHUNK, len(features.layers), batch, decoder.config.hidden_size), jnp.float32),
    )

    def unfinished(carry: tuple[Int[Array, ""], Rows, Chunk]) -> Bool[Array, ""]:
        step, rows, _ = carry
        return (step < CHUNK) & (jnp.sum(rows.active) > jnp.where(step == 0, 0, enough))

    def advance(carry: tuple[Int[Array, ""], Rows, Chunk]) -> tuple[Int[Array, ""], Rows, Chunk]:
        step, rows, chunk = carry
        own_slot = jnp.where(rows.active, rows.filled, slots)
        context = Context(
            cache=rows.cache,
            slots=own_slot[:, None],
            mask=(jnp.arange(slots) <= rows.filled[:, None])[:, None],
            prefix=prefix,
        )
        output = decoder(rows.token[:, None], (offset + rows.filled)[:, None], context, features.layers)
        logits = decoder.logits(output.hidden[:, 0])
        chunk = Chunk(
            tokens=chunk.tokens.at[step].set(rows.token),
            is_written=chunk.is_written.at[step].set(rows.active),
            statistics=chunk.statistics.at[step].set(rows.statistics),
            states=chunk.states.at[step].set(output.states[:, :, 0].astype(jnp.float32)),
        )
        written = rows.written + rows.active
        chosen = next_tokens(logits, rows.seeds, written, sampling)
        ends = _is_any(chosen, eos)
        active = rows.active & ~ends & (written < rows.limit)
        rows = Rows(
            cache=output.cache,
            token=chosen,
            statistics=token_statistics(logits, chosen) if features.statistics else rows.statistics,
            filled=rows.filled + rows.active,
            written=written,
            limit=rows.limit,
            active=active,
            stopped=jnp.where(rows.active, ends, rows.stopped),
            seeds=rows.seeds,
        )
        return step + 1, rows, chunk

    _, rows, chunk = jax.lax.while_loop(unfinished, advance, (jnp.int32(0), rows, chunk))
    return rows, chunk


@partial(jax.jit, donate_argnums=0)
def _add_states(
    sums: Float[Array, "l B D"], states: Float[Array, "c l B D"], kept: Bool[Array, "c B"]
) -> Float[Array, "l B D"]:
    """Add the states of the tokens that belong to the reply."""
    return sums + jnp.sum(jnp.where(kept[:, None, :, None], states, 0.0), axis=0)


def _is_any(tokens: Int[Array, " B"], ids: tuple[int, ...]) -> Bool[Array, " B"]:
    return jnp.isin(tokens, jnp.asarray(ids, jnp.int32)) if ids else jnp.zeros(tokens.shape, bool)
