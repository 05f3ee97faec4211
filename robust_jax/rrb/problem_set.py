"""The problems that are rewritten: the bundled set, a JSONL file, or the base problems of a suite of templates."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any

from robust_jax.errors import InputError
from robust_jax.problems import list_suites, load_suite
from robust_jax.problems.grading import read_number
from robust_jax.rrb.expressions import judge
from robust_jax.types import Grading, Number

BUNDLED = "competition"
"""Name of the bundled set."""
MAX_BYTES = 50_000_000
"""Size of a file of problems."""


@dataclass(frozen=True)
class Problem:
    """A problem with its answer."""

    id: str
    text: str
    answer: Number | str
    """A number or, as text, an expression in LaTeX without dollar signs."""


@dataclass(frozen=True)
class ProblemSet:
    """A named, ordered set of problems."""

    name: str
    problems: tuple[Problem, ...]
    digest: str
    """Of the file it was read from."""
    grading: Grading = field(default_factory=Grading)

    def after(self, place: int) -> Problem | None:
        """The next problem of the whole set, the first one after the last; None if there is no other."""
        return self.problems[(place + 1) % len(self.problems)] if len(self.problems) > 1 else None


def load_problems(spec: str) -> ProblemSet:
    """The problems of a name: the bundled set, a `.jsonl` file, or a suite of templates, whose base problems are taken.

    A line of a file is an object with `problem` (or `question`), `answer` and, if there is one, `id`. An answer is a
    number or an expression in LaTeX.

    Raises:
        InputError: there are no such problems, or they cannot be used; the message says where.
    """
    if spec == BUNDLED:
        content = (resources.files("robust_jax.rrb") / "competition.jsonl").read_bytes()
        return _read_jsonl(BUNDLED, content)
    if Path(spec).suffix.lower() in (".jsonl", ".json"):
        try:
            with open(spec, "rb") as file:
                content = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise InputError(f"cannot read the problems {spec}: {error.strerror}") from None
        if len(content) > MAX_BYTES:
            raise InputError(f"the problems {spec} are larger than {MAX_BYTES // 10**6} MB: split the file")
        return _read_jsonl(Path(spec).name, content)
    if spec not in list_suites() and Path(spec).suffix.lower() not in (".yaml", ".yml"):
        known = ", ".join([BUNDLED, *list_suites()])
        raise InputError(f"there are no problems {spec!r}: give a .jsonl file or one of {known}")
    return _base_problems(spec)


def _base_problems(spec: str) -> ProblemSet:
    suite = load_suite(spec)
    variations = [template.fill(template.base) for template in suite.templates if template.base is not None]
    if not variations:
        raise InputError(f"suite {suite.name} has no base problems: give its templates a `base`")
    problems = tuple(Problem(variation.template, variation.text, variation.answer) for variation in variations)
    return ProblemSet(suite.name, problems, suite.digest, suite.grading)


def _read_jsonl(name: str, content: bytes) -> ProblemSet:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise InputError(f"{name} is not UTF-8") from None
    problems: dict[str, Problem] = {}
    # Not splitlines(): a line separator of Unicode may stand inside a JSON text.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        problem = _read_problem(line, number, f"{name}, line {number}")
        if problem.id in problems:
            raise InputError(f"{name}, line {number}: the id {problem.id!r} stands above already")
        problems[problem.id] = problem
    if not problems:
        raise InputError(f"{name} holds no problems: a line is an object with `problem` and `answer`")
    return ProblemSet(name, tuple(problems.values()), sha256(content).hexdigest()[:16])


def _read_problem(line: str, number: int, where: str) -> Problem:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        raise InputError(f"{where}: not valid JSON") from None
    if not isinstance(row, dict):
        raise InputError(f"{where}: not an object with `problem` and `answer`")
    text = row.get("problem", row.get("question"))
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"{where}: no text under `problem`")
    return Problem(str(row.get("id", number)), text, _read_answer(row, where))


def _read_answer(row: Mapping[str, Any], where: str) -> Number | str:
    answer = row.get("answer")
    if isinstance(answer, int) and not isinstance(answer, bool):
        return answer
    if isinstance(answer, float):
        answer = repr(answer)
    if not isinstance(answer, str) or not answer.strip():
        raise InputError(f"{where}: no number under `answer`")
    number = read_number(answer.rpartition("####")[2])
    if number is not None:
        return number
    expression = answer.strip().strip("$").strip()
    if not ("$" in answer or "\\" in answer) or not judge().same(expression, expression):
        raise InputError(f"{where}: {answer[:60]!r} under `answer` is no number, and no expression in LaTeX")
    return expression
