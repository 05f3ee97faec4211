"""What is read from a config.json, what transformers makes of the same file, and what is refused by name."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from transformers import AutoConfig

from robust_jax.errors import InputError
from robust_jax.models.config import DecoderConfig, read_config
from robust_jax.models.families import FAMILIES
from robust_jax.models.rope import Llama3Scaling, LongRope, Rope

SIZES = {
    "vocab_size": 97,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
families = st.sampled_from(sorted(FAMILIES))


def plain(family: str, **more: Any) -> dict[str, Any]:
    return {"model_type": family, **SIZES, **more}


def in_memory(config: dict[str, Any]) -> Any:
    """What transformers makes of a config.json, which it changes in place."""
    return AutoConfig.for_model(**json.loads(json.dumps(config)))


def windows(config: Any) -> list[int | None]:
    """Each layer's window in transformers' words."""
    kinds = getattr(config, "layer_types", None) or ["sliding_attention"] * config.num_hidden_layers
    window = getattr(config, "sliding_window", None)
    return [window if kind == "sliding_attention" else None for kind in kinds]


def assert_same(ours: DecoderConfig, theirs: Any) -> None:
    head_dim = getattr(theirs, "head_dim", None) or theirs.hidden_size // theirs.num_attention_heads
    assert (ours.vocab_size, ours.hidden_size, ours.intermediate_size, ours.num_layers, ours.head_dim) == (
        theirs.vocab_size,
        theirs.hidden_size,
        theirs.intermediate_size,
        theirs.num_hidden_layers,
        head_dim,
    )
    assert (ours.num_heads, ours.num_kv_heads) == (theirs.num_attention_heads, theirs.num_key_value_heads)
    assert (ours.norm_eps, ours.tie_embeddings) == (theirs.rms_norm_eps, theirs.tie_word_embeddings)
    assert ours.max_positions == theirs.max_position_embeddings
    eos = theirs.eos_token_id
    assert ours.eos_token_ids == tuple(eos if isinstance(eos, list) else [] if eos is None else [eos])
    assert ours.attention_bias == getattr(theirs, "attention_bias", False)
    assert ours.mlp_bias == getattr(theirs, "mlp_bias", False)
    assert [ours.window(layer) for layer in range(ours.num_layers)] == [
        # A window as long as the context hides nothing.
        window if window is not None and window < ours.max_positions else None
        for window in windows(theirs)
    ]
    rope = theirs.rope_parameters
    assert (ours.rope.theta, ours.rope.fraction) == (rope["rope_theta"], rope.get("partial_rotary_factor", 1.0))
    match ours.rope.scaling:
        case None:
            assert rope["rope_type"] == "default"
        case Llama3Scaling(factor, low, high, original):
            assert rope["rope_type"] == "llama3" and original == rope["original_max_position_embeddings"]
            assert (factor, low, high) == (rope["factor"], rope["low_freq_factor"], rope["high_freq_factor"])
        case LongRope(short, long, original, _):
            assert rope["rope_type"] == "longrope" and original == rope["original_max_position_embeddings"]
            assert (list(short), list(long)) == (rope["short_factor"], rope["long_factor"])


def any_config(draw: Any) -> DecoderConfig:
    """Any configuration of any family."""
    family = draw(families)
    reads, kinds = FAMILIES[family].reads, FAMILIES[family].rope_types
    head_dim = draw(st.sampled_from([8, 16, 32]))
    fraction = draw(st.sampled_from([1.0, 0.75, 0.5])) if "partial_rotary_factor" in reads else 1.0
    pairs = int(head_dim * fraction) // 2
    divisors = st.lists(st.floats(1, 64), min_size=pairs, max_size=pairs)
    scaling: Llama3Scaling | LongRope | None = None
    kind, original = draw(st.sampled_from(kinds)), draw(st.integers(16, 8192))
    if kind == "llama3":
        low, gap = draw(st.floats(0.5, 2)), draw(st.floats(0.5, 4))
        scaling = Llama3Scaling(draw(st.floats(1, 64)), low, low + gap, original)
    elif kind == "longrope":
        scaling = LongRope(tuple(draw(divisors)), tuple(draw(divisors)), original, draw(st.floats(1, 2)))
    layers, heads = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    window = draw(st.none() | st.integers(1, 5000)) if "sliding_window" in reads else None
    unwindowed: tuple[int, ...] = ()
    if window and "layer_types" in reads:
        unwindowed = tuple(sorted(draw(st.sets(st.integers(0, layers - 1), max_size=layers - 1))))
    return DecoderConfig(
        vocab_size=draw(st.integers(2, 200_000)),
        # Transformers lets no Phi-3 with LongRoPE have another width.
        hidden_size=head_dim * heads * 2,
        intermediate_size=draw(st.integers(1, 100)),
        num_layers=layers,
        num_heads=heads * 2,
        num_kv_heads=heads,
        head_dim=head_dim,
        family=family,
        norm_eps=draw(st.sampled_from([1e-6, 1e-5, 1e-3])),
        rope=Rope(draw(st.sampled_from([1e4, 5e5, 1e6])), fraction, scaling),
        max_positions=draw(st.sampled_from([2048, 131072])),
        sliding_window=window,
        unwindowed_layers=unwindowed,
        attention_bias="attention_bias" in reads and draw(st.booleans()),
        mlp_bias="mlp_bias" in reads and draw(st.booleans()),
        tie_embeddings=draw(st.booleans()),
        eos_token_ids=tuple(draw(st.lists(st.integers(0, 100), max_size=3))),
    )


@settings(deadline=None)
@given(st.data())
def test_what_is_written_is_read_again_here_and_in_transformers(data: st.DataObject) -> None:
    config = any_config(data.draw)
    written = json.loads(json.dumps(config.to_hf_config()))
    assert DecoderConfig.from_hf_config(written) == config
    theirs = in_memory(written)
    assert_same(config, theirs)
    # And what transformers writes, in its newer spelling, is read as the same.
    again = DecoderConfig.from_hf_config(json.loads(theirs.to_json_string(use_diff=True)))
    assert again == replace(config, defaults=again.defaults)


@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("silent", [(), ("num_key_value_heads",)], ids=["", "key heads"])
def test_where_the_file_is_silent_it_means_what_transformers_takes_it_to_mean(
    family: str, silent: tuple[str, ...]
) -> None:
    config = plain(family, num_attention_heads=32) | ({"head_dim": 4} if family != "qwen3" else {})
    config = {key: value for key, value in config.items() if key not in silent}
    assert_same(DecoderConfig.from_hf_config(config), in_memory(config))


DANGEROUS = {
    "num_local_experts": 8,
    "num_experts": 128,
    "moe_intermediate_size": 768,
    "attention_multiplier": 0.5,
    "residual_multiplier": 0.22,
    "embedding_multiplier": 12.0,
    "logits_scaling": 8.0,
    "logit_scale": 0.0625,
    "final_logit_softcapping": 30.0,
    "attn_logit_softcapping": 50.0,
    "query_pre_attn_scalar": 256,
    "clip_qkv": 8.0,
    "use_qk_norm": True,
    "qk_layernorm": True,
    "parallel_attn": True,
    "use_parallel_residual": True,
    "alibi": True,
    "no_rope_layers": [1, 1, 1, 0],
    "attention_chunk_size": 8192,
    "rope_interleaved": True,
    "rotary_dim": 64,
    "rotary_pct": 0.25,
    "lm_head_bias": True,
    "blocksparse_num_local_blocks": 16,
    "hidden_activation": "gelu_pytorch_tanh",
    "kv_lora_rank": 512,
    "vision_config": {"hidden_size": 1},
    "compression_config": {"format": "pack-quantized"},
    "layers_block_type": ["mamba"],
    "max_window_layers": 1,
    "attention_bias": True,
    "mlp_bias": True,
    "partial_rotary_factor": 0.5,
    "sliding_window": 128,
    "use_sliding_window": True,
    "layer_types": ["full_attention", "sliding_attention", "full_attention"],
}


@pytest.mark.parametrize(("key", "value"), [("is_causal", False), ("use_rope", False), ("full_attn_mod", 4)])
def test_a_setting_that_is_usually_on_is_refused_where_it_is_not(key: str, value: object) -> None:
    with pytest.raises(InputError, match=key):
        DecoderConfig.from_hf_config(plain("qwen3", **{key: value}))


def test_what_published_files_say_besides_is_no_obstacle() -> None:
    besides = {
        "_attn_implementation_autoset": True,
        "_flash_attn_2_enabled": True,
        "_name_or_path": "org/name",
        "attention_dropout": 0.1,
        "auto_map": {"AutoConfig": "configuration_phi3.Phi3Config"},
        "bos_token_id": 1,
        "embd_pdrop": 0.1,
        "full_attn_mod": 1,
        "id2label": {"0": "LABEL_0"},
        "initializer_range": 0.02,
        "interpolate_factor": 1,
        "is_causal": True,
        "is_llama_config": True,
        "max_length": 4096,
        "max_sequence_length": 2048,
        "num_return_sequences": 1,
        "output_attentions": False,
        "pretraining_tp": 4,
        "rope_interleaved": False,
        "tokenizer_class": "LlamaTokenizer",
        "torch_dtype": "bfloat16",
        "transformers.js_config": {"dtype": "q4"},
        "transformers_version": "4.52.0",
        "unsloth_fixed": True,
        "use_cache": True,
        "use_mrope": False,
    }
    for family in FAMILIES:
        assert DecoderConfig.from_hf_config(plain(family, **besides)) == DecoderConfig.from_hf_config(plain(family))


OFF = [None, False, 0, 0.0, [], {}, ""]


@given(families, st.sampled_from(sorted(DANGEROUS)))
def test_a_setting_that_would_change_the_result_is_refused_by_name(family: str, key: str) -> None:
    assume(key not in FAMILIES[family].reads)
    with pytest.raises(InputError, match=key) as caught:
        DecoderConfig.from_hf_config(plain(family, **{key: DANGEROUS[key]}))
    assert "\n" not in str(caught.value)


@given(families, st.sampled_from(sorted(DANGEROUS.keys() - {"partial_rotary_factor"})), st.sampled_from(OFF))
def test_the_same_setting_is_accepted_where_it_is_off(family: str, key: str, off: object) -> None:
    assume(key not in FAMILIES[family].reads)
    assert DecoderConfig.from_hf_config(plain(family, **{key: off})) == DecoderConfig.from_hf_config(plain(family))


@given(families, st.sampled_from(["yarn", "linear", "dynamic", "mrope", "proportional", None, 7, ["default"]]))
def test_an_unknown_rope_type_is_refused_by_name(family: str, kind: object) -> None:
    assume(not (family == "phi3" and kind == "yarn"))
    for key in ("rope_scaling", "rope_parameters"):
        with pytest.raises(InputError, match="rope type") as caught:
            DecoderConfig.from_hf_config(plain(family, **{key: {"rope_type": kind, "factor": 2.0}}))
        assert repr(kind) in str(caught.value)


LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"model_type": "mamba"}, "'mamba' is not supported; supported: llama, qwen2, qwen3, mistral, phi3"),
        ({"model_type": ["llama"]}, "model_type"),
        ({"model_type": None}, "model_type"),
        ({"hidden_act": "relu"}, "hidden_act='relu'"),
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
        ({"num_key_value_heads": 3}, "3 key/value heads"),
        ({"head_dim": 15}, "15"),
        ({"hidden_size": "64"}, "hidden_size='64'"),
        ({"hidden_size": True}, "hidden_size"),
        ({"vocab_size": None}, "vocab_size"),
        ({"num_hidden_layers": 0}, "num_hidden_layers=0"),
        ({"rms_norm_eps": "small"}, "rms_norm_eps"),
        ({"rms_norm_eps": float("nan")}, "rms_norm_eps"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings"),
        ({"eos_token_id": "</s>"}, "eos_token_id"),
        ({"rope_scaling": "llama3"}, "rope settings"),
        ({"rope_scaling": {"rope_type": "llama3"}}, "rope type llama3: factor is missing"),
        ({"rope_scaling": LLAMA3 | {"mscale": 1.0}}, "mscale"),
        ({"rope_scaling": LLAMA3 | {"factor": "8"}}, "factor"),
        ({"rope_parameters": {"rope_type": "default", "mrope_section": [2, 3, 3]}}, "mrope_section"),
        ({"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}}, "partial_rotary_factor"),
        ({"rope_parameters": {"full_attention": {"rope_type": "default"}}}, "full_attention"),
        ({"robust_jax": {"shot": 5}}, "robust_jax"),
        (
            {"model_type": "phi3", "rope_scaling": {"type": "longrope", "short_factor": [1.0], "long_factor": [1.0]}},
            "short_factor has 1 entries for 8",
        ),
        ({"model_type": "phi3", "rope_scaling": LLAMA3}, "'llama3' is not supported"),
        ({"model_type": "phi3", "partial_rotary_factor": 0.2}, "16 channels"),
        ({"model_type": "phi3", "partial_rotary_factor": 2.0}, "16 channels"),
        ({"model_type": "mistral", "sliding_window": -1}, "sliding_window=-1"),
        ({"model_type": "qwen2", "layer_types": ["full_attention"]}, "layer_types"),
        ({"model_type": "qwen2", "layer_types": ["chunked_attention"] * 3}, "layer_types"),
        ({"model_type": "qwen2", "layer_types": ["sliding_attention"] * 3}, "use_sliding_window"),
    ],
    ids=str,
)
def test_what_the_decoder_does_not_do_is_refused_by_name(tmp_path: Path, change: dict[str, object], named: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps(plain("llama") | change))
    with pytest.raises(InputError) as caught:
        read_config(tmp_path)
    message = str(caught.value)
    assert named in message and "\n" not in message and message.startswith(str(tmp_path / "config.json"))


def test_all_settings_that_are_not_supported_are_named_at_once() -> None:
    with pytest.raises(InputError, match=r"num_local_experts=8, final_logit_softcapping=30\.0"):
        DecoderConfig.from_hf_config(plain("llama", num_local_experts=8, final_logit_softcapping=30.0))


def test_both_spellings_of_rotary_settings_are_read() -> None:
    longrope = {"short_factor": [1.0] * 8, "long_factor": [2.0] * 8}
    for family, scaling in [("llama", {}), ("llama", LLAMA3), ("phi3", {"rope_type": "longrope", **longrope})]:
        old = plain(family, rope_theta=123.0, rope_scaling=scaling or None)
        new = plain(family, rope_parameters={"rope_type": "default", "rope_theta": 123.0, **scaling})
        assert DecoderConfig.from_hf_config(old) == DecoderConfig.from_hf_config(new)
        assert DecoderConfig.from_hf_config(old).rope.theta == 123.0
    for name in ("su", "yarn"):
        early = plain("phi3", rope_scaling={"type": name, **longrope})
        assert isinstance(DecoderConfig.from_hf_config(early).rope.scaling, LongRope)


def test_head_width_may_be_null() -> None:
    assert DecoderConfig.from_hf_config(plain("llama", head_dim=None)).head_dim == 16


def test_a_window_that_is_off_is_off() -> None:
    config = plain("qwen2", use_sliding_window=False, sliding_window=8, max_window_layers=1)
    assert DecoderConfig.from_hf_config(config).sliding_window is None
    on = DecoderConfig.from_hf_config(config | {"use_sliding_window": True})
    assert [on.window(layer) for layer in range(3)] == [None, 8, 8]


def test_stop_ids_of_both_files_are_joined(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(plain("llama", eos_token_id=2)))
    for more, joined in [([2, 5], (2, 5)), (7, (2, 7)), (None, (2,))]:
        (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": more}))
        assert read_config(tmp_path).eos_token_ids == joined


@pytest.mark.parametrize("name", ["config.json", "generation_config.json"])
@pytest.mark.parametrize("text", ["", "{", "[]", '"llama"', "\0"])
def test_a_damaged_file_is_an_input_error(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps(plain("llama")))
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=name):
        read_config(tmp_path)
