"""Which estimate of the covariance and which block of the model predict failure best, from one `lpds measure`.

    robust-jax lpds measure --layers 1 2 3 4 --out runs/layers
    python experiments/estimators.py runs/layers

Prints the AUC of MD_H for each of them, with bootstrap intervals over templates, and how far it lies behind the best
one (paired over templates). Nothing is asked anew.
"""

import argparse
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from robust_jax.analysis.auc import Auc, auc, auc_difference, micro_auc
from robust_jax.errors import InputError
from robust_jax.lpds import arms
from robust_jax.lpds.features import by_item, by_key
from robust_jax.lpds.kept import KeptRun
from robust_jax.randomness import rng

METRIC = "MD_H"
ESTIMATES: dict[str, dict[str, Any]] = {
    "Ledoit-Wolf": {"shrinkage": "ledoit-wolf"},
    "OAS": {"shrinkage": "oas"},
    "ridge 0.01 %": {"shrinkage": "ridge", "ridge": 0.0001},
    "ridge 0.1 %": {"shrinkage": "ridge", "ridge": 0.001},
    "ridge 1 %": {"shrinkage": "ridge", "ridge": 0.01},
    "ridge 10 %": {"shrinkage": "ridge", "ridge": 0.1},
    "ridge 100 %": {"shrinkage": "ridge", "ridge": 1.0},
    "pseudo-inverse": {"shrinkage": "pinv"},
}


def aucs(run: KeptRun) -> dict[int, list[Auc]]:
    """The AUC of every template, by layer."""
    found: dict[int, list[Auc]] = {layer: [] for layer in run.layers}
    answers = by_item(by_key(run.samples.by_arm(arms.MEASURE)))
    for item in run.reference_record:
        references = run.references(item)
        counted = [sample for sample in answers.get(item, []) if sample.counts]
        if METRIC in references.left_out([METRIC]) or not counted:
            continue
        correct = np.array([sample.is_correct for sample in counted], bool)
        by_layer = references.score_layers([METRIC], run.observations(counted))
        for layer, scores in zip(run.layers, by_layer, strict=True):
            found[layer].append(auc(scores[METRIC], correct))
    return found


def rows(directory: Path) -> Iterator[str]:
    """The table, the best first."""
    found = {
        (name, layer): of_layer
        for name, changes in ESTIMATES.items()
        for layer, of_layer in aucs(KeptRun(directory, changes)).items()
    }
    pooled = {key: micro_auc(each, generator=rng(0, "bootstrap", "estimators", *key)) for key, each in found.items()}
    order = sorted(pooled, key=lambda key: -pooled[key].value)
    yield "| covariance | layer | AUC | behind the best |"
    yield "|---|---|---|---|"
    for key in order:
        behind = ""
        if key != order[0]:
            gap = auc_difference(found[order[0]], found[key], generator=rng(0, "bootstrap", "behind", *key))
            behind = f"{gap.value:.3f} ({gap.low:.3f} to {gap.high:.3f})"
        interval = pooled[key]
        yield f"| {key[0]} | {key[1]} | {interval.value:.3f} ({interval.low:.3f} to {interval.high:.3f}) | {behind} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="Estimates of the covariance and layers, by how they predict failure.")
    parser.add_argument("run", type=Path, help="a finished run of lpds measure")
    parser.add_argument("--show", type=int, default=None, help="how many rows; none shows all")
    options = parser.parse_args()
    try:
        for line in islice(rows(options.run), None if options.show is None else options.show + 2):
            print(line)
    except InputError as error:
        print(f"estimators.py: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
