"""Normalised distances: both implementations give the same numbers, and they are those of the definition."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from robust_jax.difficulty.levenshtein import EncodedReferences, normalised_distances

words = st.lists(st.sampled_from(["the", "sum", "is", "4", "+", "####"]), max_size=12)


@settings(max_examples=40, deadline=None)
@given(st.lists(words, max_size=5), st.lists(words, max_size=5))
def test_definition_and_implementations(responses: list[list[str]], references: list[list[str]]) -> None:
    found = normalised_distances(responses, references, "rapidfuzz")
    assert found.shape == (len(responses), len(references))
    np.testing.assert_array_equal(normalised_distances(responses, references, "xla"), found)
    for response, row in zip(responses, found, strict=True):
        for reference, value in zip(references, row, strict=True):
            longer = max(len(response), len(reference))
            assert value == (Levenshtein.distance(response, reference) / longer if longer else 0)


def test_ends_of_the_scale() -> None:
    references = [[], ["a", "b"]]
    responses = [[], ["a", "b"], ["c", "d"], ["a", "c"], ["b"]]
    expected = [[0, 1], [1, 0], [1, 1], [1, 0.5], [1, 0.5]]
    for implementation in ("auto", "rapidfuzz", "xla"):
        assert normalised_distances(responses, references, implementation).tolist() == expected


def test_tokens_that_no_reference_holds_differ_from_one_another() -> None:
    assert normalised_distances([["x", "y", "a"]], [["a", "b", "c"]]).tolist() == [[1.0]]


def test_frequent_tokens_have_the_smallest_ids() -> None:
    encoded = EncodedReferences.of([["b", "a", "b"], ["b", "a", "c"]])
    assert dict(encoded.ids) == {"b": 0, "a": 1, "c": 2}
    assert encoded.sequences == ([0, 1, 0], [0, 1, 2])
