"""Every figure of `lpds measure`, computed from what a run directory keeps; no model is needed (Section 3.2)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from robust_jax.analysis.auc import Auc, NanPolicy, auc, auc_difference, micro_auc
from robust_jax.analysis.distribution import distribution
from robust_jax.analysis.intervals import Interval
from robust_jax.analysis.odds_ratio import odds_ratio
from robust_jax.analysis.robustness import accuracy
from robust_jax.difficulty import References, metric, metric_names
from robust_jax.lpds import arms
from robust_jax.lpds.features import by_item, by_key
from robust_jax.lpds.kept import KeptRun, computable
from robust_jax.randomness import rng
from robust_jax.report.inputs import Distribution, MeasureResults, MeasureTemplate, MetricPower, as_json
from robust_jax.runs import Progress, counts_by_status
from robust_jax.types import Sample


class Row(NamedTuple):
    """What a row of Table 1 is about."""

    metric: str
    layer: int | None
    """The block whose hidden states it reads, if it reads any."""


@dataclass(frozen=True)
class Measured:
    """One metric of every answer, an array a template; empty where the template's references do not suffice."""

    values: list[Float[np.ndarray, " _"]] = field(default_factory=list)
    correct: list[Bool[np.ndarray, " _"]] = field(default_factory=list)


def measure_results(run: KeptRun) -> MeasureResults:
    """The content of results.json, from a finished measurement.

    Features are read a template at a time, so that memory does not grow with their number.
    """
    answers = by_item(by_key(run.samples.by_arm(arms.MEASURE)))
    measured: dict[Row, Measured] = {row: Measured() for row in _rows(run)}
    templates: list[MeasureTemplate] = []
    rights: list[Bool[np.ndarray, " C"]] = []
    with Progress("metrics", len(run.reference_record)) as progress:
        for item in run.reference_record:
            asked = answers.get(item, [])
            counted = [sample for sample in asked if sample.counts]
            right = np.array([sample.is_correct for sample in counted], bool)
            rights.append(right)
            references = run.references(item)
            values, lacking = _scores(run, references, list(measured), counted)
            for row, of_row in measured.items():
                of_row.values.append(values.get(row, np.empty(0)))
                of_row.correct.append(right if row in values else right[:0])
            templates.append(
                {
                    "id": item,
                    "accuracy": float(right.mean()) if right.size else None,
                    "variations": len(asked),
                    "references": len(references),
                    "note": _note(references, lacking),
                }
            )
            progress.advance(1)
    seed = int(run.options["seed"])
    return {
        "kind": "lpds measure",
        "model": str(run.options["model"]),
        "suite": str(run.options["suite"]),
        "settings": run.settings,
        "counts": counts_by_status(run.samples),
        "accuracy": as_json(accuracy(rights, generator=rng(seed, "bootstrap", "accuracy"))),
        "metrics": _powers(run, {row: found for row, found in measured.items() if any(map(len, found.values))}),
        "templates": templates,
    }


def _rows(run: KeptRun) -> list[Row]:
    """The rows of the table in its order, input before output as the metrics are registered."""
    rows = []
    for name in run.options.get("metrics") or metric_names():
        layers: Sequence[int | None] = run.layers if "hidden" in metric(name).needs else [None]
        rows += [Row(name, layer) for layer in layers]
    return rows


def _scores(
    run: KeptRun, references: References, rows: Sequence[Row], samples: Sequence[Sample]
) -> tuple[dict[Row, Float[np.ndarray, " C"]], dict[str, str]]:
    """The metrics of one template's answers, and why some of them cannot be had."""
    seen = run.observations(samples)
    names, lacking = computable(references, list(dict.fromkeys(row.metric for row in rows)), seen)
    one_valued = [name for name in names if "hidden" not in metric(name).needs]
    values = {Row(name, None): found for name, found in references.score(one_valued, seen).items()}
    for layer, of_layer in zip(run.layers, references.score_layers(names, seen), strict=True):
        values |= {Row(name, layer): found for name, found in of_layer.items()}
    return values, lacking


def _note(references: References, lacking: dict[str, str]) -> str:
    """What must be known of a template's references."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in lacking.items():
        by_reason.setdefault(reason, []).append(metric(name).label)
    notes = [f"no {', '.join(labels)}: {reason.rstrip('.')}" for reason, labels in by_reason.items()]
    if references.has_floored_shrinkage:
        notes.append("the shrinkage of a covariance is at its least, 0.001: the references hardly differ")
    return "; ".join(notes)


def _powers(run: KeptRun, measured: dict[Row, Measured]) -> list[MetricPower]:
    """The rows of Table 1."""
    seed = int(run.options["seed"])
    aucs = {row: _aucs(row, found, run.options["nan"]) for row, found in measured.items()}
    pooled = {
        row: micro_auc(found, generator=rng(seed, "bootstrap", "auc", *_named(row))) for row, found in aucs.items()
    }
    ranked = [row for row, interval in pooled.items() if np.isfinite(interval.value)]
    best = max(ranked, key=lambda row: pooled[row].value, default=None)
    powers: list[MetricPower] = []
    for row, found in measured.items():
        odds = odds_ratio(found.values, found.correct, run.options["odds"])
        behind = None
        if best is not None and row != best:
            generator = rng(seed, "bootstrap", "difference", *_named(row))
            behind = as_json(auc_difference(aucs[best], aucs[row], generator=generator))
        powers.append(
            {
                "span": "Input" if metric(row.metric).span == "input" else "Output",
                "metric": metric(row.metric).label,
                "layer": row.layer,
                "auc": as_json(pooled[row]),
                "behind": behind,
                "odds_ratio": as_json(Interval(odds.value, odds.low, odds.high, odds.templates)),
                "missing": sum(of_template.missing for of_template in aucs[row]),
                "note": f"odds ratio: {odds.note}" if odds.note else "",
                "distribution": _distribution(found),
            }
        )
    return powers


def _aucs(row: Row, found: Measured, nan: NanPolicy) -> list[Auc]:
    """The AUC of every template. Only a reply can be empty: the policy for NaN is not for metrics of the problem."""
    each = metric(row.metric)
    policy = nan if each.span == "output" else "drop"
    return [
        auc(each.sign * values, correct, policy) for values, correct in zip(found.values, found.correct, strict=True)
    ]


def _distribution(found: Measured) -> Distribution | None:
    shape = distribution(np.concatenate(found.values), np.concatenate(found.correct))
    if shape is None:
        return None
    return {"edges": shape.edges.tolist(), "right": shape.right.tolist(), "wrong": shape.wrong.tolist()}


def _named(row: Row) -> tuple[str, int]:
    """A row as a name for its random draws."""
    return row.metric, row.layer or 0
