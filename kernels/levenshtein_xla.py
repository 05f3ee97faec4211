"""Levenshtein distances of many responses from many references in plain JAX.

A column of the distance table is held as the signs of its vertical differences, 32 rows of the table in an unsigned
word, and advanced by one text token with a dozen bit operations (Myers 1999, in the block form of Hyyrö 2003). The
reference is the pattern, whose rows lie in the bits; the response is the text.

A word needs the horizontal difference that leaves the word above it in the same column. So word w works on text
position t − w in step t, and all words of all pairs advance in one vector operation: nothing is unrolled, and the
program does not grow with the length of the sequences.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32, UInt32

from robust_jax.kernels.levenshtein_tables import WORD_BITS, by_length, match_bits
from robust_jax.shapes import half_octave, power_of_two

_REFERENCES_AT_ONCE = 128
# On a CPU the state of a block (16 bytes a word and pair) has to stay in the cache; elsewhere it has to fill the chip.
_RESPONSES_AT_ONCE_ON_CPU = 16
_RESPONSES_AT_ONCE = 256


def levenshtein_distances(
    responses: Sequence[Sequence[int]], references: Sequence[Sequence[int]], vocabulary_size: int
) -> Int32[np.ndarray, "C R"]:
    """Insertions, deletions and substitutions that turn each reference into each response, at least.

    Args:
        responses: C sequences of token ids. Ids of `vocabulary_size` and above stand for tokens that no reference
            holds: they are equal to nothing.
        references: R sequences of token ids below `vocabulary_size`.
        vocabulary_size: number of distinct tokens of the references.

    Sequences are sorted by length, so that those that share a block have about as much work, and padded to a small
    set of shapes, so that compilations do not grow with the number of calls.
    """
    block = _RESPONSES_AT_ONCE_ON_CPU if jax.default_backend() == "cpu" else _RESPONSES_AT_ONCE
    distances = np.zeros((len(responses), len(references)), np.int32)
    pending = []
    texts = [
        (rows, *_pack_texts([responses[row] for row in rows], vocabulary_size)) for rows in by_length(responses, block)
    ]
    for columns in by_length(references, _REFERENCES_AT_ONCE):
        matches, tails = _pack_patterns([references[column] for column in columns], vocabulary_size)
        device_matches = jnp.asarray(matches)
        for rows, text, lengths in texts:
            steps = np.int32(lengths.max() + len(matches) - 1)
            pending.append((rows, columns, _advance_all(device_matches, tails, text, lengths, steps)))
    for rows, columns, block_distances in pending:
        distances[np.ix_(rows, columns)] = np.asarray(block_distances)[: len(rows), : len(columns)]
    return distances


def _pack_texts(
    texts: Sequence[Sequence[int]], vocabulary_size: int
) -> tuple[Int32[np.ndarray, "c T"], Int32[np.ndarray, " c"]]:
    lengths = np.zeros(power_of_two(len(texts), 8), np.int32)
    lengths[: len(texts)] = [len(text) for text in texts]
    packed = np.full((len(lengths), power_of_two(int(lengths.max()), 256)), vocabulary_size, np.int32)
    for row, text in enumerate(texts):
        packed[row, : len(text)] = text
    return np.minimum(packed, vocabulary_size), lengths


def _pack_patterns(
    patterns: Sequence[Sequence[int]], vocabulary_size: int
) -> tuple[UInt32[np.ndarray, "W V r"], UInt32[np.ndarray, "W r"]]:
    """Bit i of word w of `matches[:, token, r]` says whether token stands at position 32·w + i of pattern r.

    The row of the id `vocabulary_size`, of the unknown token, is empty. The second array has a bit for every position
    that exists.
    """
    words = half_octave(max(1, -(-max(map(len, patterns)) // WORD_BITS)))
    shape = words, power_of_two(vocabulary_size + 1, 1024), power_of_two(len(patterns), 8)
    word, token, column, bit = match_bits(patterns)
    matches, tails = np.zeros(shape, np.uint32), np.zeros((words, shape[2]), np.uint32)
    np.bitwise_or.at(matches, (word, token, column), bit)
    np.bitwise_or.at(tails, (word, column), bit)
    return matches, tails


@jax.jit
def _advance_all(
    matches: UInt32[Array, "W V r"],
    tails: UInt32[Array, "W r"],
    text: Int32[Array, "c T"],
    lengths: Int32[Array, " c"],
    steps: Int32[Array, ""],
) -> Int32[Array, "c r"]:
    """Distances of a block. A step that is outside a text leaves the vertical differences as they are."""
    words, _, num_patterns = matches.shape
    num_texts, width = text.shape
    shape = words, num_texts, num_patterns
    word = jnp.arange(words)
    top_difference = jnp.ones((1, num_texts, num_patterns), jnp.uint32)  # row 0 of the table is 0, 1, 2, …

    def step(t: Int32[Array, ""], state: tuple[Array, ...]) -> tuple[Array, ...]:
        up, down, right_up, right_down = state
        position = t - word
        tokens = text[:, jnp.clip(position, 0, width - 1)].T
        match = jax.vmap(lambda table, token: table[token])(matches, tokens)
        enter_up = jnp.concatenate([top_difference, right_up[:-1]])
        enter_down = jnp.concatenate([jnp.zeros_like(top_difference), right_down[:-1]])

        may_stay = match | down
        match = match | enter_down
        diagonal = (((match & up) + up) ^ up) | match
        rise, fall = down | ~(diagonal | up), up & diagonal
        leave_up, leave_down = rise >> (WORD_BITS - 1), fall >> (WORD_BITS - 1)
        rise, fall = (rise << 1) | enter_up, (fall << 1) | enter_down

        inside = ((position[:, None] >= 0) & (position[:, None] < lengths))[:, :, None]
        up = jnp.where(inside, fall | ~(may_stay | rise), up)
        down = jnp.where(inside, rise & may_stay, down)
        return up, down, leave_up, leave_down

    zeros = jnp.zeros(shape, jnp.uint32)
    up, down, _, _ = jax.lax.fori_loop(0, steps, step, (~zeros, zeros, zeros, zeros))
    count = jax.lax.population_count
    rises = count(up & tails[:, None]).astype(jnp.int32) - count(down & tails[:, None]).astype(jnp.int32)
    return lengths[:, None] + rises.sum(0)
