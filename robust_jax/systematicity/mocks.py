"""Stand-ins for models that read a prompt as a model does: `mock:ideal` finds the rule, `mock:surface` does not.

They show what the metrics do: whoever has the rule solves every variation, and whoever goes by looks does not.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from rapidfuzz.distance import Levenshtein

from robust_jax.models import register_mock
from robust_jax.systematicity.families import FAMILIES, SOLVERS
from robust_jax.systematicity.prompts import read_prompt
from robust_jax.systematicity.replies import answers_text
from robust_jax.systematicity.task import Example, Family, Solver
from robust_jax.types import Capabilities, FeatureRequest, Message, ModelDefaults, Prompt, Response, Sampling

Learner = Callable[[Family[Any, Any], Sequence[Example[Any, Any]], Sequence[Any]], Sequence[Any] | None]


def ideal(
    family: Family[Any, Any], support: Sequence[Example[Any, Any]], queries: Sequence[Any]
) -> Sequence[Any] | None:
    """What follows from the examples."""
    solver: Solver | None = SOLVERS.get(family.name)
    return None if solver is None else solver(support, queries)


def surface(
    family: Family[Any, Any], support: Sequence[Example[Any, Any]], queries: Sequence[Any]
) -> Sequence[Any] | None:
    """For each query the output of the example whose input looks most like it, word by word; the first of equals."""
    shown = [family.show_input(example.x).split() for example in support]
    answers = []
    for query in queries:
        words = family.show_input(query).split()
        distances = [Levenshtein.distance(words, other) for other in shown]
        answers.append(support[distances.index(min(distances))].y)
    return answers


class LearnerModel:
    """Answers the prompts of all families with a learner, from their text alone. Implements `types.Model`."""

    digest = ""
    capabilities = Capabilities(hidden_states=False, statistics=False, embeddings=False)
    num_layers = 0
    defaults = ModelDefaults()

    def __init__(self, name: str, learner: Learner) -> None:
        self.name = name
        self.learner = learner

    def respond(
        self,
        prompts: Sequence[Prompt],
        sampling: Sampling | Sequence[Sampling],
        features: FeatureRequest = FeatureRequest(),
        on_reply: Callable[[int], None] | None = None,
    ) -> list[Response]:
        known: dict[tuple[Message, ...], Response] = {}
        for index, prompt in enumerate(prompts):
            if prompt.messages not in known:
                known[prompt.messages] = self.reply(*(message.content for message in prompt.messages))
            if on_reply:
                on_reply(index)
        return [known[prompt.messages] for prompt in prompts]

    def reply(self, system: str, user: str) -> Response:
        """The reply to the two messages of a prompt."""
        family = _family_of(system)
        answers = self.learner(family, *read_prompt(family, user))
        text = "I cannot tell." if answers is None else f'{{"answers": {answers_text(family, answers)}}}'
        return Response(text, tuple(range(len(text.split()))), prompt_tokens=len(system.split()) + len(user.split()))

    def score(
        self, prompts: Sequence[Prompt], continuations: Sequence[str], features: FeatureRequest = FeatureRequest()
    ) -> list[Response]:
        return [Response(text) for text in continuations]

    def tokenize(self, text: str) -> list[int]:
        return list(text.encode())

    def embed(self, texts: Sequence[str]) -> Float[np.ndarray, "B D"]:
        return np.zeros((len(texts), 0), np.float32)


def _family_of(system: str) -> Family[Any, Any]:
    """The family whose title begins a system message."""
    title = system.splitlines()[0]
    return next(family for family in FAMILIES.values() if family.title == title)


register_mock("ideal", lambda: LearnerModel("mock:ideal", ideal))
register_mock("surface", lambda: LearnerModel("mock:surface", surface))
