"""How figures look: one style, one palette, a drawing for each kind, and their files."""

import csv
import math
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO, StringIO
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, MaxNLocator

from robust_jax.report.inputs import Number, finite
from robust_jax.report.wording import decimal, points

INK, MUTED, RULE, PAPER = "#1d252c", "#5f6b76", "#d5dade", "#ffffff"
BASE, RANDOM, BEAM = "#7a8793", "#0072b2", "#d55e00"
"""Grey, blue and vermilion: apart for every common colour vision, and in print by lightness."""
METRIC = "#009e73"
"""For what belongs to no arm."""

_STYLE = {
    "font.size": 9.0,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.facecolor": "none",
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "figure.facecolor": PAPER,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "xtick.major.size": 3.0,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "ytick.major.size": 0.0,
}

Value = str | Number | None
Row = tuple[Value, ...]


@dataclass(frozen=True)
class Figure:
    """A table of numbers and how to draw it: what is drawn is what the CSV says."""

    name: str
    """Stem of its files."""
    title: str
    caption: str
    columns: tuple[str, ...]
    """The first names the points, the others hold what is drawn of them."""
    rows: tuple[Row, ...]
    draw: Callable[[Canvas, "Figure"], None]
    height: float = 3.1
    """Inches, at a width of 4.6."""

    def numbers(self, column: str, scale: int = 1) -> list[float]:
        """A column of numbers, NaN where there is none."""
        place = self.columns.index(column)
        return [scale * _number(row[place]) for row in self.rows]

    @property
    def is_available(self) -> bool:
        """Whether there is anything to draw."""
        shown = [place for place, column in enumerate(self.columns) if place > 0 and column != "n"]
        return any(math.isfinite(_number(row[place])) for row in self.rows for place in shown)


def as_csv(figure: Figure) -> str:
    """The figure's numbers; an empty field where there is none."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(figure.columns)
    for row in figure.rows:
        writer.writerow([value if isinstance(value, str) else finite(value) for value in row])
    return text.getvalue()


def as_svg(figure: Figure) -> str:
    """The figure as SVG; the same numbers give the same text."""
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    return _rendered(figure, "svg", {"metadata": nothing}).decode()


def as_png(figure: Figure) -> bytes:
    """The figure as PNG at 200 dots an inch."""
    return _rendered(figure, "png", {"dpi": 200, "metadata": {"Software": None}})


def _rendered(figure: Figure, form: str, options: dict[str, Any]) -> bytes:
    with matplotlib.rc_context({**matplotlib.rcParamsDefault, **_STYLE, "svg.hashsalt": figure.name}):
        height = figure.height if figure.is_available else 1.0
        canvas = Canvas(figsize=(4.6, height), layout="constrained")
        if figure.is_available:
            figure.draw(canvas, figure)
        else:
            canvas.text(0.5, 0.5, f"{figure.title}:\nnot available", ha="center", va="center", color=MUTED)
        out = BytesIO()
        canvas.savefig(out, format=form, **options)
    return out.getvalue()


# --------------------------------------------------------------------------------------------------
# Drawings. Shares are stored between 0 and 1 and drawn in percent.


def draw_drops(canvas: Canvas, figure: Figure) -> None:
    """Drops in accuracy as bars. Columns: arm, value, low, high."""
    _draw_bars(canvas, figure, "Drop in accuracy (points)")


def draw_error_rates(canvas: Canvas, figure: Figure) -> None:
    """Error rates as bars. Columns: arm, value, low, high."""
    _draw_bars(canvas, figure, "Error rate (%)")


def _draw_bars(canvas: Canvas, figure: Figure, label: str) -> None:
    axes = canvas.subplots()
    value, low, high = (figure.numbers(name, 100) for name in ("value", "low", "high"))
    for place, colour in enumerate((RANDOM, BEAM)):
        draw_bar(axes, place, (value[place], low[place], high[place]), colour, points(value[place] / 100))
    finish_bars(axes, [str(row[0]) for row in figure.rows], origin=0.0, label=label)


def draw_auc(canvas: Canvas, figure: Figure) -> None:
    """Bars that start at chance. Columns: metric, group, auc, low, high; a colour a group, at most two."""
    axes = canvas.subplots()
    groups = [str(row[1]) for row in figure.rows]
    colours = dict(zip(dict.fromkeys(groups), (BASE, METRIC) if len(set(groups)) > 1 else (METRIC,), strict=False))
    columns = (figure.numbers(name) for name in ("auc", "low", "high"))
    for place, (group, *interval) in enumerate(zip(groups, *columns, strict=True)):
        value, low, high = interval
        draw_bar(axes, place, (value, low, high), colours[group], decimal(value), origin=0.5)
    finish_bars(axes, [str(row[0]) for row in figure.rows], origin=0.5, label="AUC (0.50 is chance)")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: decimal(value)))
    if len(colours) > 1:
        for group, colour in colours.items():
            axes.barh(0, 0, left=0.5, color=colour, label=group)
        legend_above(axes)


def draw_bar(
    axes: Axes, place: int, interval: tuple[float, float, float], colour: str, text: str, origin: float = 0.0
) -> None:
    """One horizontal bar from `origin` with its interval (value, low, high), and a text at its end."""
    value, low, high = interval
    if math.isfinite(value):
        axes.barh(place, value - origin, left=origin, height=0.62, color=colour)
    if math.isfinite(low) and math.isfinite(high):
        axes.plot([low, high], [place, place], color=INK, linewidth=1.2, solid_capstyle="butt")
    end = max(end for end in (value, high, origin) if math.isfinite(end))
    axes.annotate(text, (end, place), (5, 0), textcoords="offset points", va="center")


def finish_bars(axes: Axes, names: list[str], origin: float, label: str) -> None:
    """Axes, names and grid of horizontal bars, the first one on top."""
    axes.axvline(origin, color=MUTED, linewidth=0.7)
    axes.set(yticks=range(len(names)), yticklabels=names, ylim=(len(names) - 0.4, -0.6), xlabel=label)
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10]))
    axes.margins(x=0.16)
    axes.grid(axis="x")


def draw_search_curves(canvas: Canvas, figure: Figure) -> None:
    """Two panels over iterations. Columns: iteration, the two medians, their low and high ends, then single templates.

    Every part has two columns, of difficulty and of accuracy.
    """
    panels = canvas.subplots(2, 1, sharex=True)
    iterations = figure.numbers(figure.columns[0])
    for axes, columns, scale in zip(panels, (figure.columns[1::2], figure.columns[2::2]), (1, 100), strict=True):
        median, low, high, *single = (figure.numbers(column, scale) for column in columns)
        lines = [np.column_stack([iterations, one]) for one in single]
        axes.add_collection(LineCollection(lines, colors=BASE, linewidths=0.5, alpha=0.3))
        axes.fill_between(iterations, low, high, color=BEAM, alpha=0.18, linewidth=0)
        axes.plot(iterations, median, color=BEAM, linewidth=2, marker="o", markersize=3.5)
        axes.grid(axis="y")
    panels[0].set(ylabel="Largest difficulty in beam")
    panels[1].set(ylabel="Accuracy of beam (%)", xlabel="Iteration", ylim=(-3, 103))
    panels[1].xaxis.set_major_locator(MaxNLocator(integer=True))


def draw_scatter(canvas: Canvas, figure: Figure) -> None:
    """Error rates against each other with the diagonal. Columns: template, random_error, beam_error."""
    axes = canvas.subplots()
    random, beam = (np.array(figure.numbers(name, 100)) for name in ("random_error", "beam_error"))
    axes.plot([0, 100], [0, 100], color=MUTED, linewidth=0.8, zorder=1)
    for chosen, colour, marker, label in (
        (beam > random, BEAM, "o", "more under search"),
        (beam < random, RANDOM, "s", "more at random"),
        (beam == random, BASE, "D", "equal"),
    ):
        if chosen.any():
            points_drawn = axes.scatter(random[chosen], beam[chosen], s=22, c=colour, marker=marker, label=label)
            points_drawn.set(alpha=0.75, linewidths=0, clip_on=False, zorder=2)
    axes.set(xlim=(0, 100), ylim=(0, 100), aspect="equal")
    axes.set(xlabel="Error rate at random (%)", ylabel="Error rate under search (%)")
    axes.grid()
    if axes.get_legend_handles_labels()[0]:
        legend_above(axes)


def draw_quantile_curve(canvas: Canvas, figure: Figure) -> None:
    """Accuracy with its band. Columns: quantile, accuracy, low, high."""
    axes = canvas.subplots()
    quantile = figure.numbers("quantile")
    low, accuracy, high = (figure.numbers(name, 100) for name in ("low", "accuracy", "high"))
    axes.fill_between(quantile, low, high, color=BEAM, alpha=0.18, linewidth=0)
    axes.plot(quantile, accuracy, color=BEAM, linewidth=2, marker="o", markersize=3.5)
    ticks = [place for place in quantile if place == quantile[0] or place % 5 == 0]
    axes.set(xlabel="Quantile of difficulty (hardest last)", ylabel="Accuracy (%)", ylim=(-3, 103), xticks=ticks)
    axes.grid(axis="y")


def draw_distribution(canvas: Canvas, figure: Figure) -> None:
    """Two histograms over the same bins. Columns: draw, random, beam."""
    axes = canvas.subplots()
    drawn = [
        np.array([value for value in figure.numbers(arm, 100) if math.isfinite(value)]) for arm in ("random", "beam")
    ]
    pooled = np.concatenate(drawn)
    edges = np.histogram_bin_edges(pooled, bins=min(40, max(1, len(np.unique(pooled))))).tolist()
    for values, colour, label in zip(drawn, (RANDOM, BEAM), ("Random", "Search"), strict=True):
        axes.hist(values, edges, color=colour, alpha=0.3, linewidth=0)
        axes.hist(values, edges, color=colour, histtype="step", linewidth=1.5, label=label)
    axes.set(xlabel="Accuracy (%)", ylabel="Draws")
    axes.grid(axis="y")
    legend_above(axes)


def draw_metric_distributions(canvas: Canvas, figure: Figure) -> None:
    """Histograms of right and wrong answers, a panel a metric. Columns: metric, from, to, right, wrong."""
    names = list(dict.fromkeys(str(row[0]) for row in figure.rows))
    panels = canvas.subplots((len(names) + 1) // 2, 2, squeeze=False).ravel()
    of_row = np.array([names.index(str(row[0])) for row in figure.rows])
    start, end = (np.array(figure.numbers(column)) for column in ("from", "to"))
    for number, (axes, name) in enumerate(zip(panels, names, strict=False)):
        rows = of_row == number
        edges = np.append(start[rows], end[rows][-1:])
        for kind, colour, label in (("right", RANDOM, "Right answers"), ("wrong", BEAM, "Wrong answers")):
            counts = np.array(figure.numbers(kind))[rows]
            shares = 100 * counts / max(counts.sum(), 1)
            axes.stairs(shares, edges, fill=True, color=colour, alpha=0.3, linewidth=0)
            axes.stairs(shares, edges, color=colour, linewidth=1.2, label=label)
        axes.set_title(name, fontsize=8.5, loc="left")
        axes.xaxis.set_major_locator(MaxNLocator(nbins=4))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=2))
        axes.tick_params(labelsize=7.5)
        axes.grid(axis="y")
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    canvas.supylabel("Share of answers (%)", fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside upper left", ncols=2, handlelength=1.2)


def legend_above(axes: Axes) -> None:
    """The legend in a row above the axes."""
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2, handlelength=1.2, columnspacing=1.2
    )


def _number(value: Value) -> float:
    return float(value) if isinstance(value, (int, float)) and finite(value) is not None else math.nan
