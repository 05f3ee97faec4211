"""The LPDS commands as the command line calls them: do the work, store every figure, draw and print the report."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
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
from robust_jax.lpds.options import MeasureOptions, ReportOptions, SearchOptions
from robust_jax.lpds.search import generations as search_generations
from robust_jax.lpds.search import run_search
from robust_jax.lpds.search_results import search_results, searched_templates
from robust_jax.report import TemplateExamples, as_rich, checked_results, metrics_table, print_summary, write_report
from robust_jax.runs import RESULTS_FILE, flag, write_results

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
    report_run(options.out, levenshtein=options.levenshtein)


def search(options: SearchOptions) -> None:
    """`robust-jax lpds search`."""
    if options.dry_run:
        print_plan(options, search_generations(options), Console())
        return
    run_search(options)
    assert options.out is not None
    report_run(options.out, levenshtein=options.levenshtein)


def report(options: ReportOptions) -> None:
    """`robust-jax report`. Several measurements are shown together as well, in the layout of the paper's tables.

    Raises:
        InputError: a directory holds no finished LPDS run, or one that the options do not apply to.
    """
    reported = [
        checked_results(report_run(directory, options.changes, options.levenshtein)) for directory in options.runs
    ]
    measured = [results for results in reported if results["kind"] == "lpds measure"]
    if len(measured) > 1:
        console = Console()
        console.print()
        console.print(as_rich(metrics_table(measured)))


def report_run(
    directory: Path, changes: Mapping[str, Any] = MappingProxyType({}), levenshtein: Implementation = "auto"
) -> Mapping[str, Any]:
    """Compute every figure of a finished run anew from what is stored, draw it, print the tables and give the figures.

    Args:
        directory: the run directory.
        changes: options of the run that are to be taken otherwise.
        levenshtein: what computes the Levenshtein distances.

    Raises:
        InputError: the directory holds no finished LPDS run, or one that the changes do not apply to.
    """
    run = KeptRun(directory, changes, levenshtein)
    if run.command not in REPORTS:
        raise InputError(f"{directory} holds a run of {run.command!r}, which this report does not draw")
    if changes and run.command != "lpds measure":
        name = flag(next(iter(changes)))
        raise InputError(f"{name} changes the report of lpds measure; {directory} holds {run.command}: leave it out")
    print("computing and drawing the figures", file=sys.stderr)
    results, examples = REPORTS[run.command](run)
    checked_results(results)  # Before anything is written.
    write_results(directory / RESULTS_FILE, results)
    write_report(directory, results, examples)
    console = Console()
    print_summary(results, console)
    console.print(f"Page: {directory / 'report.html'}", highlight=False, soft_wrap=True)
    return results
