"""The LPDS commands as the command line calls them: do the work, store every figure, draw and print the report."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from robust_jax.difficulty import Implementation
from robust_jax.errors import InputError
from robust_jax.lpds.dry_run import print_plan
from robust_jax.lpds.examples import search_examples
from robust_jax.lpds.kept import KeptRun
from robust_jax.lpds.measure import generations as measure_generations
from robust_jax.lpds.measure import run_measure
from robust_jax.lpds.measure_results import measure_results
from robust_jax.lpds.options import MeasureOptions, SearchOptions
from robust_jax.lpds.search import generations as search_generations
from robust_jax.lpds.search import run_search
from robust_jax.lpds.search_results import search_results, searched_templates
from robust_jax.report import TemplateExamples, print_summary, write_report
from robust_jax.runs import RESULTS_FILE, write_results

Drawn = tuple[Mapping[str, Any], list[TemplateExamples]]
"""What the report draws: results.json, and the replies that the page shows."""


def _search_report(run: KeptRun) -> Drawn:
    templates = searched_templates(run)
    return search_results(run, templates), search_examples(run, templates)


def _measure_report(run: KeptRun) -> Drawn:
    return measure_results(run), []


REPORTS: dict[str, Callable[[KeptRun], Drawn]] = {"lpds search": _search_report, "lpds measure": _measure_report}


def measure(options: MeasureOptions) -> None:
    """`robust-jax lpds measure`."""
    if options.dry_run:
        print_plan(options, measure_generations(options), Console())
        return
    run_measure(options)
    assert options.out is not None
    report(options.out, options.levenshtein)


def search(options: SearchOptions) -> None:
    """`robust-jax lpds search`."""
    if options.dry_run:
        print_plan(options, search_generations(options), Console())
        return
    run_search(options)
    assert options.out is not None
    report(options.out, options.levenshtein)


def report(directory: Path, levenshtein: Implementation = "auto") -> None:
    """Compute every figure of a finished run anew from what is stored, draw it and print the table.

    Raises:
        InputError: the directory holds no finished LPDS run.
    """
    run = KeptRun(directory, levenshtein)
    if run.command not in REPORTS:
        raise InputError(f"{directory} holds a run of {run.command!r}, which this report does not draw")
    print("computing and drawing the figures", file=sys.stderr)
    results, examples = REPORTS[run.command](run)
    write_results(directory / RESULTS_FILE, results)
    write_report(directory, results, examples)
    console = Console()
    print_summary(results, console)
    console.print(f"Page: {directory / 'report.html'}", highlight=False, soft_wrap=True)
