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
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from robust_jax.models.config import DecoderConfig


class KeyValues(NamedTuple):
    """One layer's keys and values: of a batch's rows, or (without B) of a prefix that all rows share.

    Slots run along the axis that each product streams over: a decoding step reads them three times as fast as in
    the order [B, S, K, H].
    """

    keys: Float[Array, "*B K H S"]
    values: Float[Array, "*B K S H"]


class Prefix(NamedTuple):
    """The tokens that all rows begin with."""

    layers: list[KeyValues]
    length: Int[Array, ""]
    """How many of their slots are filled."""


class Context(NamedTuple):
    """What the tokens of a forward pass can see besides themselves."""

    cache: list[KeyValues]
    """A layer each, rows' own slots; the new tokens are written into them."""
    slots: Int[Array, "B T"]
    """Where each new token is written; a slot beyond the cache drops it."""
    mask: Bool[Array, "B T S"]
    """Which of the row's slots each new token attends to, itself included."""
    prefix: Prefix | None = None
    """What every new token attends to besides."""


class Output(NamedTuple):
    """The result of a forward pass."""

    hidden: Float[Array, "B T D"]
    """After the final norm."""
    states: Float[Array, "l B T D"]
    """The residual stream after each requested block, before the final norm."""
    cache: list[KeyValues]
    """The rows' slots with the new tokens in them; without a context, the tokens' own keys and values."""


def rotary(x: Float[Array, "B T X H"], positions: Int[Array, "B T"], theta: float) -> Float[Array, "B T X H"]:
    """Rotate each pair (i, i + H/2) of every head by position · theta^(−2i/H)."""
    half = x.shape[-1] // 2
    frequencies = theta ** (-jnp.arange(half, dtype=jnp.float32) / half)
    angles = positions[:, :, None, None].astype(jnp.float32) * frequencies
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    low, high = x[..., :half].astype(jnp.float32), x[..., half:].astype(jnp.float32)
    return jnp.concatenate([low * cos - high * sin, high * cos + low * sin], axis=-1).astype(x.dtype)


def attend(
    queries: Float[Array, "B T N H"],
    own: KeyValues,
    mask: Bool[Array, "B T S"],
    prefix: KeyValues | None = None,
    prefix_length: Int[Array, ""] | int = 0,
) -> Float[Array, "B T N H"]:
    """Grouped-query attention over a row's own slots and, where given, a prefix that all rows share.

    The prefix is never copied to the rows: its scores and the rows' own are joined in one softmax (fp32).
    """
    _, length, heads, width = queries.shape
    kv_heads = own.keys.shape[1]
    grouped = rearrange(queries * width**-0.5, "B T (K G) H -> B K (G T) H", K=kv_heads)
    tiled = jnp.tile(mask, (1, heads // kv_heads, 1))[:, None]
    scores = jnp.einsum("BKXH,BKHS->BKXS", grouped, own.keys, preferred_element_type=jnp.float32)
    scores = jnp.where(tiled, scores, -jnp.inf)
    if prefix is None:
        weights = jax.nn.softmax(scores, axis=-1).astype(own.values.dtype)
        mixed = jnp.einsum("BKXS,BKSH->BKXH", weights, own.values)
    else:
        split = prefix.keys.shape[-1]
        shared = jnp.einsum("BKXH,KHS->BKXS", grouped, prefix.keys, preferred_element_type=jnp.float32)
        shared = jnp.where(jnp.arange(split) < prefix_length, shared, -jnp.inf)
        weights = jax.nn.softmax(jnp.concatenate([shared, scores], axis=-1), axis=-1).astype(own.values.dtype)
        mixed = jnp.einsum("BKXS,KSH->BKXH", weights[..., :split], prefix.values)
        mixed += jnp.einsum("BKXS,BKSH->BKXH", weights[..., split:], own.values)
    return rearrange(mixed, "B K (G T) H -> B T (K G) H", T=length)


class Linear(nnx.Module):
    """y = x Wᵀ with W of shape [out, in]."""

    def __init__(self, size_in: int, size_out: int, *, key: PRNGKeyArray, scale: float = 1.0):
        self.weight = nnx.Param(jax.random.normal(key, (size_out, size_in)) * scale * size_in**-0.5)

    def __call__(self, x: Float[Array, "*lead I"]) -> Float[Array, "*lead O"]:
        return jnp.einsum("...I,OI->...O", x, self.weight[...])


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
        self.q_proj = Linear(config.hidden_size, queries, key=q)
        self.k_proj = Linear(config.hidden_size, pairs, key=k)
        self.v_proj = Linear(config.hidden_size, pairs, key=v)
        self.o_proj = Linear(queries, config.hidden_size, key=o, scale=(2 * config.num_layers) ** -0.5)
        self.head_dim, self.theta = config.head_dim, config.rope_theta

    def __call__(
        self, x: Float[Array, "B T D"], positions: Int[Array, "B T"], context: Context | None, layer: int
    ) -> tuple[Float[Array, "B T D"], KeyValues]:
        batch, length, _ = x.shape
        q, k, v = (
            projection(x).reshape(batch, length, -1, self.head_dim)
            for projection in (self.q_proj, self.k_proj, self.v_proj)
        )
        q, k = rotary(q, positions, self.theta), rotary(k, positions, self.theta)
        if context is None:
            own = KeyValues(rearrange(k, "B T K H -> B K H T"), rearrange(v, "B T K H -> B K T H"))
            causal = jnp.broadcast_to(jnp.tril(jnp.ones((length, length), bool)), (batch, length, length))
            mixed = attend(q, own, causal)
        else:
            rows = jnp.arange(batch)[:, None]
            cached = context.cache[layer]
            own = KeyValues(
                cached.keys.at[rows, :, :, context.slots].set(k, mode="drop"),
                cached.values.at[rows, :, context.slots].set(v, mode="drop"),
            )
            if context.prefix is None:
                mixed = attend(q, own, context.mask)
            else:
                mixed = attend(q, own, context.mask, context.prefix.layers[layer], context.prefix.length)
        return self.o_proj(mixed.reshape(batch, length, -1)), own


class MLP(nnx.Module):
    def __init__(self, config: DecoderConfig, *, key: PRNGKeyArray):
        gate, up, down = jax.random.split(key, 3)
        self.gate_proj = Linear(config.hidden_size, config.intermediate_size, key=gate)
        self.up_proj = Linear(config.hidden_size, config.intermediate_size, key=up)
        scale = (2 * config.num_layers) ** -0.5
        self.down_proj = Linear(config.intermediate_size, config.hidden_size, key=down, scale=scale)

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
        self, x: Float[Array, "B T D"], positions: Int[Array, "B T"], context: Context | None, layer: int
    ) -> tuple[Float[Array, "B T D"], KeyValues]:
        mixed, own = self.self_attn(self.input_layernorm(x), positions, context, layer)
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
    ) -> Output:
        """Run the blocks over `tokens`; without a context the tokens attend causally to one another alone.

        `layers` names the blocks whose output is recorded: hidden_states[l] in transformers' indexing, so 0 is the
        embedding and L the last block before the final norm.
        """
        x = self.embed_tokens[...][tokens]
        cache, states = [], {0: x}
        for index, block in enumerate(self.layers):
            x, own = block(x, positions, context, index)
            cache.append(own)
            states[index + 1] = x
        recorded = jnp.stack([states[layer] for layer in layers]) if layers else jnp.zeros((0, *x.shape), x.dtype)
        return Output(self.norm(x), recorded, cache)

    def logits(self, hidden: Float[Array, "*lead D"]) -> Float[Array, "*lead V"]:
        """Next-token logits (fp32) from hidden states after the final norm."""
        head = self.embed_tokens if self.config.tie_embeddings else self.lm_head.weight
        return jnp.einsum("...D,VD->...V", hidden, head[...], preferred_element_type=jnp.float32)


def empty_cache(config: DecoderConfig, batch: int, slots: int, dtype: jnp.dtype) -> list[KeyValues]:
    """Zeroed slots for every layer of a batch."""
    heads, width = config.num_kv_heads, config.head_dim
    return [
        KeyValues(jnp.zeros((batch, heads, width, slots), dtype), jnp.zeros((batch, heads, slots, width), dtype))
        for _ in range(config.num_layers)
    ]
