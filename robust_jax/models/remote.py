"""A model behind an OpenAI-compatible server, as a `Model` whose replies come one by one."""

import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float

from robust_jax.errors import InputError, RunError
from robust_jax.models.prices import read_price
from robust_jax.models.remote_pool import RequestPool
from robust_jax.models.remote_requests import Endpoint, Fatal
from robust_jax.randomness import derived_seed
from robust_jax.types import (
    Capabilities,
    FeatureRequest,
    Message,
    ModelDefaults,
    Prompt,
    Response,
    Sampling,
    ServerSettings,
)

_log = logging.getLogger(__name__)

DEFAULT_MAX_TOKENS = 16_384
"""Longest reply, thinking included, where nobody says."""
SECONDS_BETWEEN_LOOKS = 0.2
"""How long replies are waited for before whoever asks may look whether to go on."""
FEWEST_FAILURES = 8
"""Attempts that must fail one after another, without a reply between them, before a server counts as dead."""
HELLO = (Message("system", "Be brief."), Message("user", "Say hello."))
SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string", "enum": ["yes"]}},
    "required": ["word"],
    "additionalProperties": False,
}
"""What no model says that is not held to it."""


@dataclass
class Usage:
    """What a model's replies have used up, those that found out what the server can do included."""

    replies: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    dollars: float = 0.0

    def __str__(self) -> str:
        tokens = f"{self.prompt_tokens:,} tokens of prompts and {self.completion_tokens:,} of replies"
        return f"{self.replies:,} replies, {tokens}" + (f", ${self.dollars:.4f}" if self.dollars else "")


class RemoteModel:
    """A model of a server, under the name that the server knows it by.

    Args:
        spec: `openai:NAME`.
        settings: where the server is, and the limits.

    Raises:
        InputError: no name or address, or a spending cap without the model's price.
    """

    defaults = ModelDefaults(max_tokens=DEFAULT_MAX_TOKENS)

    def __init__(self, spec: str, settings: ServerSettings) -> None:
        self.name = spec
        self.digest = ""
        self.num_layers = 0
        self.usage = Usage()
        self._settings = settings
        name = spec.partition(":")[2]
        if not name:
            raise InputError("openai:NAME wants the name by which the server knows the model")
        if settings.base_url is None:
            raise InputError(f"{spec}: say where its server is: --base-url http://localhost:8000/v1")
        if settings.spending_cap is not None and settings.prices is None:
            raise InputError("--spending-cap needs --prices, a file with the model's price")
        self._price = read_price(settings.prices, name) if settings.prices else None
        self._endpoint = Endpoint(name, settings)
        self._deadline = float("inf") if settings.time_limit is None else time.monotonic() + settings.time_limit

    @cached_property
    def capabilities(self) -> Capabilities:
        """What the server gives besides text, found out by two short requests at first use and then said.

        Raises:
            InputError: it cannot be reached, refuses the key, does not know the model, or fails otherwise.
        """
        plain = self._first_contact(Prompt(HELLO, raw="Hello"), max_tokens=1)
        try:
            held = self._first_contact(Prompt(HELLO, raw="Hello", schema=SCHEMA), max_tokens=32).text
        except InputError:  # It replies without a schema, and breaks down over one.
            self._endpoint.refused.add("response_format")
            held = ""
        found = Capabilities(
            hidden_states=False,
            statistics=False,
            embeddings=False,
            log_probabilities=plain.log_probability is not None,
            structured_output=_follows_schema(held),
            tokenizer=False,
            effort="reasoning_effort" not in self._endpoint.refused,
        )
        for name in ("log_probabilities", "structured_output"):
            if not getattr(found, name):
                _log.warning("%s: the server gives no %s", self.name, name.replace("_", " "))
        return found

    def stream(
        self,
        prompts: Sequence[Prompt],
        sampling: Sequence[Sampling],
        should_stop: Callable[[], bool] = lambda: False,
    ) -> Iterator[list[tuple[int, Response]]]:
        """Replies as they come, each with its prompt's index; see `types.StreamingModel`.

        A prompt whose requests all fail, or that the server refuses, gets a response that says why.

        Raises:
            RunError: the server is dead or refuses everything, or time or money is used up; every reply that came has
                been given out.
        """
        pool = RequestPool(self._endpoint, self._settings, prompts, sampling, self._settings.retries)
        reason = ""
        with pool:
            while not (pool.is_over or should_stop()):
                yield self._counted(pool.take(SECONDS_BETWEEN_LOOKS))
                if self._is_used_up and not reason:
                    reason = f"${self.usage.dollars:.2f} are spent: raise --spending-cap to go on"
                    pool.ask_no_more()
                if time.monotonic() >= self._deadline:
                    reason = f"the time limit of {self._settings.time_limit:g} s is over"
                    break
                if pool.failures_in_a_row >= max(FEWEST_FAILURES, self._settings.concurrency):
                    reason = f"the server fails: {pool.failures_in_a_row} attempts in a row came to nothing"
                    break
        yield self._counted(pool.take(0.0))
        if isinstance(pool.failure, Fatal):
            reason = str(pool.failure)
        elif pool.failure is not None:
            raise pool.failure
        if reason:
            raise RunError(f"{self.name}: {reason}; what came is kept, and the same command goes on from there")

    def respond(
        self,
        prompts: Sequence[Prompt],
        sampling: Sampling | Sequence[Sampling],
        features: FeatureRequest = FeatureRequest(),
        on_reply: Callable[[int], None] | None = None,
    ) -> list[Response]:
        """A reply to every prompt, in order; see `stream`."""
        if isinstance(sampling, Sampling):
            sampling = [replace(sampling, seed=derived_seed(sampling.seed, "reply", n)) for n in range(len(prompts))]
        responses: dict[int, Response] = {}
        for arrived in self.stream(prompts, sampling):
            responses.update(arrived)
            for index, _ in arrived:
                if on_reply:
                    on_reply(index)
        return [responses[index] for index in range(len(prompts))]

    def score(
        self, prompts: Sequence[Prompt], continuations: Sequence[str], features: FeatureRequest = FeatureRequest()
    ) -> list[Response]:
        """Raises InputError: a server scores no given text."""
        raise InputError(f"{self.name} is behind a server, which scores no given text: use a model that runs here")

    def tokenize(self, text: str) -> list[int]:
        """Raises InputError: a server gives no token ids."""
        raise InputError(f"{self.name} is behind a server, which gives no token ids: use a model that runs here")

    def embed(self, texts: Sequence[str]) -> Float[np.ndarray, "B D"]:
        """Raises InputError: a server gives no input embeddings."""
        raise InputError(f"{self.name} is behind a server, which gives no embeddings: use a model that runs here")

    def _first_contact(self, prompt: Prompt, max_tokens: int) -> Response:
        """The reply to a prompt that finds out what the server can do."""
        retries = min(self._settings.retries, 2)  # A wrong address should be said soon.
        with RequestPool(self._endpoint, self._settings, [prompt], [Sampling(max_tokens=max_tokens)], retries) as pool:
            arrived = []
            while not pool.is_over:
                arrived += pool.take(SECONDS_BETWEEN_LOOKS)
        for _, response in self._counted(arrived):
            if response.finish_reason != "error":
                return response
        reason = arrived[0][1].message if arrived else pool.failure
        raise InputError(f"{self.name} at {self._settings.base_url} gives no reply: {reason}")

    def _counted(self, arrived: list[tuple[int, Response]]) -> list[tuple[int, Response]]:
        for _, response in arrived:
            if response.finish_reason != "error":
                self.usage.replies += 1
                self.usage.prompt_tokens += response.prompt_tokens
                self.usage.completion_tokens += response.num_tokens
                self.usage.dollars += self._price.of(response) if self._price else 0.0
        return arrived

    @property
    def _is_used_up(self) -> bool:
        cap = self._settings.spending_cap
        return cap is not None and self.usage.dollars >= cap


def _follows_schema(text: str) -> bool:
    try:
        return bool(json.loads(text) == {"word": "yes"})
    except (ValueError, RecursionError):
        return False
