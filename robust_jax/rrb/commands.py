"""The RRB commands as the command line calls them: do the work, store every figure, draw and print the report."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from robust_jax.errors import InputError
from robust_jax.report.rrb import checked_rewriting, publish, publish_comparison
from robust_jax.rrb import dilution, rewriting
from robust_jax.rrb.dilution_results import dilution_results
from robust_jax.rrb.exam import ProblemQuestion
from robust_jax.rrb.kept import KeptAnswers
from robust_jax.rrb.options import DilutionOptions, RewritingOptions
from robust_jax.rrb.problem_set import load_problems
from robust_jax.rrb.rewriting_results import rewriting_results
from robust_jax.rrb.transform import chosen_perturbations
from robust_jax.runs import RESULTS_FILE, FinishedRun, read_results

CHARACTERS_A_TOKEN = 4
"""A usual figure for English text, for an estimate without a tokenizer."""

RESULTS: dict[str, tuple[Callable[[FinishedRun], Mapping[str, Any]], str]] = {
    rewriting.COMMAND: (rewriting_results, rewriting.ORIGINAL),
    dilution.COMMAND: (dilution_results, dilution.ALONE),
}
"""What computes the results of each command, and the arm in which every problem was asked."""


def run(options: RewritingOptions) -> None:
    """`robust-jax rrb run`."""
    if options.dry_run:
        problems, chosen = load_problems(options.data), chosen_perturbations(options.perturbation)
        _print_plan(rewriting.rewriting_questions(problems, options, chosen), more=0)
        return
    rewriting.run_rewriting(options)
    assert options.out is not None
    report_run(options.out)


def dilute(options: DilutionOptions) -> None:
    """`robust-jax rrb dilute`."""
    if options.dry_run:
        problems = dilution.asked_problems(load_problems(options.data), options)
        questions = [
            question
            for count in range(1, options.most + 1)
            for question in dilution.sequence_questions(problems, count, options)
        ]
        controls = 2 * (options.most - 1) * len(problems) * options.attempts if options.controls == "on" else 0
        _print_plan(questions, more=controls)
        return
    dilution.run_dilution(options)
    assert options.out is not None
    report_run(options.out)


def report(directories: Sequence[Path], out: Path | None) -> None:
    """`robust-jax report`: every run anew; with a directory for it, all of them on one page, too.

    Raises:
        InputError: a directory holds no finished RRB run, or one that cannot be compared.
        RunError: a file cannot be written.
    """
    for directory in directories:
        report_run(directory)
    if out is not None:
        publish_comparison(
            out, [checked_rewriting(read_results(path / RESULTS_FILE), str(path)) for path in directories]
        )


def report_run(directory: Path) -> None:
    """Compute every figure of a finished run anew from what is stored, draw it and print the tables.

    Raises:
        InputError: the directory holds no finished RRB run.
        RunError: a file cannot be written.
    """
    kept = FinishedRun(directory)
    if kept.command not in RESULTS:
        raise InputError(f"{directory} holds a run of {kept.command!r}, which this report does not draw")
    print("computing and drawing the figures", file=sys.stderr)
    compute, first = RESULTS[kept.command]
    publish(directory, compute(kept), KeptAnswers(kept, first).shown())


def _print_plan(questions: Sequence[ProblemQuestion], more: int) -> None:
    """The first prompt of every arm, and how many replies there would be.

    Args:
        questions: those that are known beforehand.
        more: how many more hang on their replies.
    """
    console = Console()
    first = {question.arm: question for question in reversed(questions)}
    for arm in dict.fromkeys(question.arm for question in questions):
        console.rule(escape(arm))
        for message in first[arm].prompt.messages:
            console.print(f"[{message.role}]", markup=False, highlight=False)
            console.print(message.content, markup=False, highlight=False)
        console.print(f"(right answer: {first[arm].problem.answer})", highlight=False)
    console.rule()
    characters = sum(len(message.content) for question in questions for message in question.prompt.messages)
    total = len(questions) + more
    tokens = characters / CHARACTERS_A_TOKEN * total / len(questions)
    hanging = f", {more:,} of which hang on the others" if more else ""
    console.print(f"{total:,} replies{hanging}; about {tokens:,.0f} tokens of prompts.", highlight=False)
