"""Match words of references in blocks, as the Triton kernel reads them. A block that is full never changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
from jaxtyping import Int32, Int64, UInt32

from robust_jax.shapes import power_of_two

WORD_BITS = 32
LANES = 32
"""References of a block: a warp of the GPU works on a block, a thread on a reference."""
MAX_WORDS = 8
"""Words of a reference that a thread holds in registers. A longer reference is cut into strips of equal size."""


def match_bits(
    patterns: Sequence[Sequence[int]],
) -> tuple[Int64[np.ndarray, " n"], Int64[np.ndarray, " n"], Int64[np.ndarray, " n"], UInt32[np.ndarray, " n"]]:
    """Word, token id, pattern and bit of all n tokens of some patterns: bit i of word w is position 32·w + i."""
    lengths = np.array([len(pattern) for pattern in patterns], np.int64)
    count = int(lengths.sum())
    position = np.arange(count) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    token = np.fromiter(chain.from_iterable(patterns), np.int64, count)
    bit = np.left_shift(np.uint32(1), (position % WORD_BITS).astype(np.uint32))
    return position // WORD_BITS, token, np.repeat(np.arange(len(patterns)), lengths), bit


def by_length(sequences: Sequence[Sequence[int]], size: int) -> list[Int64[np.ndarray, " n"]]:
    """Indices of the sequences from short to long, in groups of `size` at most."""
    order = np.argsort(np.array([len(sequence) for sequence in sequences], np.int64), kind="stable")
    return [order[start : start + size] for start in range(0, len(order), size)]


@dataclass(frozen=True, eq=False)
class Block:
    """Up to `lanes` references that are compared with a response at once."""

    columns: Int64[np.ndarray, " n"]
    """Which references they are."""
    lengths: Int32[np.ndarray, " lanes"]
    """Tokens of each; 0 where there is no reference."""
    words: int
    """Words of a strip."""
    matches: UInt32[np.ndarray, "rows all_words lanes"]
    """Bit i of `matches[token, w]` says whether the token stands at position 32·w + i. The last row is empty: it serves
    all ids that no reference held when the block was made."""

    @classmethod
    def of(
        cls, columns: Int64[np.ndarray, " n"], references: Sequence[Sequence[int]], vocabulary_size: int, lanes: int
    ) -> "Block":
        """The references of these numbers."""
        chosen = [references[column] for column in columns]
        lengths = np.zeros(lanes, np.int32)
        lengths[: len(chosen)] = [len(reference) for reference in chosen]
        needed = max(1, -(-int(lengths.max()) // WORD_BITS))
        strips = -(-needed // MAX_WORDS)
        words = -(-needed // strips)
        matches = np.zeros((vocabulary_size + 1, strips * words, lanes), np.uint32)
        word, token, lane, bit = match_bits(chosen)
        np.bitwise_or.at(matches, (token, word, lane), bit)
        return cls(columns, lengths, words, matches)

    @property
    def strips(self) -> int:
        """Parts of the references that are worked on one after the other."""
        return self.matches.shape[1] // self.words


@dataclass(frozen=True, eq=False)
class BlockGroup:
    """B blocks with equally many words a strip, as the arrays that the kernel takes."""

    words: int
    blocks: tuple[Block, ...]

    @cached_property
    def descriptions(self) -> Int32[np.ndarray, "B 4"]:
        """Of every block: its first row in `matches`, its last token id, its strips, and its number among the blocks of
        several strips.
        """
        rows = np.array([block.matches.size // self.lanes for block in self.blocks])
        strips = np.array([block.strips for block in self.blocks])
        last = np.array([len(block.matches) - 1 for block in self.blocks])
        described = np.stack([np.cumsum(rows) - rows, last, strips, np.cumsum(strips > 1) - (strips > 1)], axis=1)
        return self._padded(described.astype(np.int32))

    @cached_property
    def lengths(self) -> Int32[np.ndarray, "B lanes"]:
        """Tokens of every reference."""
        return self._padded(np.stack([block.lengths for block in self.blocks]))

    @property
    def matches(self) -> UInt32[np.ndarray, "rows lanes"]:
        """Match words of all blocks, one block after the other."""
        rows = sum(block.matches.size // self.lanes for block in self.blocks)
        joined = np.zeros((power_of_two(rows, 1024), self.lanes), np.uint32)
        np.concatenate([block.matches.reshape(-1, self.lanes) for block in self.blocks], out=joined[:rows])
        return joined

    @property
    def chains(self) -> int:
        """For how many blocks of several strips there is room: a power of two, or 0."""
        count = sum(block.strips > 1 for block in self.blocks)
        return power_of_two(count) if count else 0

    @property
    def lanes(self) -> int:
        """References of a block."""
        return len(self.blocks[0].lengths)

    def _padded(self, rows: Int32[np.ndarray, "b n"]) -> Int32[np.ndarray, "B n"]:
        """With rows of zeros, of which the kernel makes nothing: no strips, no tokens."""
        return np.concatenate([rows, np.zeros((power_of_two(len(rows)) - len(rows), rows.shape[1]), np.int32)])


@dataclass(frozen=True, eq=False)
class PatternTables:
    """References of one template, prepared once to be compared with many responses."""

    references: tuple[Sequence[int], ...]
    """Their token ids, R of them."""
    blocks: tuple[Block, ...]
    """Every reference, in one block each; none but the last block has room left."""
    lanes: int = LANES
    """References of a block."""

    @classmethod
    def of(cls, references: Sequence[Sequence[int]], vocabulary_size: int, lanes: int = LANES) -> "PatternTables":
        """Tables of references whose token ids are below `vocabulary_size`."""
        return cls((), (), lanes).extended(references, vocabulary_size)

    def extended(self, more: Sequence[Sequence[int]], vocabulary_size: int) -> "PatternTables":
        """These references and more, whose ids are below a `vocabulary_size` that may have grown.

        Full blocks are taken over: a token that is new occurs in none of their references, and they know it as such.
        """
        references = (*self.references, *more)
        full = [block for block in self.blocks if len(block.columns) == self.lanes]
        places = np.ones(len(references), bool)
        for block in full:
            places[block.columns] = False
        rest = np.flatnonzero(places)
        groups = by_length([references[column] for column in rest], self.lanes)
        new = [Block.of(rest[group], references, vocabulary_size, self.lanes) for group in groups]
        return PatternTables(references, (*full, *new), self.lanes)

    @cached_property
    def groups(self) -> tuple[BlockGroup, ...]:
        """The blocks by their words a strip."""
        sizes = sorted({block.words for block in self.blocks})
        return tuple(
            BlockGroup(words, tuple(block for block in self.blocks if block.words == words)) for words in sizes
        )

    @property
    def nbytes(self) -> int:
        """Memory of the match words."""
        return sum(block.matches.nbytes for block in self.blocks)
