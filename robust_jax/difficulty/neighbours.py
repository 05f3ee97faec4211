"""Distance to the k-th nearest reference (paper Section 3.2, KNN_H)."""

import numpy as np
from jaxtyping import Float, Float64, Int


def knn_distance(
    x: Float[np.ndarray, "C D"],
    references: Float[np.ndarray, "R D"],
    k: int = 10,
    left_out: Int[np.ndarray, " C"] | None = None,
) -> Float64[np.ndarray, " C"]:
    """Euclidean distance of every observation to its k-th nearest reference.

    Where fewer than k references count, it is the distance to the farthest of them; where none does, NaN. NaN also for
    an observation that holds NaN.

    Args:
        x: C observations.
        references: R references.
        k: which neighbour, from 1.
        left_out: for every observation the number of the one reference that does not count for it, or −1.
    """
    distances = np.full(len(x), np.nan)
    if not len(x) or not len(references):
        return distances
    centre = references.mean(axis=0, dtype=np.float64)
    queries, others = x - centre, references - centre
    # The order comes from the expanded square, in float64; the distance itself from the difference of the two vectors,
    # because the expanded square of two nearly equal ones is noise.
    squared = np.sum(others**2, axis=1) - 2 * queries @ others.T
    counted = np.full(len(x), len(references))
    if left_out is not None:
        rows = np.flatnonzero(left_out >= 0)
        squared[rows, left_out[rows]] = np.inf
        counted[rows] -= 1
    for count in np.unique(counted[counted > 0]):
        rows = np.flatnonzero(counted == count)
        rank = min(k, int(count)) - 1
        nearest = np.argpartition(squared[rows], rank, axis=1)[:, rank]
        distances[rows] = np.linalg.norm(queries[rows] - others[nearest], axis=1)
    return distances


def knn_leave_one_out(references: Float[np.ndarray, "R D"], k: int = 10) -> Float64[np.ndarray, " R"]:
    """Euclidean distance of every reference to its k-th nearest among the others."""
    return knn_distance(references, references, k, np.arange(len(references)))
