"""Writes small GGUF files with the `gguf` package, as llama.cpp's converters do."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.quants import quantize

TOKENIZER = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "gpt-2",
    "tokenizer.ggml.tokens": ["<|endoftext|>", "Ġ", *"abcdefghijklmnopqrstuvwxyz0123456789.,?!", "Ġa", "th"],
    "tokenizer.ggml.token_type": [3, *[1] * 43],
    "tokenizer.ggml.merges": ["Ġ a", "t h"],
    "tokenizer.ggml.eos_token_id": 0,
}

NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def write_gguf(
    path: Path,
    metadata: Mapping[str, Any],
    tensors: Mapping[str, np.ndarray],
    kind: GGMLQuantizationType = GGMLQuantizationType.F32,
) -> None:
    """A file of these keys and tensors; matrices are quantised, vectors stay as they are."""
    writer = GGUFWriter(path, metadata["general.architecture"])
    for key, value in metadata.items():
        if key == "general.architecture":
            continue
        if isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, str):
            writer.add_string(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        else:
            writer.add_array(key, value)
    for name, tensor in tensors.items():
        stored = GGMLQuantizationType.F32 if tensor.ndim == 1 else kind
        writer.add_tensor(name, quantize(np.ascontiguousarray(tensor, np.float32), stored), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def convert(
    path: Path,
    architecture: str,
    config: Mapping[str, Any],
    tensors: Mapping[str, np.ndarray],
    kind: GGMLQuantizationType = GGMLQuantizationType.F32,
    more: Mapping[str, Any] | None = None,
    factors: Mapping[str, np.ndarray] | None = None,
) -> None:
    """A Hugging Face checkpoint as a GGUF file.

    Args:
        more: further keys, without the architecture's prefix where they have one of their own.
        factors: rotary factors by their GGUF names.
    """
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    settings = {
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "block_count": config["num_hidden_layers"],
        "feed_forward_length": config["intermediate_size"],
        "attention.head_count": heads,
        "attention.head_count_kv": kv_heads,
        "attention.key_length": config["head_dim"],
        "attention.value_length": config["head_dim"],
        "attention.layer_norm_rms_epsilon": float(config["rms_norm_eps"]),
        "rope.freq_base": float(config["rope_theta"]),
        "rope.dimension_count": int(config["head_dim"] * config.get("partial_rotary_factor", 1)),
    }
    if config.get("sliding_window"):
        settings["attention.sliding_window"] = config["sliding_window"]
    if architecture == "mistral":
        architecture = "llama"
    metadata = {"general.architecture": architecture}
    metadata |= {f"{architecture}.{key}": value for key, value in settings.items()} | TOKENIZER | dict(more or {})
    renamed: dict[str, np.ndarray] = dict(factors or {})
    for name, tensor in tensors.items():
        if architecture == "llama" and (".q_proj." in name or ".k_proj." in name):
            tensor = interleaved(tensor, heads if ".q_proj." in name else kv_heads)
        renamed[gguf_name(name)] = tensor
    write_gguf(path, metadata, renamed, kind)


def gguf_name(name: str) -> str:
    stem, _, kind = name.rpartition(".")
    if stem.startswith("model.layers."):
        _, _, layer, part = stem.split(".", 3)
        return f"blk.{layer}.{NAMES[part]}.{kind}"
    return f"{NAMES[stem]}.{kind}"


def interleaved(rows: np.ndarray, heads: int) -> np.ndarray:
    """Every head's halves shuffled like a deck of cards: rows 0, H/2, 1, H/2 + 1, …"""
    halves = rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:])
    return halves.swapaxes(1, 2).reshape(rows.shape)
