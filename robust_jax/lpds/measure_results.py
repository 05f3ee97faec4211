"""Every figure of `lpds measure`, computed from what a run directory keeps; no model is needed (Section 3.2)."""

import numpy as np
from jaxtyping import Bool

from robust_jax.analysis.auc import Auc, auc, micro_auc
from robust_jax.analysis.robustness import accuracy
from robust_jax.difficulty import metric, metric_names
from robust_jax.lpds import arms
from robust_jax.lpds.features import by_item, by_key, kept_observations
from robust_jax.lpds.kept import KeptRun, all_scores, as_json, counts_by_status
from robust_jax.randomness import rng
from robust_jax.report.inputs import MeasureResults, MeasureTemplate


def measure_results(run: KeptRun) -> MeasureResults:
    """The content of results.json, from a finished measurement."""
    measured = by_item(by_key(run.samples.by_arm(arms.MEASURE)))
    powers: dict[str, list[Auc]] = {}
    rights: list[Bool[np.ndarray, " C"]] = []
    templates: list[MeasureTemplate] = []
    for item, record in run.reference_record.items():
        counted = [sample for sample in measured.get(item, []) if sample.counts]
        right = np.array([sample.is_correct for sample in counted], bool)
        rights.append(right)
        references = run.references(item)
        seen = kept_observations(run.features, counted)
        for name, values in all_scores(references, metric_names(), seen).items():
            powers.setdefault(name, []).append(auc(metric(name).sign * values, right))
        templates.append(
            {
                "id": item,
                "accuracy": float(right.mean()) if right.size else None,
                "variations": len(measured.get(item, [])),
                "references": len(record.initial),
                "note": "too few references for Mahalanobis distances" if references.left_out(["MD_H"]) else "",
            }
        )
    seed = int(run.options["seed"])
    return {
        "kind": "lpds measure",
        "model": str(run.options["model"]),
        "suite": str(run.options["suite"]),
        "settings": run.settings,
        "counts": counts_by_status(run.samples),
        "accuracy": as_json(accuracy(rights, generator=rng(seed, "bootstrap", "accuracy"))),
        "metrics": [
            {
                "span": "Input" if metric(name).span == "input" else "Output",
                "metric": metric(name).label,
                "auc": as_json(micro_auc(powers[name], generator=rng(seed, "bootstrap", "auc", name))),
                "odds_ratio": None,
            }
            for name in metric_names()
            if name in powers
        ],
        "templates": templates,
    }
