"""From the name of a model to the model."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import jax

from robust_jax.errors import InputError
from robust_jax.models.config import DecoderConfig
from robust_jax.models.distributed import is_joined
from robust_jax.models.following import LeadingModel, follow
from robust_jax.models.local import LocalModel
from robust_jax.models.sharding import MeshShape
from robust_jax.models.sources import SOURCES, open_checkpoint, source_config, source_tokenizer
from robust_jax.models.tokenizer import TextTokenizer
from robust_jax.types import Model, ModelDefaults, ServerSettings

if TYPE_CHECKING:
    from robust_jax.models.remote import RemoteModel

REMOTE = "openai:"
"""How the name of a model behind a server begins."""
NOWHERE = ServerSettings()

_mocks: dict[str, Callable[[], Model]] = {}
"""By their whole names, such as `mock:fragile`."""


def register_mock(name: str, make: Callable[[], Model]) -> None:
    """Make a stand-in known as `mock:NAME`."""
    _mocks[f"mock:{name}"] = make


def known_models() -> dict[str, str]:
    """Names of what can be loaded, with what they are."""
    remote = {f"{REMOTE}NAME": "a model behind an OpenAI-compatible server, whose address is --base-url"}
    return {**SOURCES, **remote, **dict.fromkeys(_mocks, "a stand-in for tests")}


def load_model(
    spec: str,
    *,
    dtype: str = "float32",
    batch_size: int | None = None,
    mesh: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    server: ServerSettings = NOWHERE,
) -> Model:
    """The model of a name, one of the forms that `known_models` lists.

    Of several processes this is called by the first; the model is then loaded in all of them.

    Args:
        mesh: how the devices are arranged, such as `data=2,model=4`; None puts all on the data axis.
        on_progress: told how many bytes of how many are loaded.
        server: where a model `openai:NAME` is asked, and within which limits.

    Raises:
        InputError: there is no such model, or it cannot be loaded.
    """
    if spec.startswith(REMOTE):
        if is_joined():
            raise InputError(f"{spec} uses no devices: start it without --coordinator")
        return _remote_model()(spec, server)
    here = partial(_load_here, on_progress=on_progress)
    load = partial(LeadingModel, here) if is_joined() else here
    return load(spec, dtype=dtype, batch_size=batch_size, mesh=mesh)


def follow_leader() -> int:
    """Do what process 0 of several asks of its model, until it ends; its exit code. See `following.follow`."""
    return follow(_load_here)


def _load_here(
    spec: str,
    *,
    dtype: str,
    batch_size: int | None,
    mesh: str | None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Model:
    if spec.startswith("mock:"):
        if is_joined():
            raise InputError(f"{spec} uses no devices: start it without --coordinator")
        return _mock(spec)
    shape = MeshShape.parse(mesh, jax.device_count())
    checkpoint = open_checkpoint(spec)
    return LocalModel(spec, checkpoint, dtype=dtype, batch_size=batch_size, mesh=shape, on_progress=on_progress)


def model_config(spec: str) -> DecoderConfig | None:
    """The configuration of the model of a name, without loading its weights; None for one that does not run here.

    Raises:
        InputError: there is no such model.
    """
    if spec.startswith("mock:"):
        _mock(spec)
        return None
    if spec.startswith(REMOTE):
        return None
    return source_config(spec)


def model_defaults(spec: str) -> ModelDefaults:
    """How the model of a name wants to be asked, without loading its weights.

    Raises:
        InputError: there is no such model.
    """
    if spec.startswith("mock:"):
        return _mock(spec).defaults
    if spec.startswith(REMOTE):
        return _remote_model().defaults
    return source_config(spec).defaults


def model_tokenizer(spec: str) -> TextTokenizer | None:
    """The tokenizer of the model of a name, without loading its weights; None for one that does not run here.

    Raises:
        InputError: there is no such model.
    """
    if spec.startswith("mock:"):
        _mock(spec)
        return None
    return None if spec.startswith(REMOTE) else source_tokenizer(spec)


def _mock(spec: str) -> Model:
    if spec not in _mocks:
        raise InputError(f"there is no stand-in {spec!r}; known: {', '.join(_mocks) or 'none'}")
    return _mocks[spec]()


def _remote_model() -> "type[RemoteModel]":
    from robust_jax.models.remote import RemoteModel  # The client takes a second to import.

    return RemoteModel
