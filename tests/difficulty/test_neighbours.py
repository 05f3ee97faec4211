"""Nearest-neighbour distances against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors

from robust_jax.difficulty.neighbours import knn_distance, knn_leave_one_out


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_scikit_learn(count: int, dimension: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    references = rng.normal(size=(count, dimension)) * 5 + 100
    x = rng.normal(size=(7, dimension)) * 5 + 100
    k = min(10, count)
    # A tree takes differences; the brute method of scikit-learn expands the square and loses digits here.
    expected = NearestNeighbors(n_neighbors=k, algorithm="kd_tree").fit(references).kneighbors(x)[0][:, -1]
    np.testing.assert_allclose(knn_distance(x, references), expected, rtol=1e-9)


def test_leave_one_out_is_brute_force() -> None:
    references = np.random.default_rng(0).normal(size=(30, 12)).astype(np.float32)
    expected = [
        knn_distance(references[place : place + 1], np.delete(references, place, axis=0))[0] for place in range(30)
    ]
    np.testing.assert_allclose(knn_leave_one_out(references), expected, rtol=1e-6)


def test_few_references() -> None:
    references = np.array([[0.0], [1.0], [5.0]])
    x = np.array([[0.0], [4.0]])
    assert knn_distance(x, references).tolist() == [5, 4]
    assert knn_distance(x, references, k=2).tolist() == [1, 3]
    assert knn_distance(x, references, left_out=np.array([-1, 0])).tolist() == [5, 3]
    assert np.isnan(knn_leave_one_out(references[:1])).all()
    assert np.isnan(knn_distance(x, references[:0])).all()
    assert knn_distance(x[:0], references).shape == (0,)


def test_equal_references_are_at_distance_zero_exactly() -> None:
    row = np.random.default_rng(1).normal(size=(1, 500)).astype(np.float32) * 1e3
    references = np.concatenate([np.tile(row, (11, 1)), row + 1])
    assert knn_distance(row, references).tolist() == [0]
    assert knn_leave_one_out(references)[0] == 0


def test_a_row_with_nan_is_nan() -> None:
    references = np.eye(4)
    distances = knn_distance(np.array([[np.nan, 0, 0, 0], [1, 0, 0, 0]]), references, k=1)
    assert np.isnan(distances[0])
    assert distances[1] == pytest.approx(0)
