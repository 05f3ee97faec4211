"""Features of given text: one forward pass over each text, as if the model had written it."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from robust_jax.models.attention import Context, Prefix
from robust_jax.models.decoder import Decoder, empty_cache
from robust_jax.models.generation import SMALLEST_PREFIX, SMALLEST_STEP, Generator, read_shared, shared_prefix
from robust_jax.models.sharding import ROWS, fetch, on_mesh, split
from robust_jax.models.token_statistics import token_statistics
from robust_jax.shapes import half_octave
from robust_jax.types import FeatureRequest

LEAST_BATCH = 8
POSITIONS_AT_ONCE = 4
"""Positions of every row whose logits are in memory together: a vocabulary is wide."""


class Span(NamedTuple):
    """Text to score, after what it continues; the two together are within the context."""

    context: Sequence[int]
    """At least one token."""
    tokens: Sequence[int]

    @property
    def length(self) -> int:
        return len(self.context) + len(self.tokens)


class Scored(NamedTuple):
    """Means over a span's tokens; NaN if it has none."""

    hidden: Float[np.ndarray, "l D"]
    statistics: Float[np.ndarray, "3"]


def score_spans(generator: Generator, spans: Sequence[Span], features: FeatureRequest) -> list[Scored]:
    """Mean states at the tokens of each span and mean statistics of predicting them, in order.

    What all contexts begin with is read once. Spans of like length share a batch.
    """
    decoder, found = generator.decoder, dict[int, Scored]()
    is_long = [decoder.config.rope.is_long(span.length) for span in spans]
    for side in dict.fromkeys(is_long):
        order = sorted((i for i, other in enumerate(is_long) if other == side), key=lambda i: spans[i].length)
        batch = min(generator.batch_size, generator.whole(half_octave(len(order), LEAST_BATCH)))
        longest = jnp.int32(spans[order[-1]].length)
        common = shared_prefix([spans[index].context for index in order])
        common = common if common >= SMALLEST_PREFIX else 0
        with on_mesh(generator.mesh):
            prefix = read_shared(decoder, spans[order[0]].context[:common], longest) if common else None
            for start in range(0, len(order), batch):
                indices = order[start : start + batch]
                rows = _padded([spans[index] for index in indices], common, batch)
                width = half_octave(max(len(spans[index].tokens) for index in indices), SMALLEST_STEP)
                hidden, statistics = fetch(_span_means(decoder, rows, prefix, longest, width=width, features=features))
                for row, index in enumerate(indices):
                    found[index] = Scored(hidden[:, row], statistics[row])
    return [found[index] for index in range(len(spans))]


class _Rows(NamedTuple):
    tokens: Int[Array, "B T"]
    """What follows the shared prefix, padded on the right."""
    begins: Int[Array, " B"]
    """Where each row's span begins among them, at 1 or later."""
    ends: Int[Array, " B"]


def _padded(spans: Sequence[Span], common: int, batch: int) -> _Rows:
    tokens = np.zeros((batch, half_octave(max(span.length for span in spans) - common, SMALLEST_STEP)), np.int32)
    begins, ends = np.ones(batch, np.int32), np.ones(batch, np.int32)
    for row, span in enumerate(spans):
        begins[row], ends[row] = len(span.context) - common, span.length - common
        tokens[row, : ends[row]] = [*span.context[common:], *span.tokens]
    return _Rows(jnp.asarray(tokens), jnp.asarray(begins), jnp.asarray(ends))


@partial(jax.jit, static_argnames=("width", "features"))
def _span_means(
    decoder: Decoder,
    rows: _Rows,
    prefix: Prefix | None,
    longest: Int[Array, ""],
    *,
    width: int,
    features: FeatureRequest,
) -> tuple[Float[Array, "l B D"], Float[Array, "B 3"]]:
    """Means over the spans, which have at most `width` tokens."""
    batch, length = rows.tokens.shape
    steps = jnp.broadcast_to(jnp.arange(length), (batch, length))
    context, offset = None, jnp.int32(0)
    if prefix is not None:
        causal = jnp.broadcast_to(jnp.tril(jnp.ones((length, length), bool)), (batch, length, length))
        context = Context(empty_cache(decoder.config, batch, length, decoder.embed_tokens.dtype), steps, causal, prefix)
        offset = prefix.length
    output = decoder(
        split(rows.tokens, ROWS), offset + steps, context, features.layers, jnp.broadcast_to(longest, batch)
    )
    count = (rows.ends - rows.begins)[:, None]
    is_scored = (steps >= rows.begins[:, None]) & (steps < rows.ends[:, None])
    hidden = jnp.einsum(
        "lBTD,BT->lBD", output.states.astype(jnp.float32), is_scored.astype(jnp.float32), precision="highest"
    )
    statistics = jnp.full((batch, 3), jnp.nan)
    if features.statistics:
        places = jnp.minimum(rows.begins[:, None] + jnp.arange(width), length - 1)
        before = jnp.take_along_axis(output.hidden, places[:, :, None] - 1, axis=1)
        tokens = jnp.take_along_axis(rows.tokens, places, axis=1)
        per_token = jax.lax.map(
            lambda position: token_statistics(decoder.logits(position[0]), position[1]),
            (jnp.swapaxes(before, 0, 1), jnp.swapaxes(tokens, 0, 1)),
            batch_size=POSITIONS_AT_ONCE,
        )
        is_written = (jnp.arange(width)[:, None] < count[:, 0])[:, :, None]
        statistics = jnp.sum(jnp.where(is_written, per_token, 0.0), axis=0) / count
    return hidden / count, statistics
