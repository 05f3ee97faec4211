"""The tables of the systematicity protocol, and its finding in plain words."""

from collections.abc import Iterator, Sequence
from typing import Literal

from robust_jax.report.inputs import finite
from robust_jax.report.systematicity_inputs import FamilyResults, Metrics, NamedRun, SystematicityResults
from robust_jax.report.tables import (
    INTERVAL,
    Cell,
    Column,
    Table,
    count_cell,
    counts_table,
    decimal_cell,
    share_cell,
    word_cell,
)
from robust_jax.report.wording import Headline, decimal, percent, points, share_span, span

METRICS: tuple[Literal["any", "fraction", "all"], ...] = ("any", "fraction", "all")
COMPONENTS: tuple[Literal["total", "within", "between"], ...] = ("total", "within", "between")
METRIC_COLUMNS = tuple(Column(title) for title in ("Any", "Fraction", "All", "Gap, points", "n"))
VARIANCE_COLUMNS = tuple(Column(title) for title in ("Total", "Within", "Between", INTERVAL, "n"))


def run_tables(results: SystematicityResults) -> list[Table]:
    """The tables of a run in reading order."""
    return [
        metrics_table(results),
        intervals_table(results),
        variance_table(results),
        tokens_table(results),
        counts_table(results["counts"]),
    ]


def metrics_table(results: SystematicityResults) -> Table:
    """The metrics of every family, and of every kind of variation within it (Figures 1 and 8A)."""
    rows = tuple((*names, *_metric_cells(metrics)) for names, metrics in _all_metrics(results))
    left_out = sum(family["metrics"]["undecided"] for family in results["families"])
    note = "Any: some variation of a task is passed; all: every one is; fraction: share of variations passed."
    if left_out:
        note += f" {left_out} tasks are left out, because attempts that do not count leave a variation undecided."
    return Table("Systematicity", (_names("Family"), _names("Variations"), *METRIC_COLUMNS), rows, note)


def intervals_table(results: SystematicityResults) -> Table:
    """The intervals that the table of metrics has no room for."""
    rows = tuple(
        (*names, *(word_cell(share_span(interval)) for interval in (metrics["any"], metrics["all"], metrics["gap"])))
        for names, metrics in _all_metrics(results)
    )
    columns = (_names("Family"), _names("Variations"), Column("Any, %"), Column("All, %"), Column("Gap, points"))
    return Table("95% intervals", columns, rows)


def _all_metrics(results: SystematicityResults) -> Iterator[tuple[tuple[Cell, Cell], Metrics]]:
    for family in results["families"]:
        yield (word_cell(family["family"]), word_cell("all kinds")), family["metrics"]
        for kind in family["kinds"]:
            yield (word_cell(family["family"]), word_cell(kind["kind"])), kind["metrics"]


def variance_table(results: SystematicityResults) -> Table:
    """Where the variance of success comes from (Table 1)."""
    rows = tuple((*names, *cells) for names, cells in _variance_rows(results))
    note = (
        "Shares of the largest variance that success rates of the same mean can have, averaged over the tasks that are "
        f"solved at some attempts and not at others (estimators: {results['settings'].get('variance', 'unbiased')}). "
        "Within: from attempt to attempt at one variation. Between: from variation to variation."
    )
    return Table("Variance of success", (_names("Family"), _names("Variations"), *VARIANCE_COLUMNS), rows, note)


def _variance_rows(results: SystematicityResults) -> Iterator[tuple[tuple[Cell, Cell], tuple[Cell, ...]]]:
    for family in results["families"]:
        for kind in family["kinds"]:
            shares = kind["variance"]
            cells = [decimal_cell(shares[part]) for part in COMPONENTS]
            cells += [word_cell(span(shares["between"])), count_cell(shares["total"]["n"])]
            yield (word_cell(family["family"]), word_cell(kind["kind"])), tuple(cells)


def tokens_table(results: SystematicityResults) -> Table:
    """What was read and written."""
    has_prices = any(family["tokens"]["dollars"] is not None for family in results["families"])
    titles = ("Attempts", "Tokens read", "Tokens written", *(("Cost, US$",) if has_prices else ()))
    rows = []
    for family in results["families"]:
        tokens = family["tokens"]
        row = [
            word_cell(family["family"]),
            *map(count_cell, (tokens["attempts"], tokens["prompt"], tokens["completion"])),
        ]
        if has_prices:
            row.append(Cell(decimal(tokens["dollars"]), tokens["dollars"]))
        rows.append(tuple(row))
    return Table("Tokens", (_names("Family"), *map(Column, titles)), tuple(rows))


def comparison_table(runs: Sequence[NamedRun]) -> Table:
    """The metrics of several runs side by side, family after family."""
    rows = [
        (word_cell(family["family"]), word_cell(run["name"]), *_metric_cells(family["metrics"]))
        for name in _families(runs)
        for run in runs
        for family in run["results"]["families"]
        if family["family"] == name
    ]
    return Table("Systematicity of the runs", (_names("Family"), _names("Run"), *METRIC_COLUMNS), tuple(rows))


def variance_comparison_table(runs: Sequence[NamedRun]) -> Table:
    """Where the variance of success comes from in several runs (Table 1), kind after kind."""
    rows = [
        (*names, word_cell(run["name"]), *cells)
        for family in _families(runs)
        for run in runs
        for names, cells in _variance_rows(run["results"])
        if names[0].text == family
    ]
    rows.sort(key=lambda row: (row[0].text, row[1].text))
    columns = (_names("Family"), _names("Variations"), _names("Run"), *VARIANCE_COLUMNS)
    return Table("Variance of success", columns, tuple(rows))


def _families(runs: Sequence[NamedRun]) -> list[str]:
    return list(dict.fromkeys(family["family"] for run in runs for family in run["results"]["families"]))


def _names(title: str) -> Column:
    return Column(title, is_numeric=False)


def _metric_cells(metrics: Metrics) -> tuple[Cell, ...]:
    shares = [share_cell(metrics[name]["value"]) for name in METRICS]
    gap = metrics["gap"]
    return (*shares, Cell(points(gap["value"]), gap["value"]), count_cell(gap["n"]))


# --------------------------------------------------------------------------------------------------


def headline(results: SystematicityResults) -> Headline:
    """The main finding in plain words. It claims a gap only where the stored interval is clear of none."""
    known = [family for family in results["families"] if finite(family["metrics"]["any"]["value"]) is not None]
    if not known:
        return Headline("There are too few answers to say how systematic the model is.", _what_is_missing(results))
    if all(family["metrics"]["any"]["value"] == 0 for family in known):
        return Headline(
            "The model passes no variation of any task.",
            "Nothing can be said of its systematicity: a task that is never solved is solved in no form.",
        )
    widest = max(known, key=lambda family: family["metrics"]["gap"]["value"] or 0.0)
    gap = widest["metrics"]["gap"]
    low = finite(gap["low"])
    if low is not None and low > 0:
        sentence = (
            f"The model is not systematic on {_phrase(widest)}: it solves tasks in one form and fails in another."
        )
    elif gap["value"] == 0:
        sentence = "The model is systematic: what it solves in one form it solves in every form."
    else:
        sentence = "The model shows no clear lack of systematicity."
    metrics = widest["metrics"]
    detail = (
        f"On {_phrase(widest)} it passes some variation of {percent(metrics['any']['value'])} of the tasks and every "
        f"variation of {percent(metrics['all']['value'])}: a gap of {points(gap['value'])} points ({share_span(gap)})."
    )
    return Headline(sentence, detail)


def _what_is_missing(results: SystematicityResults) -> str:
    """Why attempts do not count."""
    attempts = sum(sum(statuses.values()) for statuses in results["counts"].values())
    skipped, failed = (
        sum(statuses.get(status, 0) for statuses in results["counts"].values()) for status in ("skipped", "error")
    )
    return f"Of {attempts:,} attempts, {skipped:,} have prompts too long for the model, and {failed:,} got no reply."


def _phrase(family: FamilyResults) -> str:
    return f"{family['family']} tasks"
