"""The decoder against transformers: same weights, same logits, same hidden states."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from transformers import AutoModelForCausalLM

from robust_jax.errors import InputError
from robust_jax.models.checkpoint import SafetensorsFiles, load_decoder, save_decoder
from robust_jax.models.config import DecoderConfig, read_config
from robust_jax.models.decoder import Decoder

SMALL = DecoderConfig(
    vocab_size=97,
    hidden_size=64,
    intermediate_size=96,
    num_layers=3,
    num_heads=4,
    num_kv_heads=2,
    head_dim=16,
    eos_token_ids=(2,),
)


def saved(directory: Path, **changes: object) -> Decoder:
    config = DecoderConfig(**{**SMALL.__dict__, **changes})
    decoder = Decoder(config, key=jax.random.key(0))
    save_decoder(decoder, directory)
    return decoder


def loaded(directory: Path) -> Decoder:
    return load_decoder(read_config(directory), SafetensorsFiles(directory))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tie_embeddings": True},
        {"head_dim": 24},
        {"num_kv_heads": 1},
        {"num_kv_heads": 4},
        {"norm_eps": 1e-3},
        {"rope_theta": 500.0},
    ],
    ids=str,
)
def test_logits_and_hidden_states_equal_those_of_transformers(tmp_path: Path, changes: dict[str, object]) -> None:
    saved(tmp_path, **changes)
    decoder = loaded(tmp_path)
    tokens = np.random.default_rng(1).integers(0, SMALL.vocab_size, (2, 70))
    reference = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    with torch.no_grad():
        expected = reference(torch.tensor(tokens), output_hidden_states=True)
    positions = jnp.broadcast_to(jnp.arange(70), (2, 70))
    output = decoder(jnp.asarray(tokens, jnp.int32), positions, layers=(0, 1, 2))
    np.testing.assert_allclose(decoder.logits(output.hidden), expected.logits.numpy(), atol=1e-4)
    for state, hidden in zip(output.states, expected.hidden_states, strict=False):
        np.testing.assert_allclose(state, hidden.numpy(), atol=1e-4)
    np.testing.assert_allclose(output.hidden, expected.hidden_states[-1].numpy(), atol=1e-4)


def test_a_tied_checkpoint_stores_its_embedding_once(tmp_path: Path) -> None:
    saved(tmp_path, tie_embeddings=True)
    assert "lm_head.weight" not in load_file(tmp_path / "model.safetensors")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"model_type": "mamba"}, "mamba"),
        ({"hidden_act": "relu"}, "relu"),
        ({"attention_bias": True}, "attention_bias"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}, "yarn"),
        ({"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e4}}, "llama3"),
        ({"quantization_config": {"bits": 4}}, "quantised"),
        ({"num_key_value_heads": 3}, "3 key/value heads"),
    ],
)
def test_what_the_decoder_does_not_do_is_refused_by_name(tmp_path: Path, change: dict[str, object], named: str) -> None:
    config = SMALL.to_hf_config() | change
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=named):
        read_config(tmp_path)


def test_both_spellings_of_rotary_settings_are_read() -> None:
    old = SMALL.to_hf_config() | {"rope_theta": 123.0}
    new = SMALL.to_hf_config() | {"rope_parameters": {"rope_type": "default", "rope_theta": 123.0}}
    del new["rope_theta"]
    assert DecoderConfig.from_hf_config(old).rope_theta == DecoderConfig.from_hf_config(new).rope_theta == 123.0


def test_head_width_may_be_null() -> None:
    config = SMALL.to_hf_config() | {"head_dim": None}
    assert DecoderConfig.from_hf_config(config).head_dim == SMALL.hidden_size // SMALL.num_heads


def test_stop_ids_of_both_files_are_joined(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SMALL.to_hf_config() | {"eos_token_id": 2}))
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [2, 5]}))
    assert read_config(tmp_path).eos_token_ids == (2, 5)
