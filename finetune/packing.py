"""Which rows each step learns from, and how they are laid side by side into lines of one length.

Micro-batches become arrays of a few shapes, so a whole training run is a few compilations. A line holds as many rows as
fit; none sees another, and each counts its positions from 0, so a packed row is read as if it stood alone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from robust_jax.finetune.rows import Row
from robust_jax.models.config import DecoderConfig
from robust_jax.models.sharding import whole
from robust_jax.randomness import rng

STEP = 8
"""Lengths of lines, and their numbers of targets, are multiples of so many tokens."""
LONGEST_LINE = 4
"""Lines are at most so many times as long as the longest row."""
CHOICES = 32
"""So many lengths of lines are tried."""
SAMPLED = 256
"""The costs of a run are those of at most so many of its steps."""
WORTH_COMPILING = 0.03
"""Another shape must save this share of a run's work, since it is compiled too."""
SOFTMAX = 64
"""What the softmax of one attention score takes, in multiplications of a matrix product (measured on a CPU)."""


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
    """Of the arrays of a micro-batch."""

    lines: int
    """B."""
    length: int
    """T."""
    targets: int
    """M."""


class Costs(NamedTuple):
    """What a forward pass multiplies; a backward pass takes its multiple."""

    token: float
    """For each token, whatever it attends to."""
    pair: float
    """For each pair of tokens of a line: attention scores all of them, also those that a mask hides."""
    target: float
    """For each target's logits."""

    @classmethod
    def of(cls, config: DecoderConfig) -> "Costs":
        attention = 2 * (config.num_heads + config.num_kv_heads) * config.head_dim
        token = config.hidden_size * (attention + 3 * config.intermediate_size)
        pair = config.num_heads * (2 * config.head_dim + SOFTMAX)
        target = config.hidden_size * config.vocab_size
        return cls(float(config.num_layers * token), float(config.num_layers * pair), float(target))

    def total(self, shape: Shape) -> float:
        """Of a micro-batch of that shape, padding included."""
        lines, length, targets = shape
        return lines * (length * (self.token + length * self.pair) + targets * self.target)


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


def common_shapes(
    rows: Sequence[Row], steps: Sequence[Sequence[Sequence[int]]], costs: Costs, ways: int = 1
) -> list[Shape]:
    """Few shapes that make a run cheap, the cheapest first: one holds every step, each other is worth compiling.

    Long lines waste less on padding, short ones less on attention between rows that do not see each other. Costs are
    those of some of the steps, spread evenly over the run; the shape that holds every step is measured on all of them.

    Args:
        rows: what the micro-batches are places in.
        steps: the micro-batches of each; those of a step share their shape.
        ways: what the lines split evenly over.
    """
    lengths = [row.length for row in rows]
    longest = max(lengths[place] for step in steps for batch in step for place in batch)
    sample = steps[:: math.ceil(len(steps) / SAMPLED)]
    choices = _shapes_that_fit(rows, lengths, sample, longest, ways)
    first = min((shape for shape, held in choices if held.all() and shape.length >= longest), key=costs.total)
    shapes, cost = [first], np.full(len(sample), costs.total(first))
    while True:
        cheaper = [np.where(held, np.minimum(cost, costs.total(shape)), cost) for shape, held in choices]
        best = min(range(len(choices)), key=lambda place: cheaper[place].sum())
        if cheaper[best].sum() > (1 - WORTH_COMPILING) * cost.sum():
            break
        shapes.append(choices[best][0])
        cost = cheaper[best]
    needs = [_need(rows, lengths, step, first.length, ways) for step in steps]
    lines, targets = (max(numbers) for numbers in zip(*needs, strict=True))
    shapes[0] = Shape(lines, first.length, whole(targets, STEP))
    return sorted(shapes, key=costs.total)


def _shapes_that_fit(
    rows: Sequence[Row], lengths: Sequence[int], steps: Sequence[Sequence[Sequence[int]]], longest: int, ways: int
) -> list[tuple[Shape, Bool[np.ndarray, " steps"]]]:
    """Shapes that leave no line of some step empty, and which steps each of them holds."""
    longest_of = np.array([max(lengths[place] for batch in step for place in batch) for step in steps])
    found = []
    rooms = np.linspace(longest_of.min(), LONGEST_LINE * longest, CHOICES)
    for room in sorted({whole(int(room), STEP) for room in rooms}):
        fits = longest_of <= room
        lines, targets = np.zeros(len(steps), int), 0
        for number in np.flatnonzero(fits).tolist():
            lines[number], most = _need(rows, lengths, steps[number], room, ways)
            targets = max(targets, most)
        for count in sorted(set(lines[fits].tolist())):
            found.append((Shape(count, room, whole(targets, STEP)), fits & (lines <= count)))
    return found


def _need(
    rows: Sequence[Row], lengths: Sequence[int], step: Sequence[Sequence[int]], room: int, ways: int
) -> tuple[int, int]:
    """How many lines of that room the micro-batches of a step take, and the most targets of a line."""
    count = targets = 0
    for batch in step:
        lines = pack([lengths[place] for place in batch], room)
        count = max(count, whole(len(lines), ways))
        targets = max(targets, *(sum(len(rows[batch[place]].reply) for place in line) for line in lines))
    return count, targets


def packed(rows: Sequence[Row], shape: Shape) -> Batch:
    """The micro-batch of those rows, as host arrays."""
    tokens, positions, sequences = (np.zeros((shape.lines, shape.length), np.int32) for _ in range(3))
    places, targets = (np.zeros((shape.lines, shape.targets), np.int32) for _ in range(2))
    is_target = np.zeros((shape.lines, shape.targets), bool)
    for line, members in enumerate(pack([row.length for row in rows], shape.length)):
        start = written = 0
        for number, place in enumerate(members, 1):
            row = rows[place]
            end, reply = start + row.length, start + len(row.prompt)
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


def step_batch(micro_batches: Sequence[Sequence[Row]], shapes: Sequence[Shape]) -> Batch:
    """The micro-batches of a step, in the first of those shapes that holds them all."""

    def holds(shape: Shape, rows: Sequence[Row]) -> bool:
        lengths = [row.length for row in rows]
        if max(lengths) > shape.length:
            return False
        lines = pack(lengths, shape.length)
        targets = max(sum(len(rows[place].reply) for place in line) for line in lines)
        return len(lines) <= shape.lines and targets <= shape.targets

    shape = next(shape for shape in shapes if all(holds(shape, rows) for rows in micro_batches))
    return stacked([packed(rows, shape) for rows in micro_batches])
