"""The report of the systematicity protocol: bullet charts, tables, and a page to browse a task's variations on."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, cast

from rich.console import Console

from robust_jax.report.checking import check_shape
from robust_jax.report.drawing import Figure, as_svg
from robust_jax.report.html import inline_svg, json_block, render_page
from robust_jax.report.page import Card
from robust_jax.report.publishing import print_finding, write_report_files
from robust_jax.report.systematicity_figures import comparison_figures, run_figures
from robust_jax.report.systematicity_inputs import NamedRun, SystematicityResults, TaskShown, VariationShown
from robust_jax.report.systematicity_tables import (
    comparison_table,
    headline,
    run_tables,
    variance_comparison_table,
)
from robust_jax.report.tables import Table, as_rich
from robust_jax.report.wording import Headline, one_line, percent, points, share_span

MOST_CHARACTERS = 4_000_000
"""Of replies and prompts, that the page holds: it is to be sent about and opened on a phone."""
LONGEST_REPLY = 4_000
"""Characters of a reply that are shown: its beginning and its end, where the answers stand."""

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
    _write(
        directory,
        run_figures(known),
        run_tables(known),
        headline(known),
        f"systematicity run · {one_line(known['model'])} · {known['suite']}",
        cards=_cards(known),
        settings=known["settings"],
        tasks=shown,
        tasks_given=len(tasks),
    )


def write_comparison(directory: Path, runs: Sequence[NamedRun]) -> None:
    """Writes the page and the figures that show several runs side by side.

    Raises:
        RunError: a file cannot be written.
    """
    finding = Headline(
        f"{len(runs)} runs side by side", "Every bar is a run; what sets it apart from the others names it."
    )
    _write(
        directory,
        comparison_figures(runs),
        [comparison_table(runs), variance_comparison_table(runs)],
        finding,
        "systematicity run · comparison",
        cards=[],
        settings={},
        tasks=[],
        tasks_given=0,
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


def _write(
    directory: Path, figures: list[Figure], tables: list[Table], finding: Headline, title: str, **values: Any
) -> None:
    drawings = [(figure, as_svg(figure)) for figure in figures]
    tasks = values.pop("tasks")
    page = render_page(
        "systematicity.html",
        "systematicity_script.html",
        title=title,
        headline=finding,
        figures=[(figure, inline_svg(figure, svg)) for figure, svg in drawings],
        tables=tables,
        glossary=_GLOSSARY,
        names=json_block([one_line(shown["task"]) for shown in tasks]),
        tasks=[json_block(shown) for shown in tasks],
        **values,
    )
    write_report_files(directory, page, drawings, tables)


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
            "attempts": [{**attempt, "response": _shortened(attempt["response"])} for attempt in variation["attempts"]],
        }
        for variation in task["variations"]
    ]
    return {**task, "variations": variations}


def _shortened(text: str) -> str:
    if len(text) <= LONGEST_REPLY:
        return text
    half = LONGEST_REPLY // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters left out …\n{text[-half:]}"


def _size(task: TaskShown) -> int:
    return sum(
        len(variation["prompt"]) + sum(len(attempt["response"]) for attempt in variation["attempts"])
        for variation in task["variations"]
    )
