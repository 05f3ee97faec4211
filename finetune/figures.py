"""The figure of the training sets: how difficult each bucket is (paper Figure 19)."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure as Canvas

from robust_jax.finetune.problem import Problem
from robust_jax.report.drawing import BASE, BEAM, MUTED, RANDOM, Figure

BINS = 60
COLOURS = (RANDOM, BASE, BEAM)
OUTER = 0.99
"""Share of the problems that the bins cover; the last bin holds the rest, because a few are far out."""


def bucket_figure(buckets: Mapping[str, Sequence[Problem]]) -> Figure:
    """How the problems of each bucket are distributed over difficulty (Figure 19)."""
    values = {
        name: [problem.difficulty for problem in problems if problem.difficulty is not None]
        for name, problems in buckets.items()
    }
    pooled = np.concatenate(list(values.values()))
    edges = np.linspace(pooled.min(), np.quantile(pooled, OUTER), BINS + 1)
    rows = [
        (name, float(start), float(end), int(count))
        for name, of_bucket in values.items()
        for start, end, count in zip(
            edges, edges[1:], np.histogram(np.minimum(of_bucket, edges[-1]), edges)[0], strict=False
        )
    ]
    caption = "Problems of each training bucket by their difficulty. The last bin holds what lies beyond it."
    columns = ("bucket", "from", "to", "count")
    return Figure("difficulty", "Difficulty of the buckets", caption, columns, tuple(rows), _draw)


def _draw(canvas: Canvas, figure: Figure) -> None:
    """Columns: bucket, from, to, count."""
    axes = canvas.subplots()
    names = list(dict.fromkeys(str(row[0]) for row in figure.rows))
    start, end, count = (np.array(figure.numbers(column)) for column in ("from", "to", "count"))
    for name, colour in zip(names, COLOURS, strict=True):
        rows = np.array([row[0] == name for row in figure.rows])
        edges = np.append(start[rows], end[rows][-1])
        axes.stairs(count[rows], edges, fill=True, color=colour, alpha=0.3, linewidth=0)
        axes.stairs(count[rows], edges, color=colour, linewidth=1.3, label=f"Q_{name}")
    axes.set(xlabel="Difficulty (MD_H)", ylabel="Problems")
    axes.grid(axis="y")
    axes.legend(loc="upper right", labelcolor=MUTED)
