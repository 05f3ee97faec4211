"""Variations of tasks as questions: their prompts, and the grades of what a model replies."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from robust_jax.runs import Key
from robust_jax.systematicity.generation import generate_task, original, variations
from robust_jax.systematicity.options import TaskOptions
from robust_jax.systematicity.prompts import task_prompt
from robust_jax.systematicity.replies import answers_text, grade
from robust_jax.systematicity.task import Family, Variation
from robust_jax.types import Prompt, Response, Sample

ORIGINAL = "original"
"""The arm of the tasks as they were generated; that of any other variation is its kind."""


@dataclass(frozen=True)
class Asked:
    """One variation of a task with what a model is told."""

    family: Family[Any, Any]
    variation: Variation[Any, Any]
    prompt: Prompt

    @property
    def arm(self) -> str:
        return self.variation.kind or ORIGINAL

    @property
    def item(self) -> str:
        return self.variation.task.id


def asked_variations(options: TaskOptions) -> Iterator[Asked]:
    """Every variation that the options ask for, task after task, each once: kinds share the task as generated.

    Raises:
        InputError: the settings allow no such task, or a task has too few variations.
    """
    for family, parameters, kinds in options.chosen:
        for number in range(options.count):
            task = generate_task(family, parameters, options.seed, number)
            varied = [v for kind in kinds for v in variations(family, task, kind, options.variations)[1:]]
            for variation in (original(task), *varied):
                yield Asked(family, variation, task_prompt(family, variation.task))


@dataclass(frozen=True)
class VariationQuestion:
    """One attempt at a variation."""

    asked: Asked
    attempt: int

    @property
    def key(self) -> Key:
        return (self.asked.arm, self.asked.item, self.asked.variation.key, self.attempt)


def questions(asked: Sequence[Asked], attempts: int) -> list[VariationQuestion]:
    """All attempts at all variations, in order."""
    return [VariationQuestion(variation, attempt) for variation in asked for attempt in range(attempts)]


class VariationExam:
    """Asks for the answers to a variation's queries. Implements `evaluation.Exam`."""

    def prompt(self, question: VariationQuestion) -> Prompt:
        return question.asked.prompt

    def sample(self, question: VariationQuestion, response: Response) -> Sample:
        """The reply with the answers read from it, right if every one is."""
        asked = question.asked
        task = asked.variation.task
        verdict = grade(response, asked.family, task)
        arm, item, variation, attempt = question.key
        return Sample(
            arm=arm,
            item=item,
            variation=variation,
            attempt=attempt,
            values={"family": task.family, "rule": str(task.rule)},
            question=asked.prompt.problem,
            gold=answers_text(asked.family, task.answers),
            response=response.text,
            extracted=verdict.extracted,
            rule=verdict.rule,
            status=verdict.status,
            score=verdict.score,
            finish_reason=response.finish_reason,
            prompt_tokens=response.prompt_tokens,
            completion_tokens=response.num_tokens,
        )
