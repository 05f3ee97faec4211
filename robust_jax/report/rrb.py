"""The report of the RRB protocol: heat map, bars, curves, tables, and a page to browse problems in all their forms."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from rich.console import Console

from robust_jax.errors import InputError
from robust_jax.report.browsing import MOST_CHARACTERS, Browsed, shortened, write_browsing_report
from robust_jax.report.cards import Card
from robust_jax.report.checking import check_shape
from robust_jax.report.drawing import Figure
from robust_jax.report.publishing import print_finding
from robust_jax.report.rrb_figures import average_changes, dilution_figures, heat_map, rewriting_figures
from robust_jax.report.rrb_inputs import DilutionResults, FormShown, ProblemShown, RewritingResults
from robust_jax.report.rrb_shown import (
    COMMON_TERMS,
    DILUTION_TERMS,
    REWRITING_TERMS,
    comparison_table,
    diluted_problems_table,
    dilution_cards,
    dilution_headline,
    dilution_tables,
    rewriting_cards,
    rewriting_headline,
    rewriting_tables,
    rewritten_problems_table,
)
from robust_jax.report.tables import Table
from robust_jax.report.wording import Headline, one_line
from robust_jax.runs import RESULTS_FILE, write_results


@dataclass(frozen=True)
class Kind:
    """How results of one command are shown."""

    shape: type[Any]
    headline: Callable[[Any], Headline]
    cards: Callable[[Any], list[Card]]
    figures: Callable[[Any], list[Figure]]
    tables: Callable[[Any], list[Table]]
    problems: Callable[[Any], Table]
    """A row a problem: on the page, but not in the terminal."""
    glossary: Mapping[str, str]


KINDS = {
    "rrb run": Kind(
        RewritingResults,
        rewriting_headline,
        rewriting_cards,
        rewriting_figures,
        rewriting_tables,
        rewritten_problems_table,
        {**REWRITING_TERMS, **COMMON_TERMS},
    ),
    "rrb dilute": Kind(
        DilutionResults,
        dilution_headline,
        dilution_cards,
        dilution_figures,
        dilution_tables,
        diluted_problems_table,
        {**DILUTION_TERMS, **COMMON_TERMS},
    ),
}
"""By the `kind` that results.json names."""


def publish(directory: Path, results: Mapping[str, Any], problems: Sequence[ProblemShown]) -> None:
    """Stores the results of a finished run, draws its figures and its page, and prints its tables.

    Args:
        directory: the run directory.
        results: the content of results.json: a `RewritingResults` or a `DilutionResults`.
        problems: what the page shows of each problem.

    Raises:
        InputError: the results have not the shape that `rrb_inputs` describes.
        RunError: a file cannot be written.
    """
    kind = KINDS[results["kind"]]
    check_shape(results, kind.shape, "results")
    check_shape(list(problems), list[ProblemShown], "problems")
    write_results(directory / RESULTS_FILE, results)
    finding = kind.headline(results)
    write_browsing_report(
        directory,
        "rrb.js",
        run=[results["kind"], one_line(results["model"]), one_line(results["suite"])],
        finding=finding,
        figures=kind.figures(results),
        tables=[*kind.tables(results), kind.problems(results)],
        glossary=kind.glossary,
        cards=kind.cards(results),
        settings=results["settings"],
        browsed=Browsed(
            heading="Problems and replies",
            thing="problem",
            note="A problem in every form in which it was asked, with the first reply to each.",
            shown=[(problem["problem"], problem["forms"]) for problem in _that_fit(problems)],
            given=len(problems),
        ),
    )
    _print(finding, kind.tables(results), directory)


def publish_comparison(directory: Path, runs: Sequence[RewritingResults]) -> None:
    """Draws and prints several runs of `rrb run` side by side: models × perturbations (paper Figures 3 and 5).

    Raises:
        RunError: a file cannot be written.
    """
    finding = Headline(f"{len(runs)} runs side by side", "Every row is a run.")
    tables = [comparison_table(runs)]
    write_browsing_report(
        directory,
        "rrb.js",
        run=["rrb run", "comparison"],
        finding=finding,
        figures=[heat_map(runs), average_changes(runs)],
        tables=tables,
        glossary={**REWRITING_TERMS, **COMMON_TERMS},
    )
    _print(finding, tables, directory)


def checked_rewriting(results: Mapping[str, Any], where: str) -> RewritingResults:
    """Results of `rrb run`.

    Raises:
        InputError: they are of another command or damaged.
    """
    if results.get("kind") != "rrb run":
        raise InputError(f"{where} holds results of {results.get('kind')!r}: only runs of rrb run are compared")
    check_shape(results, RewritingResults, where)
    return cast(RewritingResults, results)


def _print(finding: Headline, tables: Sequence[Table], directory: Path) -> None:
    console = Console()
    print_finding(finding, tables, console)
    console.print(f"Page: {directory / 'report.html'}", highlight=False, soft_wrap=True)


def _that_fit(problems: Sequence[ProblemShown]) -> list[ProblemShown]:
    """The first problems, their texts shortened, as many as the page can hold."""
    fitting: list[ProblemShown] = []
    room = MOST_CHARACTERS
    for problem in problems:
        forms: list[FormShown] = [
            {**form, "question": shortened(form["question"]), "response": shortened(form["response"])}
            for form in problem["forms"]
        ]
        room -= sum(len(form["question"]) + len(form["response"]) for form in forms)
        if room < 0 and fitting:
            break
        fitting.append({"problem": problem["problem"], "forms": forms})
    return fitting
