"""Where everything that is trained lies: its weights, its optimizer and its batches, from the start and on any mesh."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from robust_jax.finetune.lora import LowRankParam, with_adapters
from robust_jax.finetune.options import TrainOptions
from robust_jax.finetune.packing import Batch
from robust_jax.finetune.step import Parts, TrainState, take_apart
from robust_jax.models.checkpoint import load_decoder
from robust_jax.models.decoder import Decoder
from robust_jax.models.sharding import DATA, Layout, MeshShape
from robust_jax.models.sources import Checkpoint


@dataclass(frozen=True)
class Placement:
    """One decoder's place on the devices, and that of all that hangs on it."""

    layout: Layout

    @classmethod
    def of(cls, checkpoint: Checkpoint, mesh: str | None) -> "Placement":
        """As `--mesh` says.

        Raises:
            InputError: it does not fit the devices.
        """
        return cls(Layout(checkpoint.config, MeshShape.parse(mesh, jax.device_count())))

    @cached_property
    def mesh(self) -> Mesh | None:
        """None on one device, where plain arrays do."""
        return self.layout.mesh if self.layout.shape.devices > 1 else None

    @property
    def ways(self) -> int:
        """Over how many devices the lines of a batch are split."""
        return self.layout.shape.data

    def parts(self, checkpoint: Checkpoint, options: TrainOptions) -> Parts:
        """The model's weights, read from the file straight to where they belong, with adapters if those are trained.

        What is trained is in fp32; what is not is in the format of the products.
        """
        decoder = load_decoder(
            checkpoint.config,
            checkpoint.tensors,
            dtype=options.compute if options.lora_rank else "float32",
            sharding=self.layout.sharding if self.mesh else None,
        )
        if options.lora_rank:
            decoder = with_adapters(decoder, options.lora_rank, options.lora_alpha, options.lora_targets, options.seed)
            self._place_adapters(decoder)
        return take_apart(decoder)

    def train_state(self, trained: nnx.State, optimizer: optax.GradientTransformation) -> TrainState:
        """The state before the first step; the optimizer's part is made on the devices, next to its weights."""
        if self.mesh is None:
            return TrainState(trained, jax.jit(optimizer.init)(trained))
        shapes = jax.eval_shape(optimizer.init, trained)
        return TrainState(trained, jax.jit(optimizer.init, out_shardings=self._beside(shapes, trained))(trained))

    def shardings(self, state: TrainState) -> TrainState | None:
        """Where a state lies, for a step to leave it there; None where there is no choice."""
        return None if self.mesh is None else jax.tree.map(lambda leaf: leaf.sharding, state)

    def batch(self, batch: Batch) -> Batch:
        """Micro-batches on the devices, their lines split over them."""
        if self.mesh is None:
            return Batch(*map(jnp.asarray, batch))
        return jax.device_put(batch, NamedSharding(self.mesh, PartitionSpec(None, DATA)))

    def _beside(self, shapes: optax.OptState, trained: nnx.State) -> optax.OptState:
        """Moments lie where their weights do; counters everywhere."""
        assert self.mesh is not None
        everywhere = NamedSharding(self.mesh, PartitionSpec())
        like_weights = jax.tree.map(lambda leaf: leaf.sharding, trained)
        weights: Any = jax.tree.structure(trained)

        def holds_moments(part: object) -> bool:
            return bool(weights == jax.tree.structure(part))

        return jax.tree.map(
            lambda part: like_weights if holds_moments(part) else everywhere, shapes, is_leaf=holds_moments
        )

    def _place_adapters(self, decoder: Decoder) -> None:
        """Split an adapter's two matrices as its weight is split, along the axes that they share with it."""
        if self.mesh is None:
            return
        for path, variable in nnx.to_flat_state(nnx.state(decoder, LowRankParam)):
            out, width = self.layout.rules.spec(path, (1, 1))
            spec = PartitionSpec(None, width) if path[-1] == "down" else PartitionSpec(out, None)
            variable.set_value(jax.device_put(variable[...], NamedSharding(self.mesh, spec)))
