"""The report of the systematicity protocol: bullet charts, tables, and a page to browse a task's variations on."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import cast

from rich.console import Console

from robust_jax.report.browsing import MOST_CHARACTERS, Browsed, shortened, write_browsing_report
from robust_jax.report.cards import Card
from robust_jax.report.checking import check_shape
from robust_jax.report.publishing import print_finding
from robust_jax.report.systematicity_figures import comparison_figures, run_figures
from robust_jax.report.systematicity_inputs import NamedRun, SystematicityResults, TaskShown, VariationShown
from robust_jax.report.systematicity_tables import (
    comparison_table,
    headline,
    run_tables,
    variance_comparison_table,
)
from robust_jax.report.tables import as_rich
from robust_jax.report.wording import Headline, one_line, percent, points, share_span

_GLOSSARY = {
    "Variation": "The same task with another surface: other symbols, features in other places, constituents permuted, "
    "or examples in another order. Its structure, and so its difficulty, is the same.",
    "Passed": "More than half of the attempts at a variation answer every query right; a tie is a fail.",
    "Any, fraction, all": "Of a task's variations: some one is passed, the share that is passed, every one is passed.",
    "Gap": "Any minus all: how often a task is solved in one form and not in another. 0 is perfectly systematic.",
    "Within, between": "How much of the variance of success comes from chance within one variation, and how much from "
    "the variation.",
    "95% interval": "Were the run repeated with other tasks of the same sort, 95 of 100 such intervals would hold the "
    "true figure.",
    "Status": "unparsed, truncated and refused are wrong; error and skipped do not count, and a task that they leave "
    "undecided is left out.",
}


def write_systematicity_report(
    directory: Path, results: Mapping[str, object], tasks: Sequence[Mapping[str, object]]
) -> None:
    """Writes `report.html` and `figures/` (each figure as PNG, SVG and CSV) into a run directory.

    Args:
        directory: the run directory.
        results: the content of results.json, a `SystematicityResults`.
        tasks: a `TaskShown` a task, in the order in which they are to be listed.

    Raises:
        InputError: `results` or `tasks` has not the shape that `systematicity_inputs` describes.
        RunError: a file cannot be written.
    """
    known = checked(results)
    check_shape(tasks, list[TaskShown], "tasks")
    shown = _that_fit(cast(list[TaskShown], tasks))
    write_browsing_report(
        directory,
        "systematicity.js",
        run=["systematicity run", one_line(known["model"]), one_line(known["suite"])],
        finding=headline(known),
        figures=run_figures(known),
        tables=run_tables(known),
        glossary=_GLOSSARY,
        cards=_cards(known),
        settings=known["settings"],
        browsed=Browsed(
            heading="Tasks",
            thing="task",
            note="A task's variations side by side: what was asked, and what was answered.",
            shown=[(task["task"], task) for task in shown],
            given=len(tasks),
        ),
    )


def write_comparison(directory: Path, runs: Sequence[NamedRun]) -> None:
    """Writes the page and the figures that show several runs side by side.

    Raises:
        RunError: a file cannot be written.
    """
    finding = Headline(
        f"{len(runs)} runs side by side", "Every bar is a run; what sets it apart from the others names it."
    )
    write_browsing_report(
        directory,
        "systematicity.js",
        run=["systematicity run", "comparison"],
        finding=finding,
        figures=comparison_figures(runs),
        tables=[comparison_table(runs), variance_comparison_table(runs)],
        glossary=_GLOSSARY,
    )


def print_systematicity(results: Mapping[str, object], console: Console) -> None:
    """Prints the finding in plain words and the tables of a run."""
    known = checked(results)
    print_finding(headline(known), run_tables(known), console)


def print_comparison(runs: Sequence[NamedRun], console: Console) -> None:
    """Prints the tables that show several runs side by side."""
    for table in (comparison_table(runs), variance_comparison_table(runs)):
        console.print()
        console.print(as_rich(table))


def checked(results: Mapping[str, object]) -> SystematicityResults:
    """The results, once they are known to have their shape.

    Raises:
        InputError: they have not; the message names the place.
    """
    check_shape(results, SystematicityResults, "results")
    return cast(SystematicityResults, results)


def _cards(results: SystematicityResults) -> list[Card]:
    """The gap of every family, and how far it is from nothing to everything."""
    return [
        Card(
            f"Gap on {family['family']}",
            f"{points(family['metrics']['gap']['value'])} points",
            f"{percent(family['metrics']['any']['value'])} any, {percent(family['metrics']['all']['value'])} all; "
            f"{share_span(family['metrics']['gap'])}",
            family["metrics"]["gap"]["n"],
            "random",
        )
        for family in results["families"]
    ]


def _that_fit(tasks: Sequence[TaskShown]) -> list[TaskShown]:
    """As many tasks as the page has room for, the first ones of every family, their replies cut to what is shown."""
    by_family: dict[str, list[TaskShown]] = {}
    for task in tasks:
        by_family.setdefault(task["family"], []).append(_cut(task))
    turns = zip_longest(*by_family.values())
    room = MOST_CHARACTERS
    chosen: list[str] = []
    for task in (task for turn in turns for task in turn if task is not None):
        room -= _size(task)
        if room < 0 and chosen:
            break
        chosen.append(task["task"])
    return [task for family in by_family.values() for task in family if task["task"] in chosen]


def _cut(task: TaskShown) -> TaskShown:
    variations: list[VariationShown] = [
        {
            **variation,
            "attempts": [{**attempt, "response": shortened(attempt["response"])} for attempt in variation["attempts"]],
        }
        for variation in task["variations"]
    ]
    return {**task, "variations": variations}


def _size(task: TaskShown) -> int:
    return sum(
        len(variation["prompt"]) + sum(len(attempt["response"]) for attempt in variation["attempts"])
        for variation in task["variations"]
    )
