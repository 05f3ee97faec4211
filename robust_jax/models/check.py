"""What a loaded model looks like, in words."""

import jax

from robust_jax.models.local import LocalModel
from robust_jax.models.registry import load_model
from robust_jax.types import Message, Prompt, Sampling

QUESTION = "Ava has 3 apples and buys 4 more. How many apples does Ava have?"


def describe(spec: str) -> str:
    """Shape, memory and a greedy reply of a model.

    Raises:
        InputError: it cannot be loaded.
    """
    model = load_model(spec)
    lines = [model.name]
    if isinstance(model, LocalModel):
        config = model.decoder.config
        weights = jax.tree.leaves(model.decoder)
        count, size = sum(leaf.size for leaf in weights), sum(leaf.nbytes for leaf in weights)
        lines += [
            f"parameters: {count:,} in {size / 2**20:,.1f} MiB",
            f"layers {config.num_layers}, width {config.hidden_size}, heads {config.num_heads} over "
            f"{config.num_kv_heads} of width {config.head_dim}, feed-forward {config.intermediate_size}, "
            f"vocabulary {config.vocab_size}, context {config.max_positions}",
        ]
    prompt = Prompt((Message("user", QUESTION),), QUESTION, raw=f"Question: {QUESTION}\nAnswer:")
    (reply,) = model.respond([prompt], Sampling(max_tokens=model.defaults.max_tokens or 64))
    return "\n".join([*lines, f"asked: {QUESTION}", f"replied: {reply.text.strip()}"])
