"""Rotary frequencies against transformers, to the bit where it matters, and what rotation leaves alone."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import Phi3Config
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.phi3.modeling_phi3 import Phi3RotaryEmbedding

from robust_jax.models.rope import Llama3Scaling, LongRope, Rope, rotate, rotation

FURTHEST = 131_072


def reference(head_dim: int, long: bool = False, **settings: Any) -> np.ndarray:
    """Transformers' frequencies; Phi-3's class is the one that knows partial rotation in every type."""
    config = Phi3Config(hidden_size=head_dim * 2, num_attention_heads=2, max_position_embeddings=FURTHEST)
    config.rope_parameters = settings
    config.original_max_position_embeddings = settings.get("original_max_position_embeddings", FURTHEST)
    compute = ROPE_INIT_FUNCTIONS.get(settings["rope_type"], Phi3RotaryEmbedding.compute_default_rope_parameters)
    return compute(config, torch.device("cpu"), seq_len=FURTHEST if long else None)[0].numpy()


def assert_close(found: np.ndarray, expected: np.ndarray) -> None:
    """But for the last bit of some: the powers of the two libraries are rounded each in its own way."""
    assert found.dtype == expected.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=2.4e-7)
    # Far from the start of a text the angles are still the same.
    assert np.abs(found - expected).max() * 8192 < 1e-4


@pytest.mark.parametrize("head_dim", [64, 80, 96, 128])
@pytest.mark.parametrize("theta", [1e4, 2.5e5, 5e5, 1e6])
def test_frequencies_equal_those_of_transformers(head_dim: int, theta: float) -> None:
    assert_close(Rope(theta).frequencies(head_dim), reference(head_dim, rope_type="default", rope_theta=theta))


@pytest.mark.parametrize("fraction", [0.25, 0.5, 0.75])
def test_partial_frequencies_equal_those_of_transformers(fraction: float) -> None:
    expected = reference(128, rope_type="default", rope_theta=1e4, partial_rotary_factor=fraction)
    assert_close(Rope(1e4, fraction).frequencies(128), expected)


@pytest.mark.parametrize("head_dim", [64, 128])
@pytest.mark.parametrize("factor", [7.0, 8.0, 32.0])
@pytest.mark.parametrize("original", [24, 512, 8192])
def test_llama3_frequencies_equal_those_of_transformers(head_dim: int, factor: float, original: int) -> None:
    settings = {
        "rope_type": "llama3",
        "rope_theta": 5e5,
        "factor": factor,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": original,
    }
    rope = Rope(5e5, scaling=Llama3Scaling(factor, 1.0, 4.0, original))
    assert_close(rope.frequencies(head_dim), reference(head_dim, **settings))


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("fraction", [0.75, 1.0])
def test_longrope_frequencies_equal_those_of_transformers(long: bool, fraction: float) -> None:
    pairs = int(96 * fraction) // 2
    generator = np.random.default_rng(0)
    short, longer = (generator.uniform(1, top, pairs).tolist() for top in (1.5, 60))
    settings = {
        "rope_type": "longrope",
        "rope_theta": 1e4,
        "partial_rotary_factor": fraction,
        "short_factor": short,
        "long_factor": longer,
        "original_max_position_embeddings": 4096,
    }
    rope = Rope(1e4, fraction, LongRope(tuple(short), tuple(longer), 4096, 1.0))
    assert_close(rope.frequencies(96, long=long), reference(96, long, **settings))


LONGROPE = Rope(scaling=LongRope((1.0, 1.5), (4.0, 9.0), 16, 1.25))


def angles(positions: list[list[int]], lengths: list[int] | None = None) -> np.ndarray:
    return np.stack(
        rotation(LONGROPE, 4, jnp.asarray(positions), None if lengths is None else jnp.asarray(lengths)[:, None])
    )


def test_whether_a_row_is_long_depends_on_its_length_alone() -> None:
    rows = [[0, 1, 15], [0, 1, 16], [0, 1, 40]]
    together = angles(rows)
    for number, row in enumerate(rows):
        np.testing.assert_array_equal(together[:, number : number + 1], angles([row]))
    assert [LONGROPE.is_long(length) for length in (1, 16, 17, 41)] == [False, False, True, True]
    # The same positions in a row that is or may become longer: all of them are rotated otherwise.
    short, long = angles([[0, 1, 15]]), angles([[0, 1, 15]], [17])
    np.testing.assert_array_equal(short, angles([[0, 1, 15]], [16]))
    assert (short[:, 0, 1:] != long[:, 0, 1:]).all()
    np.testing.assert_array_equal(long, angles([[0, 1, 15]], [1000]))


def test_equal_factors_make_no_sequence_long() -> None:
    assert not Rope(scaling=LongRope((2.0,), (2.0,), 16, 1.0)).is_long(17)


@settings(deadline=None)
@given(st.integers(0, FURTHEST), st.sampled_from([2, 4, 8]))
def test_rotation_keeps_lengths_and_the_channels_that_it_does_not_rotate(position: int, width: int) -> None:
    x = np.random.default_rng(position).normal(size=(1, 1, 2, 8)).astype(np.float32)
    turned = np.asarray(rotate(jnp.asarray(x), rotation(Rope(fraction=width / 8), 8, jnp.asarray([[position]]))))
    np.testing.assert_array_equal(turned[..., width:], x[..., width:])
    half = width // 2
    before, after = (np.hypot(v[..., :half], v[..., half:width]) for v in (x, turned))
    np.testing.assert_allclose(after, before, rtol=1e-5)
