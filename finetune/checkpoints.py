"""Checkpoints of a training run: the last one, to go on from, and the best one, to be used."""

import contextlib
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import jax
import orbax.checkpoint as ocp
from orbax.checkpoint.checkpoint_managers import AnyPreservationPolicy, BestN, LatestN

from robust_jax.errors import RunError
from robust_jax.finetune.step import TrainState
from robust_jax.runs import keeping

FOLDER = "checkpoints"
VALIDATION = "validation"
"""The metric that the best checkpoint has the highest value of."""
FULL_DISK = re.compile("no space left|disk quota|file too large|resource_exhausted|short write", re.IGNORECASE)
"""How the storage below Orbax says that it cannot write."""


class Checkpoints:
    """The checkpoints of one run directory, written while training goes on; used as a context.

    Leaving it waits for what is being written.
    """

    def __init__(self, run: Path) -> None:
        self.run = run
        # What it logs about its own steps is of no use to a reader of the progress lines.
        logging.getLogger("absl").setLevel(logging.ERROR)
        options = ocp.CheckpointManagerOptions(
            preservation_policy=AnyPreservationPolicy(
                [
                    LatestN(1),
                    BestN(
                        get_metric_fn=lambda metrics: metrics[VALIDATION], n=1, keep_checkpoints_without_metrics=False
                    ),
                ]
            ),
            best_fn=lambda metrics: metrics[VALIDATION],
            best_mode="max",
            cleanup_tmp_directories=True,
        )
        with self._keeping():
            self._manager = ocp.CheckpointManager((run / FOLDER).absolute(), options=options)

    @property
    def last(self) -> int:
        """The last step of which there is a checkpoint; 0 if there is none."""
        return self._manager.latest_step() or 0

    @property
    def best(self) -> int:
        """The step of the highest validation accuracy, the later of equals; 0 if none was validated."""
        return self._manager.best_step() or 0

    def save(self, step: int, state: TrainState, validation: float | None) -> None:
        """Begin to write a checkpoint; the state may be used up meanwhile.

        Raises:
            RunError: this one or the one before cannot be written; older ones are kept.
        """
        with self._keeping():
            self._manager.wait_until_finished()
            self._manager.save(
                step,
                args=ocp.args.StandardSave(jax.tree.leaves(state)),
                metrics=None if validation is None else {VALIDATION: validation},
            )

    def restore(self, step: int, like: TrainState) -> TrainState:
        """The state after a step, every array laid over the devices as it is in `like`, and read straight to there.

        Raises:
            RunError: the checkpoint is damaged, or of another model.
        """
        leaves, structure = jax.tree.flatten(like)
        wanted = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding) for leaf in leaves]
        try:
            read = self._manager.restore(step, args=ocp.args.StandardRestore(wanted))
        except (ValueError, KeyError, OSError) as error:
            reason = str(error).splitlines()[0]
            raise RunError(
                f"the checkpoint of step {step} in {self.run / FOLDER} cannot be read ({reason}): delete its folder "
                "and run the same command again"
            ) from error
        restored: TrainState = jax.tree.unflatten(structure, read)
        return restored

    def finish_writing(self) -> None:
        """Wait for what is being written.

        Raises:
            RunError: it cannot be written; older checkpoints are kept.
        """
        with self._keeping():
            self._manager.wait_until_finished()

    def __enter__(self) -> "Checkpoints":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.finish_writing()
            self._manager.close()
        else:
            # What went wrong first is what is told; a checkpoint that was complete is complete on the disk.
            with contextlib.suppress(Exception):
                self._manager.close()

    @contextlib.contextmanager
    def _keeping(self) -> Iterator[None]:
        """Work that writes: a failing disk becomes a RunError that says what was kept."""
        try:
            with keeping(self.run):
                yield
        except (ValueError, RuntimeError) as error:
            if not FULL_DISK.search(str(error)):
                raise
            raise RunError(
                f"cannot write a checkpoint to {self.run / FOLDER}: free space, then run the same command again: it "
                f"goes on from step {self._manager.latest_step() or 0}"
            ) from error
