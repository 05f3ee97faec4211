"""Bullet charts of the systematicity metrics: all ≤ fraction ≤ any, one bar within another (paper Figure 4)."""

import math
import textwrap
from collections.abc import Sequence

from matplotlib.figure import Figure as Canvas

from robust_jax.report.drawing import INK, MUTED, RANDOM, Figure, Row
from robust_jax.report.systematicity_inputs import Metrics, NamedRun, SystematicityResults
from robust_jax.report.wording import points

METRICS = ("any", "fraction", "all", "gap")
COLUMNS = ("name", *(f"{metric}{end}" for metric in METRICS for end in ("", "_low", "_high")), "n")
LABEL_WIDTH = 24
"""Characters of a line of a bar's name."""
CAPTION = (
    "Wide bar: some variation of a task is passed; middle: share of variations passed; dark: every one is passed. "
    "The figure beside a bar is the gap between the first and the last, in percentage points. Lines are 95% intervals."
)


def run_figures(results: SystematicityResults) -> list[Figure]:
    """The families of a run (Figure 1), and its kinds of variation (Figure 8A)."""
    families = results["families"]
    kinds = [
        (f"{family['family']}, {kind['kind']}", kind["metrics"]) for family in families for kind in family["kinds"]
    ]
    return [
        bullet_figure("families", "Systematicity by family", [(f["family"], f["metrics"]) for f in families]),
        bullet_figure("kinds", "Systematicity by kind of variation", kinds),
    ]


def comparison_figures(runs: Sequence[NamedRun]) -> list[Figure]:
    """A figure for each family that the runs share out, a bar a run: models, effort, temperature or settings."""
    names = dict.fromkeys(family["family"] for run in runs for family in run["results"]["families"])
    return [
        bullet_figure(
            f"runs_{name}",
            f"Systematicity on {name}",
            [
                (run["name"], family["metrics"])
                for run in runs
                for family in run["results"]["families"]
                if family["family"] == name
            ],
        )
        for name in names
    ]


def bullet_figure(name: str, title: str, bars: Sequence[tuple[str, Metrics]]) -> Figure:
    """One bullet a pair of label and metrics."""
    return Figure(
        name,
        title,
        CAPTION,
        COLUMNS,
        tuple(_row(label, metrics) for label, metrics in bars),
        draw_bullets,
        height=1.0 + 0.42 * len(bars),
    )


def _row(label: str, metrics: Metrics) -> Row:
    ends = [metrics[metric][end] for metric in METRICS for end in ("value", "low", "high")]  # type: ignore[literal-required]
    return (label, *ends, metrics["any"]["n"])


def draw_bullets(canvas: Canvas, figure: Figure) -> None:
    """Bars within one another. Columns: name, and value, low and high of any, fraction, all and gap."""
    axes = canvas.subplots()
    labels = [textwrap.fill(str(row[0]), LABEL_WIDTH) for row in figure.rows]
    looks = {"any": (0.74, RANDOM, 0.25), "fraction": (0.46, RANDOM, 0.6), "all": (0.18, INK, 1.0)}
    for metric, (height, colour, alpha) in looks.items():
        values = [0.0 if math.isnan(value) else value for value in figure.numbers(metric, 100)]
        axes.barh(range(len(labels)), values, height=height, color=colour, alpha=alpha, label=metric)
    for metric, offset in (("any", -0.3), ("all", 0.3)):
        for place, (low, high) in enumerate(
            zip(figure.numbers(f"{metric}_low", 100), figure.numbers(f"{metric}_high", 100), strict=True)
        ):
            if math.isfinite(low) and math.isfinite(high):
                axes.plot([low, high], [place + offset] * 2, color=MUTED, linewidth=1.0, solid_capstyle="butt")
    for place, gap in enumerate(figure.numbers("gap")):
        axes.annotate(f"gap {points(gap)}", (104, place), va="center", annotation_clip=False)
    axes.set(yticks=range(len(labels)), yticklabels=labels, ylim=(len(labels) - 0.4, -0.6), xlim=(0, 102))
    axes.set(xlabel="Tasks, or variations (%)")
    axes.grid(axis="x")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2, handlelength=1.2)
