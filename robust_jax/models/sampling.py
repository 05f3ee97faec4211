"""Choosing the next token, row by row: every row may be drawn in its own way."""

from collections.abc import Sequence
from typing import Literal, NamedTuple
from zlib import crc32

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt32

from robust_jax.types import Sampling

DrawKind = Literal["greedy", "plain", "truncated"]
"""What the hardest row of a batch needs: no draw, a draw from the whole vocabulary, or one from a part of it."""


class Draws(NamedTuple):
    """How each row is drawn."""

    seed: UInt32[Array, " B"]
    temperature: Float[Array, " B"]
    """0 is greedy."""
    top_p: Float[Array, " B"]
    top_k: Int[Array, " B"]
    """0 keeps the whole vocabulary."""


def draw_kind(samplings: Sequence[Sampling]) -> DrawKind:
    """The least that serves all of them; sorting a vocabulary is too dear for rows that need no sorting."""
    drawn = [sampling for sampling in samplings if sampling.temperature > 0]
    if not drawn:
        return "greedy"
    return "truncated" if any(sampling.top_k or sampling.top_p < 1.0 for sampling in drawn) else "plain"


def row_seed(prompt: Sequence[int], seed: int, occurrence: int) -> int:
    """What a reply's draws follow from: its prompt's tokens, the seed asked for, and which reply to it this is.

    Neither the other prompts of a call nor their order matter, so a reply asked alone is the same.
    """
    return crc32(np.array([seed & 0xFFFFFFFF, occurrence, *prompt], np.uint32).tobytes())


def next_tokens(
    logits: Float[Array, "B V"], draws: Draws, positions: Int[Array, " B"], kind: DrawKind
) -> Int[Array, " B"]:
    """The tokens that follow: the likeliest at temperature 0, otherwise drawn from the truncated distribution.

    Top-k comes first; top-p then counts within what it left, and always keeps the likeliest token. A row's draw depends
    on its own seed and position alone, never on the batch it is in.
    """
    likeliest = jnp.argmax(logits, axis=-1).astype(jnp.int32)
    if kind == "greedy":
        return likeliest
    is_drawn = draws.temperature > 0
    logits = logits / jnp.where(is_drawn, draws.temperature, 1.0)[:, None]
    if kind == "truncated":
        logits = jnp.where(logits < _threshold(logits, draws)[:, None], -jnp.inf, logits)
    keys = jax.vmap(lambda seed, position: jax.random.fold_in(jax.random.key(seed), position))(draws.seed, positions)
    drawn = jax.vmap(jax.random.categorical)(keys, logits).astype(jnp.int32)
    return jnp.where(is_drawn, drawn, likeliest)


def _threshold(logits: Float[Array, "B V"], draws: Draws) -> Float[Array, " B"]:
    """The least logit that top-k and top-p leave in each row."""
    size = logits.shape[-1]
    descending = jnp.sort(logits, axis=-1, descending=True)
    in_top_k = jnp.arange(size) < jnp.where(draws.top_k > 0, draws.top_k, size)[:, None]
    probabilities = jax.nn.softmax(jnp.where(in_top_k, descending, -jnp.inf), axis=-1)
    mass_before = jnp.cumsum(probabilities, axis=-1) - probabilities
    # The token that crosses the threshold stays, so the likeliest one always does.
    kept = in_top_k & ((mass_before < draws.top_p[:, None]) | (jnp.arange(size) == 0))
    return jnp.min(jnp.where(kept, descending, jnp.inf), axis=-1)
