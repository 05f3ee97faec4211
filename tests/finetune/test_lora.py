"""Adapters: they begin as nothing, are all that is trained, and merge into one matrix."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from robust_jax.errors import InputError
from robust_jax.finetune.lora import TARGETS, LowRankParam, with_adapters, without_adapters
from robust_jax.finetune.step import put_together, take_apart
from robust_jax.models.config import DecoderConfig
from robust_jax.models.decoder import Decoder
from tests.finetune.small import CONFIG, decoder

TOKENS = jnp.arange(24).reshape(2, 12)
BIASED = DecoderConfig(**{**vars(CONFIG), "family": "qwen2"})


def logits(model: Decoder) -> np.ndarray:
    positions = jnp.broadcast_to(jnp.arange(12), (2, 12))
    return np.asarray(model.logits(model(TOKENS, positions).hidden))


def trained_somehow(model: Decoder) -> Decoder:
    parts = take_apart(model)
    noise = np.random.default_rng(0)
    moved = jax.tree.map(lambda leaf: leaf + noise.normal(0, 0.2, leaf.shape).astype("f4"), parts.trained)
    return put_together(parts._replace(trained=moved))


def test_before_training_adapters_change_nothing() -> None:
    model = decoder()
    np.testing.assert_array_equal(logits(with_adapters(model, 4, 8.0, TARGETS, 0)), logits(model))


@pytest.mark.parametrize("config", [CONFIG, BIASED], ids=["llama", "with biases"])
@pytest.mark.parametrize("targets", [TARGETS, ("q_proj", "v_proj")])
def test_merged_they_do_the_same(config: DecoderConfig, targets: tuple[str, ...]) -> None:
    model = decoder(config)
    adapted = trained_somehow(with_adapters(model, 4, 8.0, targets, 0))
    merged = without_adapters(adapted)
    assert np.abs(logits(adapted) - logits(model)).max() > 0.01
    np.testing.assert_allclose(logits(merged), logits(adapted), rtol=1e-4, atol=1e-5)
    assert jax.tree.structure(merged) == jax.tree.structure(model), "nothing of the adapters is left"


def test_adapters_alone_are_trained_and_the_model_given_stays_as_it_was() -> None:
    model = decoder()
    before = logits(model)
    parts = take_apart(with_adapters(model, 4, 8.0, ("q_proj",), 0))
    assert [path[-1] for path, _ in nnx.to_flat_state(parts.trained)] == ["down", "up"] * CONFIG.num_layers
    assert all(isinstance(leaf, LowRankParam) for _, leaf in nnx.to_flat_state(parts.trained))
    np.testing.assert_array_equal(logits(model), before)
    assert not jax.tree.leaves(take_apart(model).frozen)


def test_adapters_follow_from_the_seed() -> None:
    def down(seed: int) -> np.ndarray:
        adapted = with_adapters(decoder(), 4, 8.0, ("q_proj",), seed)
        return np.stack([np.asarray(block.self_attn.q_proj.down[...]) for block in adapted.layers])

    np.testing.assert_array_equal(down(0), down(0))
    assert (down(0) != down(1)).all()
    assert (down(0)[0] != down(0)[1]).all(), "layers differ"


@pytest.mark.parametrize(
    ("rank", "targets", "complaint"), [(2, ("wq",), "wq: the matrices"), (64, ("q_proj",), "take a smaller rank")]
)
def test_what_cannot_be_adapted_is_refused(rank: int, targets: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        with_adapters(decoder(), rank, 8.0, targets, 0)
