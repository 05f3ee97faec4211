"""Run by `test_sharding` with eight virtual devices: decoders split over meshes, beside themselves on one device.

Usage: split_over_devices.py OUT DIRECTORY. It writes to OUT, as JSON: `forward`, the largest differences of logits,
states and cache from one device, and where the weights lie; `replies`, what the model in DIRECTORY says on a mesh.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jax
import numpy as np
from flax import nnx
from jax.sharding import NamedSharding

from robust_jax.models import generation, load_model
from robust_jax.models.checkpoint import SafetensorsFiles, load_decoder, save_decoder
from robust_jax.models.config import DecoderConfig
from robust_jax.models.decoder import Decoder, Output
from robust_jax.models.rope import Llama3Scaling, LongRope, Rope
from robust_jax.models.sharding import CACHE, ROWS, Layout, MeshShape
from robust_jax.types import FeatureRequest, Message, Prompt, Sampling

SIZES = {
    "vocab_size": 96,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_layers": 2,
    "num_heads": 8,
    "num_kv_heads": 2,
    "head_dim": 8,
}
BIASES = {"attention_bias": True, "mlp_bias": True}
ODD = {"vocab_size": 97, "intermediate_size": 50, "num_heads": 6, "num_kv_heads": 3}
LLAMA3 = Rope(scaling=Llama3Scaling(8.0, 1.0, 4.0, original_positions=8))
PHI_MINI = Rope(fraction=0.75, scaling=LongRope((1.0, 1.1, 1.3), (1.2, 4.0, 20.0), 8, attention_factor=1.2))
CASES: dict[str, tuple[dict[str, Any], str]] = {
    "llama": ({"rope": LLAMA3}, "data=2,model=4"),
    "llama tied, with biases": ({"tie_embeddings": True, **BIASES}, "data=2,model=4"),
    "one key/value head": ({"num_heads": 4, "num_kv_heads": 1}, "data=4,model=2"),
    "a key/value head a device": ({"num_kv_heads": 8}, "model=8"),
    "sizes that do not split": (ODD, "data=2,model=4"),
    "rows alone": ({}, "data=8"),
    "qwen2": ({"family": "qwen2", "sliding_window": 5, "unwindowed_layers": (0,)}, "data=2,model=4"),
    "qwen3": ({"family": "qwen3"}, "data=2,model=4"),
    "mistral": ({"family": "mistral", "sliding_window": 5}, "data=2,model=4"),
    "phi3": ({"family": "phi3", "rope": PHI_MINI}, "data=2,model=4"),
}
PROMPTS = [
    Prompt((Message("user", text),), text, raw="The same beginning of every prompt: " + text)
    for text in ["one", "two and more", "", "three, which is longer", *"abcdefgh"]
]
FEATURES = FeatureRequest(layers=(1, 2), statistics=True)


@jax.jit
def forward(decoder: Decoder, tokens: jax.Array, positions: jax.Array) -> tuple[jax.Array, Output]:
    output = decoder(tokens, positions, layers=(0, 1, 2))
    return decoder.logits(output.hidden), output


def compare(config: DecoderConfig, mesh: str) -> dict[str, Any]:
    layout = Layout(config, MeshShape.parse(mesh, 8))
    with TemporaryDirectory() as directory:
        decoder = Decoder(config, key=jax.random.key(0))
        noise = np.random.default_rng(1)
        for variable in jax.tree.leaves(decoder, is_leaf=lambda part: isinstance(part, nnx.Param)):
            variable.set_value(variable[...] + 0.1 * noise.normal(size=variable.shape).astype(np.float32))
        save_decoder(decoder, Path(directory))
        files = SafetensorsFiles(Path(directory))
        whole, parted = load_decoder(config, files), load_decoder(config, files, sharding=layout.sharding)
    tokens = np.random.default_rng(0).integers(0, config.vocab_size, (8, 12), dtype=np.int32)
    positions = np.broadcast_to(np.arange(12, dtype=np.int32), tokens.shape)
    rows = NamedSharding(layout.mesh, ROWS)
    expected = forward(whole, tokens, positions)
    found = forward(parted, jax.device_put(tokens, rows), jax.device_put(positions, rows))
    weights = {
        ".".join(map(str, path)): variable[...] for path, variable in nnx.to_flat_state(nnx.state(parted, nnx.Param))
    }

    def difference(one: Any, other: Any) -> float:
        pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
        return max(float(np.abs(np.asarray(a) - np.asarray(b)).max()) for a, b in pairs)

    return {
        "logits": difference(expected[0], found[0]),
        "states": difference(expected[1].states, found[1].states),
        "cache": difference(expected[1].cache, found[1].cache),
        "specs": {name: list(weight.sharding.spec) for name, weight in weights.items()},
        "shards": {name: weight.addressable_shards[0].data.shape for name, weight in weights.items()},
    }


def replies(directory: str, mesh: str) -> dict[str, Any]:
    model = load_model(directory, batch_size=8, mesh=mesh)
    with watched_rows() as in_place:
        written = model.respond(PROMPTS, Sampling(max_tokens=12), FEATURES)
    scored = model.score(PROMPTS, [prompt.problem + "!" for prompt in PROMPTS], FEATURES)
    return {
        "token_ids": [reply.token_ids for reply in written],
        "hidden": [np.asarray(reply.hidden).tolist() for reply in [*written, *scored]],
        "statistics": [reply.statistics for reply in [*written, *scored]],
        "embeddings": model.embed([prompt.problem for prompt in PROMPTS]).tolist(),
        "rows_in_place": in_place,
    }


@contextmanager
def watched_rows() -> Iterator[list[bool]]:
    """Notes after every chunk whether rows and cache still lie as they were laid out."""
    original, noted = generation.decode_chunk, list[bool]()

    def watched(*given: Any, **named: Any) -> Any:
        rows, chunk = original(*given, **named)
        mesh = jax.sharding.get_mesh()
        if mesh.empty:
            return rows, chunk
        arrays = [(rows.token, ROWS), (rows.hidden_sum, ROWS), *((array, CACHE) for array in rows.cache[0])]
        noted.append(
            all(array.sharding.is_equivalent_to(NamedSharding(mesh, spec), array.ndim) for array, spec in arrays)
        )
        return rows, chunk

    generation.decode_chunk = watched
    try:
        yield noted
    finally:
        generation.decode_chunk = original


def main(out: str, directory: str) -> None:
    found = {
        "forward": {
            f"{name} {mesh}": compare(DecoderConfig(**SIZES | changes), mesh) for name, (changes, mesh) in CASES.items()
        },
        "replies": replies(directory, "data=2,model=4"),
    }
    Path(out).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
