"""The model that a run asks."""

from robust_jax.models import load_model
from robust_jax.runs import ByteProgress, RunOptions
from robust_jax.types import Model


def load_shown(name: str, options: RunOptions) -> Model:
    """The model of that name as a command's options want it, while what is loaded is shown on standard error.

    Raises:
        InputError: there is no such model, or it cannot be loaded.
    """
    with ByteProgress(f"loading {name}") as on_progress:
        return load_model(
            name,
            dtype=options.dtype,
            batch_size=options.batch_size,
            mesh=options.mesh,
            on_progress=on_progress,
            server=options,
        )
