"""The figures of RRB runs: which numbers of the results each one draws, and how."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from robust_jax.report.drawing import (
    BASE,
    BEAM,
    INK,
    METRIC,
    MUTED,
    RANDOM,
    Figure,
    draw_bar,
    finish_bars,
    legend_above,
)
from robust_jax.report.inputs import Interval
from robust_jax.report.rrb_inputs import DilutionResults, RewritingResults
from robust_jax.report.wording import MISSING, decimal, percent, points

CATEGORY_COLOURS = {"syntactic": RANDOM, "semantic": METRIC, "contextual": BEAM, "visual": "#a8639a"}
CONDITION_COLOURS = {"sequence": BEAM, "solved": METRIC, "neutral": RANDOM, "alone": BASE}
ORIGINAL = "as they are"
ON_CELLS = ("#f6f6f6", "#101010")
"""Text on dark and on bright cells, which are the same in a page's dark mode."""
LONGEST_NAME = 24
"""Characters of a model's name on an axis."""


def rewriting_figures(results: RewritingResults) -> list[Figure]:
    """The figures of a run over perturbations, in reading order."""
    return [heat_map([results]), _bars(results), _categories(results), _lengths(results)]


def dilution_figures(results: DilutionResults) -> list[Figure]:
    """The figures of a run over several problems in one context, in reading order."""
    drawn = [_curves(results), _effects(results)]
    return [*drawn, _attention(results)] if results.get("attention") else drawn


def heat_map(runs: Sequence[RewritingResults]) -> Figure:
    """Accuracy of every model under every perturbation (paper Figure 3)."""
    names = dict.fromkeys(row["name"] for run in runs for row in run["perturbations"])
    rows = []
    for run in runs:
        found = {row["name"]: row["accuracy"]["value"] for row in run["perturbations"]}
        rows.append((run["model"], run["original"]["value"], *(found.get(name) for name in names)))
    return Figure(
        "heat_map",
        "Accuracy under every rewriting",
        "A row a model, a column a rewriting; the first column is the problems as they are.",
        ("model", ORIGINAL, *names),
        tuple(rows),
        _draw_heat_map,
        height=1.9 + 0.35 * len(rows),
    )


def average_changes(runs: Sequence[RewritingResults]) -> Figure:
    """How far each model falls on average over all perturbations (paper Figure 5)."""
    return Figure(
        "average_change",
        "Average change under rewriting",
        "Mean over the rewritings of the run that have answers, in percentage points, with 95% intervals.",
        ("model", "value", "low", "high", "n"),
        tuple((run["model"], *_interval(run["average"]["change"])) for run in runs),
        _draw_effects,
        height=0.9 + 0.3 * len(runs),
    )


def _bars(results: RewritingResults) -> Figure:
    rows = [(ORIGINAL, "", *_interval(results["original"]))]
    rows += [(row["name"], row["category"], *_interval(row["accuracy"])) for row in results["perturbations"]]
    return Figure(
        "accuracy_by_perturbation",
        "Accuracy by rewriting",
        "Accuracy on the same problems as they are and rewritten, with 95% intervals.",
        ("perturbation", "category", "value", "low", "high", "n"),
        tuple(rows),
        _draw_accuracies,
        height=0.9 + 0.26 * len(rows),
    )


def _categories(results: RewritingResults) -> Figure:
    """Paper Figure 4."""
    rows = [(ORIGINAL, "", *_interval(results["original"]))]
    rows += [(row["category"], row["category"], *_interval(row["accuracy"])) for row in results["categories"]]
    return Figure(
        "accuracy_by_category",
        "Accuracy by category",
        "Mean accuracy over the rewritings of each category, with 95% intervals.",
        ("group", "category", "value", "low", "high", "n"),
        tuple(rows),
        _draw_accuracies,
        height=0.9 + 0.26 * len(rows),
    )


def _lengths(results: RewritingResults) -> Figure:
    """Paper Figure 7."""
    rows = [(ORIGINAL, "", *_interval(results["original_tokens"]), results["original"]["value"])]
    rows += [
        (row["name"], row["category"], *_interval(row["tokens"]), row["accuracy"]["value"])
        for row in results["perturbations"]
    ]
    return Figure(
        "reply_length",
        "Length of replies",
        "Mean length of a reply in tokens, thinking included, with 95% intervals; the accuracy stands behind it.",
        ("perturbation", "category", "value", "low", "high", "n", "accuracy"),
        tuple(rows),
        _draw_lengths,
        height=0.9 + 0.26 * len(rows),
    )


def _curves(results: DilutionResults) -> Figure:
    """Paper Figure 1, right."""
    return Figure(
        "accuracy_on_the_last_problem",
        "Accuracy on the last problem",
        "Accuracy on the last of several problems, with 95% intervals: after all were solved in one reply (sequence), "
        "behind the same problems with the model's own solutions (solved), and behind neutral text as long (neutral).",
        ("n", "condition", "value", "low", "high", "problems"),
        tuple((row["n"], row["condition"], *_interval(row["accuracy"])) for row in results["conditions"]),
        _draw_curves,
    )


def _effects(results: DilutionResults) -> Figure:
    last = max((row["n"] for row in results["effects"]), default=0)
    return Figure(
        "what_hurts",
        f"What changes accuracy at {last} problems",
        "Change in accuracy, in percentage points, on the same problems; the last three add up to the first.",
        ("effect", "value", "low", "high", "n"),
        tuple((row["effect"], *_interval(row["change"])) for row in results["effects"] if row["n"] == last),
        _draw_effects,
        height=2.2,
    )


def _attention(results: DilutionResults) -> Figure:
    shares = results.get("attention", [])
    last = max((row["n"] for row in shares), default=0)
    rows = [
        (
            row["condition"],
            row["layer"],
            *(row[name]["value"] for name in ("own_problem", "earlier_problems", "earlier_reasoning")),
        )
        for row in shares
        if row["n"] == last and row["own_problem"]["n"]
    ]
    return Figure(
        "attention",
        f"Where attention goes at {last} problems",
        "Share of the attention of the last answer's tokens, by layer; dashed: behind solved problems.",
        ("condition", "layer", "own problem", "earlier problems", "earlier reasoning"),
        tuple(rows),
        _draw_attention,
    )


def _short(name: str) -> str:
    """The end of a model's name, which may be a long path, as a label has room for it."""
    return name if len(name) <= LONGEST_NAME else f"…{name[-LONGEST_NAME + 1 :]}"


def _interval(interval: Interval) -> tuple[float | None, float | None, float | None, int]:
    return interval["value"], interval["low"], interval["high"], interval["n"]


# --------------------------------------------------------------------------------------------------
# Drawings. Shares are stored between 0 and 1 and drawn in percent.


def _draw_heat_map(canvas: Canvas, figure: Figure) -> None:
    axes = canvas.subplots()
    names = figure.columns[1:]
    shares = list(zip(*(figure.numbers(name, 100) for name in names), strict=True))
    # Cells, not an image: a page shows no image, and can be read at any size.
    edges = [np.arange(count + 1) - 0.5 for count in (len(names), len(shares))]
    axes.pcolormesh(*edges, np.array(shares), cmap="cividis", vmin=0, vmax=100, linewidth=0)
    axes.invert_yaxis()
    for place, row in enumerate(shares):
        for column, share in enumerate(row):
            text, colour = (f"{share:.0f}", ON_CELLS[share > 55]) if math.isfinite(share) else (MISSING, MUTED)
            axes.text(column, place, text, ha="center", va="center", fontsize=7, color=colour)
    models = [_short(str(row[0])) for row in figure.rows]
    axes.set(xticks=range(len(names)), yticks=range(len(shares)), yticklabels=models)
    axes.set_xticklabels([name.replace("_", " ") for name in names], rotation=50, ha="right", fontsize=7)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _draw_accuracies(canvas: Canvas, figure: Figure) -> None:
    axes = canvas.subplots()
    columns = [figure.numbers(name, 100) for name in ("value", "low", "high")]
    for place, (value, low, high) in enumerate(zip(*columns, strict=True)):
        colour = CATEGORY_COLOURS.get(str(figure.rows[place][1]), BASE)
        draw_bar(axes, place, (value, low, high), colour, percent(value / 100))
    if math.isfinite(columns[0][0]):
        axes.axvline(columns[0][0], color=MUTED, linewidth=0.8, linestyle="--")
    finish_bars(axes, [str(row[0]).replace("_", " ") for row in figure.rows], origin=0.0, label="Accuracy (%)")


def _draw_lengths(canvas: Canvas, figure: Figure) -> None:
    axes = canvas.subplots()
    columns = [figure.numbers(name) for name in ("value", "low", "high", "accuracy")]
    for place, (value, low, high, accuracy) in enumerate(zip(*columns, strict=True)):
        colour = CATEGORY_COLOURS.get(str(figure.rows[place][1]), BASE)
        draw_bar(axes, place, (value, low, high), colour, f"{decimal(value, 0)} ({percent(accuracy)})")
    finish_bars(axes, [str(row[0]).replace("_", " ") for row in figure.rows], origin=0.0, label="Tokens a reply")


def _draw_curves(canvas: Canvas, figure: Figure) -> None:
    axes = canvas.subplots()
    numbers = list(zip(*(figure.numbers(name) for name in ("n", "value", "low", "high")), strict=True))
    alone = [row for row, kept in zip(numbers, figure.rows, strict=True) if kept[1] == "alone"]
    for condition, colour in CONDITION_COLOURS.items():
        own = [row for row, kept in zip(numbers, figure.rows, strict=True) if kept[1] == condition]
        if not own or condition == "alone":
            continue
        n, value, low, high = zip(*[*alone, *own], strict=True)
        axes.fill_between(n, [100 * y for y in low], [100 * y for y in high], color=colour, alpha=0.12, linewidth=0)
        axes.plot(n, [100 * y for y in value], color=colour, linewidth=2, marker="o", markersize=3.5, label=condition)
    axes.set(xlabel="Problems in the context", ylabel="Accuracy on the last (%)", ylim=(-3, 103))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(axis="y")
    legend_above(axes)


def _draw_effects(canvas: Canvas, figure: Figure) -> None:
    axes = canvas.subplots()
    columns = [figure.numbers(name, 100) for name in ("value", "low", "high")]
    for place, (value, low, high) in enumerate(zip(*columns, strict=True)):
        colour = INK if figure.rows[place][0] == "total" else RANDOM
        draw_bar(axes, place, (value, low, high), colour, points(value / 100))
    names = [_short(str(row[0])) for row in figure.rows]
    finish_bars(axes, names, origin=0.0, label="Change in accuracy (points)")


def _draw_attention(canvas: Canvas, figure: Figure) -> None:
    axes = canvas.subplots()
    layers = figure.numbers("layer")
    for name, colour in zip(figure.columns[2:], (BASE, RANDOM, BEAM), strict=True):
        shares, label = figure.numbers(name, 100), name
        for condition, line in (("sequence", "-"), ("solved", "--")):
            rows = [place for place, row in enumerate(figure.rows) if row[0] == condition]
            if rows:
                x, y = [layers[place] for place in rows], [shares[place] for place in rows]
                axes.plot(x, y, color=colour, linewidth=2, linestyle=line, label=label)
                label = "_"  # The second line has the same colour and no entry of its own.
    axes.set(xlabel="Layer", ylabel="Attention (%)")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(axis="y")
    legend_above(axes)
