"""How a decoder lies over devices: a mesh, and one rule for every logical axis of its weights and activations.

The user names two axes: `data`, over which the rows of a batch are split, and `model`, whose devices share one copy of
the weights. The model axis is two axes of the mesh, because there may be fewer key/value heads than devices: over `kv`
the key/value heads are split; the devices along `group` hold the same key/value heads and split the query heads that
read them. A query head is always where its key/value head is, so attention itself never communicates.
"""

import math
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import jax
from jax import Array
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec

from robust_jax.errors import InputError
from robust_jax.models.config import DecoderConfig

DATA, KV, GROUP = "data", "kv", "group"
ROWS = PartitionSpec(DATA)
"""How an array with a line a row is split."""
CACHE = PartitionSpec(DATA, KV)
"""How the rows' keys [B, K, H, S] and values [B, K, S, H] are split."""

ParameterPath = tuple[str | int, ...]
"""Where a weight is in the decoder, such as ('layers', 0, 'mlp', 'up_proj', 'weight')."""

LOGICAL_AXES: Mapping[str, tuple[str, str]] = {
    "embed_tokens": ("vocabulary", "width"),
    "lm_head": ("vocabulary", "width"),
    "q_proj": ("heads", "width"),
    "k_proj": ("kv_heads", "width"),
    "v_proj": ("kv_heads", "width"),
    "o_proj": ("width", "heads"),
    "gate_proj": ("mlp", "width"),
    "up_proj": ("mlp", "width"),
    "down_proj": ("width", "mlp"),
}
"""What the [out, in] axes of a weight are, by its module; a bias has the first alone. Norms are in no rule."""


@dataclass(frozen=True)
class MeshShape:
    """How many devices lie along each of the user's axes."""

    data: int = 1
    model: int = 1

    @classmethod
    def parse(cls, text: str | None, devices: int | None) -> "MeshShape":
        """The shape that `data=2,model=4` stands for: an axis left out is 1, and −1 takes the devices that remain.

        No text puts all devices on the data axis.

        Raises:
            InputError: it is not of that form, or does not use exactly `devices` devices, where those are given.
        """
        if text is None:
            return cls(data=devices or 1)
        sizes: dict[str, int] = {}
        for part in text.split(","):
            found = re.fullmatch(r"\s*(data|model)\s*=\s*(-1|[1-9]\d*)\s*", part)
            if found is None or found[1] in sizes:
                raise InputError(f"--mesh {text}: write it like data=2,model=4; one size may be -1, for the rest")
            sizes[found[1]] = int(found[2])
        open_axes = [name for name, size in sizes.items() if size == -1]
        fixed = math.prod(size for size in sizes.values() if size != -1)
        if len(open_axes) == 1 and devices is not None and devices % fixed == 0:
            sizes[open_axes[0]] = devices // fixed
        if -1 in sizes.values() or devices not in (None, math.prod(sizes.values())):
            raise InputError(f"--mesh {text}: the sizes must multiply to the number of devices, which is {devices}")
        return cls(**sizes)

    @property
    def devices(self) -> int:
        return self.data * self.model

    def __str__(self) -> str:
        return f"data={self.data},model={self.model}"


@dataclass(frozen=True)
class ShardingRules:
    """The mesh axes that each logical axis is split over; an axis that would not split evenly is replicated.

    The one place where this is decided, for a given decoder on a given mesh.
    """

    heads: tuple[str, ...]
    """N: query and output weights."""
    mlp: tuple[str, ...]
    """F."""
    vocabulary: tuple[str, ...]
    """V: embedding, and the head with its logits."""
    kv_heads: tuple[str, ...] = (KV,)
    """K: key and value weights."""
    width: tuple[str, ...] = ()
    """D is never split: every device sees whole hidden states."""

    def spec(self, path: ParameterPath, shape: tuple[int, ...]) -> PartitionSpec:
        """How the weight at `path` is split.

        Raises:
            KeyError: no rule knows this matrix.
        """
        module = next((str(part) for part in reversed(path) if part in LOGICAL_AXES), "")
        if not module and len(shape) < 2:
            return PartitionSpec()
        return PartitionSpec(*(getattr(self, axis) or None for axis in LOGICAL_AXES[module][: len(shape)]))


@dataclass(frozen=True)
class Layout:
    """One decoder's place on the devices."""

    config: DecoderConfig
    shape: MeshShape

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Devices along each axis of the mesh."""
        kv = math.gcd(self.shape.model, self.config.num_kv_heads)
        return {DATA: self.shape.data, KV: kv, GROUP: self.shape.model // kv}

    @cached_property
    def rules(self) -> ShardingRules:
        config = self.config
        readers = config.num_heads // config.num_kv_heads
        # Along `group` the query heads of one key/value head part, so each device must have no more than that one.
        share_heads = self.sizes[KV] == config.num_kv_heads and readers % self.sizes[GROUP] == 0
        return ShardingRules(
            heads=(KV, GROUP) if share_heads else (KV,),
            mlp=self._widest(config.intermediate_size),
            vocabulary=self._widest(config.vocab_size),
        )

    @cached_property
    def mesh(self) -> Mesh:
        """The mesh of the devices of all processes; those of one process lie next to each other on the model axis.

        Raises:
            InputError: it does not fit the devices.
        """
        if self.shape.devices != jax.device_count():
            raise InputError(f"--mesh {self.shape}: there are {jax.device_count()} devices")
        return jax.make_mesh(tuple(self.sizes.values()), tuple(self.sizes), (AxisType.Auto,) * len(self.sizes))

    def sharding(self, path: ParameterPath, shape: tuple[int, ...]) -> NamedSharding:
        """Where the shards of the weight at `path` lie."""
        return NamedSharding(self.mesh, self.rules.spec(path, shape))

    def shard_size(self, spec: PartitionSpec, shape: tuple[int, ...]) -> int:
        """Elements of one device's shard of an array; there may be fewer devices here than the mesh has."""
        abstract = AbstractMesh(tuple(self.sizes.values()), tuple(self.sizes))
        return math.prod(NamedSharding(abstract, spec).shard_shape(shape))

    def replicated(self) -> dict[str, int]:
        """Logical axes that the model axis does not split fully, with the number of parts that they are split into."""
        parts = {
            rule.name: math.prod(self.sizes[axis] for axis in getattr(self.rules, rule.name))
            for rule in fields(self.rules)
            if rule.name != "width"
        }
        return {name: count for name, count in parts.items() if count < self.shape.model}

    def _widest(self, size: int) -> tuple[str, ...]:
        """The most devices of the model axis that `size` splits evenly over."""
        choices = [(KV, GROUP), *sorted([(KV,), (GROUP,)], key=lambda axes: -self.sizes[axes[0]]), ()]
        return next(axes for axes in choices if size % math.prod(self.sizes[axis] for axis in axes) == 0)


def split(array: Array, spec: PartitionSpec) -> Array:
    """Lay an array over the devices of the mesh in context, under `jit`; without a mesh nothing changes."""
    return array if jax.sharding.get_abstract_mesh().empty else jax.lax.with_sharding_constraint(array, spec)


def fetch(arrays: Any) -> Any:
    """Whole arrays, as numpy arrays in every process that takes part, with their mesh in context."""
    if jax.process_count() > 1:
        arrays = jax.device_put(arrays, NamedSharding(jax.sharding.get_mesh(), PartitionSpec()))
    return jax.device_get(arrays)


def on_mesh(mesh: Mesh | None) -> AbstractContextManager[object]:
    """Work with arrays that lie on a mesh, or on one device."""
    return nullcontext() if mesh is None else jax.set_mesh(mesh)


def data_ways(mesh: Mesh | None) -> int:
    """Over how many devices rows are split."""
    return 1 if mesh is None else mesh.shape[DATA]


def whole(count: int, ways: int) -> int:
    """The least number of rows, at least one for each of `ways` devices, that holds `count` and splits evenly."""
    return ways * max(1, math.ceil(count / ways))
