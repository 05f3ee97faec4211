"""The decoder: pre-norm blocks of grouped-query attention with rotary positions and a gated MLP.

Weights keep the checkpoint's [out, in] layout. Modules are plain pytrees, to be used under `jax.jit` and `jax.grad`
directly. Layers are a Python list: on a CPU, XLA copies each slice of stacked weights in a scan.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from einops import rearrange
from flax import nnx
from jaxtyping import Array, Float, Int, PRNGKeyArray

from robust_jax.models.attention import Context, KeyValues, View, attend, view
from robust_jax.models.config import DecoderConfig
from robust_jax.models.rope import Rotation, rotate, rotation


class Output(NamedTuple):
    """The result of a forward pass."""

    hidden: Float[Array, "B T D"]
    """After the final norm."""
    states: Float[Array, "l B T D"]
    """The residual stream after each requested block, before the final norm."""
    cache: list[KeyValues]
    """The rows' slots with the new tokens in them; without a context, the tokens' own keys and values."""


class Linear(nnx.Module):
    """y = x Wᵀ + b with W of shape [out, in], and b only where there is a bias."""

    def __init__(self, size_in: int, size_out: int, *, key: PRNGKeyArray, scale: float = 1.0, bias: bool = False):
        self.weight = nnx.Param(jax.random.normal(key, (size_out, size_in)) * scale * size_in**-0.5)
        self.bias = nnx.Param(jnp.zeros(size_out)) if bias else None

    def __call__(self, x: Float[Array, "*lead I"]) -> Float[Array, "*lead O"]:
        y = product(x, self.weight[...])
        return y if self.bias is None else y + self.bias[...]


def product(
    x: Float[Array, "*lead I"], weight: Float[Array, "O I"], preferred: jnp.dtype | None = None
) -> Float[Array, "*lead O"]:
    """The product x Wᵀ, computed as one of two matrices.

    Were x to keep its axes, the gradient by the weights would contract over several of them, and XLA on a CPU would
    write the activations out transposed for it: a backward pass through an MLP takes 1.5 times as long that way.
    """
    rows = x.reshape(-1, x.shape[-1])
    y = jnp.einsum("XI,OI->XO", rows, weight, preferred_element_type=preferred)
    return y.reshape(*x.shape[:-1], weight.shape[0])


class RMSNorm(nnx.Module):
    """Root-mean-square norm: normalised in fp32, cast back, then scaled, in the checkpoint's order."""

    def __init__(self, size: int, eps: float):
        self.weight = nnx.Param(jnp.ones(size))
        self.eps = eps

    def __call__(self, x: Float[Array, "*lead D"]) -> Float[Array, "*lead D"]:
        wide = x.astype(jnp.float32)
        normalised = wide * jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + self.eps)
        return self.weight[...] * normalised.astype(x.dtype)


class Attention(nnx.Module):
    def __init__(self, config: DecoderConfig, *, key: PRNGKeyArray):
        q, k, v, o = jax.random.split(key, 4)
        queries, pairs = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
        has_bias = config.attention_bias or config.traits.qkv_bias
        self.q_proj = Linear(config.hidden_size, queries, key=q, bias=has_bias)
        self.k_proj = Linear(config.hidden_size, pairs, key=k, bias=has_bias)
        self.v_proj = Linear(config.hidden_size, pairs, key=v, bias=has_bias)
        scale = (2 * config.num_layers) ** -0.5
        self.o_proj = Linear(queries, config.hidden_size, key=o, scale=scale, bias=config.attention_bias)
        self.q_norm = RMSNorm(config.head_dim, config.norm_eps) if config.traits.head_norms else None
        self.k_norm = RMSNorm(config.head_dim, config.norm_eps) if config.traits.head_norms else None
        self.head_dim = config.head_dim

    def project(
        self, x: Float[Array, "B T D"], turn: Rotation
    ) -> tuple[Float[Array, "B T N H"], Float[Array, "B T K H"], Float[Array, "B T K H"]]:
        """Queries and keys, turned to their positions, and values."""
        batch, length, _ = x.shape
        q, k, v = (
            projection(x).reshape(batch, length, -1, self.head_dim)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        if self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        return rotate(q, turn), rotate(k, turn), v

    def __call__(
        self, x: Float[Array, "B T D"], turn: Rotation, seen: View, context: Context | None, layer: int
    ) -> tuple[Float[Array, "B T D"], KeyValues]:
        batch, length, _ = x.shape
        q, k, v = self.project(x, turn)
        if context is None:
            own = KeyValues(rearrange(k, "B T K H -> B K H T"), rearrange(v, "B T K H -> B K T H"))
            mixed = attend(q, own, seen)
        else:
            rows = jnp.arange(batch)[:, None]
            cached = context.cache[layer]
            own = KeyValues(
                cached.keys.at[rows, :, :, context.slots].set(k, mode="drop"),
                cached.values.at[rows, :, context.slots].set(v, mode="drop"),
            )
            mixed = attend(q, own, seen, context.prefix.layers[layer] if context.prefix else None)
        return self.o_proj(mixed.reshape(batch, length, -1)), own


class MLP(nnx.Module):
    def __init__(self, config: DecoderConfig, *, key: PRNGKeyArray):
        gate, up, down = jax.random.split(key, 3)
        narrow, wide, bias = config.hidden_size, config.intermediate_size, config.mlp_bias
        self.gate_proj = Linear(narrow, wide, key=gate, bias=bias)
        self.up_proj = Linear(narrow, wide, key=up, bias=bias)
        self.down_proj = Linear(wide, narrow, key=down, scale=(2 * config.num_layers) ** -0.5, bias=bias)

    def __call__(self, x: Float[Array, "B T D"]) -> Float[Array, "B T D"]:
        return self.down_proj(jax.nn.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nnx.Module):
    def __init__(self, config: DecoderConfig, *, key: PRNGKeyArray):
        attention, mlp = jax.random.split(key)
        self.input_layernorm = RMSNorm(config.hidden_size, config.norm_eps)
        self.self_attn = Attention(config, key=attention)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.norm_eps)
        self.mlp = MLP(config, key=mlp)

    def __call__(
        self, x: Float[Array, "B T D"], turn: Rotation, seen: View, context: Context | None, layer: int
    ) -> tuple[Float[Array, "B T D"], KeyValues]:
        mixed, own = self.self_attn(self.input_layernorm(x), turn, seen, context, layer)
        x = x + mixed
        return x + self.mlp(self.post_attention_layernorm(x)), own


class Decoder(nnx.Module):
    """A causal language model. Attribute names are the checkpoint's, so a weight's path is its tensor name."""

    def __init__(self, config: DecoderConfig, *, key: PRNGKeyArray):
        embedding, head, *blocks = jax.random.split(key, config.num_layers + 2)
        self.config = config
        shape = (config.vocab_size, config.hidden_size)
        # Tied logits are hidden · embedding: this scale starts them near unit variance.
        self.embed_tokens = nnx.Param(jax.random.normal(embedding, shape) * config.hidden_size**-0.5)
        self.layers = nnx.List([Block(config, key=block) for block in blocks])
        self.norm = RMSNorm(config.hidden_size, config.norm_eps)
        if not config.tie_embeddings:
            self.lm_head = Linear(config.hidden_size, config.vocab_size, key=head)

    def __call__(
        self,
        tokens: Int[Array, "B T"],
        positions: Int[Array, "B T"],
        context: Context | None = None,
        layers: Sequence[int] = (),
        lengths: Int[Array, " B"] | None = None,
        sequences: Int[Array, "B T"] | None = None,
        remat: bool = False,
    ) -> Output:
        """Run the blocks over `tokens`; without a context the tokens attend causally to one another alone.

        Args:
            layers: the blocks whose output is recorded: hidden_states[l] in transformers' indexing, so 0 is the
                embedding and L the last block before the final norm.
            lengths: how long each row's sequence is or may become, its context included. Only LongRoPE looks at it,
                which rotates a sequence beyond the original context otherwise than a shorter one: every pass over a
                sequence, and over a prefix that it shares, must be given lengths on the same side of that bound
                (`config.rope.is_long`). Without it, a row is as long as the largest of its positions says, which is
                right for a pass over whole sequences without padding.
            sequences: where rows hold several sequences one after the other, which of them each token belongs to; each
                is read as if it stood alone, its positions counting from 0. Only without a context.
            remat: in a backward pass, compute the inside of every block anew instead of keeping it.
        """
        spans = None if lengths is None else lengths[:, None]
        if sequences is not None:
            spans = _own_lengths(sequences, positions)
        turn = rotation(self.config.rope, self.config.head_dim, positions, spans)
        windows = [self.config.window(index) for index in range(self.config.num_layers)]
        views = {window: view(window, positions, context, sequences) for window in dict.fromkeys(windows)}

        def run(block: Block, x: Float[Array, "B T D"], seen: View, index: int) -> tuple[Array, KeyValues]:
            return block(x, turn, seen, context, index)

        step = jax.checkpoint(run, static_argnums=3) if remat else run
        x = self.embed_tokens[...][tokens]
        cache, states = [], {0: x}
        for index, (block, window) in enumerate(zip(self.layers, windows, strict=True)):
            x, own = step(block, x, views[window], index)
            cache.append(own)
            states[index + 1] = x
        recorded = jnp.stack([states[layer] for layer in layers]) if layers else jnp.zeros((0, *x.shape), x.dtype)
        return Output(self.norm(x), recorded, cache)

    def logits(self, hidden: Float[Array, "*lead D"]) -> Float[Array, "*lead V"]:
        """Next-token logits (fp32) from hidden states after the final norm."""
        head = self.embed_tokens if self.config.tie_embeddings else self.lm_head.weight
        return product(hidden, head[...], jnp.dtype(jnp.float32))


def _own_lengths(sequences: Int[Array, "B T"], positions: Int[Array, "B T"]) -> Int[Array, "B T"]:
    """How long the sequence of each token is."""
    is_same = sequences[:, :, None] == sequences[:, None, :]
    return jnp.max(jnp.where(is_same, positions[:, None, :], 0), axis=-1) + 1


def empty_cache(config: DecoderConfig, batch: int, slots: int, dtype: jnp.dtype) -> list[KeyValues]:
    """Zeroed slots for every layer of a batch."""
    heads, width = config.num_kv_heads, config.head_dim
    return [
        KeyValues(jnp.zeros((batch, heads, width, slots), dtype), jnp.zeros((batch, heads, slots, width), dtype))
        for _ in range(config.num_layers)
    ]
