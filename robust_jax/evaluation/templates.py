"""Variations of a suite's templates as questions: their prompts, and the grades of what a model replies."""

from dataclasses import dataclass

from robust_jax.problems.grading import ExtractionMode, format_number, grade
from robust_jax.problems.prompts import PromptForm, build_prompt
from robust_jax.runs import Key
from robust_jax.types import Prompt, Response, Sample, Suite, Variation


@dataclass(frozen=True)
class TemplateQuestion:
    """One attempt at a variation of a template."""

    arm: str
    variation: Variation
    attempt: int = 0

    @property
    def key(self) -> Key:
        return (self.arm, self.variation.template, self.variation.key, self.attempt)


@dataclass(frozen=True)
class TemplateExam:
    """Asks about the templates of one suite."""

    suite: Suite
    shots: int
    extract: ExtractionMode = "standard"
    form: PromptForm = PromptForm()

    def prompt(self, question: TemplateQuestion) -> Prompt:
        """The variation behind the suite's worked examples."""
        return build_prompt(self.suite, question.variation.text, shots=self.shots, form=self.form)

    def sample(self, question: TemplateQuestion, response: Response) -> Sample:
        """The reply with the number read from it, graded by the suite's rule."""
        variation = question.variation
        result = grade(response, variation.answer, self.suite.grading, self.extract)
        return Sample(
            arm=question.arm,
            item=variation.template,
            variation=variation.key,
            attempt=question.attempt,
            values={name: str(getattr(value, "word", value)) for name, value in variation.values.items()},
            question=variation.text,
            gold=format_number(variation.answer),
            response=response.text,
            extracted=None if result.value is None else format_number(result.value),
            rule=result.rule,
            status=result.status,
            score=result.score,
            finish_reason=response.finish_reason,
            prompt_tokens=response.prompt_tokens,
            completion_tokens=response.num_tokens,
        )
