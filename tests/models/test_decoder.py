"""Details of the decoder that a comparison of whole models in fp32 does not show."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from transformers import AutoModelForCausalLM
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from robust_jax.errors import InputError
from robust_jax.models.attention import Context, KeyValues, Prefix, view
from robust_jax.models.checkpoint import SafetensorsFiles, load_decoder, save_decoder
from robust_jax.models.config import DecoderConfig, read_config
from robust_jax.models.decoder import Decoder, RMSNorm

SMALL = DecoderConfig(
    vocab_size=48,
    hidden_size=32,
    intermediate_size=40,
    num_layers=2,
    num_heads=4,
    num_kv_heads=2,
    head_dim=8,
    tie_embeddings=True,
)


def loaded(directory: Path, dtype: str = "float32") -> Decoder:
    return load_decoder(read_config(directory), SafetensorsFiles(directory), dtype=dtype)


def test_a_norm_is_rounded_where_the_reference_rounds_it() -> None:
    """In bfloat16, scaling before or after the cast gives other numbers."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(50, 32, generator=generator).bfloat16()
    theirs = LlamaRMSNorm(32, eps=1e-5).bfloat16()
    theirs.weight.data = torch.randn(32, generator=generator).bfloat16()
    ours = RMSNorm(32, 1e-5)
    ours.weight.set_value(jnp.asarray(theirs.weight.float().detach().numpy(), jnp.bfloat16))
    found = ours(jnp.asarray(x.float().numpy(), jnp.bfloat16))
    assert found.dtype == jnp.bfloat16
    np.testing.assert_array_equal(np.asarray(found, np.float32), theirs(x).float().detach().numpy())


def test_a_tied_checkpoint_stores_its_embedding_once_and_may_repeat_it(tmp_path: Path) -> None:
    save_decoder(Decoder(SMALL, key=jax.random.key(0)), tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    assert "lm_head.weight" not in tensors
    buffers = {f"model.layers.{layer}.self_attn.rotary_emb.inv_freq": np.ones(4, np.float32) for layer in range(2)}
    save_file(tensors | buffers | {"lm_head.weight": tensors["model.embed_tokens.weight"].copy()}, path)
    decoder = loaded(tmp_path)
    np.testing.assert_array_equal(decoder.embed_tokens[...], tensors["model.embed_tokens.weight"])
    # Transformers would not tie one that differs; here it is not known which of the two is meant.
    save_file(tensors | {"lm_head.weight": tensors["model.embed_tokens.weight"] + 1}, path)
    with pytest.raises(InputError, match="is not the embedding that tie_word_embeddings says it is"):
        loaded(tmp_path)


def test_a_bfloat16_checkpoint_computes_in_float32_and_is_written_as_it_was(tmp_path: Path) -> None:
    save_decoder(Decoder(SMALL, key=jax.random.key(0)), tmp_path / "first")
    save_decoder(loaded(tmp_path / "first", "bfloat16"), tmp_path / "second")
    reference = AutoModelForCausalLM.from_pretrained(tmp_path / "second")
    assert reference.dtype == torch.bfloat16
    tokens = np.random.default_rng(1).integers(0, SMALL.vocab_size, (2, 24))
    with torch.no_grad():
        expected = reference.float()(torch.tensor(tokens)).logits.numpy()
    decoder = loaded(tmp_path / "second")
    output = decoder(jnp.asarray(tokens), jnp.broadcast_to(jnp.arange(24), (2, 24)))
    np.testing.assert_allclose(decoder.logits(output.hidden), expected, atol=1e-4)


@settings(deadline=None)
@given(st.integers(1, 9), st.integers(0, 5), st.integers(1, 6), st.none() | st.integers(1, 8))
def test_a_window_is_the_same_from_a_prefix_a_cache_or_at_once(
    shared: int, before: int, new: int, window: int | None
) -> None:
    """Every new token sees itself and the `window` − 1 before it, wherever they are kept."""
    positions = jnp.arange(shared + before, shared + before + new)[None]
    slots, room = positions - shared, 12
    prefix_slots = jnp.zeros((1, 1, shared + 3))
    context = Context(
        cache=[],
        slots=slots,
        mask=jnp.arange(room) <= slots[:, :, None],
        prefix=Prefix([KeyValues(prefix_slots, jnp.zeros((1, shared + 3, 1)))], jnp.int32(shared)),
    )
    seen = view(window, positions, context)
    assert seen.prefix is not None
    prefix = np.broadcast_to(seen.prefix, (1, new, shared + 3))[0]
    assert not prefix[:, shared:].any()
    kept = np.concatenate([prefix[:, :shared], np.asarray(seen.own)[0]], axis=1)[:, : shared + before + new]
    whole = view(window, jnp.arange(shared + before + new)[None], None)
    np.testing.assert_array_equal(kept, np.asarray(whole.own)[0, shared + before :])
    counts = np.asarray(whole.own)[0].sum(axis=1)
    assert counts.tolist() == [min(place + 1, window or place + 1) for place in range(len(counts))]
