"""How each family of models names its tensors.

A table maps a tensor of the checkpoint to the decoder's parameters that it holds, stacked along the first axis in that
order; `*` stands for the number of a layer. A parameter that a configuration does without is left out.
"""

from collections.abc import Iterable, Mapping

from robust_jax.models.config import DecoderConfig

TensorTable = Mapping[str, tuple[str, ...]]

LLAMA: TensorTable = {
    "model.embed_tokens.weight": ("embed_tokens",),
    "model.layers.*.input_layernorm.weight": ("layers.*.input_layernorm.weight",),
    "model.layers.*.self_attn.q_proj.weight": ("layers.*.self_attn.q_proj.weight",),
    "model.layers.*.self_attn.k_proj.weight": ("layers.*.self_attn.k_proj.weight",),
    "model.layers.*.self_attn.v_proj.weight": ("layers.*.self_attn.v_proj.weight",),
    "model.layers.*.self_attn.o_proj.weight": ("layers.*.self_attn.o_proj.weight",),
    "model.layers.*.post_attention_layernorm.weight": ("layers.*.post_attention_layernorm.weight",),
    "model.layers.*.mlp.gate_proj.weight": ("layers.*.mlp.gate_proj.weight",),
    "model.layers.*.mlp.up_proj.weight": ("layers.*.mlp.up_proj.weight",),
    "model.layers.*.mlp.down_proj.weight": ("layers.*.mlp.down_proj.weight",),
    "model.norm.weight": ("norm.weight",),
    "lm_head.weight": ("lm_head.weight",),
}


def tensor_table(config: DecoderConfig, parameters: Iterable[str]) -> dict[str, list[str]]:
    """Which of the decoder's `parameters` each tensor of a checkpoint holds, in their order along its first axis."""
    present = set(parameters)
    table: dict[str, list[str]] = {}
    for name, parts in LLAMA.items():
        for layer in range(config.num_layers) if "*" in name else (0,):
            held = [part.replace("*", str(layer)) for part in parts]
            if held := [part for part in held if part in present]:
                table[name.replace("*", str(layer))] = held
    return table
