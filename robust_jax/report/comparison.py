"""Several searches on one page."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure as Canvas

from robust_jax.report.drawing import BASE, BEAM, METRIC, RANDOM, Figure, as_svg, draw_bar, finish_bars
from robust_jax.report.drawing import Row as FigureRow
from robust_jax.report.html import json_block, render_page
from robust_jax.report.inputs import ComparedSearches, Comparison, finite
from robust_jax.report.page import paged
from robust_jax.report.publishing import write_report_files
from robust_jax.report.tables import (
    INTERVAL,
    Cell,
    Column,
    Table,
    count_cell,
    decimal_cell,
    share_cell,
    word_cell,
)
from robust_jax.report.wording import Headline, percent, points, share_span, span, times

COLOURS = (BEAM, RANDOM, METRIC, "#cc79a7", "#8a6d00", "#56b4e9", BASE, "#7b61b3")
"""One a search, in order."""


def write_comparison(directory: Path, found: Comparison) -> None:
    """Write `report.html`, `tables.md` and `figures/` of a comparison into a directory.

    Raises:
        RunError: a file cannot be written.
    """
    drawings = [(figure, as_svg(figure)) for figure in comparison_figures(found)]
    write_report_files(directory, _page(found, drawings), drawings, [*searches_tables(found), templates_table(found)])


def searches_tables(found: Comparison) -> list[Table]:
    """Error rates, and what follows from them, a row a search (Tables 4 and 13)."""
    searches = found["searches"]
    rates = (
        Column("Search", is_numeric=False),
        Column("Error at random"),
        Column(INTERVAL),
        Column("Error under search"),
        Column(INTERVAL),
        Column("Difference, points"),
        Column(INTERVAL),
    )
    follows = (
        Column("Search", is_numeric=False),
        Column("Drop ratio"),
        Column(INTERVAL),
        Column("Against the first, points"),
        Column(INTERVAL),
        Column("Robustness score"),
        Column("Explored"),
        Column("Seeds"),
    )
    return [
        Table("Error rates", rates, tuple(map(_rates_row, searches)), _note(found)),
        Table("Drops and robustness", follows, tuple(map(_follows_row, searches))),
    ]


def _rates_row(search: ComparedSearches) -> tuple[Cell, ...]:
    difference = search["difference"]
    return (
        word_cell(search["name"]),
        share_cell(search["random_error"]["value"]),
        word_cell(share_span(search["random_error"])),
        share_cell(search["beam_error"]["value"]),
        word_cell(share_span(search["beam_error"])),
        Cell(points(difference["value"]), finite(difference["value"])),
        word_cell(share_span(difference)),
    )


def _follows_row(search: ComparedSearches) -> tuple[Cell, ...]:
    ratio, behind = search["ratio"], search["behind"]
    return (
        word_cell(search["name"]),
        Cell("undefined", None) if ratio is None else Cell(times(ratio["value"]), finite(ratio["value"])),
        word_cell("" if ratio is None else span(ratio, digits=1)),
        Cell("", None) if behind is None else Cell(points(behind["value"]), finite(behind["value"])),
        word_cell("" if behind is None else share_span(behind)),
        decimal_cell(search["drs"]),
        count_cell(search["explored"]),
        count_cell(len(search["seeds"])),
    )


def _note(found: Comparison) -> str:
    counted = max(search["beam_error"]["n"] for search in found["searches"])
    return (
        f"Means over up to {counted} templates with intervals of a bootstrap over templates; several seeds of a search "
        "are averaged in each template first."
    )


def templates_table(found: Comparison) -> Table:
    """Error rate under search, a row a template and a column a search."""
    searches = found["searches"]
    items = list(dict.fromkeys(item for search in searches for item in search["templates"]))
    rows = tuple(
        (word_cell(item), *(share_cell(search["templates"].get(item)) for search in searches)) for item in items
    )
    columns = (Column("Template", is_numeric=False), *(Column(search["name"]) for search in searches))
    return Table("Error rate under search", columns, rows)


def comparison_figures(found: Comparison) -> list[Figure]:
    """What a comparison draws."""
    searches = found["searches"]
    errors: list[FigureRow] = []
    for search in searches:
        for arm, interval in (("random", search["random_error"]), ("search", search["beam_error"])):
            errors.append((search["name"], arm, interval["value"], interval["low"], interval["high"], interval["n"]))
    return [
        Figure(
            "error_rates",
            "Error rates",
            "Share of wrong answers at random (blue) and under search (orange) with 95% intervals over templates.",
            ("search", "arm", "value", "low", "high", "n"),
            tuple(errors),
            _draw_error_rates,
            height=0.9 + 0.5 * len(searches),
        ),
        Figure(
            "beam_accuracy",
            "Course of the searches",
            "Accuracy of the beam after each iteration, median over templates; a line a seed.",
            ("iteration", *_line_names(searches)),
            _lines([curve for search in searches for curve in search["beam_accuracy"]], first=0),
            _draw_lines,
            height=3.6,
        ),
        Figure(
            "quantile_accuracy",
            "Accuracy as difficulty grows",
            "Accuracy of explored variations by quantile of difficulty, mean over templates; a line a seed.",
            ("quantile", *_line_names(searches)),
            _lines([curve for search in searches for curve in search["quantile_accuracy"]], first=1),
            _draw_lines,
            height=3.6,
        ),
    ]


def _line_names(searches: Sequence[ComparedSearches]) -> list[str]:
    return [f"{search['name']} | seed {seed}" for search in searches for seed in search["seeds"]]


def _lines(curves: Sequence[Sequence[float | None]], first: int) -> tuple[FigureRow, ...]:
    length = max(map(len, curves), default=0)
    return tuple(
        (first + place, *(curve[place] if place < len(curve) else None for curve in curves)) for place in range(length)
    )


def _draw_error_rates(canvas: Canvas, figure: Figure) -> None:
    axes = canvas.subplots()
    columns = (figure.numbers(name, 100) for name in ("value", "low", "high"))
    for place, (row, value, low, high) in enumerate(zip(figure.rows, *columns, strict=True)):
        draw_bar(axes, place, (value, low, high), RANDOM if row[1] == "random" else BEAM, percent(value / 100))
    names = [str(row[0]) if row[1] == "random" else "" for row in figure.rows]
    finish_bars(axes, names, origin=0.0, label="Error rate (%)")


def _draw_lines(canvas: Canvas, figure: Figure) -> None:
    axes = canvas.subplots()
    places = figure.numbers(figure.columns[0])
    colours: dict[str, str] = {}
    for column in figure.columns[1:]:
        name = column.rpartition(" | ")[0]
        is_new = name not in colours
        colour = colours.setdefault(name, COLOURS[len(colours) % len(COLOURS)])
        axes.plot(places, figure.numbers(column, 100), color=colour, linewidth=1.4, label=name if is_new else None)
    axes.set(xlabel=figure.columns[0].capitalize(), ylabel="Accuracy (%)", ylim=(-3, 103))
    axes.grid(axis="y")
    canvas.legend(loc="outside upper left", ncols=1, handlelength=1.2)


def _page(found: Comparison, drawings: Sequence[tuple[Figure, str]]) -> str:
    return render_page(
        "comparison.html",
        ["search.js"],
        run=[found["kind"], *(search["name"] for search in found["searches"])],
        headline=Headline(_headline(found), ""),
        drawings=drawings,
        tables=searches_tables(found),
        page_data=json_block({"tables": {"templates-table": paged(templates_table(found))}, "examples": []}),
    )


def _headline(found: Comparison) -> str:
    searches = [search for search in found["searches"] if finite(search["beam_error"]["value"]) is not None]
    if not searches:
        return "No search has answers to compare."
    hardest = max(searches, key=lambda search: search["beam_error"]["value"] or 0.0)
    return f"The highest error rate under search is {percent(hardest['beam_error']['value'])}: {hardest['name']}."
