"""Levenshtein distances of many responses from many references in one Triton kernel for NVIDIA GPUs.

The recurrence is that of `levenshtein_xla`: a column of the distance table as the signs of its vertical differences, 32
rows in a word, advanced by one token of the response with a dozen bit operations. Here a program compares one response
with a block of references, a thread each. All threads of a program read the same token, so that the match words they
need lie side by side in memory, and the state of a reference stays in the registers of its thread.

A reference of more than `MAX_WORDS` words is worked on in strips of equal size, from its start to its end. What a strip
hands to the next one, the horizontal differences in its last row, takes two bits a token of the response.

Instead of a score that would be tracked in every step, the bits of the last column are counted: the distance is the
response's length plus the sum of that column's vertical differences.
"""

import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from types import ModuleType
from typing import Any, no_type_check

import jax
import numpy as np
import triton
import triton.language as tl
from jaxtyping import Array, Int32, UInt32

from robust_jax.kernels.levenshtein_tables import WORD_BITS, BlockGroup, PatternTables, by_length
from robust_jax.shapes import power_of_two

_WORD_BITS = tl.constexpr(WORD_BITS)
_PREFETCH = 2
"""Token ids past the end of a response that the kernel reads, and makes nothing of."""
_RESPONSES_AT_ONCE = 4096
_CARRY_BYTES = 1 << 28
"""Scratch memory for the strips of long references."""
_KNOWN_TO_CUDA_12_9 = {90, 100, 103, 120, 121}
"""GPUs for which Triton uses its newer assembler although the older one knows them."""


@triton.jit
@no_type_check
def _count_bits(word):
    word = word - ((word >> 1) & 0x55555555)
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    return ((word * 0x01010101) >> 24).to(tl.int32)


@triton.jit
@no_type_check
def _last_column(table, row_size, unknown, text, text_length, lengths, carry, strips, WORDS: tl.constexpr):
    """Sum of the vertical differences in the last column, for every lane.

    Args:
        table: where the block's match words start, at every lane.
        row_size: words from the row of one token to that of the next.
        unknown: the last row, that of all ids from here on.
        text, text_length: the response.
        lengths: those of the references.
        carry: where the last rows of strips are kept, at every lane; touched only if there are several strips.
        strips: parts of the references.
        WORDS: words of a strip.
    """
    LANES: tl.constexpr = lengths.shape[0]
    zero = tl.zeros([LANES], tl.uint32)
    total = tl.zeros([LANES], tl.int32)
    for strip in range(strips):
        ups = ()
        downs = ()
        matches = ()
        row = table + tl.minimum(tl.load(text), unknown) * row_size
        for word in tl.static_range(WORDS):
            ups += (~zero,)
            downs += (zero,)
            matches += (tl.load(row + word * LANES),)
        token = tl.load(text + 1)

        # Strips hand on the bits of 32 tokens in a word, the first token's on top.
        for start in range(0, text_length, _WORD_BITS):
            stop = tl.minimum(start + _WORD_BITS, text_length)
            slot = carry + start // _WORD_BITS * (2 * LANES)
            # Above the first strip is the first row of the table, 0, 1, 2, …
            above_up = tl.load(slot, mask=strip > 0, other=0xFFFFFFFF)
            above_down = tl.load(slot + LANES, mask=strip > 0, other=0)
            below_up = zero
            below_down = zero
            for position in range(start, stop):
                # The match words of the next token are on their way while this one is worked on.
                row = table + tl.minimum(token, unknown) * row_size
                token = tl.load(text + position + 2)
                new_ups = ()
                new_downs = ()
                new_matches = ()
                rise_above = above_up
                fall_above = above_down
                for word in tl.static_range(WORDS):
                    up = ups[word]
                    down = downs[word]
                    match = matches[word]
                    new_matches += (tl.load(row + word * LANES),)
                    # A fall in the row above is the carry of the word above into this word's addition.
                    carry_in = fall_above >> 31
                    added = (match & up) + up + carry_in
                    rise = down | ~(added | up | match)
                    fall = up & (match | ~added)
                    shifted_rise = (rise << 1) | (rise_above >> 31)
                    shifted_fall = (fall << 1) | carry_in
                    stays = match | down
                    new_ups += (shifted_fall | ~(stays | shifted_rise),)
                    new_downs += (shifted_rise & stays,)
                    rise_above = rise
                    fall_above = fall
                ups = new_ups
                downs = new_downs
                matches = new_matches
                above_up <<= 1
                above_down <<= 1
                below_up = (below_up << 1) | (rise_above >> 31)
                below_down = (below_down << 1) | (fall_above >> 31)
            if strip + 1 < strips:
                shift = _WORD_BITS - (stop - start)
                tl.store(slot, below_up << shift)
                tl.store(slot + LANES, below_down << shift)

        for word in tl.static_range(WORDS):
            rows = tl.minimum(tl.maximum(lengths - (strip * WORDS + word) * _WORD_BITS, 0), _WORD_BITS)
            inside = tl.where(rows == _WORD_BITS, ~zero, (zero + 1 << rows.to(tl.uint32) % 32) - 1)
            total += _count_bits(ups[word] & inside) - _count_bits(downs[word] & inside)
        table += WORDS * LANES
        tl.debug_barrier()  # what this strip has stored is what the next one loads
    return total


@triton.jit
@no_type_check
def distances_kernel(
    matches,
    descriptions,
    lengths,
    texts,
    text_starts,
    carry_size,
    distances,
    carry,
    WORDS: tl.constexpr,
    LANES: tl.constexpr,
):
    """Distances of one response (first axis of the grid) from one block of references (second axis).

    Args:
        matches, descriptions, lengths: those of a `BlockGroup`.
        texts, text_starts: the responses' token ids, one response after the other, and where each starts and ends.
        carry_size: words that a program keeps for its next strip.
        distances: [C, B, LANES], the result.
        carry: scratch memory of the programs with several strips.
        WORDS: words of a strip.
        LANES: references of a block.
    """
    response = tl.program_id(0)
    block = tl.program_id(1)
    lane = tl.arange(0, LANES)
    description = descriptions + block * 4
    first_row = tl.load(description).to(tl.int64)
    unknown = tl.load(description + 1)
    strips = tl.load(description + 2)
    chain = tl.load(description + 3).to(tl.int64)
    text_start = tl.load(text_starts + response)
    text_length = tl.load(text_starts + response + 1) - text_start
    total = _last_column(
        matches + first_row * LANES + lane,
        strips * WORDS * LANES,
        unknown,
        texts + text_start,
        text_length,
        tl.load(lengths + block * LANES + lane),
        carry + (chain * tl.num_programs(0) + response) * carry_size + lane,
        strips,
        WORDS,
    )
    tl.store(distances + (response * tl.num_programs(1) + block) * LANES + lane, text_length + total)


Launch = Callable[[BlockGroup, Int32[np.ndarray, " n"], Int32[np.ndarray, " edges"], int], Any]
"""Runs the kernel for all responses and all blocks of a group; see `launch_on_gpu`."""


def levenshtein_distances(
    responses: Sequence[Sequence[int]], tables: PatternTables, launch: Launch | None = None
) -> Int32[np.ndarray, "C R"]:
    """Insertions, deletions and substitutions that turn each reference into each response, at least.

    Args:
        responses: C sequences of token ids, not negative. An id that no reference holds is equal to nothing.
        tables: R references.
        launch: runs the kernel; by default through JAX on a GPU.
    """
    launch = launch or launch_on_gpu
    distances = np.zeros((len(responses), len(tables.references)), np.int32)
    pending = []
    for rows in by_length(responses, _responses_at_once(responses, tables)):
        texts, starts = _pack_texts([responses[row] for row in rows[::-1]])
        stretches = -(-len(responses[rows[-1]]) // WORD_BITS)
        for group in tables.groups:
            carry_size = 2 * tables.lanes * power_of_two(stretches) if group.chains else 0
            pending.append((rows[::-1], group, launch(group, texts, starts, carry_size)))
    for rows, group, found in pending:
        for block, block_distances in zip(group.blocks, np.moveaxis(np.asarray(found), 1, 0), strict=False):
            distances[np.ix_(rows, block.columns)] = block_distances[: len(rows), : len(block.columns)]
    return distances


def _responses_at_once(responses: Sequence[Sequence[int]], tables: PatternTables) -> int:
    """Few enough for the scratch memory."""
    chains = max((group.chains for group in tables.groups), default=0)
    longest = max(map(len, responses), default=0)
    carry_bytes = chains * 2 * tables.lanes * 4 * power_of_two(-(-longest // WORD_BITS))
    return min(_RESPONSES_AT_ONCE, max(1, _CARRY_BYTES // max(carry_bytes, 1)))


def _pack_texts(texts: Sequence[Sequence[int]]) -> tuple[Int32[np.ndarray, " n"], Int32[np.ndarray, " edges"]]:
    """Token ids of all responses, and where each starts; the last ones may be empty ones that pad the batch."""
    ends = np.cumsum([len(text) for text in texts])
    count = int(ends[-1])
    packed = np.zeros(power_of_two(count + _PREFETCH, 1024), np.int32)
    packed[:count] = np.fromiter(chain.from_iterable(texts), np.int32, count)
    starts = np.full(power_of_two(len(texts), 8) + 1, count, np.int32)
    starts[0] = 0
    starts[1 : len(texts) + 1] = ends
    return packed, starts


def launch_on_gpu(
    group: BlockGroup, texts: Int32[np.ndarray, " n"], starts: Int32[np.ndarray, " edges"], carry_size: int
) -> Int32[Array, "c B lanes"]:
    """Run the kernel on JAX's default device, which must be an NVIDIA GPU.

    Args:
        group: B blocks of references.
        texts: token ids of c responses, one after the other, and two more.
        starts: where each response starts, and where the last one ends.
        carry_size: words that one program hands from strip to strip.
    """
    capability = round(10 * float(jax.devices()[0].compute_capability))
    arrays = group.matches, group.descriptions, group.lengths, texts, starts
    with widely_readable(capability):
        return call_kernel(*arrays, group.words, group.chains, carry_size, capability)


@partial(jax.jit, static_argnames=("words", "chains", "carry_size", "compute_capability"))
def call_kernel(
    matches: UInt32[Array, "rows lanes"],
    descriptions: Int32[Array, "B 4"],
    lengths: Int32[Array, "B lanes"],
    texts: Int32[Array, " n"],
    starts: Int32[Array, " edges"],
    words: int,
    chains: int,
    carry_size: int,
    compute_capability: int,
) -> Int32[Array, "c B lanes"]:
    """The kernel as a JAX function, see `launch_on_gpu`; 90 is the compute capability of an H100."""
    blocks, lanes = lengths.shape
    responses = len(starts) - 1
    outputs = (
        jax.ShapeDtypeStruct((responses, blocks, lanes), np.int32),
        jax.ShapeDtypeStruct((max(1, chains * responses * carry_size),), np.uint32),
    )
    triton_call = _jax_triton().triton_call
    name_of_outputs = "out_type" if "out_type" in inspect.signature(triton_call).parameters else "out_shape"
    distances, _ = triton_call(
        matches,
        descriptions,
        lengths,
        texts,
        starts,
        carry_size,
        kernel=distances_kernel,
        grid=(responses, blocks),
        num_warps=1,
        compute_capability=compute_capability,
        WORDS=words,
        LANES=lanes,
        **{name_of_outputs: outputs},
    )
    return distances


@contextmanager
def widely_readable(compute_capability: int) -> Iterator[None]:
    """While it lasts, Triton writes PTX for the older of the two assemblers that it brings, that of CUDA 12.9.

    What JAX gets is assembled later, by JAX's CUDA or by the driver, and the newer assembler's version of PTX is beyond
    most drivers and all of CUDA 12.
    """
    with triton.knobs.nvidia.scope():
        if compute_capability in _KNOWN_TO_CUDA_12_9:
            triton.knobs.nvidia.ptxas_blackwell = triton.knobs.nvidia.ptxas.path
        yield


def _jax_triton() -> ModuleType:
    """jax-triton, which would leave the environment of other users of Triton with an empty cache directory."""
    cache_directory = os.environ.get("TRITON_CACHE_DIR")
    import jax_triton

    os.environ.pop("TRITON_CACHE_DIR", None)
    if cache_directory is not None:
        os.environ["TRITON_CACHE_DIR"] = cache_directory
    return jax_triton
