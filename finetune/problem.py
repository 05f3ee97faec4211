"""What training and evaluation read: problems with their worked solutions, a JSON object a line."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from pathlib import Path

from robust_jax.errors import InputError
from robust_jax.problems import format_number
from robust_jax.runs import json_text, keeping, write_atomically
from robust_jax.types import Variation


@dataclass(frozen=True)
class Problem:
    """One variation that a search explored, with what the searched model made of it."""

    template: str
    key: str
    """Of the variation, within its template."""
    values: dict[str, str]
    """The slots' values as printed."""
    question: str
    trace: str
    """The worked solution, which ends in `#### answer`."""
    answer: str
    """Exact, such as 7/2."""
    difficulty: float | None
    """MD_H of the model's reply under the search's last fit (paper Section 3.1); None where it has no value."""
    was_correct: bool
    """Whether the model's reply was right, before any training."""

    @property
    def identity(self) -> tuple[str, str]:
        """What tells two problems apart."""
        return (self.template, self.key)

    @property
    def variation(self) -> Variation:
        """The problem as it is asked and graded."""
        answer = Fraction(self.answer)
        whole = answer.numerator if answer.denominator == 1 else answer
        return Variation(self.template, self.key, self.values, self.question, whole, self.trace)

    @classmethod
    def of(cls, variation: Variation, *, difficulty: float | None, was_correct: bool) -> "Problem":
        """The record of a variation."""
        return cls(
            template=variation.template,
            key=variation.key,
            values={name: str(getattr(value, "word", value)) for name, value in variation.values.items()},
            question=variation.text,
            trace=variation.trace,
            answer=format_number(variation.answer),
            difficulty=difficulty,
            was_correct=was_correct,
        )


def write_problems(path: Path, problems: Iterable[Problem]) -> None:
    """Write a JSON object a line.

    Raises:
        RunError: the disk fails; an earlier file stays as it was.
    """
    text = "".join(json_text(asdict(problem)) + "\n" for problem in problems)
    with keeping(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text.encode())


def read_problems(path: Path) -> list[Problem]:
    """What `write_problems` wrote.

    Raises:
        InputError: the file is not there, or damaged; the line is named.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read ({error}): make it with `robust-jax finetune data`") from None
    problems = []
    for number, line in enumerate(lines, 1):
        try:
            problems.append(_problem(line))
        except (ValueError, TypeError, RecursionError, ZeroDivisionError):
            raise InputError(f"{path}, line {number} is damaged: run `robust-jax finetune data` again") from None
    return problems


def _problem(line: str) -> Problem:
    """Raises ValueError or TypeError where the line holds no problem."""
    record = json.loads(line)
    texts = [field.name for field in fields(Problem) if field.type is str]
    if not all(isinstance(record[name], str) for name in texts if name in record):
        raise ValueError("not a text")
    problem = Problem(**record)
    Fraction(problem.answer)
    if not isinstance(problem.values, dict) or not isinstance(problem.was_correct, bool):
        raise ValueError("not a problem")
    return problem


def templates_of(problems: Sequence[Problem]) -> list[str]:
    """The templates that occur, in the order of their first problems."""
    return list(dict.fromkeys(problem.template for problem in problems))
