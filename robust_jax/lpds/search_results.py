"""Every figure of `lpds search`, computed from what a run directory keeps; no model is needed (Sections 4.2, D.2)."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float

from robust_jax.analysis.auc import Auc, auc, micro_auc
from robust_jax.analysis.distribution import distribution
from robust_jax.analysis.intervals import Interval, bootstrap, mean
from robust_jax.analysis.robustness import (
    BeamLevel,
    SearchCurves,
    accuracy,
    accuracy_distribution,
    accuracy_drops,
    error_rate_difference,
    quantile_curve,
    search_curves,
    template_accuracy,
)
from robust_jax.difficulty import metric
from robust_jax.lpds.attribution import attribution
from robust_jax.lpds.kept import KeptRun, all_scores
from robust_jax.lpds.searched import SearchedTemplate
from robust_jax.randomness import rng
from robust_jax.report.inputs import Distribution, SearchResults, SearchTemplate, TemplateCurve, as_json
from robust_jax.report.inputs import SearchCurves as SearchCurvesJson
from robust_jax.runs import counts_by_status
from robust_jax.types import Sample

AUC_METRICS = ("LD_min", "MD_H", "MD_E", "output_perplexity", "output_entropy", "output_self_certainty")
"""What the random variations tell about, so that search and metrics can be judged from one run."""


def search_results(run: KeptRun, templates: Sequence[SearchedTemplate]) -> SearchResults:
    """The content of results.json, from a finished search and what `searched_templates` reads of it."""
    seed = int(run.options["seed"])

    def generator(figure: str) -> np.random.Generator:
        return rng(seed, "bootstrap", figure)

    base = [_correct(template.base) for template in templates]
    random = [_correct(template.random) for template in templates]
    beam = [_correct(template.explored) for template in templates]
    drops = accuracy_drops(base, beam, random, generator=generator("drops"))
    curve = quantile_curve(
        [_difficulty(template)[_counted(template.explored)] for template in templates],
        beam,
        generator=generator("quantiles"),
    )
    levels = [_levels(template) for template in templates]
    curves = search_curves(levels, generator=generator("curves"))
    random_scores = {template.id: _random_scores(run, template) for template in templates}
    maximised = str(run.options["difficulty"])
    has_base = any(answers.size for answers in base)
    return {
        "kind": "lpds search",
        "model": str(run.options["model"]),
        "suite": str(run.options["suite"]),
        "settings": run.settings,
        "counts": counts_by_status(run.samples),
        "accuracy": {
            "base": as_json(bootstrap(mean, template_accuracy(base), generator=generator("base"))),
            "random": as_json(accuracy(random, generator=generator("random"))),
            "beam": as_json(accuracy(beam, generator=generator("beam"))),
        },
        "drops": {
            "random": as_json(drops.random_drop),
            "beam": as_json(drops.beam_drop),
            "ratio": as_json(drops.ratio) if drops.ratio else None,
        }
        if has_base
        else None,
        "error_difference": as_json(error_rate_difference(beam, random, generator=generator("difference"))),
        "templates": [_row(template) for template in templates] + _left_out(run, templates),
        "search_curves": _search_curves(curves, templates, levels),
        "quantile_curve": {
            "quantile": list(range(1, len(curve.accuracy) + 1)),
            "accuracy": [point.value for point in curve.accuracy],
            "low": [point.low for point in curve.accuracy],
            "high": [point.high for point in curve.accuracy],
        },
        "drs": as_json(curve.score),
        "auc": {
            metric(name).label: as_json(interval)
            for name, interval in auc_on_random(templates, random_scores, generator("auc")).items()
        },
        "accuracy_distribution": {
            "beam": accuracy_distribution(beam, generator=generator("beam distribution")).tolist(),
            "random": accuracy_distribution(random, generator=generator("random distribution")).tolist(),
        },
        "distributions": _distributions(templates, random_scores),
        "attribution": attribution(
            templates,
            {item: metric(maximised).sign * scores[maximised] for item, scores in random_scores.items()},
            seed,
        ),
    }


def _random_scores(run: KeptRun, template: SearchedTemplate) -> dict[str, Float[np.ndarray, " C"]]:
    """Raw values of the metrics that can be had for a template's random variations, which no search has biased."""
    names = dict.fromkeys([*AUC_METRICS, str(run.options["difficulty"])])
    return all_scores(template.references, names, run.observations(template.random))


def auc_on_random(
    templates: Sequence[SearchedTemplate],
    scores: Mapping[str, Mapping[str, Float[np.ndarray, " C"]]],
    generator: np.random.Generator,
) -> Mapping[str, Interval]:
    """How well each metric ranks wrong above right answers among the random variations."""
    parts: dict[str, list[Auc]] = {name: [] for name in AUC_METRICS}
    for template in templates:
        counted = _counted(template.random)
        for name in AUC_METRICS:
            if name in scores[template.id]:
                values = metric(name).sign * scores[template.id][name][counted]
                parts[name].append(auc(values, _correct(template.random)))
    return {name: micro_auc(found, generator=generator) for name, found in parts.items() if found}


def _distributions(
    templates: Sequence[SearchedTemplate], scores: Mapping[str, Mapping[str, Float[np.ndarray, " C"]]]
) -> dict[str, Distribution]:
    """How the metrics of all templates' random variations are distributed over right and wrong answers."""
    correct = np.concatenate([_correct(template.random) for template in templates])
    found: dict[str, Distribution] = {}
    for name in AUC_METRICS:
        parts = [
            scores[template.id].get(name, np.full(len(template.random), np.nan))[_counted(template.random)]
            for template in templates
        ]
        shape = distribution(np.concatenate(parts), correct)
        if shape is not None:
            found[metric(name).label] = {
                "edges": shape.edges.tolist(),
                "right": shape.right.tolist(),
                "wrong": shape.wrong.tolist(),
            }
    return found


def _search_curves(
    curves: SearchCurves, templates: Sequence[SearchedTemplate], levels: Sequence[Sequence[BeamLevel]]
) -> SearchCurvesJson:
    """Medians with their intervals, and the course of every template."""
    singles: list[TemplateCurve] = []
    for template, of_template in zip(templates, levels, strict=True):
        held = [of_template[min(t, len(of_template) - 1)] for t in range(len(curves.difficulty))]
        singles.append(
            {
                "id": template.id,
                "max_difficulty": [float(np.fmax.reduce(level.difficulty, initial=np.nan)) for level in held],
                "beam_accuracy": [float(level.correct.mean()) if level.correct.size else None for level in held],
            }
        )
    return {
        "iteration": list(range(len(curves.difficulty))),
        "max_difficulty": [point.value for point in curves.difficulty],
        "max_difficulty_low": [point.low for point in curves.difficulty],
        "max_difficulty_high": [point.high for point in curves.difficulty],
        "beam_accuracy": [point.value for point in curves.accuracy],
        "beam_accuracy_low": [point.low for point in curves.accuracy],
        "beam_accuracy_high": [point.high for point in curves.accuracy],
        "templates": singles,
    }


def _row(template: SearchedTemplate) -> SearchTemplate:
    """One line of the table of templates."""
    return {
        "id": template.id,
        "base_accuracy": _share(_correct(template.base)),
        "random_error": _share(~_correct(template.random)),
        "beam_error": _share(~_correct(template.explored)),
        "explored": len(template.explored),
        "references": template.initial_references,
        "note": "",
    }


def _left_out(run: KeptRun, templates: Sequence[SearchedTemplate]) -> list[SearchTemplate]:
    """Lines for the templates that could not be searched."""
    searched = {template.id for template in templates}
    return [
        {
            "id": item,
            "base_accuracy": None,
            "random_error": None,
            "beam_error": None,
            "explored": 0,
            "references": len(record.initial),
            "note": f"not searched: {record.left_out}",
        }
        for item, record in run.reference_record.items()
        if item not in searched
    ]


def _difficulty(template: SearchedTemplate) -> Float[np.ndarray, " C"]:
    return np.array([np.nan if row.difficulty is None else row.difficulty for row in template.candidates])


def _counted(samples: Sequence[Sample]) -> Bool[np.ndarray, " C"]:
    return np.array([sample.counts for sample in samples], bool)


def _correct(samples: Sequence[Sample]) -> Bool[np.ndarray, " C"]:
    """Whether each answer that counts was right."""
    return np.array([sample.is_correct for sample in samples if sample.counts], bool)


def _levels(template: SearchedTemplate) -> list[BeamLevel]:
    """The beam at the end of every iteration."""
    last = max(row.iteration for row in template.candidates)
    levels = []
    for iteration in range(last + 1):
        places = [place for place, row in enumerate(template.candidates) if iteration in row.in_beam]
        beam = [template.explored[place] for place in places]
        levels.append(BeamLevel(_difficulty(template)[places], _correct(beam)))
    return levels


def _share(flags: Bool[np.ndarray, " C"]) -> float | None:
    return float(flags.mean()) if flags.size else None
