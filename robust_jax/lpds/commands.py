"""The LPDS commands as the command line calls them: do the work, store every figure, draw and print the report."""

import math
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rich.console import Console

from robust_jax.difficulty import Implementation
from robust_jax.errors import InputError
from robust_jax.lpds.comparison import comparison
from robust_jax.lpds.dry_run import print_plan
from robust_jax.lpds.examples import search_answers, search_examples
from robust_jax.lpds.kept import KeptRun
from robust_jax.lpds.measure import generations as measure_generations
from robust_jax.lpds.measure import run_measure
from robust_jax.lpds.measure_results import measure_results
from robust_jax.lpds.options import MeasureOptions, ReportOptions, SearchOptions
from robust_jax.lpds.search import generations as search_generations
from robust_jax.lpds.search import run_search
from robust_jax.lpds.search_results import search_results
from robust_jax.lpds.searched import searched_templates
from robust_jax.lpds.session import Session, open_session
from robust_jax.report import (
    NO_ANSWERS,
    Answers,
    TemplateExamples,
    as_rich,
    checked_results,
    metrics_table,
    print_summary,
    tables,
    templates_table,
    write_report,
)
from robust_jax.report.comparison import searches_tables, write_comparison
from robust_jax.runs import RESULTS_FILE, flag, write_results
from robust_jax.runs.tracking import Tracker, tracking

Drawn = tuple[Mapping[str, Any], list[TemplateExamples], Answers]
"""What the report draws: results.json, the replies that the page shows, and all answers in brief."""


def _search_report(run: KeptRun) -> Drawn:
    templates = searched_templates(run)
    return search_results(run, templates), search_examples(run, templates), search_answers(templates)


def _measure_report(run: KeptRun) -> Drawn:
    return measure_results(run), [], NO_ANSWERS


REPORTS: dict[str, Callable[[KeptRun], Drawn]] = {"lpds search": _search_report, "lpds measure": _measure_report}


def measure(options: MeasureOptions) -> None:
    """`robust-jax lpds measure`."""
    if options.dry_run:
        print_plan(options, measure_generations(options), Console())
        return
    with open_session(options, "lpds measure") as session, _tracked(session) as tracker:
        run_measure(session)
        _tell(tracker, session, report_run(session.run.path, levenshtein=options.levenshtein))


def search(options: SearchOptions) -> None:
    """`robust-jax lpds search`."""
    if options.dry_run:
        print_plan(options, search_generations(options), Console())
        return
    with open_session(options, "lpds search") as session, _tracked(session) as tracker:
        run_search(session, tracker)
        _tell(tracker, session, report_run(session.run.path, levenshtein=options.levenshtein))


def _tracked(session: Session[Any]) -> AbstractContextManager[Tracker]:
    """Whoever `--track` names, told of the run's options."""
    options, path = session.options, session.run.path
    return tracking(options.track, name=f"{options.model} {path.name}", config=options, directory=path)


def _tell(tracker: Tracker, session: Session[Any], results: Mapping[str, Any]) -> None:
    """Tell a tracker what came out: the tables and the figures of the report."""
    known = checked_results(results)
    for table in [*tables(known), templates_table(known)]:
        tracker.table(
            table.title, [column.title for column in table.columns], [[c.text for c in r] for r in table.rows]
        )
    tracker.figures({path.stem: path for path in sorted((session.run.path / "figures").glob("*.png"))})
    figures = {"accuracy": results["accuracy"]} if known["kind"] == "lpds measure" else results["accuracy"]
    shares = {f"final/{name}": interval["value"] for name, interval in figures.items()}
    tracker.metrics({name: value for name, value in shares.items() if value is not None and math.isfinite(value)})


def report(options: ReportOptions) -> None:
    """`robust-jax report`. Several runs of one kind are shown together as well.

    Measurements come in the layout of the paper's tables, searches side by side, on a page of their own if asked for.

    Raises:
        InputError: a directory holds no finished LPDS run, or one that the options do not apply to.
    """
    reported = [
        checked_results(report_run(directory, options.changes, options.levenshtein)) for directory in options.runs
    ]
    measured = [results for results in reported if results["kind"] == "lpds measure"]
    searched = [results for results in reported if results["kind"] == "lpds search"]
    if options.out is not None and len(searched) < 2:
        raise InputError("--out is for a page of several searches: name two or more of their directories")
    console = Console()
    if len(measured) > 1:
        console.print()
        console.print(as_rich(metrics_table(measured)))
    if len(searched) > 1:
        found = comparison(searched)
        for table in searches_tables(found):
            console.print()
            console.print(as_rich(table))
        if options.out is not None:
            write_comparison(options.out, found)
            console.print(f"Page: {options.out / 'report.html'}", highlight=False, soft_wrap=True)


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
    results, examples, answers = REPORTS[run.command](run)
    checked_results(results)  # Before anything is written.
    write_results(directory / RESULTS_FILE, results)
    write_report(directory, results, examples, answers)
    console = Console()
    print_summary(results, console)
    console.print(f"Page: {directory / 'report.html'}", highlight=False, soft_wrap=True)
    return results
