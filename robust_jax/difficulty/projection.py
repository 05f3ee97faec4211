"""Observations in the coordinates of a fit, and what those leave of them, computed on the device in float32.

The residual is computed as it stands, because ‖z‖² − ‖Uᵀ z‖² would lose it to cancellation.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Float64

from robust_jax.shapes import power_of_two

ROWS_AT_ONCE = 1024
LEAST_ROWS = 8
"""Arrays that are smaller than this are padded to it."""
FLOATS_AT_ONCE = 2**25
"""How large the device's arrays may grow when many fits are scored together."""


class Projection(NamedTuple):
    """An affine subspace, as the device needs it."""

    centre: Float32[Array, " D"]
    """The mean to float32. Subtracting it is nearly exact, and `offset`, what it lacks, comes after."""
    offset: Float32[Array, " D"]
    basis: Float32[Array, "r D"]
    """Orthonormal rows, padded with rows of zeros to a power of two."""

    @classmethod
    def onto(
        cls, mean: Float64[np.ndarray, " D"], directions: Float64[np.ndarray, "r D"], lengths: Float64[np.ndarray, " r"]
    ) -> "Projection":
        """The subspace through `mean` along orthogonal directions of given lengths."""
        centre = mean.astype(np.float32)
        padded = np.zeros((power_of_two(len(directions), LEAST_ROWS), directions.shape[1]), np.float32)
        np.divide(directions, lengths[:, None], out=padded[: len(directions)], casting="same_kind")
        return cls(jnp.asarray(centre), jnp.asarray((mean - centre).astype(np.float32)), jnp.asarray(padded))


def project_each(
    projections: Sequence[Projection], x: Sequence[Float[np.ndarray, "_ D"]]
) -> list[tuple[Float64[np.ndarray, "_ r"], Float64[np.ndarray, " _"]]]:
    """Coordinates in each basis, padded as it is, and squared distances from its span.

    The observations of many projections go through the device together. Their shapes come from a few buckets, so that
    compilations do not grow with the work.
    """
    found = [(np.empty((len(rows), len(p.basis))), np.empty(len(rows))) for p, rows in zip(projections, x, strict=True)]
    for blocks in _batches(projections, x):
        rows = [x[block.place][block.part] for block in blocks]
        coordinates, residuals = _project_blocks([projections[block.place] for block in blocks], rows)
        for line, block in enumerate(blocks):
            found[block.place][0][block.part] = coordinates[line, : len(rows[line])]
            found[block.place][1][block.part] = residuals[line, : len(rows[line])]
    return found


class _Block(NamedTuple):
    """Some of the observations of one projection."""

    place: int
    part: slice


def _batches(projections: Sequence[Projection], x: Sequence[Float[np.ndarray, "_ D"]]) -> Iterator[list[_Block]]:
    """Blocks of equal shape after padding, as many at once as the device is to hold."""
    by_shape: dict[tuple[int, ...], list[_Block]] = {}
    for place, (projection, rows) in enumerate(zip(projections, x, strict=True)):
        for start in range(0, len(rows), ROWS_AT_ONCE):
            stop = min(start + ROWS_AT_ONCE, len(rows))
            shape = (power_of_two(stop - start, LEAST_ROWS), *projection.basis.shape)
            by_shape.setdefault(shape, []).append(_Block(place, slice(start, stop)))
    for (count, directions, dimension), blocks in by_shape.items():
        at_once = max(1, FLOATS_AT_ONCE // (dimension * max(count, directions)))
        for start in range(0, len(blocks), at_once):
            yield blocks[start : start + at_once]


def _project_blocks(
    projections: Sequence[Projection], rows: Sequence[Float[np.ndarray, "_ D"]]
) -> tuple[Float32[np.ndarray, "F C r"], Float32[np.ndarray, "F C"]]:
    width, height = power_of_two(len(rows)), power_of_two(max(map(len, rows)), LEAST_ROWS)
    repeated = (*projections, *[projections[0]] * (width - len(projections)))
    if width == 1 and len(rows[0]) == height:
        return jax.device_get(_project(np.asarray(rows[0], np.float32)[None], repeated))
    padded = np.zeros((width, height, rows[0].shape[1]), np.float32)
    for line, block in enumerate(rows):
        padded[line, : len(block)] = block
    return jax.device_get(_project(padded, repeated))


@jax.jit
def _project(
    x: Float32[Array, "F C D"], projections: tuple[Projection, ...]
) -> tuple[Float32[Array, "F C r"], Float32[Array, "F C"]]:
    return jax.vmap(_project_one)(x, jax.tree.map(lambda *parts: jnp.stack(parts), *projections))


def _project_one(
    x: Float32[Array, "C D"], projection: Projection
) -> tuple[Float32[Array, "C r"], Float32[Array, " C"]]:
    """Coordinates of x in the basis, and the squared length of what they leave of it."""
    highest = jax.lax.Precision.HIGHEST  # the default of accelerators leaves three digits
    z = (x - projection.centre) - projection.offset
    coordinates = jnp.einsum("CD,rD->Cr", z, projection.basis, precision=highest)
    residual = z - jnp.einsum("Cr,rD->CD", coordinates, projection.basis, precision=highest)
    return coordinates, jnp.einsum("CD,CD->C", residual, residual, precision=highest)
