"""The figures of a run: which numbers of the results each one draws."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest

from robust_jax.report.attribution import value_effects
from robust_jax.report.drawing import (
    Figure,
    Row,
    draw_auc,
    draw_distribution,
    draw_drops,
    draw_error_rates,
    draw_metric_distributions,
    draw_quantile_curve,
    draw_scatter,
    draw_search_curves,
)
from robust_jax.report.inputs import Distribution, Interval, Results, SearchResults, finite
from robust_jax.report.wording import ranked, row_name


def figures(results: Results) -> list[Figure]:
    """The figures of a run, in reading order."""
    if results["kind"] == "lpds measure":
        rows = results["metrics"]
        return [
            _auc([(row_name(row, rows), row["span"], row["auc"]) for row in rows]),
            _metric_distributions(
                {
                    f"{row['span']}: {row_name(row, rows)}": row["distribution"]
                    for row in rows
                    if row["distribution"] is not None
                }
            ),
        ]
    return [
        _search_against_random(results),
        _search_curves(results),
        _error_by_template(results),
        _quantile_curve(results),
        _accuracy_distribution(results),
        value_effects(results),
        _auc([(metric, "", auc) for metric, auc in ranked(results["auc"])]),
        _metric_distributions(dict(sorted(results["distributions"].items()))),
    ]


def _search_against_random(results: SearchResults) -> Figure:
    """Figure 13, left; error rates instead where there are no base problems to fall from (Figure 22)."""
    name, columns = "search_against_random", ("arm", "value", "low", "high", "n")
    drops, accuracy = results["drops"], results["accuracy"]
    if drops is not None:
        rows = (_row("Random", drops["random"]), _row("Search", drops["beam"]))
        caption = "Fall in accuracy from the base problems, in percentage points, with 95% intervals."
        return Figure(name, "Drop in accuracy", caption, columns, rows, draw_drops, height=1.9)
    rows = (_row("Random", _complement(accuracy["random"])), _row("Search", _complement(accuracy["beam"])))
    caption = "Share of wrong answers with 95% intervals. The suite has no base problems to compare with."
    return Figure(name, "Error rate", caption, columns, rows, draw_error_rates, height=1.9)


def _search_curves(results: SearchResults) -> Figure:
    """Figure 10."""
    curves = results["search_curves"]
    columns = ["iteration", "max_difficulty", "beam_accuracy"]
    lists: list[Sequence[float | None]] = [curves["iteration"], curves["max_difficulty"], curves["beam_accuracy"]]
    for end in ("low", "high"):
        columns += [f"max_difficulty_{end}", f"beam_accuracy_{end}"]
    lists += [curves["max_difficulty_low"], curves["beam_accuracy_low"]]
    lists += [curves["max_difficulty_high"], curves["beam_accuracy_high"]]
    caption = (
        "Largest difficulty in the beam and mean accuracy of the beam after each iteration: median over templates "
        "with 95% intervals"
    )
    singles = curves.get("templates", [])
    for curve in singles:
        columns += [f"max_difficulty {curve['id']}", f"beam_accuracy {curve['id']}"]
        lists += [curve["max_difficulty"], curve["beam_accuracy"]]
    caption += "; single templates in grey." if singles else "."
    rows = tuple(zip(*lists, strict=True))
    return Figure(
        "search_curves", "Course of the search", caption, tuple(columns), rows, draw_search_curves, height=4.4
    )


def _error_by_template(results: SearchResults) -> Figure:
    """Figure 13, right."""
    return Figure(
        "error_by_template",
        "Error rate by template",
        "A point a template. Above the diagonal, search found a larger share of failures than random sampling.",
        ("template", "random_error", "beam_error"),
        tuple((row["id"], row["random_error"], row["beam_error"]) for row in results["templates"]),
        draw_scatter,
        height=4.4,
    )


def _quantile_curve(results: SearchResults) -> Figure:
    """Figure 18."""
    curve = results["quantile_curve"]
    return Figure(
        "quantile_curve",
        "Accuracy as difficulty grows",
        "The variations that search explored, cut into quantiles of difficulty in each template; mean over templates "
        "with 95% intervals. The normalised area below the curve is the difficulty-robustness score.",
        ("quantile", "accuracy", "low", "high"),
        tuple(zip(curve["quantile"], curve["accuracy"], curve["low"], curve["high"], strict=True)),
        draw_quantile_curve,
    )


def _accuracy_distribution(results: SearchResults) -> Figure:
    """Figure 14."""
    drawn = results["accuracy_distribution"]
    rows = tuple(
        (number, random, beam) for number, (random, beam) in enumerate(zip_longest(drawn["random"], drawn["beam"]), 1)
    )
    return Figure(
        "accuracy_distribution",
        "Accuracy of one variation a template",
        "Accuracies over the suite when one variation of each template is drawn, many times over.",
        ("draw", "random", "beam"),
        rows,
        draw_distribution,
    )


def _auc(powers: Sequence[tuple[str, str, Interval]]) -> Figure:
    """Table 1 as a figure: a bar a metric."""
    return Figure(
        "auc",
        "Predictive power of the metrics",
        "AUC: how often a wrong answer scores as more difficult than a right one, with 95% intervals.",
        ("metric", "group", "auc", "low", "high", "n"),
        tuple((metric, group, *_row("", auc)[1:]) for metric, group, auc in powers),
        draw_auc,
        height=max(1.6, 0.8 + 0.26 * len(powers)),
    )


def _metric_distributions(shapes: Mapping[str, Distribution]) -> Figure:
    """Figures 7 and 27: a panel a metric."""
    rows: list[Row] = []
    for name, shape in shapes.items():
        edges = shape["edges"]
        rows += zip([name] * len(shape["right"]), edges, edges[1:], shape["right"], shape["wrong"], strict=False)
    return Figure(
        "metric_distributions",
        "Distribution of the metrics",
        "Values of each metric over right and over wrong answers of all templates, each as shares of its own kind. "
        "The outer bins also hold what lies beyond them.",
        ("metric", "from", "to", "right", "wrong"),
        tuple(rows),
        draw_metric_distributions,
        height=0.6 + 1.25 * ((len(shapes) + 1) // 2),
    )


def _row(label: str, interval: Interval) -> Row:
    return (label, interval["value"], interval["low"], interval["high"], interval["n"])


def _complement(accuracy: Interval) -> Interval:
    value, low, high = (
        None if finite(end) is None else 1 - (end or 0)
        for end in (accuracy["value"], accuracy["high"], accuracy["low"])
    )
    return {"value": value, "low": low, "high": high, "n": accuracy["n"]}
