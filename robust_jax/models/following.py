"""A model that runs in several processes at once: process 0 leads, the others follow.

Process 0 runs the command: it alone reads and writes the run directory, draws at random and decides what is asked.
Before it asks the model it tells the others, so that all enter the same computations with the same inputs; the arrays
lie over the devices of all. Nothing else has to agree between the machines, and a resumed run needs what process 0 has
kept and nothing more.
"""

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Float

from robust_jax.errors import RunError
from robust_jax.models.distributed import hear, tell, together
from robust_jax.types import (
    Capabilities,
    FeatureRequest,
    Message,
    Model,
    ModelDefaults,
    Prompt,
    Response,
    Sampling,
    TokenEmbeddings,
)

LOADING_SECONDS = 3600.0
"""How long the first process to have loaded the model waits for the last; some read it from a slow disk."""
ANSWERING_SECONDS = 600.0
"""Likewise for answers: all have made the same computations, so they finish almost together."""

T = TypeVar("T")


@runtime_checkable
class Load(Protocol):
    """Loads a model in this process, by its name."""

    def __call__(self, spec: str, *, dtype: str, batch_size: int | None, mesh: str | None) -> Model: ...


class LeadingModel:
    """Process 0's view of a model that runs in all processes; loading it loads it everywhere.

    Raises:
        InputError: it cannot be loaded here.
    """

    def __init__(self, load: Load, spec: str, *, dtype: str, batch_size: int | None, mesh: str | None) -> None:
        options = {"dtype": dtype, "batch_size": batch_size, "mesh": mesh}
        with together(tell({"call": "load", "spec": spec, "options": options}), LOADING_SECONDS):
            self._model = _loaded(load, spec, options)

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def capabilities(self) -> Capabilities:
        return self._model.capabilities

    @property
    def digest(self) -> str:
        return self._model.digest

    @property
    def num_layers(self) -> int:
        return self._model.num_layers

    @property
    def defaults(self) -> ModelDefaults:
        return self._model.defaults

    def respond(
        self,
        prompts: Sequence[Prompt],
        sampling: Sampling | Sequence[Sampling],
        features: FeatureRequest = FeatureRequest(),
        on_reply: Callable[[int], None] | None = None,
    ) -> list[Response]:
        """See `Model`; every process works on all prompts, each device on its part of the arrays."""
        request = {"call": "respond", "prompts": list(prompts), "sampling": sampling, "features": features}
        with together(tell(request), ANSWERING_SECONDS):
            return self._model.respond(prompts, sampling, features, on_reply)

    def score(
        self, prompts: Sequence[Prompt], continuations: Sequence[str], features: FeatureRequest = FeatureRequest()
    ) -> list[Response]:
        """See `Model`."""
        request = {"call": "score", "prompts": list(prompts), "texts": list(continuations), "features": features}
        with together(tell(request), ANSWERING_SECONDS):
            return self._model.score(prompts, continuations, features)

    def tokenize(self, text: str) -> list[int]:
        """See `Model`."""
        return self._model.tokenize(text)

    def embed(self, texts: Sequence[str]) -> Float[np.ndarray, "B D"]:
        """See `Model`; this process has the embedding table to itself."""
        return self._model.embed(texts)

    def tokenize_all(self, texts: Sequence[str]) -> list[list[int]]:
        """See `TokenEmbeddings`."""
        return self._tokens.tokenize_all(texts)

    @property
    def embedding_table(self) -> Float[np.ndarray, "V D"]:
        """See `TokenEmbeddings`."""
        return self._tokens.embedding_table

    @property
    def _tokens(self) -> TokenEmbeddings:
        assert isinstance(self._model, TokenEmbeddings)  # what runs in several processes is a local model
        return self._model


def follow(load: Load) -> int:
    """Do in this process what process 0 asks of the model, until it ends; its exit code.

    Raises:
        InputError: the model cannot be loaded here.
        RunError: process 0 asks for something else.
    """
    model: Model | None = None
    numbers = itertools.count()
    while True:
        match hear(number := next(numbers)):
            case {"call": "end", "code": int(code)}:
                return code
            case {"call": "load", "spec": spec, "options": options}:
                model = None  # Lets go of an earlier one's memory.
                with together(number, LOADING_SECONDS):
                    model = _loaded(load, spec, options)
            case {"call": "respond", "prompts": prompts, "sampling": sampling, "features": features} if model:
                with together(number, ANSWERING_SECONDS):
                    model.respond(_prompts(prompts), _samplings(sampling), _revived(FeatureRequest, features))
            case {"call": "score", "prompts": prompts, "texts": texts, "features": features} if model:
                with together(number, ANSWERING_SECONDS):
                    model.score(_prompts(prompts), texts, _revived(FeatureRequest, features))
            case unknown:
                raise RunError(f"process 0 asks for {unknown.get('call')!r}, which this version does not know")


def _loaded(load: Load, spec: str, options: Any) -> Model:
    model = load(spec, **options)
    # The embedding table is brought together from all devices, which takes all processes; later each has its copy.
    model.embed([])
    return model


def _prompts(told: Sequence[Mapping[str, Any]]) -> list[Prompt]:
    return [Prompt(**{**prompt, "messages": tuple(Message(*part) for part in prompt["messages"])}) for prompt in told]


def _samplings(told: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Sampling | list[Sampling]:
    if isinstance(told, Mapping):
        return _revived(Sampling, told)
    return [_revived(Sampling, one) for one in told]


def _revived(kind: type[T], told: Mapping[str, Any]) -> T:
    """A dataclass of plain values from what JSON made of it."""
    assert dataclasses.is_dataclass(kind)
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in told.items()})
