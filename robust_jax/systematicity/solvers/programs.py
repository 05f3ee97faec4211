"""Finding the shortest programs that explain all examples, by enumeration (paper Section 4.3).

What an operation does depends on the length of a list alone: for every length it takes elements of the list, or its own
literal, to new places. A table holds those places; it comes from running the operation itself on a list of places. The
lengths of the examples alone rule out nearly all programs; those left run together on one example after another.
"""

from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import product

import numpy as np
from jaxtyping import Int, Int16

from robust_jax.systematicity.rules.programs import LITERALS, REPEAT_LENGTHS, List, Operation, Program
from robust_jax.systematicity.task import Example

MOST = 3
"""Operations of the longest programs that are tried."""
LITERAL = 1_000
"""Stands, with an element added, in place of a place that an element is taken from."""

OPERATIONS = tuple(Operation(name, literals) for name, choices in LITERALS.items() for literals in product(*choices))

Chains = Int16[np.ndarray, "P size"]
"""Programs, each a row of numbers of operations."""


def solve(support: Sequence[Example[List, List]], queries: Sequence[List]) -> list[List] | None:
    """What all of the shortest programs that explain the support give for the queries; None where they differ."""
    programs = shortest_programs(tuple(support))
    answers = [[program(query) for query in queries] for program in programs]
    return answers[0] if answers and all(answer == answers[0] for answer in answers) else None


@lru_cache(maxsize=4)
def shortest_programs(support: tuple[Example[List, List], ...]) -> tuple[Program, ...]:
    """All programs with the fewest operations that explain the support; none where `MOST` do not suffice."""
    # The longest lists tell programs apart best, so they are looked at first.
    ordered = sorted(support, key=lambda example: -len(example.x))
    lengths = tuple(len(example.x) for example in ordered)
    width = max(*lengths, *REPEAT_LENGTHS) + MOST + 1
    if any(len(example.y) >= width for example in support):
        return ()
    (wanted,) = _signature(np.array([[len(example.y) for example in ordered]]))
    for size in range(MOST + 1):
        chains = _chains(size)[_signatures(size, lengths, width) == wanted]
        for example in ordered:
            chains = chains[(_run(chains, example.x, width) == _padded(example.y, width)).all(axis=-1)]
        if len(chains):
            return tuple(Program(tuple(OPERATIONS[row] for row in chain)) for chain in chains.tolist())
    return ()


@cache
def _chains(size: int) -> Chains:
    """All programs of so many operations."""
    return np.indices((len(OPERATIONS),) * size, np.int16).reshape(size, len(OPERATIONS) ** size).T


@cache
def _places(width: int) -> tuple[Int16[np.ndarray, "O N W"], Int16[np.ndarray, "O N"]]:
    """For every operation and length of a list: where each element of the result comes from, and how many there are."""
    places = np.full((len(OPERATIONS), width, width), -1, np.int16)
    lengths = np.zeros((len(OPERATIONS), width), np.int16)
    for row, operation in enumerate(OPERATIONS):
        if operation.name == "insert":
            position, element = operation.literals
            operation = Operation("insert", (position, LITERAL + element))
        for length in range(width):
            result = operation(tuple(range(length)))[:width]
            places[row, length, : len(result)] = result
            lengths[row, length] = len(result)
    return places, lengths


@lru_cache(maxsize=8)
def _signatures(size: int, lengths: tuple[int, ...], width: int) -> Int[np.ndarray, " P"]:
    """One number for the lengths that each program makes of lists of these lengths."""
    chains, (_, new_lengths) = _chains(size), _places(width)
    made = np.tile(np.array(lengths, np.int16), (len(chains), 1))
    for operations in chains.T:
        made = new_lengths[operations[:, None], made]
    return _signature(made)


def _signature(lengths: Int[np.ndarray, "P E"]) -> Int[np.ndarray, " P"]:
    """Lengths as one number; numbers that wrap around may clash, and the lists then differ."""
    return lengths.astype(np.int64) @ (np.int64(61) ** np.arange(lengths.shape[-1]))


def _run(chains: Chains, x: List, width: int) -> Int16[np.ndarray, "P W"]:
    """What each program makes of a list, with -1 behind its end."""
    places, new_lengths = _places(width)
    elements = np.tile(_padded(x, width), (len(chains), 1))
    lengths = np.full(len(chains), len(x))
    for operations in chains.T:
        taken = places[operations, lengths]
        moved = np.take_along_axis(elements, taken.clip(0, width - 1).astype(np.intp), axis=-1)
        elements = np.where(taken >= LITERAL, taken - np.int16(LITERAL), np.where(taken < 0, np.int16(-1), moved))
        lengths = new_lengths[operations, lengths]
    return elements


def _padded(x: List, width: int) -> Int16[np.ndarray, " W"]:
    return np.array([*x, *[-1] * (width - len(x))], np.int16)
