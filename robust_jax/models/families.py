"""What sets one family of models apart from another, as data: tensor names, options and defaults.

A tensor table maps a tensor of the checkpoint to the decoder's parameters that it holds, stacked along the first axis
in that order; `*` stands for the number of a layer. Parameters that a configuration does without are left out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

TensorTable = Mapping[str, tuple[str, ...]]

LLAMA_TENSORS: TensorTable = {
    "model.embed_tokens.weight": ("embed_tokens",),
    "model.layers.*.input_layernorm.weight": ("layers.*.input_layernorm.weight",),
    "model.layers.*.self_attn.q_proj.weight": ("layers.*.self_attn.q_proj.weight",),
    "model.layers.*.self_attn.k_proj.weight": ("layers.*.self_attn.k_proj.weight",),
    "model.layers.*.self_attn.v_proj.weight": ("layers.*.self_attn.v_proj.weight",),
    "model.layers.*.self_attn.o_proj.weight": ("layers.*.self_attn.o_proj.weight",),
    "model.layers.*.self_attn.q_proj.bias": ("layers.*.self_attn.q_proj.bias",),
    "model.layers.*.self_attn.k_proj.bias": ("layers.*.self_attn.k_proj.bias",),
    "model.layers.*.self_attn.v_proj.bias": ("layers.*.self_attn.v_proj.bias",),
    "model.layers.*.self_attn.o_proj.bias": ("layers.*.self_attn.o_proj.bias",),
    "model.layers.*.self_attn.q_norm.weight": ("layers.*.self_attn.q_norm.weight",),
    "model.layers.*.self_attn.k_norm.weight": ("layers.*.self_attn.k_norm.weight",),
    "model.layers.*.post_attention_layernorm.weight": ("layers.*.post_attention_layernorm.weight",),
    "model.layers.*.mlp.gate_proj.weight": ("layers.*.mlp.gate_proj.weight",),
    "model.layers.*.mlp.up_proj.weight": ("layers.*.mlp.up_proj.weight",),
    "model.layers.*.mlp.down_proj.weight": ("layers.*.mlp.down_proj.weight",),
    "model.layers.*.mlp.gate_proj.bias": ("layers.*.mlp.gate_proj.bias",),
    "model.layers.*.mlp.up_proj.bias": ("layers.*.mlp.up_proj.bias",),
    "model.layers.*.mlp.down_proj.bias": ("layers.*.mlp.down_proj.bias",),
    "model.norm.weight": ("norm.weight",),
    "lm_head.weight": ("lm_head.weight",),
}

PHI3_TENSORS: TensorTable = {
    "model.embed_tokens.weight": ("embed_tokens",),
    "model.layers.*.input_layernorm.weight": ("layers.*.input_layernorm.weight",),
    "model.layers.*.self_attn.qkv_proj.weight": (
        "layers.*.self_attn.q_proj.weight",
        "layers.*.self_attn.k_proj.weight",
        "layers.*.self_attn.v_proj.weight",
    ),
    "model.layers.*.self_attn.o_proj.weight": ("layers.*.self_attn.o_proj.weight",),
    "model.layers.*.post_attention_layernorm.weight": ("layers.*.post_attention_layernorm.weight",),
    "model.layers.*.mlp.gate_up_proj.weight": ("layers.*.mlp.gate_proj.weight", "layers.*.mlp.up_proj.weight"),
    "model.layers.*.mlp.down_proj.weight": ("layers.*.mlp.down_proj.weight",),
    "model.norm.weight": ("norm.weight",),
    "lm_head.weight": ("lm_head.weight",),
}


@dataclass(frozen=True)
class Family:
    """What a model_type stands for."""

    architecture: str
    """The class that `transformers` loads it with."""
    tensors: TensorTable
    silent: Mapping[str, Any]
    """What `transformers` takes where config.json is silent, besides what is the same for all families."""
    reads: tuple[str, ...] = ()
    """Keys of config.json that mean something in this family and not in all."""
    rope_types: tuple[str, ...] = ("default", "llama3", "longrope")
    qkv_bias: bool = False
    """Whether queries, keys and values always have a bias."""
    head_norms: bool = False
    """Whether each head's queries and keys are normalised."""


WINDOW_FROM_A_LAYER = ("use_sliding_window", "sliding_window", "max_window_layers", "layer_types")
WINDOW_EVERYWHERE = ("sliding_window",)

FAMILIES: Mapping[str, Family] = {
    "llama": Family(
        architecture="LlamaForCausalLM",
        tensors=LLAMA_TENSORS,
        silent={"max_position_embeddings": 2048, "eos_token_id": 2},
        reads=("attention_bias", "mlp_bias"),
    ),
    "qwen2": Family(
        architecture="Qwen2ForCausalLM",
        tensors=LLAMA_TENSORS,
        silent={
            "max_position_embeddings": 32768,
            "num_key_value_heads": 32,
            "sliding_window": 4096,
            "max_window_layers": 28,
        },
        reads=WINDOW_FROM_A_LAYER,
        qkv_bias=True,
    ),
    "qwen3": Family(
        architecture="Qwen3ForCausalLM",
        tensors=LLAMA_TENSORS,
        silent={
            "max_position_embeddings": 32768,
            "num_key_value_heads": 32,
            "head_dim": 128,
            "sliding_window": 4096,
            "max_window_layers": 28,
        },
        reads=("attention_bias", *WINDOW_FROM_A_LAYER),
        head_norms=True,
    ),
    "mistral": Family(
        architecture="MistralForCausalLM",
        tensors=LLAMA_TENSORS,
        silent={
            "max_position_embeddings": 131072,
            "num_key_value_heads": 8,
            "sliding_window": 4096,
            "eos_token_id": 2,
        },
        reads=WINDOW_EVERYWHERE,
    ),
    "phi3": Family(
        architecture="Phi3ForCausalLM",
        tensors=PHI3_TENSORS,
        silent={
            "max_position_embeddings": 4096,
            "original_max_position_embeddings": 4096,
            "sliding_window": None,
            "rms_norm_eps": 1e-5,
            "eos_token_id": 32000,
        },
        reads=(*WINDOW_EVERYWHERE, "partial_rotary_factor"),
        rope_types=("default", "longrope"),
    ),
}


def tensor_table(family: Family, num_layers: int, parameters: Iterable[str]) -> dict[str, list[str]]:
    """Which of the decoder's `parameters` each tensor of a checkpoint holds, in their order along its first axis."""
    present = set(parameters)
    table: dict[str, list[str]] = {}
    for name, parts in family.tensors.items():
        for layer in range(num_layers) if "*" in name else (0,):
            held = [part.replace("*", str(layer)) for part in parts]
            if held := [part for part in held if part in present]:
                table[name.replace("*", str(layer))] = held
    return table
