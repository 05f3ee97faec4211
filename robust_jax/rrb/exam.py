"""Problems as questions to a model: what identifies an attempt, and what a reply is worth."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from robust_jax.problems.grading import Grade, format_number, grade, is_refusal, last_box, without_thinking
from robust_jax.rrb.expressions import judge
from robust_jax.rrb.problem_set import Problem
from robust_jax.runs import Key
from robust_jax.types import Grading, Number, Prompt, Response, Sample

_OPENING = r"^[ \t>*_#]*"
_NUMBER = r"\s*#?\s*(\d+)\b"
_ANSWER = re.compile(
    rf"{_OPENING}(?:final\s+)?answer\s+(?:to|for)\s+(?:problem|question){_NUMBER}", re.IGNORECASE | re.MULTILINE
)
_HEADING = re.compile(rf"{_OPENING}(?:problem|question|solution|answer){_NUMBER}", re.IGNORECASE | re.MULTILINE)
_BOX = re.compile(r"\\(?=boxed\b)")


@dataclass(frozen=True)
class ProblemQuestion:
    """One attempt at a problem, in one of the forms in which it is asked."""

    arm: str
    """The form: original, the name of a perturbation, or a condition with its number of problems."""
    problem: Problem
    """What is graded."""
    prompt: Prompt
    variation: str = ""
    """What tells two questions of one arm and problem apart, such as the problems before it."""
    attempt: int = 0
    count: int = 1
    """How many problems the prompt asks for; the graded one is the last."""

    @property
    def key(self) -> Key:
        return (self.arm, self.problem.id, self.variation, self.attempt)


@dataclass(frozen=True)
class ProblemExam:
    """Asks about the problems of one set."""

    grading: Grading

    def prompt(self, question: ProblemQuestion) -> Prompt:
        """The prompt that the question was made with."""
        return question.prompt

    def sample(self, question: ProblemQuestion, response: Response) -> Sample:
        """The graded reply. An answer must be marked: in a box, behind `####`, or by 'the answer is'."""
        problem = question.problem
        text = response.text
        if question.count > 1 and not is_refusal(text):
            text = reply_to(text, question.count, question.count)
        result, extracted = _graded(replace(response, text=text), problem.answer, self.grading)
        return Sample(
            arm=question.arm,
            item=problem.id,
            variation=question.variation,
            attempt=question.attempt,
            values={},
            question=question.prompt.problem,
            gold=str(problem.answer),
            response=response.text,
            extracted=extracted,
            rule=result.rule,
            status=result.status,
            score=result.score,
            finish_reason=response.finish_reason,
            prompt_tokens=response.prompt_tokens,
            completion_tokens=response.num_tokens,
        )


def _graded(response: Response, answer: Number | str, grading: Grading) -> tuple[Grade, str | None]:
    """What a reply is worth, and the answer that was read from it.

    An answer that is an expression is the content of the last box. If it cannot be compared in time it is unparsed.
    """
    if not isinstance(answer, str):
        result = grade(response, answer, grading, "marked")
        return result, None if result.value is None else format_number(result.value)
    shown, is_unclosed = without_thinking(response.text)
    box = "" if is_unclosed else last_box(shown).strip()
    same = judge().same(answer, box) if box else None
    if same is not None:
        return Grade("ok", float(same), rule="boxed"), box
    result = grade(response, 0, grading, "marked")
    return (Grade("unparsed", 0.0) if result.status == "ok" else result), None


def reply_to(text: str, place: int, count: int) -> str:
    """The part of a reply to `count` problems that belongs to problem number `place`, found by number, never by value.

    It stands behind the last line that names itself the answer to that problem; where no line is an answer to any,
    behind the last heading of that number; where there is none, it is the box of that number, if there is one box for
    every problem. A part ends where another number's begins. Empty if there is no such part.
    """
    shown, is_unclosed = without_thinking(text)
    if is_unclosed:
        return text
    for pattern in (_ANSWER, _HEADING):
        labels = list(pattern.finditer(shown))
        if labels:
            return _behind(labels, place)
    boxes = _BOX.split(shown)[1:]
    return f"\\{boxes[place - 1]}" if len(boxes) == count else ""


def last_answer_start(text: str, count: int) -> int | None:
    """Where in a reply to `count` problems the work on the last one begins.

    Behind the line with the answer to the problem before it or, where there is none, at the heading with its number;
    None where neither tells.
    """
    if count == 1:
        return 0
    labels = [(int(label[1]), label.start()) for label in _ANSWER.finditer(text)]
    last = max((start for number, start in labels if number == count), default=len(text))
    before = [start for number, start in labels if number == count - 1 and start < last]
    if before:
        end = text.find("\n", before[-1])
        return None if end < 0 else end + 1
    return next((heading.start() for heading in _HEADING.finditer(text) if int(heading[1]) == count), None)


def _behind(labels: Sequence[re.Match[str]], place: int) -> str:
    """What stands behind the last label of a number, up to the next label of another number."""
    own = [position for position, label in enumerate(labels) if int(label[1]) == place]
    if not own:
        return ""
    following = labels[own[-1] + 1 :]
    text = labels[0].string
    return text[labels[own[-1]].end() : following[0].start() if following else len(text)]
