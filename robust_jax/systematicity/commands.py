"""The systematicity commands as the command line calls them: do the work, store every figure, draw and print it."""

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from robust_jax.report.systematicity import (
    checked,
    print_comparison,
    print_systematicity,
    write_comparison,
    write_systematicity_report,
)
from robust_jax.report.systematicity_inputs import NamedRun, SystematicityResults
from robust_jax.runs import RESULTS_FILE, read_results, write_results
from robust_jax.systematicity import mocks  # noqa: F401 — registers mock:ideal and mock:surface
from robust_jax.systematicity.dry_run import print_plan
from robust_jax.systematicity.exam import asked_variations
from robust_jax.systematicity.options import GenerateOptions, SystematicityOptions
from robust_jax.systematicity.record import as_lines, record, write_tasks
from robust_jax.systematicity.results import KeptRun, results, run_names, shown_tasks
from robust_jax.systematicity.run import run_systematicity


def run(options: SystematicityOptions) -> None:
    """`robust-jax systematicity run`."""
    if options.dry_run:
        print_plan(options, Console())
        return
    run_systematicity(options)
    assert options.out is not None
    report_run(options.out)


def generate(options: GenerateOptions) -> None:
    """`robust-jax systematicity generate`."""
    lines = as_lines(record(asked) for asked in asked_variations(options))
    if options.out is None:
        sys.stdout.write(lines)
        return
    write_tasks(options.out, lines)
    print(f"{lines.count(chr(10)):,} variations in {options.out}")


def report(directories: Sequence[Path], comparison: Path | None = None) -> None:
    """Report finished runs again from what is stored; several are shown side by side as well.

    Args:
        directories: of the runs.
        comparison: where the page of all of them goes, if it is wanted.

    Raises:
        InputError: a directory holds no finished run of this protocol.
    """
    reported = [report_run(directory) for directory in directories]
    if len(reported) < 2:
        return
    console = Console()
    names = run_names([kept for kept, _ in reported])
    runs: list[NamedRun] = [{"name": name, "results": found} for name, (_, found) in zip(names, reported, strict=True)]
    print_comparison(runs, console)
    if comparison is not None:
        write_comparison(comparison, runs)
        console.print(f"Page: {comparison / 'report.html'}", highlight=False, soft_wrap=True)


def report_run(directory: Path) -> tuple[KeptRun, SystematicityResults]:
    """Compute every figure of a finished run anew from what is stored, draw it and print the tables.

    Raises:
        InputError: the directory holds no finished run of this protocol.
        RunError: a file cannot be written.
    """
    kept = KeptRun(directory)
    print("computing and drawing the figures", file=sys.stderr)
    write_results(directory / RESULTS_FILE, results(kept))
    found = checked(read_results(directory / RESULTS_FILE))  # with null for what is not defined
    write_systematicity_report(directory, found, shown_tasks(kept))
    console = Console()
    print_systematicity(found, console)
    console.print(f"Page: {directory / 'report.html'}", highlight=False, soft_wrap=True)
    return kept, found
