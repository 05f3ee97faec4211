"""The LPDS commands as the command line calls them: do the work, store every figure, draw and print the report."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

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
from robust_jax.lpds.search_results import search_results
from robust_jax.report import TemplateExamples, print_summary, write_report
from robust_jax.runs import RESULTS_FILE, write_results

RESULTS: dict[str, Callable[[Path], Mapping[str, Any]]] = {
    "lpds search": search_results,
    "lpds measure": measure_results,
}
EXAMPLES: dict[str, Callable[[Path], list[TemplateExamples]]] = {"lpds search": search_examples}


def measure(options: MeasureOptions) -> None:
    """`robust-jax lpds measure`."""
    if options.dry_run:
        print_plan(options, measure_generations(options), Console())
        return
    run_measure(options)
    assert options.out is not None
    report(options.out)


def search(options: SearchOptions) -> None:
    """`robust-jax lpds search`."""
    if options.dry_run:
        print_plan(options, search_generations(options), Console())
        return
    run_search(options)
    assert options.out is not None
    report(options.out)


def report(directory: Path) -> None:
    """Compute every figure of a finished run anew from what is stored, draw it and print the table.

    Raises:
        InputError: the directory holds no finished LPDS run.
    """
    command = KeptRun(directory).command
    if command not in RESULTS:
        raise InputError(f"{directory} holds a run of {command!r}, which this report does not draw")
    print("computing and drawing the figures", file=sys.stderr)
    results = RESULTS[command](directory)
    write_results(directory / RESULTS_FILE, results)
    write_report(directory, results, EXAMPLES[command](directory) if command in EXAMPLES else [])
    console = Console()
    print_summary(results, console)
    console.print(f"Page: {directory / 'report.html'}", highlight=False, soft_wrap=True)
