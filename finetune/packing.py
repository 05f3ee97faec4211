"""Which rows each step learns from, and how they are laid side by side into lines of one length.

Every micro-batch becomes an array of the same shape, so a whole training run is one compilation. A line holds as many
rows as fit; none sees another, and each counts its positions from 0, so a packed row is read as if it stood alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from robust_jax.finetune.rows import Row
from robust_jax.models.sharding import whole
from robust_jax.randomness import rng
from robust_jax.shapes import half_octave

STEP = 8
"""Lengths of lines are multiples of so many tokens."""
LONGEST_LINE = 4
"""Lines are at most about so many times as long as the longest row: attention pays for the square of a line."""


class Batch(NamedTuple):
    """B lines of T tokens with at most M targets each; a leading axis, where there is one, counts micro-batches."""

    tokens: Int[Array, "*k B T"]
    positions: Int[Array, "*k B T"]
    """Of each token in its own row."""
    sequences: Int[Array, "*k B T"]
    """Which row of its line a token belongs to, from 1; 0 is padding."""
    places: Int[Array, "*k B M"]
    """Where a target is predicted from: the token before it."""
    targets: Int[Array, "*k B M"]
    """The tokens that the model learns to write: replies and their stop tokens, never a prompt or padding."""
    is_target: Bool[Array, "*k B M"]
    """False where there are no more targets in the line."""


class Shape(NamedTuple):
    """The one shape of all micro-batches of a training run."""

    lines: int
    """B."""
    length: int
    """T."""
    targets: int
    """M."""


@dataclass(frozen=True)
class Schedule:
    """Which rows each optimizer step learns from: random passes over all rows, one after the other.

    A step's rows depend on the seed and the step's number alone, so a resumed run goes on with the same ones.
    """

    rows: Sequence[Row]
    batch: int
    """Rows of a micro-batch."""
    accumulation: int
    """Micro-batches of a step."""
    seed: int

    def micro_batches(self, step: int) -> list[list[int]]:
        """The places in `rows` of each micro-batch of step `step`, which counts from 0."""
        size = self.batch * self.accumulation
        first, last = step * size // len(self.rows), ((step + 1) * size - 1) // len(self.rows)
        passes = [
            rng(self.seed, "training order", number).permutation(len(self.rows)) for number in range(first, last + 1)
        ]
        start = step * size - first * len(self.rows)
        drawn = np.concatenate(passes)[start : start + size].tolist()
        return [drawn[place : place + self.batch] for place in range(0, size, self.batch)]


def pack(lengths: Sequence[int], room: int) -> list[list[int]]:
    """Which rows share a line of `room` tokens: each goes, longest first, into the first line that it fits into.

    Returns:
        Places in `lengths`, a list a line.
    """
    lines: list[list[int]] = []
    free: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda place: (-lengths[place], place)):
        line = next((line for line, left in enumerate(free) if left >= lengths[place]), len(lines))
        if line == len(lines):
            lines.append([])
            free.append(room)
        lines[line].append(place)
        free[line] -= lengths[place]
    return lines


def common_shape(rows: Sequence[Row], micro_batches: Sequence[Sequence[int]], ways: int = 1) -> Shape:
    """The shape that holds every micro-batch with the fewest tokens.

    Args:
        rows: what the micro-batches are places in.
        micro_batches: of all steps.
        ways: what the lines split evenly over.
    """
    lengths = [len(row.tokens) for row in rows]
    longest = half_octave(max(lengths), STEP)
    choices = []
    for room in sorted({half_octave(share * longest // 2, STEP) for share in range(2, 2 * LONGEST_LINE + 1)}):
        packed = [pack([lengths[place] for place in batch], room) for batch in micro_batches]
        lines = whole(max(map(len, packed)), ways)
        targets = max(
            sum(len(rows[batch[place]].reply) for place in line)
            for batch, of_batch in zip(micro_batches, packed, strict=True)
            for line in of_batch
        )
        choices.append(Shape(lines, room, half_octave(targets, STEP)))
    return min(choices, key=lambda shape: (shape.lines * shape.length, shape.length))


def packed(rows: Sequence[Row], shape: Shape) -> Batch:
    """The micro-batch of those rows, as host arrays."""
    tokens, positions, sequences = (np.zeros((shape.lines, shape.length), np.int32) for _ in range(3))
    places, targets = (np.zeros((shape.lines, shape.targets), np.int32) for _ in range(2))
    is_target = np.zeros((shape.lines, shape.targets), bool)
    for line, members in enumerate(pack([len(row.tokens) for row in rows], shape.length)):
        start = written = 0
        for number, place in enumerate(members, 1):
            row = rows[place]
            end, reply = start + len(row.tokens), start + len(row.prompt)
            tokens[line, start:end] = row.tokens
            positions[line, start:end] = np.arange(end - start)
            sequences[line, start:end] = number
            more = written + len(row.reply)
            places[line, written:more] = np.arange(reply - 1, end - 1)
            targets[line, written:more] = row.reply
            is_target[line, written:more] = True
            start, written = end, more
    arrays: list[Any] = [tokens, positions, sequences, places, targets, is_target]
    return Batch(*arrays)


def stacked(micro_batches: Sequence[Batch]) -> Batch:
    """Several micro-batches of one shape along a new first axis."""
    return Batch(*(jnp.asarray(np.stack(parts)) for parts in zip(*micro_batches, strict=True)))
