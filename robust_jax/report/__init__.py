"""What is shown: tables for the terminal, figures and the page of a run. It draws what is stored, computing nothing."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from robust_jax.report.checking import checked_examples, checked_results
from robust_jax.report.drawing import as_svg
from robust_jax.report.figures import figures
from robust_jax.report.inputs import (
    NO_ANSWERS,
    Answers,
    Attempt,
    Interval,
    MeasureResults,
    SearchResults,
    TemplateExamples,
    VariationExample,
)
from robust_jax.report.page import paged_tables, render
from robust_jax.report.publishing import print_finding, write_report_files
from robust_jax.report.tables import as_markdown, as_rich, as_text, metrics_table, tables, templates_table
from robust_jax.report.wording import headline

__all__ = [
    "NO_ANSWERS",
    "Answers",
    "Attempt",
    "Interval",
    "MeasureResults",
    "SearchResults",
    "TemplateExamples",
    "VariationExample",
    "as_markdown",
    "as_rich",
    "as_text",
    "checked_examples",
    "checked_results",
    "headline",
    "metrics_table",
    "print_summary",
    "tables",
    "templates_table",
    "write_report",
]


def write_report(
    directory: Path,
    results: Mapping[str, object],
    browser: Sequence[Mapping[str, object]],
    answers: Answers = NO_ANSWERS,
) -> None:
    """Writes `report.html`, `tables.md` and `figures/` (each figure as PNG, SVG and CSV) into a run directory.

    A file is replaced as a whole or not at all.

    Args:
        directory: the run directory; made if it does not exist.
        results: the content of results.json: a `SearchResults` or a `MeasureResults`.
        browser: a `TemplateExamples` a template, in the order in which they are to be listed; may be empty.
        answers: every answer in brief, of which the page shows a table; there may be 10⁵ of them.

    Raises:
        InputError: `results` or `browser` has not the shape that `robust_jax.report.inputs` describes.
        RunError: a file cannot be written.
    """
    known, examples = checked_results(results), checked_examples(browser)
    drawings = [(figure, as_svg(figure)) for figure in figures(known)]
    page = render(known, examples, answers, drawings)
    write_report_files(directory, page, drawings, [*tables(known), *paged_tables(known).values()])


def print_summary(results: Mapping[str, object], console: Console) -> None:
    """Prints the finding in plain words and the tables of a run.

    Raises:
        InputError: `results` has not the shape that `robust_jax.report.inputs` describes.
    """
    known = checked_results(results)
    print_finding(headline(known), tables(known), console)
    noted = sum(bool(row["note"]) for row in known["templates"])
    if noted:
        console.print(
            f"{noted} of {len(known['templates'])} templates carry a note: see the page's table of templates."
        )
