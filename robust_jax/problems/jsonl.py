"""Problems without slots, a line each: `{"id": …, "question": …, "answer": …}`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from robust_jax.errors import InputError
from robust_jax.problems.grading import format_number, read_number
from robust_jax.types import Number, Point, Size, Slot, Suite, Variation

KEY = "problem"
"""Key of the one filling of a problem without slots."""


@dataclass(frozen=True)
class FixedProblem:
    """A problem as a template with one filling; implements `robust_jax.types.Template`."""

    id: str
    question: str
    answer: Number | str
    """A number, or LaTeX where the answer is none."""
    solution: str

    slots: tuple[Slot, ...] = ()
    base: Point | None = ()

    @property
    def size(self) -> Size:
        return Size(1, exact=True)

    def is_valid(self, point: Point) -> bool:
        return point == ()

    def random(self, rng: np.random.Generator) -> Point:
        return ()

    def neighbours(self, point: Point, slot: int) -> Iterator[Point]:
        yield from ()

    def key(self, point: Point) -> str:
        return KEY

    def text(self, point: Point) -> str:
        return self.question

    def fill(self, point: Point) -> Variation:
        return Variation(self.id, KEY, {}, self.question, self.answer, self.solution)


def read_jsonl(content: bytes, file: str) -> Suite:
    """The problems of a JSONL file as a suite.

    A line is an object with `question` or `problem`, with `answer` (a number, LaTeX, or a worked solution that ends in
    `#### number`), and with `id` if there is one; otherwise the line's number is the id.

    Args:
        content: the file's bytes.
        file: its name, for messages.

    Raises:
        InputError: a line is no problem; names the line.
    """
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise InputError(f"{file} is not a text file in UTF-8") from None
    problems: dict[str, FixedProblem] = {}
    # Not splitlines(): a line separator of Unicode may stand inside a JSON text.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            problem = _read_problem(line, number)
        except InputError as error:
            raise InputError(f"{file}, line {number}: {error}") from None
        if problem.id in problems:
            raise InputError(f"{file}, line {number}: the id '{problem.id[:80]}' stands twice")
        problems[problem.id] = problem
    if not problems:
        raise InputError(f"{file} holds no problems")
    return Suite(name=re.sub(r"\.jsonl$", "", file), templates=tuple(problems.values()))


def _read_problem(line: str, number: int) -> FixedProblem:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise InputError("not valid JSON") from None
    if not isinstance(row, dict):
        raise InputError("a line is an object with 'question' and 'answer'")
    question = row.get("question", row.get("problem"))
    if not isinstance(question, str) or not question.strip():
        raise InputError("there is no text under 'question'")
    written = _written_answer(row)
    before, _, final = written.rpartition("####")
    answer = read_number(final)
    shown = final.strip() if answer is None else format_number(answer)
    solution = f"{before.rstrip()}\n#### {shown}".lstrip()
    identity = str(row.get("id", number))
    return FixedProblem(identity, question.strip(), shown if answer is None else answer, solution)


def _written_answer(row: Mapping[str, object]) -> str:
    answer = row.get("answer")
    if isinstance(answer, (int, float)) and not isinstance(answer, bool):
        return repr(answer)
    if not isinstance(answer, str) or not answer.strip():
        raise InputError("there is no number, LaTeX or worked solution under 'answer'")
    return answer
