"""From the name of a model to the model."""

from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path

from robust_jax.errors import InputError
from robust_jax.models.local import LocalModel
from robust_jax.types import Model

BUILTIN = {"tiny": Path(__file__).parent / "tiny"}

_mocks: dict[str, Callable[[], Model]] = {}


def register_mock(name: str, make: Callable[[], Model]) -> None:
    """Make a stand-in known as `mock:NAME`."""
    _mocks[name] = make


def known_models() -> dict[str, str]:
    """Names of what can be loaded, with what they are."""
    builtin = {f"builtin:{name}": "a small Llama trained on narrow ranges of grade_school" for name in BUILTIN}
    mocks = {f"mock:{name}": "a stand-in for tests" for name in _mocks}
    return {**builtin, "DIRECTORY": "a Hugging Face checkpoint of the Llama family (safetensors)", **mocks}


def load_model(spec: str, *, dtype: str = "float32", batch_size: int | None = None) -> Model:
    """The model of a name: `builtin:NAME`, a local checkpoint directory, or `mock:NAME`.

    Raises:
        InputError: there is no such model, or it cannot be loaded.
    """
    kind, _, name = spec.partition(":")
    if kind == "builtin" and name in BUILTIN:
        return LocalModel(spec, BUILTIN[name], dtype=dtype, batch_size=batch_size)
    if kind == "mock" and name in _mocks:
        return _mocks[name]()
    if Path(spec).is_dir():
        return LocalModel(spec, Path(spec), dtype=dtype, batch_size=batch_size)
    known = [*(f"builtin:{name}" for name in BUILTIN), *(f"mock:{name}" for name in _mocks)]
    nearest = get_close_matches(spec, known, n=1, cutoff=0.4)
    hint = f"; did you mean {nearest[0]}?" if nearest else f"; known: {', '.join(known)}, or a checkpoint directory"
    raise InputError(f"unknown model {spec!r}{hint}")
