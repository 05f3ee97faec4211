"""`finetune export`: a trained model as a Hugging Face checkpoint."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_type_hints

import jax.numpy as jnp

from robust_jax.errors import InputError, RunError
from robust_jax.finetune.checkpoints import FULL_DISK, Checkpoints
from robust_jax.finetune.lora import without_adapters
from robust_jax.finetune.optimizer import adamw, learning_rate
from robust_jax.finetune.options import ExportOptions, TrainOptions
from robust_jax.finetune.placement import Placement
from robust_jax.finetune.step import put_together, take_apart
from robust_jax.models.checkpoint import save_decoder
from robust_jax.models.sources import open_checkpoint
from robust_jax.runs import RESULTS_FILE, intact, read_config, read_results
from robust_jax.runs.directory import CONFIG_FILE


def export(options: ExportOptions) -> Path:
    """Write the trained model; where it is.

    Raises:
        InputError: the directory holds no finished training, or `--out` is not empty.
        RunError: the disk fails, or the checkpoint is damaged.
    """
    assert options.out is not None
    read_results(options.run / RESULTS_FILE)
    training = trained_with(options.run)
    if options.out.exists() and (not options.out.is_dir() or any(options.out.iterdir())):
        raise InputError(f"{options.out} is not empty: choose another --out")
    checkpoint = open_checkpoint(training.model)
    if checkpoint.digest != read_config(options.run)["fingerprint"]["model_digest"]:
        raise InputError(f"{training.model} is not the model that {options.run} began with: put that one back")
    place = Placement.of(checkpoint, None)
    parts = place.parts(checkpoint, training)
    like = place.train_state(parts.trained, adamw(learning_rate(training.rate, training.steps)))
    with Checkpoints(options.run) as checkpoints:
        use = options.use or training.use
        state = checkpoints.restore(checkpoints.best if use == "best" else checkpoints.last, like)
    decoder = without_adapters(put_together(parts._replace(trained=state.trained)))
    with _whole_or_not_at_all(options.out) as part:
        save_decoder(put_together(take_apart(decoder), jnp.dtype(options.dtype)), part)
        checkpoint.tokenizer.save(part)
    return options.out


@contextmanager
def _whole_or_not_at_all(directory: Path) -> Iterator[Path]:
    """A folder to write in, which takes its place once everything is written and vanishes if that fails.

    Raises:
        RunError: the disk fails.
    """
    place = directory.resolve()
    part = place.with_name(f".{place.name}.unfinished")
    try:
        shutil.rmtree(part, ignore_errors=True)
        yield part
        part.rename(place)
    except BaseException as error:
        shutil.rmtree(part, ignore_errors=True)
        # Libraries below have exceptions of their own for a disk that fails.
        if isinstance(error, OSError) or FULL_DISK.search(str(error)):
            reason = str(error).splitlines()[0]
            raise RunError(f"cannot write to {directory} ({reason}): free space or choose another --out") from error
        raise


def trained_with(run: Path) -> TrainOptions:
    """The options of a training run.

    Raises:
        InputError: the directory holds something else.
    """
    with intact(run / CONFIG_FILE):
        record: dict[str, Any] = read_config(run)["config"]
        if record.get("command") != "finetune run":
            raise InputError(f"{run} holds a run of {record.get('command')!r}: give the directory of `finetune run`")
        values = {name: record[name] for name in get_type_hints(TrainOptions) if name in record}
        values["lora_targets"] = tuple(values["lora_targets"])
        return TrainOptions(**{**values, "data": Path(values["data"]), "out": run})
