"""A GGUF file in the terms of a Hugging Face checkpoint: config.json's keys, tensors under their usual names."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from gguf import TokenType
from jaxtyping import Int, Shaped

from robust_jax.errors import InputError
from robust_jax.models.gguf_file import GgufFile

ARCHITECTURES = ("llama", "qwen2", "qwen3", "phi3")
"""Each is the `model_type` of a config.json, too; Mistral's files call themselves llama."""

TENSORS = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "blk.*.attn_norm": "model.layers.*.input_layernorm",
    "blk.*.attn_q": "model.layers.*.self_attn.q_proj",
    "blk.*.attn_k": "model.layers.*.self_attn.k_proj",
    "blk.*.attn_v": "model.layers.*.self_attn.v_proj",
    "blk.*.attn_qkv": "model.layers.*.self_attn.qkv_proj",
    "blk.*.attn_q_norm": "model.layers.*.self_attn.q_norm",
    "blk.*.attn_k_norm": "model.layers.*.self_attn.k_norm",
    "blk.*.attn_output": "model.layers.*.self_attn.o_proj",
    "blk.*.ffn_norm": "model.layers.*.post_attention_layernorm",
    "blk.*.ffn_gate": "model.layers.*.mlp.gate_proj",
    "blk.*.ffn_up": "model.layers.*.mlp.up_proj",
    "blk.*.ffn_down": "model.layers.*.mlp.down_proj",
}
"""Before `.weight` or `.bias`; `*` is the number of a layer."""

PHI3_TENSORS = {**TENSORS, "blk.*.ffn_up": "model.layers.*.mlp.gate_up_proj"}

ROPE_FACTORS = ("rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight")
"""Not weights: what each frequency is divided by. They go into the configuration."""

INERT = ("vocab_size", "tensor_data_layout", "attention.causal", "expert_used_count", "rope.scaling.finetuned")
"""Keys that the tensors say better or that change nothing alone; any other key that is not read is refused."""

ENDS_OF_TEXT = ("<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "<|end|>", "<|eot_id|>", "<|eom_id|>")
"""Control tokens that end a reply whether or not the file lists them: it has room for one `eos_token_id`."""


def hf_config(file: GgufFile) -> dict[str, Any]:
    """The file's hyper-parameters under the keys of a config.json.

    Raises:
        InputError: an architecture or a setting that has no place there; it is named.
    """
    architecture = file.metadata.get("general.architecture")
    if architecture not in ARCHITECTURES:
        raise InputError(
            f"{file.path}: architecture {architecture!r} is not supported; supported: {', '.join(ARCHITECTURES)}"
        )
    if file.metadata.get("split.count", 1) not in (0, 1):
        raise InputError(
            f"{file.path} is one part of several: merge them (llama-gguf-split --merge) and name the result"
        )
    if "token_embd.weight" not in file.tensors:
        raise InputError(f"{file.path} holds no model: token_embd.weight is missing; name a file with weights")
    settings = _Settings(file, architecture)
    width, heads = settings.integer("embedding_length"), settings.integer("attention.head_count")
    head_dim = settings.integer("attention.key_length", width // heads)
    if settings.integer("attention.value_length", head_dim) != head_dim:
        raise InputError(f"{file.path}: values of another width than keys are not supported")
    layers = settings.integer("block_count")
    if layers > len(file.tensors):
        raise InputError(f"{file.path}: {architecture}.block_count is {layers}, more than there are tensors")
    window = settings.integer("attention.sliding_window", 0)
    config = {
        # Only Mistral among those that call themselves llama has a window.
        "model_type": "mistral" if architecture == "llama" and window else architecture,
        "vocab_size": file.tensors["token_embd.weight"].shape[0],
        "hidden_size": width,
        "intermediate_size": settings.integer("feed_forward_length"),
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": settings.integer("attention.head_count_kv", heads),
        "head_dim": head_dim,
        "hidden_act": "silu",
        "rms_norm_eps": settings.real("attention.layer_norm_rms_epsilon"),
        "rope_theta": settings.real("rope.freq_base", 10_000.0),
        "max_position_embeddings": settings.integer("context_length"),
        "sliding_window": window or None,
        "attention_bias": architecture != "qwen2" and "blk.0.attn_q.bias" in file.tensors,
        "mlp_bias": "blk.0.ffn_up.bias" in file.tensors,
        "tie_word_embeddings": "output.weight" not in file.tensors,
        "eos_token_id": end_of_text_ids(file.metadata),
    }
    rotary_dim = settings.integer("rope.dimension_count", head_dim)
    if rotary_dim != head_dim:
        config["partial_rotary_factor"] = rotary_dim / head_dim
    config |= _rope_scaling(settings)
    settings.check_all_read()
    return config


def end_of_text_ids(metadata: Mapping[str, Any]) -> list[int]:
    """The ids of every token that ends a reply."""
    listed = [metadata.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot", "eom")]
    named = {value for value in listed if isinstance(value, int)}
    tokens, kinds = (metadata.get(f"tokenizer.ggml.{name}") for name in ("tokens", "token_type"))
    if isinstance(tokens, list) and isinstance(kinds, list):
        for index, (token, kind) in enumerate(zip(tokens, kinds, strict=False)):
            if kind == TokenType.CONTROL and token in ENDS_OF_TEXT:
                named.add(index)
    return sorted(named)


def _rope_scaling(settings: "_Settings") -> dict[str, Any]:
    """Keys of config.json that stretch the rotary positions."""
    original = settings.integer("rope.scaling.original_context_length", settings.integer("context_length"))
    attention_factor = settings.real("rope.scaling.attn_factor", 0.0)
    kind, factor = settings.get("rope.scaling.type", "none"), settings.real("rope.scaling.factor", 1.0)
    tensors = settings.file.tensors
    rope: dict[str, Any] = {"rope_type": "longrope", "original_max_position_embeddings": original}
    if "rope_freqs.weight" in tensors:
        # A Llama 3 file holds the factors of its frequencies, not the parameters that they were computed from. Longrope
        # with the same factors at every length, and with the logits left alone, is the same rotation.
        factors = settings.file.read("rope_freqs.weight").tolist()
        rope |= {"short_factor": factors, "long_factor": factors, "attention_factor": 1.0}
    elif {"rope_factors_short.weight", "rope_factors_long.weight"} <= tensors.keys():
        for length in ("short", "long"):
            rope[f"{length}_factor"] = settings.file.read(f"rope_factors_{length}.weight").tolist()
        if attention_factor:
            rope["attention_factor"] = attention_factor
    elif kind == "none":
        return {}
    else:
        rope |= {"rope_type": kind, "factor": factor}
    return {"rope_scaling": rope, "original_max_position_embeddings": original}


class _Settings:
    """The hyper-parameters of the file's architecture, and which of them were read."""

    def __init__(self, file: GgufFile, architecture: str):
        self.file = file
        self.prefix = f"{architecture}."
        self.read = {self.prefix + key for key in INERT}

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(self.prefix + key)
        value = self.file.metadata.get(self.prefix + key, default)
        if isinstance(value, list):
            if len(set(value)) != 1:
                raise InputError(f"{self.file.path}: {self.prefix}{key} differs between layers, which is not supported")
            return value[0]
        return value

    def integer(self, key: str, default: int | None = None) -> int:
        """A whole number; without a default, one that there must be."""
        value = self.get(key, default)
        if type(value) is not int or (default is None and value < 1):
            raise InputError(f"{self.file.path}: {self.prefix}{key} is {value!r}, expected a positive whole number")
        return value

    def real(self, key: str, default: float | None = None) -> float:
        """A number; without a default, one that there must be."""
        value = self.get(key, default)
        if type(value) not in (int, float):
            raise InputError(f"{self.file.path}: {self.prefix}{key} is {value!r}, expected a number")
        return float(value)

    def check_all_read(self) -> None:
        """Refuse what was not read and is not off: a setting must not be ignored."""
        unknown = {
            key: value
            for key, value in self.file.metadata.items()
            if key.startswith(self.prefix) and key not in self.read and value
        }
        if unknown:
            listed = ", ".join(f"{key}={value!r}" for key, value in unknown.items())
            raise InputError(f"{self.file.path}: {listed} is not supported; load another model")


class _Source(NamedTuple):
    """Where a tensor of the checkpoint comes from."""

    name: str
    """In the GGUF file."""
    head_dim: int | None
    """Where the rows of every head were permuted, its width."""


class GgufTensors:
    """The tensors of a GGUF file under their Hugging Face names, in a Hugging Face checkpoint's order of rows."""

    def __init__(self, file: GgufFile, config: Mapping[str, Any]):
        self.file = file
        self._sources: dict[str, _Source] = {}
        for name in file.tensors:
            if name in ROPE_FACTORS:
                continue
            permuted = config["model_type"] in ("llama", "mistral") and re.fullmatch(
                r"blk\.\d+\.attn_[qk]\.(weight|bias)", name
            )
            source = _Source(name, config["head_dim"] if permuted else None)
            self._sources[hf_name(name, config["model_type"])] = source

    def __str__(self) -> str:
        return str(self.file.path)

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return {name: self.file.tensors[source.name].shape for name, source in self._sources.items()}

    def read(self, name: str, index: tuple[slice, ...]) -> Shaped[np.ndarray, "..."]:
        """A part of a tensor; quantised ones come as float32, the others as they are stored."""
        source = self._sources[name]
        shape = self.file.tensors[source.name].shape
        rows: slice | np.ndarray = index[0]
        if source.head_dim:
            rows = interleaved_rows(np.arange(*index[0].indices(shape[0])), source.head_dim)
        return self.file.read(source.name, rows, *index[1:])


def hf_name(name: str, model_type: str) -> str:
    """The Hugging Face name of a tensor; one that has none keeps its own and is found unexpected later."""
    stem, _, kind = name.rpartition(".")
    layer = re.match(r"blk\.(\d+)\.", stem)
    table = PHI3_TENSORS if model_type == "phi3" else TENSORS
    known = table.get(re.sub(r"^blk\.\d+\.", "blk.*.", stem))
    if known is None:
        return name
    return f"{known.replace('*', layer[1] if layer else '')}.{kind}"


def interleaved_rows(rows: Int[np.ndarray, " rows"], head_dim: int) -> Int[np.ndarray, " rows"]:
    """Where rows of q or k lie in a Llama GGUF.

    A checkpoint keeps the two parts of a rotated pair half a head apart, (i, i + H/2); llama.cpp rotates neighbours,
    (2i, 2i + 1), so its files have the rows of every head in that order.
    """
    head, place = np.divmod(rows, head_dim)
    part, pair = np.divmod(place, head_dim // 2)
    return head * head_dim + 2 * pair + part
