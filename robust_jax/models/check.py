"""What a model looks like, what it takes on every device, and a reply of it, in words."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from flax import nnx

from robust_jax.errors import InputError
from robust_jax.models.config import DecoderConfig
from robust_jax.models.decoder import Decoder, empty_cache
from robust_jax.models.registry import load_model, model_config
from robust_jax.models.sharding import CACHE, Layout, MeshShape
from robust_jax.types import FeatureRequest, Message, Prompt, Sampling

QUESTION = (
    "On a farm, Ava collects 36 duck eggs and packs all of them into cartons. Every carton holds 6 eggs. "
    "How many cartons does Ava fill?"
)
"""In the words of `grade_school`, which the built-in model knows alone."""
RESERVED = 0.1
"""Share of a device's memory that is left to activations, logits and the runtime."""
UNITS = {"": 1, "MB": 10**6, "GB": 10**9, "MIB": 2**20, "GIB": 2**30}
WORDS = {"kv_heads": "key/value heads", "heads": "query heads", "mlp": "feed-forward", "vocabulary": "vocabulary"}


@dataclass(frozen=True)
class Estimate:
    """What a decoder takes, known from its configuration alone."""

    parameters: int
    weights: int
    """Bytes of one copy."""
    device_weights: int
    """Bytes on each device."""
    device_cache: int
    """Bytes of keys and values on each device."""

    @property
    def device_bytes(self) -> int:
        return self.device_weights + self.device_cache


def estimate(config: DecoderConfig, layout: Layout, *, dtype: str, rows: int, context: int) -> Estimate:
    """What a decoder and the cache of `rows` rows of `context` tokens take on the devices of a layout.

    Nothing is allocated; the mesh may be larger than the machine.
    """
    width = jnp.dtype(dtype).itemsize
    decoder = nnx.eval_shape(lambda: Decoder(config, key=jax.random.key(0)))
    shapes = {path: variable.shape for path, variable in nnx.to_flat_state(nnx.state(decoder, nnx.Param))}
    cache = jax.tree.leaves(jax.eval_shape(lambda: empty_cache(config, rows, context, jnp.dtype(dtype))))
    parameters = sum(math.prod(shape) for shape in shapes.values())
    shards = sum(layout.shard_size(layout.rules.spec(path, shape), shape) for path, shape in shapes.items())
    slots = sum(layout.shard_size(CACHE, array.shape) for array in cache)
    return Estimate(parameters, parameters * width, shards * width, slots * width)


def describe(
    spec: str,
    *,
    mesh: str | None = None,
    memory: str | None = None,
    dtype: str = "float32",
    rows: int = 128,
    context: int = 2048,
) -> str:
    """Shape and memory of a model, and a greedy reply of it.

    Args:
        mesh: such as `data=2,model=4`, also of more devices than there are: then nothing is loaded and it gives no
            reply. None takes the devices that are here and loads it.
        memory: of one device, such as `80GiB`; None asks the device.
        rows, context: how many rows of how many tokens the cache holds.

    Raises:
        InputError: there is no such model, it cannot be loaded, or the mesh or the memory are none.
    """
    config, lines = model_config(spec), [spec]
    if config is not None:
        lines += _plan(config, mesh, memory, dtype, rows, context)
    elif mesh is not None:
        raise InputError(f"{spec} uses no devices: leave --mesh away")
    if mesh is None:
        lines += _conversation(spec, dtype)
    return "\n".join(lines)


def _plan(
    config: DecoderConfig, mesh: str | None, memory: str | None, dtype: str, rows: int, context: int
) -> Iterator[str]:
    is_here = mesh is None or "-1" in mesh
    shape = MeshShape.parse(mesh, jax.device_count() if is_here else None)
    rows += -rows % shape.data
    context = min(context, config.max_positions)
    layout = Layout(config, shape)
    found = estimate(config, layout, dtype=dtype, rows=rows, context=context)
    yield f"parameters: {found.parameters:,}, {_size(found.weights)} in {dtype}"
    yield (
        f"layers {config.num_layers}, width {config.hidden_size}, heads {config.num_heads} over "
        f"{config.num_kv_heads} of width {config.head_dim}, feed-forward {config.intermediate_size}, "
        f"vocabulary {config.vocab_size}, context {config.max_positions}"
    )
    yield f"mesh: {shape}, devices: {shape.devices}"
    yield (
        f"on each device: weights {_size(found.device_weights)}, keys and values of {rows} rows of {context} tokens "
        f"{_size(found.device_cache)}, together {_size(found.device_bytes)}"
    )
    for axis, parts in layout.replicated().items():
        yield f"{WORDS[axis]}: in {parts} parts, with {shape.model // parts} copies along the model axis"
    limit = _bytes(memory) if memory is not None else _device_memory()
    if limit is None:
        yield "memory of a device: unknown here; give it, such as --memory 80GiB"
        return
    room = limit * (1 - RESERVED)
    verdict = "fits" if found.device_bytes <= room else "does not fit"
    yield f"memory of a device: {_size(limit)}, of which a tenth is left for activations: {verdict}"


def _conversation(spec: str, dtype: str) -> Iterator[str]:
    model = load_model(spec, dtype=dtype)
    prompt = Prompt((Message("user", QUESTION),), QUESTION, raw=f"Question: {QUESTION}\nAnswer:")
    sampling = Sampling(max_tokens=model.defaults.max_tokens or 64)
    (reply,) = model.respond([prompt], sampling, FeatureRequest(statistics=True))  # which notices what is no number
    yield f"asked: {QUESTION}"
    yield f"replied: {reply.text.strip() or reply.message or '(nothing)'}"


def _device_memory() -> int | None:
    statistics = jax.local_devices()[0].memory_stats() or {}
    return statistics.get("bytes_limit")


def _bytes(text: str) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]i?B)?", text.strip(), re.IGNORECASE)
    unit = (found[2] or "").upper() if found else ""
    if found is None or unit not in UNITS or float(found[1]) == 0:
        raise InputError(f"--memory {text}: write it like 80GiB, 24GB or 500MiB")
    return round(float(found[1]) * UNITS[unit])


def _size(count: int) -> str:
    return f"{count / 2**30:,.2f} GiB" if count >= 2**29 else f"{count / 2**20:,.1f} MiB"
