"""Which slots and values make a model fail: the figure and the tables of it."""

from matplotlib.figure import Figure as Canvas

from robust_jax.report.drawing import BEAM, RANDOM, Figure, draw_bar, finish_bars
from robust_jax.report.inputs import SearchResults, finite
from robust_jax.report.tables import INTERVAL, Cell, Column, Table, share_cell, word_cell
from robust_jax.report.wording import points, share_span

SHOWN_VALUES = 12
"""Bars of a figure of values."""


def value_effects(results: SearchResults) -> Figure:
    """What slots and values do; all of them are in the numbers, the clearest are drawn."""
    rows = tuple(
        (
            f"{row['template']}: {row['slot']} = {row['value']}",
            row["error"]["value"],
            row["error"]["low"],
            row["error"]["high"],
            row["error"]["n"],
            row["difficulty"]["value"],
            row["difficulty"]["low"],
            row["difficulty"]["high"],
            row["random_share"],
            row["search_share"],
            int(row["is_clear"]),
        )
        for row in results["attribution"]["values"]
    )
    ends = ("difficulty", "difficulty_low", "difficulty_high")
    return Figure(
        "value_effects",
        "Values that make the model fail",
        "Change of the error rate on random variations that have a value, against those that do not, with 95% "
        "intervals: the largest of those that stand out of chance.",
        ("value", "error", "low", "high", "n", *ends, "random_share", "search_share", "is_clear"),
        rows,
        draw_value_effects,
        height=3.6,
    )


def draw_value_effects(canvas: Canvas, figure: Figure) -> None:
    """Changes of the error rate as bars. Columns: value, error, low, high, …, is_clear; those that are clear."""
    axes = canvas.subplots()
    columns = (figure.numbers(name, 100) for name in ("error", "low", "high", "is_clear"))
    shown = [
        (str(row[0]), interval) for row, *interval, is_clear in zip(figure.rows, *columns, strict=True) if is_clear > 0
    ][:SHOWN_VALUES]
    for place, (_, (value, low, high)) in enumerate(shown):
        draw_bar(axes, place, (value, low, high), BEAM if value > 0 else RANDOM, points(value / 100))
    finish_bars(axes, [name for name, _ in shown], origin=0.0, label="Change of the error rate (points)")
    axes.tick_params(axis="y", labelsize=7)
    if not shown:
        axes.text(0.5, 0.5, "no value stands out of chance", ha="center", va="center", transform=axes.transAxes)


def slots_table(results: SearchResults) -> Table:
    """How much every slot decides."""
    rows = tuple(
        (
            word_cell(row["template"]),
            word_cell(row["slot"]),
            share_cell(row["error"]["value"]),
            word_cell(share_span(row["error"])),
            share_cell(row["difficulty"]["value"]),
            word_cell(share_span(row["difficulty"])),
        )
        for row in sorted(results["attribution"]["slots"], key=lambda row: -(finite(row["error"]["value"]) or 0.0))
    )
    columns = (
        Column("Template", is_numeric=False),
        Column("Slot", is_numeric=False),
        Column("Explains of errors"),
        Column(INTERVAL),
        Column("Explains of difficulty"),
        Column(INTERVAL),
    )
    return Table("Slots", columns, rows, "Share of the variance over random variations that the slot's values explain.")


def values_table(results: SearchResults) -> Table:
    """What every value of every slot does, the largest effects first."""
    rows = tuple(
        (
            word_cell(row["template"]),
            word_cell(row["slot"]),
            word_cell(row["value"]),
            Cell(points(row["error"]["value"]), finite(row["error"]["value"])),
            word_cell(share_span(row["error"])),
            word_cell("yes" if row["is_clear"] else ""),
            Cell(points(row["difficulty"]["value"]), finite(row["difficulty"]["value"])),
            word_cell(share_span(row["difficulty"])),
            share_cell(row["random_share"]),
            share_cell(row["search_share"]),
        )
        for row in results["attribution"]["values"]
    )
    columns = (
        Column("Template", is_numeric=False),
        Column("Slot", is_numeric=False),
        Column("Value", is_numeric=False),
        Column("Error rate, points"),
        Column(INTERVAL),
        Column("Clear", is_numeric=False),
        Column("Difficulty, percentiles"),
        Column(INTERVAL),
        Column("Share at random"),
        Column("Share under search"),
    )
    return Table("Values", columns, rows)
