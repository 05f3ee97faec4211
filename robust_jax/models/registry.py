"""From the name of a model to the model."""

from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path

from robust_jax.errors import InputError
from robust_jax.models.config import read_config
from robust_jax.models.local import LocalModel
from robust_jax.types import Model, ModelDefaults

BUILTIN = {"tiny": Path(__file__).parent / "tiny"}

_mocks: dict[str, Callable[[], Model]] = {}
"""By their whole names, such as `mock:fragile`."""


def register_mock(name: str, make: Callable[[], Model]) -> None:
    """Make a stand-in known as `mock:NAME`."""
    _mocks[f"mock:{name}"] = make


def known_models() -> dict[str, str]:
    """Names of what can be loaded, with what they are."""
    builtin = {f"builtin:{name}": "a small Llama trained on narrow ranges of grade_school" for name in BUILTIN}
    mocks = dict.fromkeys(_mocks, "a stand-in for tests")
    return {**builtin, "DIRECTORY": "a Hugging Face checkpoint of the Llama family (safetensors)", **mocks}


def load_model(spec: str, *, dtype: str = "float32", batch_size: int | None = None) -> Model:
    """The model of a name: `builtin:NAME`, a local checkpoint directory, or `mock:NAME`.

    Raises:
        InputError: there is no such model, or it cannot be loaded.
    """
    if spec in _mocks:
        return _mocks[spec]()
    return LocalModel(spec, _directory(spec), dtype=dtype, batch_size=batch_size)


def model_defaults(spec: str) -> ModelDefaults:
    """How the model of a name wants to be asked, without loading its weights.

    Raises:
        InputError: there is no such model.
    """
    if spec in _mocks:
        return _mocks[spec]().defaults
    return read_config(_directory(spec)).defaults


def _directory(spec: str) -> Path:
    """The checkpoint directory of a model that runs here."""
    kind, _, name = spec.partition(":")
    if kind == "builtin" and name in BUILTIN:
        return BUILTIN[name]
    if Path(spec).is_dir():
        return Path(spec)
    known = [*(f"builtin:{name}" for name in BUILTIN), *_mocks]
    nearest = get_close_matches(spec, known, n=1, cutoff=0.4)
    hint = f"; did you mean {nearest[0]}?" if nearest else f"; known: {', '.join(known)}, or a checkpoint directory"
    raise InputError(f"unknown model {spec!r}{hint}")
