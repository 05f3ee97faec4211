"""Several searches side by side: models, settings, seeds (Figures 13 and 22, Tables 4 and 13)."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from robust_jax.analysis.intervals import Interval, bootstrap, mean, mean_difference
from robust_jax.randomness import rng
from robust_jax.report.inputs import ComparedSearches, Comparison, SearchResults, SearchTemplate, as_json

UNTOLD = frozenset({"seed", "suite_digest", "model_digest", "proxy_digest", "command", "limit"})
"""Settings that do not name a search: its seed, and what a name stands for already."""


def comparison(runs: Sequence[SearchResults]) -> Comparison:
    """The runs in the order given, those that differ in their seed alone taken together."""
    groups: dict[str, list[SearchResults]] = {}
    for run in runs:
        groups.setdefault(_name(run, runs), []).append(run)
    first = next(iter(groups.values()))
    return {"kind": "lpds comparison", "searches": [_together(name, group, first) for name, group in groups.items()]}


def _name(run: SearchResults, runs: Sequence[SearchResults]) -> str:
    """Its model and suite, where they differ, and what is set otherwise than in the first run of its model."""
    models, suites = ({str(other[of]) for other in runs} for of in ("model", "suite"))
    first = next(other for other in runs if other["model"] == run["model"])
    names = sorted((first["settings"].keys() | run["settings"].keys()) - UNTOLD - {"model", "suite"})
    changes = [
        f"{name.replace('_', ' ')} {run['settings'].get(name)}"
        for name in names
        if run["settings"].get(name) != first["settings"].get(name)
    ]
    parts = [run["model"]] if len(models) > 1 or not changes else []
    parts += [run["suite"]] if len(suites) > 1 else []
    return ", ".join([*parts, *changes])


def _together(name: str, runs: Sequence[SearchResults], first: Sequence[SearchResults]) -> ComparedSearches:
    items = list(dict.fromkeys(row["id"] for run in runs for row in run["templates"]))
    base, random, beam = (
        _by_template(runs, items, value)
        for value in (lambda row: row["base_accuracy"], lambda row: row["random_error"], lambda row: row["beam_error"])
    )

    def interval(figure: str, statistic: Callable[..., np.ndarray], *columns: Float[np.ndarray, " C"]) -> Interval:
        return bootstrap(statistic, *columns, generator=rng(0, "bootstrap", "comparison", figure))

    random_drop, beam_drop = base + random - 1, base + beam - 1
    is_defined = interval("drop", mean, random_drop).excludes_zero
    ratio = interval("ratio", lambda over, under: mean(over) / mean(under), beam_drop, random_drop)
    others = (
        _by_template(first, items, lambda row: row["beam_error"]) if runs[0]["suite"] == first[0]["suite"] else None
    )
    scores = [run["drs"]["value"] for run in runs if run["drs"]["value"] is not None]
    return {
        "name": name,
        "model": runs[0]["model"],
        "suite": runs[0]["suite"],
        "seeds": [int(run["settings"].get("seed") or 0) for run in runs],
        "base": as_json(interval("base", mean, base)),
        "random_error": as_json(interval("random", mean, random)),
        "beam_error": as_json(interval("beam", mean, beam)),
        "difference": as_json(interval("difference", mean_difference, beam, random)),
        "ratio": as_json(ratio) if is_defined else None,
        "behind": None
        if runs is first or others is None
        else as_json(interval("behind", mean_difference, beam, others)),
        "drs": runs[0]["drs"]
        if len(runs) == 1
        else {"value": float(np.mean(scores)) if scores else None, "low": None, "high": None, "n": runs[0]["drs"]["n"]},
        "explored": sum(row["explored"] for run in runs for row in run["templates"]),
        "templates": {item: None if np.isnan(error) else float(error) for item, error in zip(items, beam, strict=True)},
        "beam_accuracy": [run["search_curves"]["beam_accuracy"] for run in runs],
        "quantile_accuracy": [run["quantile_curve"]["accuracy"] for run in runs],
    }


def _by_template(
    runs: Sequence[SearchResults], items: Sequence[str], value: Callable[[SearchTemplate], float | None]
) -> Float[np.ndarray, " C"]:
    """Each template's mean over the runs; NaN where one of them has none."""
    tables = [{row["id"]: value(row) for row in run["templates"]} for run in runs]
    return np.array([np.mean([np.nan if (v := t.get(item)) is None else v for t in tables]) for item in items], float)
