"""The tables of a run, built once from the results and shown in a terminal, as text, as Markdown or on the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import PurePath
from typing import NamedTuple, get_args

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from robust_jax.report.inputs import (
    Counts,
    Interval,
    MeasureResults,
    MeasureTemplate,
    Number,
    Results,
    SearchResults,
    SearchTemplate,
    finite,
)
from robust_jax.report.wording import (
    ARMS,
    best_metric,
    decimal,
    one_line,
    percent,
    points,
    ranked,
    row_name,
    share_span,
    span,
    times,
)
from robust_jax.types import Status

INTERVAL = "95% interval"


class Column(NamedTuple):
    title: str
    is_numeric: bool = True
    """Numbers stand flush right."""


class Cell(NamedTuple):
    text: str
    key: Number | str | None
    """What the cell sorts by; None sorts last."""


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    """How to read it."""


# --------------------------------------------------------------------------------------------------
# What stands in them


def tables(results: Results) -> list[Table]:
    """The tables of a run in reading order, the templates' own left out."""
    if results["kind"] == "lpds search":
        shown = [accuracy_table(results), comparison_table(results), auc_table(results)]
    else:
        shown = [metrics_table([results]), behind_table(results)]
    return [*shown, counts_table(results["counts"])]


def accuracy_table(results: SearchResults) -> Table:
    """Accuracy on each arm and how far it falls from the base problems (Figure 13)."""
    accuracy, drops = results["accuracy"], results["drops"]
    columns = [Column("Variations", is_numeric=False), Column("Accuracy"), Column(INTERVAL)]
    if drops is not None:
        columns += [Column("Drop, points"), Column(INTERVAL)]
    rows = []
    for arm in ("base", "random", "beam"):
        interval: Interval = accuracy[arm]
        if arm == "base" and interval["value"] is None:
            continue
        row = [word_cell(ARMS[arm]), share_cell(interval["value"]), word_cell(share_span(interval))]
        if drops is not None and arm == "base":
            row += [word_cell(""), word_cell("")]
        elif drops is not None:
            drop: Interval = drops["random"] if arm == "random" else drops["beam"]
            row += [Cell(points(drop["value"]), finite(drop["value"])), word_cell(share_span(drop))]
        rows.append((*row, count_cell(interval["n"])))
    return Table("Accuracy", (*columns, Column("n")), tuple(rows))


def comparison_table(results: SearchResults) -> Table:
    """Search against random sampling, and the difficulty-robustness score (Table 13)."""
    drops, difference, drs = results["drops"], results["error_difference"], results["drs"]
    rows: list[tuple[str, str, str, Interval | None]] = [
        (
            "Error rate under search − at random, points",
            points(difference["value"]),
            share_span(difference),
            difference,
        ),
        ("Difficulty-robustness score (1 is perfect)", decimal(drs["value"]), span(drs), drs),
    ]
    if drops is not None:
        ratio = drops["ratio"]
        value = "undefined" if ratio is None else times(ratio["value"])
        rows.insert(1, ("Drop under search ÷ drop at random", value, span(ratio, digits=1), ratio))
    columns = (Column("Measure", is_numeric=False), Column("Value"), Column(INTERVAL), Column("n"))
    return Table(
        "Search against random sampling",
        columns,
        tuple(
            (word_cell(name), word_cell(value), word_cell(ends), count_cell(interval["n"] if interval else None))
            for name, value, ends, interval in rows
        ),
    )


def auc_table(results: SearchResults) -> Table:
    """How well each metric ranks the replies of a search."""
    columns = (Column("Metric", is_numeric=False), Column("AUC"), Column(INTERVAL), Column("n"))
    rows = tuple(
        (word_cell(metric), decimal_cell(auc), word_cell(span(auc)), count_cell(auc["n"]))
        for metric, auc in ranked(results["auc"])
    )
    return Table("Which metric ranks wrong answers above right ones", columns, rows, note="0.50 is chance.")


def metrics_table(runs: Sequence[MeasureResults]) -> Table:
    """Predictive power of the metrics in the layout of Table 1: models below each other, suites side by side.

    Of two runs of one model on one suite the later one is shown.
    """
    models = list(dict.fromkeys(run["model"] for run in runs))
    suites = list(dict.fromkeys(run["suite"] for run in runs))
    columns = [Column("Model", is_numeric=False)] if len(models) > 1 else []
    columns += [Column("Span", is_numeric=False), Column("Metric", is_numeric=False)]
    for suite in suites:
        prefix = f"{PurePath(suite).stem}: " if len(suites) > 1 else ""  # a suite may be a file
        columns += [Column(f"{prefix}AUC"), Column(INTERVAL), Column(f"{prefix}Odds ratio"), Column(INTERVAL)]
    rows = []
    for model in models:
        powers = {
            run["suite"]: {(row["span"], row_name(row, run["metrics"])): row for row in run["metrics"]}
            for run in runs
            if run["model"] == model
        }
        for key in dict.fromkeys(key for of_suite in powers.values() for key in of_suite):
            row = [word_cell(text) for text in ((model, *key) if len(models) > 1 else key)]
            for suite in suites:
                found = powers.get(suite, {}).get(key)
                auc, odds = (found["auc"], found["odds_ratio"]) if found else (None, None)
                row += [decimal_cell(auc), word_cell(span(auc)), decimal_cell(odds), word_cell(span(odds))]
            rows.append(tuple(row))
    note = (
        "AUC: chance is 0.50. Odds ratio: what one standard deviation of the metric does to the odds of a right answer."
    )
    notes = [note, *(remark for run in runs for remark in _remarks(run))]
    return Table(f"Predictive power, {', '.join(models)}", tuple(columns), tuple(rows), " ".join(notes))


def _remarks(run: MeasureResults) -> list[str]:
    """What must be known of single figures, the same things said once."""
    by_remark: dict[str, list[str]] = {}
    for row in run["metrics"]:
        name = f"{row['span']} {row_name(row, run['metrics'])}"
        if row["missing"]:
            by_remark.setdefault(f"no value for {row['missing']:,} answers", []).append(name)
        if row["note"]:
            by_remark.setdefault(row["note"], []).append(name)
    return [one_line(f"{', '.join(names)}: {remark}.") for remark, names in by_remark.items()]


def behind_table(results: MeasureResults) -> Table:
    """How far each metric's AUC is from the largest one."""
    best = best_metric(results)
    name = "the best" if best is None else f"{row_name(best, results['metrics'])} of the {best['span'].lower()}"
    rows = tuple(
        (
            word_cell(row["span"]),
            word_cell(row_name(row, results["metrics"])),
            decimal_cell(behind),
            word_cell(span(behind)),
            count_cell(behind["n"]),
        )
        for row in results["metrics"]
        if (behind := row["behind"]) is not None
    )
    columns = (
        Column("Span", is_numeric=False),
        Column("Metric", is_numeric=False),
        Column("AUC behind"),
        Column(INTERVAL),
        Column("n"),
    )
    note = "Paired by template. The best one was chosen from the same answers: a narrow lead may be luck."
    return Table(f"AUC behind that of {name}", columns, rows, note)


def templates_table(results: Results) -> Table:
    """A row a template, in the order of the suite."""
    titles: tuple[str, ...]
    if results["kind"] == "lpds search":
        titles = ("Base accuracy", "Error at random", "Error under search", "Explored", "References")
        rows = tuple(map(_search_row, results["templates"]))
    else:
        titles = ("Accuracy", "Variations", "References")
        rows = tuple(map(_measure_row, results["templates"]))
    columns = (Column("Template", is_numeric=False), *map(Column, titles), Column("Note", is_numeric=False))
    return Table("Templates", columns, rows)


def counts_table(counts: Counts) -> Table:
    """Attempts by arm and status. The statuses `error` and `skipped` stand outside every accuracy."""
    found = {status for statuses in counts.values() for status in statuses}
    columns = [*(status for status in get_args(Status) if status in found), *sorted(found - set(get_args(Status)))]
    rows = tuple(
        (
            word_cell(ARMS.get(arm, arm)),
            *(count_cell(counts[arm].get(status, 0)) for status in columns),
            count_cell(sum(counts[arm].values())),
        )
        for arm in [*(arm for arm in ARMS if arm in counts), *sorted(counts.keys() - ARMS.keys())]
    )
    titles = (Column("Arm", is_numeric=False), *map(Column, columns), Column("total"))
    return Table("Attempts by status", titles, rows, note="error and skipped stand outside every accuracy.")


def _search_row(row: SearchTemplate) -> tuple[Cell, ...]:
    shares = (share_cell(row["base_accuracy"]), share_cell(row["random_error"]), share_cell(row["beam_error"]))
    return (
        word_cell(row["id"]),
        *shares,
        count_cell(row["explored"]),
        count_cell(row["references"]),
        word_cell(row["note"]),
    )


def _measure_row(row: MeasureTemplate) -> tuple[Cell, ...]:
    counted = (count_cell(row["variations"]), count_cell(row["references"]))
    return (word_cell(row["id"]), share_cell(row["accuracy"]), *counted, word_cell(row["note"]))


def word_cell(text: str) -> Cell:
    """A text."""
    return Cell(one_line(text), one_line(text))


def share_cell(share: Number | None) -> Cell:
    """A share in percent."""
    return Cell(percent(share), finite(share))


def decimal_cell(interval: Interval | None) -> Cell:
    """The value of an interval."""
    value = interval["value"] if interval else None
    return Cell(decimal(value), finite(value))


def count_cell(number: int | None) -> Cell:
    """A whole number; empty where there is none."""
    return Cell("" if number is None else f"{number:,}", number)


# --------------------------------------------------------------------------------------------------
# How they are shown


def as_rich(table: Table) -> Group:
    """For a terminal."""
    grid = RichTable(box=box.SIMPLE)
    for column in table.columns:
        grid.add_column(Text(column.title), justify="right" if column.is_numeric else "left")
    for row in table.rows:
        grid.add_row(*(Text(cell.text) for cell in row))
    shown: RenderableType = grid if table.rows else Text("not available", style="italic")
    return Group(Text(table.title, style="bold"), shown, *([Text(table.note, style="dim")] if table.note else []))


def as_text(table: Table) -> str:
    """As plain lines of aligned columns."""
    console = Console(file=StringIO(), color_system=None, width=10_000)
    with console.capture() as capture:
        console.print(as_rich(table))
    return "\n".join(line.rstrip() for line in capture.get().splitlines()).strip("\n") + "\n"


def as_markdown(table: Table) -> str:
    """As a Markdown table under its title in bold."""
    lines = [
        _markdown_row([column.title for column in table.columns]),
        "|" + "|".join(" ---: " if column.is_numeric else " --- " for column in table.columns) + "|",
        *(_markdown_row([cell.text for cell in row]) for row in table.rows),
    ]
    note = f"\n{table.note}\n" if table.note else ""
    return f"**{table.title}**\n\n" + "\n".join(lines) + "\n" + note


def _markdown_row(texts: list[str]) -> str:
    return "| " + " | ".join(text.replace("\\", "\\\\").replace("|", "\\|") for text in texts) + " |"
