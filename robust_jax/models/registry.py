"""From the name of a model to the model."""

from collections.abc import Callable

from robust_jax.errors import InputError
from robust_jax.models.local import LocalModel
from robust_jax.models.sources import SOURCES, open_checkpoint, source_config
from robust_jax.types import Model, ModelDefaults

_mocks: dict[str, Callable[[], Model]] = {}
"""By their whole names, such as `mock:fragile`."""


def register_mock(name: str, make: Callable[[], Model]) -> None:
    """Make a stand-in known as `mock:NAME`."""
    _mocks[f"mock:{name}"] = make


def known_models() -> dict[str, str]:
    """Names of what can be loaded, with what they are."""
    return {**SOURCES, **dict.fromkeys(_mocks, "a stand-in for tests")}


def load_model(spec: str, *, dtype: str = "float32", batch_size: int | None = None) -> Model:
    """The model of a name, one of the forms that `known_models` lists.

    Raises:
        InputError: there is no such model, or it cannot be loaded.
    """
    if spec.startswith("mock:"):
        return _mock(spec)
    return LocalModel(spec, open_checkpoint(spec), dtype=dtype, batch_size=batch_size)


def model_defaults(spec: str) -> ModelDefaults:
    """How the model of a name wants to be asked, without loading its weights.

    Raises:
        InputError: there is no such model.
    """
    if spec.startswith("mock:"):
        return _mock(spec).defaults
    return source_config(spec).defaults


def _mock(spec: str) -> Model:
    if spec not in _mocks:
        raise InputError(f"there is no stand-in {spec!r}; known: {', '.join(_mocks) or 'none'}")
    return _mocks[spec]()
