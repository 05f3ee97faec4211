"""Stand-ins with a known weakness each, whose reports must show exactly that weakness."""

import re
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from robust_jax.models import register_mock
from robust_jax.rrb.problem_set import Problem, ProblemSet
from robust_jax.types import (
    Capabilities,
    FeatureRequest,
    ModelDefaults,
    Prompt,
    Response,
    Sampling,
)

_LISTED = re.compile(r"^Problem (\d+): ", re.MULTILINE)
FORGETFUL_PERIOD = 4
"""The forgetful stand-in loses one more problem of every so many at each further position."""


def register_mocks(problems: ProblemSet) -> None:
    """Make the stand-ins known: they hold the answers to the problems that are to be asked."""
    register_mock("literal", partial(Literal, problems.problems))
    register_mock("forgetful", partial(Forgetful, problems.problems))


class _Stand:
    """What both have in common: they know the answers, and a word is a token to them."""

    name = "mock:stand-in"
    digest = ""
    num_layers = 0
    capabilities = Capabilities(hidden_states=False, statistics=False, embeddings=False)
    defaults = ModelDefaults()

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = problems
        self.numbers = {problem.text: number for number, problem in enumerate(problems)}

    def reply(self, question: str, problem: str) -> str:
        """The text of the reply to a question about a problem."""
        raise NotImplementedError

    def answer(self, number: int, is_right: bool) -> str:
        """The box with the answer to a problem, or with another one."""
        answer = self.problems[number].answer
        return rf"\boxed{{{answer if is_right else 'unknown'}}}"

    def respond(
        self,
        prompts: Sequence[Prompt],
        sampling: Sampling | Sequence[Sampling],
        features: FeatureRequest = FeatureRequest(),
        on_reply: Callable[[int], None] | None = None,
    ) -> list[Response]:
        responses = []
        for index, prompt in enumerate(prompts):
            question = prompt.messages[-1].content
            text = self.reply(question, prompt.problem)
            responses.append(Response(text, tuple(self.tokenize(text)), prompt_tokens=len(self.tokenize(question))))
            if on_reply:
                on_reply(index)
        return responses

    def score(
        self, prompts: Sequence[Prompt], continuations: Sequence[str], features: FeatureRequest = FeatureRequest()
    ) -> list[Response]:
        return [Response(text) for text in continuations]

    def tokenize(self, text: str) -> list[int]:
        return list(range(len(text.split())))

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        return np.zeros((len(texts), 0), np.float32)


class Literal(_Stand):
    """Solves a problem that stands before it as it was written, and no other form of it."""

    name = "mock:literal"

    def reply(self, question: str, problem: str) -> str:
        number = self.numbers.get(problem)
        return "I see no problem. \\boxed{unknown}" if number is None else f"I know it. {self.answer(number, True)}"


class Forgetful(_Stand):
    """Solves every first problem, and at each further position of a context one problem of four less."""

    name = "mock:forgetful"

    def reply(self, question: str, problem: str) -> str:
        parts = _LISTED.split(question)
        if len(parts) == 1 or "Now solve the following problem" in question:
            return f"Alone, it is easy. {self.answer(self.numbers[problem], True)}"
        lines = []
        for place, text in zip(parts[1::2], parts[2::2], strict=True):
            number = self.numbers[text.strip()]
            is_right = number % FORGETFUL_PERIOD >= int(place) - 1
            lines.append(f"Working on it.\nAnswer to problem {place}: {self.answer(number, is_right)}")
        return "\n\n".join(lines)
