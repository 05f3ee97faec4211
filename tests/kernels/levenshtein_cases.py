"""Sequences to compare, and what their distances are: for the tests of every implementation."""

from collections.abc import Sequence

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

EDGES = [0, 1, 2, 31, 32, 33, 63, 64, 65]
"""Lengths around those of whole words."""


def rapidfuzz_distances(responses: Sequence[Sequence[int]], references: Sequence[Sequence[int]]) -> np.ndarray:
    return process.cdist(responses, references, scorer=Levenshtein.distance, dtype=np.int32)


def textbook_distance(a: Sequence[int], b: Sequence[int]) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (x != y)))
    return row[-1]


def sequences(rng: np.random.Generator, lengths: Sequence[int], symbols: int) -> list[list[int]]:
    return [rng.integers(0, symbols, length).tolist() for length in lengths]


def edited(rng: np.random.Generator, original: Sequence[int], symbols: int, share: float) -> list[int]:
    """A copy in which about that share of the tokens is deleted, replaced or followed by another one."""
    copy = []
    for token in original:
        match rng.integers(3) if rng.random() < share else None:
            case None:
                copy.append(token)
            case 1:
                copy.append(int(rng.integers(symbols)))
            case 2:
                copy += [token, int(rng.integers(symbols))]
    return copy


def random_pairs(num_responses: int, num_references: int, longest: int) -> tuple[list[list[int]], list[list[int]], int]:
    """Responses and references of all lengths, some of them near copies, and the number of distinct tokens.

    Tokens are as unequally frequent as words; some of the responses' are in no reference.
    """
    rng = np.random.default_rng(num_responses + num_references + longest)
    symbols = 60
    frequency = 1 / np.arange(1, symbols + 1)
    weights = frequency / frequency.sum()
    lengths = rng.integers(0, longest + 1, num_references)
    references = [rng.choice(symbols, length, p=weights).tolist() for length in lengths]
    responses = [
        edited(rng, references[rng.integers(num_references)], symbols + 5, share)[:longest]
        for share in rng.random(num_responses)
    ]
    return responses, references, symbols
