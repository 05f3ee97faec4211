"""A model converted to GGUF and read back is the model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType
from gguf.quants import dequantize, quantize
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import AutoConfig, AutoModelForCausalLM

from robust_jax.errors import InputError
from robust_jax.models.checkpoint import load_decoder
from robust_jax.models.config import DecoderConfig
from robust_jax.models.gguf_checkpoint import GgufTensors, end_of_text_ids, hf_config
from robust_jax.models.gguf_file import GgufFile
from robust_jax.models.gguf_tokenizer import read_tokenizer
from robust_jax.models.sources import open_checkpoint, source_config
from tests.models.gguf_writing import convert, write_gguf

LLAMA = {
    "model_type": "llama",
    "vocab_size": 44,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "rms_norm_eps": 1e-3,
    "rope_theta": 500.0,
    "max_position_embeddings": 128,
    "tie_word_embeddings": False,
}


def reference_model(config: Mapping[str, Any]) -> Any:
    """A transformers model with random weights, none of them at a special value such as 1 or 0."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config), attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model


def tensors_of(model: Any, config: Mapping[str, Any]) -> dict[str, np.ndarray]:
    tied = {"lm_head.weight"} if config["tie_word_embeddings"] else set()
    return {name: tensor.numpy() for name, tensor in model.state_dict().items() if name not in tied}


def logits(path: Path, tokens: np.ndarray) -> jax.Array:
    checkpoint = open_checkpoint(str(path))
    decoder = load_decoder(checkpoint.config, checkpoint.tensors)
    positions = jnp.broadcast_to(jnp.arange(tokens.shape[1]), tokens.shape)
    return decoder.logits(decoder(jnp.asarray(tokens, jnp.int32), positions).hidden)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tie_word_embeddings": True},
        {"head_dim": 24},
        {"num_key_value_heads": 4},
        {"num_key_value_heads": 1},
    ],
    ids=str,
)
def test_logits_equal_those_of_transformers_before_the_conversion(tmp_path: Path, changes: dict[str, Any]) -> None:
    config = LLAMA | changes
    model = reference_model(config)
    convert(tmp_path / "m.gguf", config["model_type"], config, tensors_of(model, config))
    tokens = np.random.default_rng(1).integers(0, config["vocab_size"], (2, 70))
    with torch.no_grad():
        expected = model(torch.tensor(tokens)).logits.numpy()
    np.testing.assert_allclose(logits(tmp_path / "m.gguf", tokens), expected, atol=1e-4)


@pytest.mark.parametrize("kind", [GGMLQuantizationType.F16, GGMLQuantizationType.Q8_0, GGMLQuantizationType.Q4_1])
def test_quantised_weights_are_those_that_were_written(tmp_path: Path, kind: GGMLQuantizationType) -> None:
    config = LLAMA | {"hidden_size": 64, "intermediate_size": 96}
    tensors = tensors_of(reference_model(config), config)
    convert(tmp_path / "m.gguf", "llama", config, tensors, kind)
    checkpoint = open_checkpoint(str(tmp_path / "m.gguf"))
    assert checkpoint.tensors.shapes == {name: tensor.shape for name, tensor in tensors.items()}
    for name, tensor in tensors.items():
        # Rows are quantised one by one, so their order does not matter.
        expected = tensor if tensor.ndim == 1 else dequantize(quantize(tensor, kind), kind)
        found = checkpoint.tensors.read(name, (slice(None),) * tensor.ndim)
        np.testing.assert_array_equal(found.astype(np.float32), expected)


@given(data=st.data())
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_rows_and_columns_can_be_read_alone(
    converted: tuple[Path, dict[str, np.ndarray]], data: st.DataObject
) -> None:
    path, tensors = converted
    file = GgufFile(path)
    name = data.draw(st.sampled_from(sorted(tensors)))
    index = []
    for size in tensors[name].shape:
        start = data.draw(st.integers(0, size - 1))
        index.append(slice(start, data.draw(st.integers(start + 1, size))))
    found = GgufTensors(file, hf_config(file)).read(name, tuple(index))
    np.testing.assert_array_equal(found, tensors[name][tuple(index)])


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, np.ndarray]]:
    path = tmp_path_factory.mktemp("gguf") / "m.gguf"
    tensors = tensors_of(reference_model(LLAMA), LLAMA)
    convert(path, "llama", LLAMA, tensors)
    return path, tensors


def test_the_configuration_is_that_of_the_original(converted: tuple[Path, dict[str, np.ndarray]]) -> None:
    expected = DecoderConfig.from_hf_config(LLAMA | {"eos_token_id": [0]})
    found = source_config(str(converted[0]))
    assert found.norm_eps == pytest.approx(expected.norm_eps)  # GGUF keeps it in 32 bits.
    assert found == DecoderConfig(**{**expected.__dict__, "norm_eps": found.norm_eps})
    assert source_config(f"gguf:{converted[0]}") == found


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"general.architecture": "mamba"}, "architecture 'mamba' is not supported; supported: llama"),
        ({"llama.expert_count": 8}, "llama.expert_count=8 is not supported"),
        ({"llama.logit_scale": 0.5}, "llama.logit_scale=0.5 is not supported"),
        ({"llama.attention.head_count_kv": [2, 1]}, "differs between layers"),
        ({"llama.attention.value_length": 8}, "another width than keys"),
        ({"llama.rope.scaling.type": "quadratic", "llama.rope.scaling.factor": 2.0}, "quadratic"),
        ({"llama.block_count": 3}, "missing model.layers.2.input_layernorm.weight"),
        ({"llama.block_count": 2_000_000_000}, "llama.block_count is 2000000000"),
        ({"llama.embedding_length": "wide"}, "llama.embedding_length is 'wide'"),
        ({"llama.attention.head_count": 3}, "3 query heads"),
        ({"split.count": 2}, "one part of several"),
        ({"tokenizer.ggml.pre": "viking"}, "pre-tokenizer 'viking' is not supported; supported: gpt-2, "),
        ({"tokenizer.ggml.model": "bert"}, "tokenizer 'bert' is not supported"),
        ({"tokenizer.ggml.merges": ["a b", "q zz"]}, "its tokenizer is damaged"),
        ({"tokenizer.ggml.token_type": [1, 1]}, "its tokenizer is damaged"),
        ({"tokenizer.ggml.add_eos_token": True}, "add_eos_token"),
    ],
    ids=lambda part: next(iter(part)) if isinstance(part, dict) else "",
)
def test_what_cannot_be_loaded_is_refused_by_name(tmp_path: Path, more: dict[str, Any], named: str) -> None:
    path = tmp_path / "m.gguf"
    architecture = more.pop("general.architecture", "llama")
    tensors = tensors_of(reference_model(LLAMA), LLAMA)
    convert(path, architecture, LLAMA, tensors, more=more)
    with pytest.raises(InputError) as caught:
        checkpoint = open_checkpoint(str(path))
        load_decoder(checkpoint.config, checkpoint.tensors)
    assert named in str(caught.value) and "\n" not in str(caught.value)


@given(data=st.data())
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_value_of_any_key_leads_to_anything_but_a_refusal(
    converted: tuple[Path, dict[str, np.ndarray]], data: st.DataObject
) -> None:
    file = GgufFile(converted[0])
    key = data.draw(st.sampled_from(sorted(file.metadata)))
    value = data.draw(st.sampled_from([0, 1, 2, 7, 10**9, -1, 0.5, "", "x", True, [], [1], ["x"], [1, 2]]))
    file.metadata[key] = value
    try:
        config = DecoderConfig.from_hf_config(hf_config(file))
        load_decoder(config, GgufTensors(file, hf_config(file)))
        read_tokenizer(file)
    except InputError as error:
        assert "\n" not in str(error)


def test_tensors_that_do_not_belong_are_named(tmp_path: Path) -> None:
    tensors = tensors_of(reference_model(LLAMA), LLAMA)
    convert(tmp_path / "m.gguf", "llama", LLAMA, tensors, factors={"blk.0.stranger.weight": np.ones(3)})
    checkpoint = open_checkpoint(str(tmp_path / "m.gguf"))
    with pytest.raises(InputError, match=r"unexpected blk\.0\.stranger\.weight"):
        load_decoder(checkpoint.config, checkpoint.tensors)


def test_a_vocabulary_without_weights_is_no_model(tmp_path: Path) -> None:
    write_gguf(tmp_path / "m.gguf", {"general.architecture": "llama"}, {})
    with pytest.raises(InputError, match="holds no model"):
        source_config(str(tmp_path / "m.gguf"))


def test_everything_that_ends_a_reply_is_found() -> None:
    metadata = {
        "tokenizer.ggml.tokens": ["a", "<|end_of_text|>", "<|eot_id|>", "<|im_end|>", "<|finetuned_end|>", "<s>"],
        "tokenizer.ggml.token_type": [1, 3, 3, 1, 3, 3],
        "tokenizer.ggml.eos_token_id": 4,
    }
    assert end_of_text_ids(metadata) == [1, 2, 4]


def test_equal_models_have_equal_digests_and_others_do_not(tmp_path: Path) -> None:
    tensors = tensors_of(reference_model(LLAMA), LLAMA)
    for name in ("one", "two", "three"):
        if name == "three":
            tensors["model.norm.weight"] = tensors["model.norm.weight"] + 1e-6
        convert(tmp_path / f"{name}.gguf", "llama", LLAMA, tensors)
    one, two, three = (open_checkpoint(str(tmp_path / f"{name}.gguf")).digest for name in ("one", "two", "three"))
    assert one == two != three
