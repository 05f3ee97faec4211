"""Every figure of `rrb dilute`, computed from what a run directory keeps; no model is needed."""

import numpy as np
from jaxtyping import Float

from robust_jax.report.inputs import as_json
from robust_jax.report.rrb_inputs import AttentionShare, DilutionResults, Effect
from robust_jax.rrb.attention import ATTENTION
from robust_jax.rrb.dilution import ALONE, NEUTRAL, SEQUENCE, SOLVED, arm
from robust_jax.rrb.kept import KeptAnswers
from robust_jax.runs import FinishedRun, counts_by_status, sample_key

STEPS = (
    ("total", ALONE, SEQUENCE),
    ("length", ALONE, NEUTRAL),
    ("content", NEUTRAL, SOLVED),
    ("own reasoning", SOLVED, SEQUENCE),
)
"""What each step from one condition to another tells; the last three add up to the first."""


def dilution_results(run: FinishedRun) -> DilutionResults:
    """The content of results.json."""
    kept = KeptAnswers(run, ALONE)
    counts = range(2, int(run.options["most"]) + 1)
    conditions = [c for c in (SEQUENCE, NEUTRAL, SOLVED) if arm(c, 2) in kept.arms]
    columns = {(ALONE, 1): kept.accuracy(ALONE)}
    columns |= {(c, n): kept.accuracy(arm(c, n)) for c in conditions for n in counts}
    tokens = {key: kept.prompt_tokens(arm(*key)) for key in columns}
    effects: list[Effect] = []
    for n in counts:
        # The steps add up only over the same problems.
        shared = _shared([columns[_place(c, n)] for c in (ALONE, *conditions)])
        for name, before, after in STEPS:
            if before in (ALONE, *conditions) and after in conditions:
                first, second = (np.where(shared, columns[_place(c, n)], np.nan) for c in (before, after))
                effects.append({"n": n, "effect": name, **kept.change(f"{name} {n}", first, second)})
    results: DilutionResults = {
        "kind": "rrb dilute",
        "model": str(run.options["model"]),
        "suite": str(run.options["data"]),
        "settings": run.settings,
        "counts": counts_by_status(run.samples),
        "conditions": [
            {
                "n": n,
                "condition": condition,
                "accuracy": as_json(kept.interval(f"{condition} {n}", column)),
                "prompt_tokens": as_json(kept.interval(f"tokens {condition} {n}", tokens[condition, n])),
            }
            for (condition, n), column in columns.items()
        ],
        "effects": effects,
        "problems": [
            {
                "id": item,
                "alone": _number(columns[ALONE, 1][place]),
                "last": [_number(columns[SEQUENCE, n][place]) for n in counts],
            }
            for place, item in enumerate(kept.items)
        ],
    }
    if run.options["attention"]:
        results["attention"] = _attention(kept, int(run.options["most"]))
    return results


def _attention(kept: KeptAnswers, most: int) -> list[AttentionShare]:
    """A row a condition, number of problems and layer, where any reply showed where its last answer begins."""
    rows: list[AttentionShare] = []
    for condition, n in [(ALONE, 1), *((c, n) for n in range(2, most + 1) for c in (SEQUENCE, SOLVED))]:
        if arm(condition, n) not in kept.arms:
            continue
        shares = _shares(kept, arm(condition, n))
        if np.isnan(shares).all():
            continue
        columns = np.concatenate([shares, 1 - shares.sum(axis=-1, keepdims=True)], axis=-1)
        for layer in range(columns.shape[1]):
            own, problems, reasoning, rest = (
                as_json(kept.interval(f"attention {condition} {n} {layer} {part}", columns[:, layer, part]))
                for part in range(4)
            )
            rows.append(
                {
                    "n": n,
                    "condition": condition,
                    "layer": layer + 1,
                    "own_problem": own,
                    "earlier_problems": problems,
                    "earlier_reasoning": reasoning,
                    "rest": rest,
                }
            )
    return rows


def _shares(kept: KeptAnswers, arm: str) -> Float[np.ndarray, "C L 3"]:
    """Each problem's mean over the attempts at it whose attention is known; NaN where there is none."""
    samples = [sample for item in kept.items for sample in kept.of(arm, item)]
    keys = [key for key in map(sample_key, samples) if kept.run.features.has_all([key])]
    masses = kept.run.features.gather(keys)[ATTENTION]
    shares = np.full((len(kept.items), *masses.shape[1:]), np.nan)
    for place, item in enumerate(kept.items):
        own = masses[[row for row, key in enumerate(keys) if key[1] == item]]
        own = own[~np.isnan(own).any(axis=(1, 2))]
        if len(own):
            shares[place] = own.mean(axis=0)
    return shares


def _place(condition: str, count: int) -> tuple[str, int]:
    return (condition, 1 if condition == ALONE else count)


def _shared(columns: list[np.ndarray]) -> np.ndarray:
    """Which problems have an answer that counts in every condition."""
    return ~np.isnan(np.stack(columns)).any(axis=0)


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
