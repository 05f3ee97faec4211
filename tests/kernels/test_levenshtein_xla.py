"""The bit-parallel kernel against rapidfuzz and against the textbook recursion: the integers must be equal."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_jax.kernels import levenshtein_xla
from robust_jax.kernels.levenshtein_xla import levenshtein_distances
from tests.kernels.levenshtein_cases import EDGES, rapidfuzz_distances, sequences, textbook_distance

VOCABULARY = 9


def test_lengths_around_the_word_size() -> None:
    rng = np.random.default_rng(0)
    lengths = [*EDGES, 96, 97, 500]
    references = sequences(rng, lengths, VOCABULARY)
    responses = sequences(rng, [*lengths, *lengths], VOCABULARY)
    # Near copies reach the small distances that random pairs do not.
    responses += [[*reference[1:], VOCABULARY - 1] for reference in references]
    found = levenshtein_distances(responses, references, VOCABULARY)
    np.testing.assert_array_equal(found, rapidfuzz_distances(responses, references))


def test_two_thousand_tokens() -> None:
    rng = np.random.default_rng(1)
    reference = rng.integers(0, 300, 2000)
    response = np.where(rng.random(2000) < 0.3, rng.integers(0, 300, 2000), reference)[37:]
    found = levenshtein_distances([response.tolist()], [reference.tolist()], 300)
    np.testing.assert_array_equal(found, rapidfuzz_distances([response.tolist()], [reference.tolist()]))


def test_equal_and_disjoint() -> None:
    reference = [0, 1, 2] * 20
    found = levenshtein_distances([reference, [3] * 60, [3] * 10], [reference], 4)
    assert found.tolist() == [[0], [60], [60]]


def test_unknown_tokens_equal_nothing() -> None:
    rng = np.random.default_rng(2)
    references = sequences(rng, [5, 40, 70], VOCABULARY)
    known = sequences(rng, [30, 60], VOCABULARY)
    responses = [[VOCABULARY if token == 3 else token for token in response] for response in known]
    ids_of_others = [[VOCABULARY + 1000 if token == 3 else token for token in response] for response in known]
    expected = rapidfuzz_distances(responses, references)
    np.testing.assert_array_equal(levenshtein_distances(responses, references, VOCABULARY), expected)
    np.testing.assert_array_equal(levenshtein_distances(ids_of_others, references, VOCABULARY), expected)


def test_many_pairs_come_back_in_their_places() -> None:
    rng = np.random.default_rng(3)
    responses = sequences(rng, rng.integers(0, 60, 70).tolist(), VOCABULARY)
    references = sequences(rng, rng.integers(0, 60, 150).tolist(), VOCABULARY)
    found = levenshtein_distances(responses, references, VOCABULARY)
    np.testing.assert_array_equal(found, rapidfuzz_distances(responses, references))


tokens = st.lists(st.integers(0, 3), max_size=40)


@settings(max_examples=40, deadline=None)
@given(st.lists(tokens, min_size=1, max_size=5), st.lists(tokens, min_size=1, max_size=5))
def test_textbook_recursion(responses: list[list[int]], references: list[list[int]]) -> None:
    expected = [[textbook_distance(response, reference) for reference in references] for response in responses]
    assert levenshtein_distances(responses, references, 4).tolist() == expected


def test_no_sequences() -> None:
    assert levenshtein_distances([], [[1]], 2).shape == (0, 1)
    assert levenshtein_distances([[1]], [], 2).shape == (1, 0)
    assert levenshtein_distances([[], [1]], [[]], 0).tolist() == [[0], [1]]


def test_compilations_do_not_grow_with_the_work() -> None:
    rng = np.random.default_rng(4)
    compiled = levenshtein_xla._advance_all._cache_size
    levenshtein_distances(sequences(rng, [200] * 9, 50), sequences(rng, [200] * 9, 50), 50)
    before = compiled()
    for count in range(9, 17):
        responses = sequences(rng, rng.integers(193, 256, count).tolist(), 50)
        references = sequences(rng, rng.integers(193, 256, count).tolist(), 50 + count)
        levenshtein_distances(responses, references, 50 + count)
    assert compiled() == before
