"""`rrb transform`: write the rewritten texts of a set of problems, without a model."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from robust_jax.errors import InputError
from robust_jax.rrb.perturbations import (
    PERTURBATIONS,
    THIRTEEN,
    Parameters,
    Perturbation,
    Perturbed,
    Setting,
    find_perturbation,
    perturb,
)
from robust_jax.rrb.problem_set import BUNDLED, Problem, ProblemSet, load_problems
from robust_jax.runs import check_least, json_text, write_atomically


@dataclass(frozen=True)
class TransformOptions(Parameters):
    """Write the rewritten texts of a set of problems as JSONL: id, perturbation, text, rule."""

    data: str = BUNDLED
    """The problems: competition (bundled), a .jsonl file with `problem` and `answer`, or a suite of templates."""
    perturbation: str = "all"
    """One perturbation, several joined by commas, or all for the paper's 13; compose:a+b does a and then b."""
    out: Path | None = None
    """File to write; none writes to standard output."""
    seed: int = 0
    """What is drawn at random hangs on it, the problem's id and the perturbation's name."""
    limit: int | None = None
    """Only the first so many problems; none takes all."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least("limit", self.limit, 1)


def transform(options: TransformOptions) -> None:
    """`robust-jax rrb transform`.

    Raises:
        InputError: no such problems or perturbation, one that cannot be applied, or a file that cannot be written.
    """
    problems = load_problems(options.data)
    chosen = chosen_perturbations(options.perturbation)
    lines = []
    for place, problem in enumerate(problems.problems[: options.limit]):
        for perturbation, (text, rule) in rewritten(problems, place, chosen, options, options.seed):
            row = {"id": problem.id, "perturbation": perturbation.name, "text": text, "rule": rule}
            lines.append(json_text(row) + "\n")
    if options.out is None:
        sys.stdout.writelines(lines)
        return
    try:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(options.out, "".join(lines).encode())
    except OSError as error:
        raise InputError(f"{options.out} cannot be written ({error.strerror}): choose another --out") from None
    print(f"{len(lines)} texts in {options.out}")


def chosen_perturbations(names: str) -> tuple[Perturbation, ...]:
    """The perturbations of a list of names joined by commas; `all` stands for the paper's 13.

    Raises:
        InputError: there is no such perturbation, or none at all.
    """
    listed = [name.strip() for name in names.split(",") if name.strip()]
    chosen = {found: None for name in listed for found in (THIRTEEN if name == "all" else (name,))}
    if not chosen:
        raise InputError(f"no perturbation is named: give all, or some of {', '.join(PERTURBATIONS)}")
    return tuple(map(find_perturbation, chosen))


def rewritten(
    problems: ProblemSet, place: int, chosen: Sequence[Perturbation], parameters: Parameters, seed: int
) -> Iterator[tuple[Perturbation, Perturbed]]:
    """One problem under every chosen perturbation; what it is interleaved with is the next one of the whole set.

    Raises:
        InputError: an interleaving of a set of one problem, or a perturbation whose extra is not installed.
    """
    problem, other = problems.problems[place], problems.after(place)
    for perturbation in chosen:
        setting = Setting(problem.id, _distractor(perturbation, other, problems.name), parameters, seed)
        yield perturbation, perturb(problem.text, perturbation, setting)


def _distractor(perturbation: Perturbation, other: Problem | None, name: str) -> str:
    if other is None and perturbation.takes_distractor:
        raise InputError(f"{perturbation.name} interleaves a problem with the next, but {name} holds one problem only")
    return "" if other is None else other.text
