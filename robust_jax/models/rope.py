"""Rotary positions: each pair of a head's channels turns by an angle that grows with the position.

Frequencies are computed once on the host, in the steps and precision of the reference implementation: at position 8192
an error in the last bit of a frequency is no longer small.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int


@dataclass(frozen=True)
class Llama3Scaling:
    """Llama 3.1's extension of the context: slow pairs turn `factor` times slower, fast ones as before."""

    factor: float
    low_freq_factor: float
    """Pairs that turn less often than this within the original context are slow."""
    high_freq_factor: float
    """Pairs that turn more often than this are fast; between the two the frequency is interpolated."""
    original_positions: int


@dataclass(frozen=True)
class LongRope:
    """LongRoPE (Phi-3 and Phi-4 mini): every pair has a divisor of its own, and another one in long sequences."""

    short_factor: tuple[float, ...]
    long_factor: tuple[float, ...]
    original_positions: int
    """Sequences beyond it are long."""
    attention_factor: float
    """What rotated queries and keys are multiplied by, short or long."""

    @staticmethod
    def usual_attention_factor(factor: float, original_positions: int) -> float:
        """The attention factor where a configuration gives none: √(1 + ln factor / ln original)."""
        return 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(original_positions))


@dataclass(frozen=True)
class Rope:
    """How a model encodes positions."""

    theta: float = 10_000.0
    fraction: float = 1.0
    """The share of a head's channels that is rotated; the rest carries no position."""
    scaling: Llama3Scaling | LongRope | None = None

    def width(self, head_dim: int) -> int:
        """How many channels of a head are rotated."""
        return int(head_dim * self.fraction)

    def is_long(self, length: int) -> bool:
        """Whether a sequence of so many tokens is rotated otherwise than a short one."""
        match self.scaling:
            case LongRope(short_factor, long_factor, original_positions):
                return length > original_positions and short_factor != long_factor
            case _:
                return False

    def frequencies(self, head_dim: int, *, long: bool = False) -> Float[np.ndarray, " h"]:
        """Radians a position for every pair; `long` chooses LongRoPE's divisors for long sequences."""
        width = self.width(head_dim)
        exponents = (np.arange(0, width, 2, dtype=np.float32) / np.float32(width)).astype(np.float64)
        wavelengths = np.power(self.theta, exponents).astype(np.float32)
        match self.scaling:
            case LongRope(short_factor, long_factor):
                return 1 / (np.asarray(long_factor if long else short_factor, np.float32) * wavelengths)
            case Llama3Scaling():
                return _slow_down(1 / wavelengths, self.scaling)
            case None:
                return 1 / wavelengths


class Rotation(NamedTuple):
    """The cosines and sines of some tokens' angles (fp32), a pair of channels each."""

    cos: Float[Array, "B T h"]
    sin: Float[Array, "B T h"]


def rotation(
    rope: Rope, head_dim: int, positions: Int[Array, "B T"], lengths: Int[Array, "B #T"] | None = None
) -> Rotation:
    """The angles at some positions.

    Args:
        lengths: how long each token's sequence is or may become; whether it counts as long depends on nothing else.
            Without it, a row is one sequence, as long as the largest of its positions says.
    """
    frequencies: Array = jnp.asarray(rope.frequencies(head_dim))
    scale = 1.0
    if isinstance(rope.scaling, LongRope):
        lengths = jnp.max(positions, axis=1, keepdims=True) + 1 if lengths is None else lengths
        is_long = (lengths > rope.scaling.original_positions)[:, :, None]
        frequencies = jnp.where(is_long, rope.frequencies(head_dim, long=True), frequencies)
        scale = rope.scaling.attention_factor
    angles = positions[:, :, None].astype(jnp.float32) * frequencies
    return Rotation(jnp.cos(angles) * scale, jnp.sin(angles) * scale)


def rotate(x: Float[Array, "B T X H"], by: Rotation) -> Float[Array, "B T X H"]:
    """Turn each pair (i, i + h) of every head's first 2h channels (in fp32)."""
    cos, sin = by.cos[:, :, None], by.sin[:, :, None]
    half = cos.shape[-1]
    low, high = x[..., :half].astype(jnp.float32), x[..., half : 2 * half].astype(jnp.float32)
    turned = [low * cos - high * sin, high * cos + low * sin]
    return jnp.concatenate([*(part.astype(x.dtype) for part in turned), x[..., 2 * half :]], axis=-1)


def _slow_down(frequencies: Float[np.ndarray, " h"], scaling: Llama3Scaling) -> Float[np.ndarray, " h"]:
    """Slow pairs by the whole factor, fast ones not at all, those between in proportion (fp32, a step at a time)."""
    one, low, high = np.float32(1), np.float32(scaling.low_freq_factor), np.float32(scaling.high_freq_factor)
    turns = one / (one / frequencies * np.float32(2 * math.pi)) * np.float32(scaling.original_positions)
    slowed = frequencies / np.float32(scaling.factor)
    share = (turns - low) / np.float32(scaling.high_freq_factor - scaling.low_freq_factor)
    between = (one - share) * frequencies / np.float32(scaling.factor) + share * frequencies
    return np.where(turns < low, slowed, np.where(turns > high, frequencies, between))
