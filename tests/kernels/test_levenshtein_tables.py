"""Blocks of references hold every reference once, bit for bit, and growing leaves the full ones alone."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from robust_jax.kernels.levenshtein_tables import MAX_WORDS, WORD_BITS, PatternTables
from tests.kernels.levenshtein_cases import sequences

patterns = st.lists(st.lists(st.integers(0, 4), max_size=70), max_size=12)


def decoded(tables: PatternTables) -> dict[int, list[int]]:
    """The references, read back from the bits."""
    found = {}
    for block in tables.blocks:
        bits = (block.matches[..., None] >> np.arange(WORD_BITS, dtype=np.uint32)) & 1
        rows, lanes = len(bits), bits.shape[2]
        by_position = bits.transpose(2, 1, 3, 0).reshape(lanes, -1, rows)
        assert not by_position[:, :, -1].any()
        for lane, column in enumerate(block.columns):
            inside = by_position[lane, : block.lengths[lane]]
            assert (inside.sum(axis=1) == 1).all()
            assert not by_position[lane, block.lengths[lane] :].any()
            assert column not in found
            found[column] = inside.argmax(axis=1).tolist()
    return found


@given(patterns)
def test_every_reference_is_in_the_bits(references: list[list[int]]) -> None:
    assert decoded(PatternTables.of(references, 5, lanes=4)) == dict(enumerate(references))


@given(patterns, patterns, patterns)
def test_growing_keeps_full_blocks(first: list[list[int]], second: list[list[int]], third: list[list[int]]) -> None:
    tables = PatternTables.of(first, 5, lanes=4)
    together = first
    for more in (second, third):
        before, tables = tables, tables.extended(more, 5)
        together = together + more
        assert list(tables.references) == together
        assert decoded(tables) == dict(enumerate(together))
        full = [block for block in before.blocks if len(block.columns) == 4]
        assert all(old is new for old, new in zip(full, tables.blocks, strict=False))
        assert all(len(block.columns) == 4 for block in tables.blocks[:-1])


def test_long_references_are_cut_evenly() -> None:
    rng = np.random.default_rng(0)
    for length in [0, 1, 32, 33, 256, 257, 544, 545, 2000]:
        (block,) = PatternTables.of(sequences(rng, [length], 3), 3).blocks
        needed = -(-length // WORD_BITS)
        assert block.words <= MAX_WORDS
        assert needed <= block.words * block.strips < max(needed, 1) + block.strips


def test_arrays_of_a_group() -> None:
    rng = np.random.default_rng(1)
    tables = PatternTables.of(sequences(rng, [0, 5, 31, 40, 64, 300, 300, 500], 6), 6, lanes=2)
    places = []
    for group in tables.groups:
        assert len(group.descriptions) == len(group.lengths) >= len(group.blocks)
        chains = 0
        for block, (start, last, strips, chain) in zip(group.blocks, group.descriptions, strict=False):
            assert block.words == group.words
            rows = group.matches[start : start + block.matches.size // 2]
            np.testing.assert_array_equal(rows.reshape(block.matches.shape), block.matches)
            assert (last, strips, chain) == (6, block.strips, chains)
            chains += block.strips > 1
            places += block.columns.tolist()
        assert chains <= group.chains < 2 * max(chains, 1)
        assert bool(group.chains) == bool(chains)
        assert not group.descriptions[len(group.blocks) :].any()
    assert sorted(places) == list(range(8))
