"""Prompts: the instruction, worked examples and the problem, as messages and as plain text."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from robust_jax.errors import InputError
from robust_jax.types import Example, Message, Prompt, Suite

INSTRUCTION = (
    "Solve the following math problem. Reason step by step, and end with a line that holds the final number alone "
    "after ####, such as: #### 42"
)
"""What a chat model is told before the problem."""

STOP = ("\nQuestion:",)
"""Where a reply to the plain form ends: a model that goes on would invent the next question."""

ShotsAs = Literal["one", "turns"]
"""one: examples and problem stand in one user message; turns: every example is an exchange of its own."""


@dataclass(frozen=True)
class PromptForm:
    """How worked examples and a problem become a prompt."""

    shots_as: ShotsAs = "one"
    system: str | None = None
    """What a system message says; without a chat template it stands before everything else."""
    chat: bool = True
    """Whether a model with a chat template gets the prompt in it; plain text otherwise."""


_log = logging.getLogger(__name__)


def build_prompt(
    suite: Suite,
    variation_text: str,
    *,
    shots: int,
    form: PromptForm = PromptForm(),
    exclude_question: Collection[str] = (),
) -> Prompt:
    """The prompt that puts one problem of a suite to a model.

    What stands before the problem is the same for all problems of a suite, except for a problem that is itself one of
    the examples: that example is left out, the next one, if there is one, takes its place, and the log says so. To
    keep the prefix the same there too, name such problems in `exclude_question` throughout.

    Args:
        suite: where the worked examples come from.
        variation_text: the problem.
        shots: how many examples to show; the first ones of the suite.
        form: how they are put.
        exclude_question: problems that may not be shown as examples either.

    Raises:
        InputError: the suite has too few examples.
    """
    examples = _examples(suite, variation_text, shots, exclude_question)
    shown = "".join(f"Question: {example.question}\nAnswer: {example.solution}\n\n" for example in examples)
    body = f"{shown}Question: {variation_text}\nAnswer:"
    raw = body if form.system is None else f"{form.system}\n\n{body}"
    if not form.chat:
        return Prompt((), problem=variation_text, raw=raw)
    messages = [] if form.system is None else [Message("system", form.system)]
    if form.shots_as == "turns":
        for example in examples:
            messages.append(Message("user", f"{INSTRUCTION}\n\n{example.question}"))
            messages.append(Message("assistant", example.solution))
        messages.append(Message("user", f"{INSTRUCTION}\n\n{variation_text}"))
    else:
        messages.append(Message("user", f"{INSTRUCTION}\n\n{body}"))
    return Prompt(tuple(messages), problem=variation_text, raw=raw)


def _examples(suite: Suite, problem: str, shots: int, excluded: Collection[str]) -> list[Example]:
    tested = {_spaced(problem), *map(_spaced, excluded)}
    usable = [example for example in suite.examples if _spaced(example.question) not in tested]
    if not 0 <= shots <= len(suite.examples):
        raise InputError(f"{shots} shots: the suite '{suite.name}' has {len(suite.examples)} examples")
    if any(_spaced(example.question) == _spaced(problem) for example in suite.examples[:shots]):
        _log.warning("suite %s: an example is left out because it is the tested problem: %.60s", suite.name, problem)
    return usable[:shots]


def _spaced(text: str) -> str:
    return " ".join(text.split())
