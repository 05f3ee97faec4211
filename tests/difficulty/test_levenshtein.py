"""Normalised distances: all implementations give the same numbers, and they are those of the definition."""

import sys
from collections.abc import Iterator
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from robust_jax.difficulty import levenshtein
from robust_jax.difficulty.levenshtein import EncodedReferences, Implementation, normalised_distances, usable
from robust_jax.errors import InputError
from tests.kernels.interpreter import interpreter, launch

linux = pytest.mark.skipif(sys.platform != "linux", reason="Triton is made for Linux only")
words = st.lists(st.sampled_from(["the", "sum", "is", "4", "+", "####"]), max_size=12)


@pytest.fixture
def triton_interpreted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The Triton kernel runs in Triton's interpreter instead of on a GPU."""
    from robust_jax.kernels import levenshtein_triton

    with interpreter() as pool:
        monkeypatch.setattr(
            levenshtein_triton, "launch_on_gpu", lambda *arguments: pool.submit(launch, *arguments).result()
        )
        monkeypatch.setattr(levenshtein, "_triton_obstacle", lambda: None)
        yield


def check(responses: list[list[str]], references: list[list[str]], implementation: Implementation) -> None:
    found = normalised_distances(responses, references, implementation)
    assert found.shape == (len(responses), len(references))
    for response, row in zip(responses, found, strict=True):
        for reference, value in zip(references, row, strict=True):
            longer = max(len(response), len(reference))
            assert value == (Levenshtein.distance(response, reference) / longer if longer else 0)


@settings(max_examples=40, deadline=None)
@given(st.lists(words, max_size=5), st.lists(words, max_size=5))
def test_definition(responses: list[list[str]], references: list[list[str]]) -> None:
    check(responses, references, "rapidfuzz")
    check(responses, references, "xla")


@linux
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(words, max_size=2), st.lists(words, max_size=5))
def test_definition_and_triton(
    triton_interpreted: None, responses: list[list[str]], references: list[list[str]]
) -> None:
    check(responses, references, "triton")


@pytest.mark.skipif(jax.default_backend() != "gpu", reason="needs an NVIDIA GPU")
def test_auto_takes_triton_on_a_gpu() -> None:
    assert usable("auto") == "triton"
    check([["the", "sum", "is", "4"], []], [["the", "sum"], ["is"] * 40, []], "auto")


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


@settings(max_examples=40, deadline=None)
@given(st.lists(words, max_size=4), st.lists(words, max_size=4), st.lists(words, max_size=4))
def test_references_that_joined_later(
    first: list[list[str]], second: list[list[str]], responses: list[list[str]]
) -> None:
    start = EncodedReferences.of(first)
    grown = start.extended(second)
    assert {token: grown.ids[token] for token in start.ids} == start.ids
    assert sorted(grown.ids.values()) == list(range(len(grown.ids)))
    expected = normalised_distances(responses, first + second, "rapidfuzz")
    for implementation in ("rapidfuzz", "xla"):
        np.testing.assert_array_equal(grown.normalised_distances(responses, implementation), expected)


@linux
def test_tables_of_the_kernel_are_made_once_and_grow(triton_interpreted: None) -> None:
    first = [["a", "b", "c"]] * 33
    second, responses = [["d", "a"], ["a", "e"]], [["d", "a", "x"], ["c"]]
    start = EncodedReferences.of(first)
    start.normalised_distances(responses, "triton")
    (tables,) = start._tables
    start.normalised_distances(responses, "triton")
    assert start._tables[0] is tables
    grown = start.extended(second)
    assert grown._tables[0].blocks[0] is tables.blocks[0]
    expected = normalised_distances(responses, first + second, "rapidfuzz")
    np.testing.assert_array_equal(grown.normalised_distances(responses, "triton"), expected)


def test_large_tables_are_not_kept(triton_interpreted: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levenshtein, "_KEPT_BYTES", 0)
    encoded = EncodedReferences.of([["a", "b"]])
    assert encoded.normalised_distances([["b"]], "triton").tolist() == [[0.5]]
    assert not encoded._tables


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="about a machine without an accelerator")
def test_without_a_gpu() -> None:
    assert usable("auto") == "rapidfuzz"
    with pytest.raises(InputError, match="--levenshtein triton does not run here: JAX finds no NVIDIA GPU; auto"):
        normalised_distances([["a"]], [["b"]], "triton")


@pytest.fixture
def nvidia(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """JAX seems to have found an NVIDIA GPU."""
    device = SimpleNamespace(
        platform="gpu", device_kind="NVIDIA X", client=SimpleNamespace(platform_version="PJRT C API\ncuda 13000")
    )
    monkeypatch.setattr(jax, "devices", lambda: [device])
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    levenshtein._triton_obstacle.cache_clear()
    yield
    levenshtein._triton_obstacle.cache_clear()


@linux
def test_auto_passes_over_a_kernel_that_fails(
    nvidia: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from robust_jax.kernels import levenshtein_triton

    def fail(*arguments: object) -> None:
        raise RuntimeError("ptxas is\ntoo old")

    monkeypatch.setattr(levenshtein_triton, "launch_on_gpu", fail)
    assert usable("auto") == "xla"
    assert usable("auto") == "xla"
    assert [record.getMessage() for record in caplog.records] == [
        "The Triton kernel does not run on NVIDIA X: ptxas is too old"
    ]
    with pytest.raises(InputError, match="ptxas is too old"):
        usable("triton")


@linux
def test_auto_passes_over_a_kernel_that_errs(nvidia: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from robust_jax.kernels import levenshtein_triton

    monkeypatch.setattr(levenshtein_triton, "launch_on_gpu", lambda *arguments: np.full((8, 1, 32), 2, np.int32))
    assert usable("auto") == "xla"
    with pytest.raises(InputError, match="it finds 2 where the distance is 1"):
        usable("triton")


@linux
def test_auto_takes_a_kernel_that_works(nvidia: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from robust_jax.kernels import levenshtein_triton

    monkeypatch.setattr(levenshtein_triton, "launch_on_gpu", lambda *arguments: np.full((8, 1, 32), 1, np.int32))
    assert usable("auto") == usable("triton") == "triton"


def test_triton_that_is_not_installed(nvidia: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levenshtein.importlib.util, "find_spec", lambda name: None)
    assert usable("auto") == "xla"
    with pytest.raises(InputError, match=r"Triton is not installed \(the extra robust-jax\[gpu\] brings it\)"):
        usable("triton")
