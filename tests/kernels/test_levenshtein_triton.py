"""The Triton kernel against rapidfuzz: the integers must be equal.

Every test runs the kernel's own code in Triton's interpreter and, where there is an NVIDIA GPU, on the GPU.
"""

import sys
from collections.abc import Callable, Iterator, Sequence

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_jax.kernels import levenshtein_xla
from robust_jax.kernels.levenshtein_tables import LANES, PatternTables
from tests.kernels.interpreter import interpreted_distances, interpreter
from tests.kernels.levenshtein_cases import (
    EDGES,
    edited,
    random_pairs,
    rapidfuzz_distances,
    sequences,
    textbook_distance,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Triton is made for Linux only")

Run = Callable[[Sequence[Sequence[int]], PatternTables], np.ndarray]


@pytest.fixture(scope="module", params=["interpreter", "gpu"])
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """The kernel's distances of responses from references."""
    if request.param == "interpreter":
        with interpreter() as pool:
            yield lambda responses, tables: pool.submit(interpreted_distances, responses, tables).result()
        return
    if jax.default_backend() != "gpu":
        pytest.skip("needs an NVIDIA GPU")
    from robust_jax.kernels.levenshtein_triton import levenshtein_distances

    yield levenshtein_distances


def check(run: Run, responses: list[list[int]], references: list[list[int]], symbols: int, lanes: int = LANES) -> None:
    found = run(responses, PatternTables.of(references, symbols, lanes))
    np.testing.assert_array_equal(found, rapidfuzz_distances(responses, references))


def test_lengths_around_the_word_size(run: Run) -> None:
    rng = np.random.default_rng(0)
    references = sequences(rng, [*EDGES, 96, 97], 5)
    # Near copies reach the small distances that random pairs do not.
    copies = [edited(rng, reference, 5, 0.2) for reference in references[3:]]
    check(run, sequences(rng, EDGES, 5) + copies[::2], references, 5)


def test_long_references_go_strip_by_strip(run: Run) -> None:
    rng = np.random.default_rng(1)
    references = sequences(rng, [256, 257, 500, 500, 2000], 40)
    responses = sequences(rng, [0, 1, 33], 40)
    # Two parts of a reference, so that much depends on what one strip hands to the next.
    responses.append(references[2][250:266] + references[2][270:286])
    check(run, responses, references, 40, lanes=8)


def test_long_responses(run: Run) -> None:
    rng = np.random.default_rng(2)
    responses = sequences(rng, [500, 2000], 40)
    check(run, responses, [[], *sequences(rng, [1, 31], 40), responses[0][200:232]], 40)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_long_pairs(run: Run) -> None:
    rng = np.random.default_rng(3)
    references = sequences(rng, [500, 2000], 300)
    responses = [edited(rng, reference, 310, 0.3) for reference in references]
    check(run, responses, references, 300, lanes=2)


def test_equal_and_disjoint(run: Run) -> None:
    reference = [0, 1, 2] * 20
    found = run([reference, [3] * 60, [3] * 10], PatternTables.of([reference, [4]], 5))
    assert found.tolist() == [[0, 60], [60, 60], [60, 10]]


def test_unknown_tokens_equal_nothing(run: Run) -> None:
    rng = np.random.default_rng(4)
    references = sequences(rng, [5, 40], 9)
    (known,) = sequences(rng, [30], 9)
    found = run([[id if token == 3 else token for token in known] for id in (9, 1000)], PatternTables.of(references, 9))
    expected = rapidfuzz_distances([[9 if token == 3 else token for token in known]], references)
    assert found.tolist() == expected.tolist() * 2


def test_several_blocks_of_several_sizes(run: Run) -> None:
    rng = np.random.default_rng(5)
    references = sequences(rng, rng.integers(0, 70, 45).tolist(), 9)
    check(run, sequences(rng, rng.integers(0, 40, 5).tolist(), 9), references, 9, lanes=8)


def test_references_that_joined_later(run: Run) -> None:
    rng = np.random.default_rng(6)
    tables = PatternTables.of(sequences(rng, [30] * 5, 6), 6, lanes=4)
    tables = tables.extended(sequences(rng, [40] * 5, 9), 9)
    tables = tables.extended(sequences(rng, [10] * 2, 12), 12)
    responses = sequences(rng, [20, 35], 13)
    np.testing.assert_array_equal(run(responses, tables), rapidfuzz_distances(responses, tables.references))


def test_no_sequences(run: Run) -> None:
    assert run([], PatternTables.of([[1]], 2)).shape == (0, 1)
    assert run([[1]], PatternTables.of([], 2)).shape == (1, 0)
    assert run([[], [0]], PatternTables.of([[]], 0)).tolist() == [[0], [1]]


tokens = st.lists(st.integers(0, 3), max_size=40)


@settings(max_examples=15, deadline=None)
@given(st.lists(tokens, min_size=1, max_size=2), st.lists(tokens, min_size=1, max_size=5))
def test_textbook_recursion(run: Run, responses: list[list[int]], references: list[list[int]]) -> None:
    expected = [[textbook_distance(response, reference) for reference in references] for response in responses]
    assert run(responses, PatternTables.of(references, 4)).tolist() == expected


def test_ten_thousand_pairs_by_all_implementations(run: Run) -> None:
    responses, references, symbols = random_pairs(10, 1000, longest=96)
    expected = rapidfuzz_distances(responses, references)
    np.testing.assert_array_equal(levenshtein_xla.levenshtein_distances(responses, references, symbols), expected)
    np.testing.assert_array_equal(run(responses, PatternTables.of(references, symbols, lanes=1024)), expected)


@pytest.mark.slow
def test_ten_thousand_longer_pairs_by_all_implementations(run: Run) -> None:
    responses, references, symbols = random_pairs(20, 500, longest=220)
    expected = rapidfuzz_distances(responses, references)
    np.testing.assert_array_equal(levenshtein_xla.levenshtein_distances(responses, references, symbols), expected)
    np.testing.assert_array_equal(run(responses, PatternTables.of(references, symbols, lanes=512)), expected)
