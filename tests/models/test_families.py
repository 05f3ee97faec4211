"""Every family and option against transformers: the same weights, the same logits, every layer's hidden states."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from robust_jax.models.attention import Context, KeyValues, Prefix
from robust_jax.models.checkpoint import SafetensorsFiles, load_decoder, save_decoder
from robust_jax.models.config import read_config
from robust_jax.models.decoder import Decoder, empty_cache

TOLERANCE = 1e-4
ROWS, LENGTH = 3, 24
ORIGINAL = LENGTH
"""The original context of models whose context was extended."""

SIZES = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 16384,
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": 1,
    "attn_implementation": "eager",
    "dtype": torch.float32,
}

LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500_000.0,
    "factor": 7.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": ORIGINAL,
}
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10_000.0,
    "short_factor": [1.0, 1.1, 1.3],
    "long_factor": [1.2, 4.0, 20.0],
    "partial_rotary_factor": 0.75,
}
EXTENDED = {"max_position_embeddings": 16384, "original_max_position_embeddings": ORIGINAL}

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {}),
    "llama tied": ("llama", {"tie_word_embeddings": True}),
    "llama, a key head for all": ("llama", {"num_key_value_heads": 1}),
    "llama, wide heads": ("llama", {"head_dim": 12}),
    "llama, eps": ("llama", {"rms_norm_eps": 3e-2}),
    "llama, theta": ("llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}),
    "llama, biases of attention": ("llama", {"attention_bias": True}),
    "llama, biases of the MLP": ("llama", {"mlp_bias": True}),
    "llama3 rope": ("llama", {"rope_parameters": LLAMA3}),
    "llama3 rope of Llama 3.2": (
        "llama",
        {"head_dim": 12, "rope_parameters": LLAMA3 | {"factor": 32.0, "original_max_position_embeddings": 8192}},
    ),
    "llama longrope": (
        "llama",
        {
            "rope_parameters": {
                "rope_type": "longrope",
                "rope_theta": 10_000.0,
                "short_factor": [1.0, 1.1, 1.3, 1.5],
                "long_factor": [1.2, 4.0, 20.0, 30.0],
                "original_max_position_embeddings": ORIGINAL,
            }
        },
    ),
    "qwen2": ("qwen2", {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}),
    "qwen2 tied, eps": ("qwen2", {"tie_word_embeddings": True, "rms_norm_eps": 3e-2}),
    "qwen2, wide heads": ("qwen2", {"head_dim": 12}),
    "qwen2, window off": ("qwen2", {"use_sliding_window": False, "sliding_window": 5, "max_window_layers": 0}),
    "qwen2, window from a layer": (
        "qwen2",
        {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1},
    ),
    "qwen2, window everywhere": ("qwen2", {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 0}),
    "qwen3": ("qwen3", {"head_dim": 8}),
    "qwen3 tied, wide heads, eps": ("qwen3", {"head_dim": 12, "tie_word_embeddings": True, "rms_norm_eps": 3e-2}),
    "qwen3, biases of attention": ("qwen3", {"head_dim": 8, "attention_bias": True}),
    "qwen3, window in the first layer": (
        "qwen3",
        {
            "head_dim": 8,
            "use_sliding_window": True,
            "sliding_window": 5,
            "layer_types": ["sliding_attention", "full_attention"],
        },
    ),
    "mistral": ("mistral", {"sliding_window": None}),
    "mistral, window, wide heads": ("mistral", {"sliding_window": 5, "head_dim": 12}),
    "mistral tied, theta, eps": (
        "mistral",
        {
            "sliding_window": None,
            "tie_word_embeddings": True,
            "rms_norm_eps": 3e-2,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1e6},
        },
    ),
    "phi3": ("phi3", {"rope_parameters": {"rope_type": "default", "rope_theta": 250_000.0}}),
    "phi3, a key head each, eps": ("phi3", {"num_key_value_heads": None, "rms_norm_eps": 3e-2}),
    "phi3, window": ("phi3", {"sliding_window": 5}),
    "phi3, partial rotary": (
        "phi3",
        {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}},
    ),
    "phi3 longrope tied": ("phi3", {"rope_parameters": LONGROPE, "tie_word_embeddings": True, **EXTENDED}),
    "phi3 longrope, window": (
        "phi3",
        {"rope_parameters": LONGROPE | {"attention_factor": 1.7}, "sliding_window": 5, **EXTENDED},
    ),
}


class Pair(NamedTuple):
    """The same model twice."""

    reference: PreTrainedModel
    ours: Decoder
    directory: Path
    """As transformers wrote it."""


def reference_model(model_type: str, options: dict[str, Any]) -> PreTrainedModel:
    """A random model in which every parameter matters: norms are not one, biases not zero."""
    torch.manual_seed(0)
    # Transformers writes into the settings it is given.
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(model_type, **json_copy(SIZES | options)))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            scale = 0.3 if parameter.ndim == 1 else parameter.shape[1] ** -0.5
            parameter.copy_(torch.randn_like(parameter) * scale + (1.0 if "norm" in name else 0.0))
    return model.eval()


def json_copy(options: dict[str, Any]) -> dict[str, Any]:
    return {key: json.loads(json.dumps(value)) if isinstance(value, dict) else value for key, value in options.items()}


@pytest.fixture(scope="module", params=CASES, ids=str)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    reference = reference_model(*CASES[request.param])
    directory = tmp_path_factory.mktemp("model")
    reference.save_pretrained(directory)
    return Pair(reference, load_decoder(read_config(directory), SafetensorsFiles(directory)), directory)


TOKENS = np.random.default_rng(1).integers(0, SIZES["vocab_size"], (ROWS, LENGTH), np.int64)
NEAR = np.broadcast_to(np.arange(LENGTH), TOKENS.shape)
FAR = np.broadcast_to(
    [*range(8), 15, 16, 17, 60, 61, 700, 701, 4000, 8190, 8191, 8192, 8193, 12000, 12001, 16382, 16383], TOKENS.shape
)
"""Both sides of every bound, with distances as long as the context."""


def expected(model: PreTrainedModel, positions: np.ndarray, mask: np.ndarray) -> list[np.ndarray]:
    """The residual stream before and after every block, the last one after the final norm, and logits."""
    last: list[torch.Tensor] = []
    hook = model.model.layers[-1].register_forward_hook(lambda module, inputs, output: last.append(output))
    with torch.no_grad():
        output = model(
            torch.tensor(TOKENS),
            position_ids=torch.tensor(positions),
            attention_mask=torch.tensor(mask),
            output_hidden_states=True,
            use_cache=False,
        )
    hook.remove()
    return [state.numpy() for state in (*output.hidden_states[:-1], *last, output.hidden_states[-1], output.logits)]


def forward(
    ours: Decoder,
    tokens: jax.Array,
    positions: jax.Array,
    context: Context | None = None,
    lengths: jax.Array | None = None,
) -> tuple[list[jax.Array], list[KeyValues]]:
    """What `expected` gives, in its order, and the cache.

    Operation by operation, so that cases of equal shapes share what is compiled.
    """
    tokens, positions = jnp.asarray(tokens), jnp.asarray(positions)
    output = ours(tokens, positions, context, tuple(range(ours.config.num_layers + 1)), lengths)
    return [*output.states, output.hidden, ours.logits(output.hidden)], output.cache


@pytest.mark.parametrize("positions", [NEAR, FAR], ids=["near", "far"])
def test_logits_and_hidden_states_equal_those_of_transformers(pair: Pair, positions: np.ndarray) -> None:
    found, _ = forward(pair.ours, TOKENS, positions)
    for ours, theirs in zip(found, expected(pair.reference, positions, np.ones_like(TOKENS)), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=TOLERANCE, rtol=0)


def test_a_left_padded_batch_equals_that_of_transformers(pair: Pair) -> None:
    is_real = np.arange(LENGTH) >= np.array([[0], [5], [LENGTH - 2]])
    positions = np.maximum(is_real.cumsum(axis=1) - 1, 0)
    context = Context(
        cache=empty_cache(pair.ours.config, ROWS, LENGTH, jnp.dtype("float32")),
        slots=jnp.asarray(np.where(is_real, positions, LENGTH)),
        mask=jnp.asarray(np.arange(LENGTH) <= positions[:, :, None]),
    )
    found, _ = forward(pair.ours, TOKENS, positions, context)
    for ours, theirs in zip(found, expected(pair.reference, positions, is_real.astype(int)), strict=True):
        np.testing.assert_allclose(np.asarray(ours)[is_real], theirs[is_real], atol=TOLERANCE, rtol=0)


def test_what_is_written_is_what_was_read(pair: Pair, tmp_path: Path) -> None:
    """Transformers reads the checkpoint that we write as the model that it had itself written."""
    save_decoder(pair.ours, tmp_path)
    written, original = load_file(tmp_path / "model.safetensors"), load_file(pair.directory / "model.safetensors")
    assert written.keys() == original.keys()
    for name, tensor in original.items():
        np.testing.assert_array_equal(written[name], tensor)
    assert read_config(tmp_path) == pair.ours.config
    again = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32, attn_implementation="eager")
    mask = np.ones_like(TOKENS)
    for positions in (NEAR, FAR):
        for one, other in zip(expected(again, positions, mask), expected(pair.reference, positions, mask), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("pair", ["qwen2, window from a layer", "phi3 longrope, window"], indirect=True)
@pytest.mark.parametrize("longest", [LENGTH, LENGTH + 1], ids=["short", "long"])
def test_a_shared_prefix_and_a_cache_change_nothing(pair: Pair, longest: int) -> None:
    """A prefix, then most of the rest at once, then a token at a time, as a reply is written."""
    tokens, shared, rest = jnp.asarray(TOKENS).at[:, :9].set(TOKENS[0, :9]), 9, 13
    lengths = jnp.full(ROWS, longest)
    # The prefix has more slots than it fills: what is in the others must not be seen.
    whole, read = forward(pair.ours, tokens, NEAR, lengths=lengths)
    prefix = Prefix([KeyValues(layer.keys[0], layer.values[0]) for layer in read], jnp.int32(shared))
    cache = empty_cache(pair.ours.config, ROWS, LENGTH, jnp.dtype("float32"))
    parts = []
    for start, stop in [(0, rest), *((place, place + 1) for place in range(rest, LENGTH - shared))]:
        slots = jnp.broadcast_to(jnp.arange(start, stop), (ROWS, stop - start))
        context = Context(cache, slots, jnp.arange(LENGTH) <= slots[:, :, None], prefix)
        found, cache = forward(pair.ours, tokens[:, shared + start : shared + stop], shared + slots, context, lengths)
        parts.append(found)
    for pieces, state in zip(zip(*parts, strict=True), whole, strict=True):
        np.testing.assert_allclose(jnp.concatenate(pieces, axis=1), state[:, shared:], atol=1e-5)
