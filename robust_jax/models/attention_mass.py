"""Where the attention of some tokens goes: its mass on sets of tokens before them, layer by layer."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from robust_jax.models.attention import view
from robust_jax.models.decoder import Decoder
from robust_jax.models.generation import SMALLEST_STEP
from robust_jax.models.rope import rotation
from robust_jax.models.sharding import fetch
from robust_jax.shapes import half_octave

QUERIES_AT_ONCE = 128
"""Tokens whose attention is computed together: all of a long text's would take its length squared for every head."""


def attention_mass(
    decoder: Decoder, tokens: Int[np.ndarray, " T"], asking: Int[np.ndarray, " Q"], sets: Bool[np.ndarray, "k T"]
) -> Float[np.ndarray, "L k"]:
    """The mean attention mass that Q of T tokens give to each of k sets of tokens, in every layer.

    A forward pass records what enters each block; queries and keys are computed anew from that and put through softmax
    as the block does it (fp32). The mean is over the asking tokens and over heads. The masses of sets that cover
    everything without overlap add up to 1.

    Args:
        decoder: the model.
        tokens: a whole text.
        asking: the places of the tokens whose attention is looked at; at least one.
        sets: which tokens belong to which set.
    """
    padding = half_octave(len(tokens), SMALLEST_STEP) - len(tokens)
    padded, targets = np.pad(tokens, (0, padding)), np.pad(sets, ((0, 0), (0, padding))).astype(np.float32)
    total = np.zeros((decoder.config.num_layers, len(sets)))
    for start in range(0, len(asking), QUERIES_AT_ONCE):
        part = asking[start : start + QUERIES_AT_ONCE]
        counted = np.arange(QUERIES_AT_ONCE) < len(part)
        sums = _mass(decoder, padded, np.int32(len(tokens)), np.resize(part, QUERIES_AT_ONCE), counted, targets)
        total += np.asarray(fetch(sums), float)
    return (total / len(asking)).astype(np.float32)


@jax.jit
def _mass(
    decoder: Decoder,
    tokens: Int[Array, " T"],
    length: Int[Array, ""],
    asking: Int[Array, " Q"],
    counted: Bool[Array, " Q"],
    sets: Float[Array, "k T"],
) -> Float[Array, "L k"]:
    """The sums over the counted queries, averaged over heads."""
    config = decoder.config
    positions = jnp.arange(len(tokens))[None]
    turn = rotation(config.rope, config.head_dim, positions, length[None, None])
    states = decoder(tokens[None], positions, layers=range(config.num_layers), lengths=length[None]).states
    sums = []
    for layer, block in enumerate(decoder.layers):
        q, k, _ = block.self_attn.project(block.input_layernorm(states[layer]), turn)
        heads, kv_heads, width = q.shape[2], k.shape[2], q.shape[3]
        grouped = q[0, asking].reshape(len(asking), kv_heads, heads // kv_heads, width) * width**-0.5
        scores = jnp.einsum("QKGH,SKH->KGQS", grouped, k[0], preferred_element_type=jnp.float32)
        seen = view(config.window(layer), positions, None).own[0, asking]
        weights = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), axis=-1)
        by_query = jnp.einsum("KGQS,kS->Qk", weights, sets, precision="highest") / heads
        sums.append(jnp.sum(jnp.where(counted[:, None], by_query, 0.0), axis=0))
    return jnp.stack(sums)
