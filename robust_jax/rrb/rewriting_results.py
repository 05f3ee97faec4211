"""Every figure of `rrb run`, computed from what a run directory keeps; no model is needed."""

from robust_jax.analysis.paired import holm
from robust_jax.report.inputs import as_json
from robust_jax.report.rrb_inputs import RewritingResults
from robust_jax.rrb.kept import KeptAnswers, mean_of
from robust_jax.rrb.perturbations import find_perturbation
from robust_jax.rrb.rewriting import ORIGINAL
from robust_jax.runs import FinishedRun, counts_by_status

CATEGORIES = ("syntactic", "semantic", "contextual", "visual")


def rewriting_results(run: FinishedRun) -> RewritingResults:
    """The content of results.json."""
    kept = KeptAnswers(run, ORIGINAL)
    names = [arm for arm in kept.arms if arm != ORIGINAL]
    category = {name: find_perturbation(name).category for name in names}
    original = kept.accuracy(ORIGINAL)
    accuracy = {name: kept.accuracy(name) for name in names}
    changes = {name: kept.change(name, original, accuracy[name]) for name in names}
    adjusted = holm([changes[name]["p"] for name in names])
    in_category = {c: [accuracy[name] for name in names if category[name] == c] for c in CATEGORIES}
    return {
        "kind": "rrb run",
        "model": str(run.options["model"]),
        "suite": str(run.options["data"]),
        "settings": run.settings,
        "counts": counts_by_status(run.samples),
        "original": as_json(kept.interval(ORIGINAL, original)),
        "original_tokens": as_json(kept.interval("tokens original", kept.reply_tokens(ORIGINAL))),
        "perturbations": [
            {
                "name": name,
                "category": category[name],
                "accuracy": as_json(kept.interval(name, accuracy[name])),
                **changes[name],
                "p_adjusted": p,
                "tokens": as_json(kept.interval(f"tokens {name}", kept.reply_tokens(name))),
            }
            for name, p in zip(names, adjusted, strict=True)
        ],
        "categories": [
            {
                "category": name,
                "accuracy": as_json(kept.interval(f"category {name}", mean_of(columns))),
                **kept.change(f"category {name}", original, mean_of(columns)),
            }
            for name, columns in in_category.items()
            if columns
        ],
        "average": kept.change("average", original, mean_of(list(accuracy.values()))),
        "problems": [
            {
                "id": item,
                "original": _number(original[place]),
                "rewritten": _number(mean_of(list(accuracy.values()))[place]),
                "lost": ", ".join(name for name in names if accuracy[name][place] < original[place]),
            }
            for place, item in enumerate(kept.items)
        ],
    }


def _number(value: float) -> float | None:
    return None if value != value else float(value)
