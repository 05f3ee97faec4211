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


QWEN2 = LLAMA | {"model_type": "qwen2", "use_sliding_window": False}
QWEN3 = LLAMA | {"model_type": "qwen3", "head_dim": 24, "use_sliding_window": False}
PHI3 = LLAMA | {"model_type": "phi3", "pad_token_id": 0, "sliding_window": None}
LONGROPE = {
    "type": "longrope",
    "short_factor": [1.0, 1.5, 2.0, 3.0, 4.0, 6.0],
    "long_factor": [1.0, 2.0, 4.0, 6.0, 8.0, 9.0],
}


@pytest.mark.parametrize(
    "config",
    [
        LLAMA,
        LLAMA | {"tie_word_embeddings": True},
        LLAMA | {"head_dim": 24},
        LLAMA | {"num_key_value_heads": 4},
        LLAMA | {"num_key_value_heads": 1},
        LLAMA | {"attention_bias": True},
        LLAMA | {"model_type": "mistral", "sliding_window": 20},
        QWEN2 | {"tie_word_embeddings": True},
        QWEN3,
        PHI3 | {"sliding_window": 30},
        PHI3 | {"head_dim": 16, "partial_rotary_factor": 0.75},
    ],
    ids=lambda config: (
        ",".join(f"{key}={value}" for key, value in config.items() if LLAMA.get(key) != value) or "llama"
    ),
)
def test_logits_equal_those_of_transformers_before_the_conversion(tmp_path: Path, config: dict[str, Any]) -> None:
    assert_same_logits(tmp_path / "m.gguf", config)


def test_llama3s_factors_are_those_of_its_parameters(tmp_path: Path) -> None:
    """The file has a factor a frequency; here at positions within, at and past the original context."""
    scaling = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
    config = LLAMA | {"rope_scaling": {"rope_type": "llama3", **scaling}}
    inverse = 500.0 ** (-np.arange(0, 16, 2) / 16)
    turns = 32 * inverse / (2 * np.pi)
    share = np.clip((turns - 1) / (4 - 1), 0, 1)
    factors = 1 / ((1 - share) / 8 + share)
    assert {1.0, 8.0} < set(factors)
    assert_same_logits(tmp_path / "m.gguf", config, factors={"rope_freqs.weight": factors})


@pytest.mark.parametrize("length", [30, 70], ids=["short", "long"])
def test_longrope_has_two_sets_of_factors(tmp_path: Path, length: int) -> None:
    config = PHI3 | {
        "partial_rotary_factor": 0.75,
        "original_max_position_embeddings": 40,
        "rope_scaling": LONGROPE,
    }
    factors = {f"rope_factors_{kind}.weight": np.array(LONGROPE[f"{kind}_factor"]) for kind in ("short", "long")}
    more = {"phi3.rope.scaling.original_context_length": 40, "phi3.rope.scaling.attn_factor": attention_factor(128, 40)}
    assert_same_logits(tmp_path / "m.gguf", config, more, factors, length)


def attention_factor(positions: int, original: int) -> float:
    return float(np.sqrt(1 + np.log(positions / original) / np.log(original)))


def assert_same_logits(
    path: Path,
    config: dict[str, Any],
    more: dict[str, Any] | None = None,
    factors: dict[str, np.ndarray] | None = None,
    length: int = 70,
) -> None:
    model = reference_model(config)
    convert(path, config["model_type"], config, tensors_of(model, config), more=more, factors=factors)
    tokens = np.random.default_rng(1).integers(0, config["vocab_size"], (2, length))
    with torch.no_grad():
        expected = model(torch.tensor(tokens)).logits.numpy()
    np.testing.assert_allclose(logits(path, tokens), expected, atol=1e-4)


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
