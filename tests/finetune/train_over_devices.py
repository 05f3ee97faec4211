"""Run by `test_mesh` with eight virtual devices: the same steps on one device and on meshes of eight.

Usage: train_over_devices.py OUT RANK. It writes to OUT, as JSON and by mesh: the losses, the largest difference of a
trained weight from one device relative to how far training moved it, and how weights and moments are split.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import jax
import numpy as np
from flax import nnx

from robust_jax.finetune.optimizer import adamw, learning_rate
from robust_jax.finetune.options import TrainOptions
from robust_jax.finetune.packing import packed, stacked
from robust_jax.finetune.placement import Placement
from robust_jax.finetune.step import compiled_step
from robust_jax.models.checkpoint import SafetensorsFiles, save_decoder
from robust_jax.models.sharding import on_mesh
from robust_jax.models.sources import Checkpoint
from tests.finetune.small import CONFIG, decoder, one_shape, rows

STEPS = 3
GROUPS = [list(range(start, start + 5)) for start in (0, 5)]


def checkpoint(directory: Path) -> Checkpoint:
    config = replace(CONFIG, vocab_size=56, tie_embeddings=False)
    save_decoder(decoder(config), directory)
    return Checkpoint(config, SafetensorsFiles(directory), None, directory)  # type: ignore[arg-type]


def trained(place: Placement, source: Checkpoint, options: TrainOptions) -> dict[str, object]:
    """What a few steps make of the model: losses, weights, and where everything lies."""
    learnt = rows(*[(2 + n % 5, 1 + n % 7) for n in range(10)])
    shape = one_shape(learnt, GROUPS, place.ways)
    batch = stacked([packed([learnt[n] for n in group], shape) for group in GROUPS])
    optimizer = adamw(learning_rate(1e-2, STEPS, schedule="constant"))
    with on_mesh(place.mesh):
        parts = place.parts(source, options)
        state = place.train_state(parts.trained, optimizer)
        step = compiled_step(parts.graph, optimizer, shardings=place.shardings(state))
        losses = []
        for _ in range(STEPS):
            state, report = step(state, parts.frozen, place.batch(batch))
            losses.append(float(report.loss))
        weights = {".".join(map(str, path)): leaf[...] for path, leaf in nnx.to_flat_state(state.trained)}
        moments = [leaf for leaf in jax.tree.leaves(state.optimizer) if leaf.ndim]
        return {
            "losses": losses,
            "weights": {name: np.asarray(leaf) for name, leaf in weights.items()},
            "shards": {name: leaf.addressable_shards[0].data.size / leaf.size for name, leaf in weights.items()},
            "moments": [leaf.addressable_shards[0].data.size / leaf.size for leaf in moments],
        }


class OneDevice(Placement):
    """As on a machine with one device."""

    mesh = None  # type: ignore[assignment]
    ways = 1  # type: ignore[assignment]


def main(out: Path, rank: int) -> None:
    told = {}
    with TemporaryDirectory() as folder:
        source = checkpoint(Path(folder))
        options = TrainOptions(data=out, out=out, lora_rank=rank)
        alone = trained(OneDevice(Placement.of(source, "data=8").layout), source, options)
        for mesh in ("data=8", "data=2,model=4"):
            split = trained(Placement.of(source, mesh), source, options)
            far = {
                name: float(np.abs(split["weights"][name] - weight).max())  # type: ignore[index]
                for name, weight in alone["weights"].items()  # type: ignore[attr-defined]
            }
            told[mesh] = {"apart": max(far.values()), **{k: split[k] for k in ("losses", "shards", "moments")}}
    told["alone"] = {"losses": alone["losses"]}
    out.write_text(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
