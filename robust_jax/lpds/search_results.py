"""Every figure of `lpds search`, computed from what a run directory keeps; no model is needed (Sections 4.2, D.2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from robust_jax.analysis.auc import Auc, auc, micro_auc
from robust_jax.analysis.intervals import Interval, bootstrap, mean
from robust_jax.analysis.robustness import (
    BeamLevel,
    accuracy,
    accuracy_distribution,
    accuracy_drops,
    error_rate_difference,
    quantile_curve,
    search_curves,
    template_accuracy,
)
from robust_jax.difficulty import References, metric
from robust_jax.lpds import arms
from robust_jax.lpds.features import by_item, by_key, kept_observations
from robust_jax.lpds.kept import KeptRun, all_scores
from robust_jax.lpds.record import CandidateRecord, read_candidates
from robust_jax.randomness import rng
from robust_jax.report.inputs import SearchResults, SearchTemplate, as_json
from robust_jax.runs import counts_by_status
from robust_jax.types import Sample

AUC_METRICS = ("LD_min", "MD_H", "MD_E", "output_perplexity", "output_entropy", "output_self_certainty")
"""What the random variations tell about, so that search and metrics can be judged from one run."""


@dataclass(frozen=True)
class SearchedTemplate:
    """What a run keeps of one template's search."""

    id: str
    base: list[Sample]
    random: list[Sample]
    explored: list[Sample]
    """In the order of the search."""
    candidates: list[CandidateRecord]
    """One a sample of `explored`."""
    references: References
    """As they were after the last fit."""
    initial_references: int


def searched_templates(run: KeptRun) -> list[SearchedTemplate]:
    """The templates of a finished search.

    Raises:
        InputError: the search has not finished.
    """
    candidates: dict[str, list[CandidateRecord]] = {}
    for row in read_candidates(run.path):
        candidates.setdefault(row.template, []).append(row)
    answers = {arm: by_item(by_key(run.samples.by_arm(arm))) for arm in (arms.BASE, arms.BEAM, arms.RANDOM)}
    templates = []
    for item, rows in candidates.items():
        explored = {sample.variation: sample for sample in answers[arms.BEAM][item]}
        templates.append(
            SearchedTemplate(
                id=item,
                base=answers[arms.BASE].get(item, []),
                random=answers[arms.RANDOM].get(item, []),
                explored=[explored[row.key] for row in rows],
                candidates=rows,
                references=run.references(item),
                initial_references=len(run.reference_record[item].initial),
            )
        )
    return templates


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
    curves = search_curves([_levels(template) for template in templates], generator=generator("curves"))
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
        "search_curves": {
            "iteration": list(range(len(curves.difficulty))),
            "max_difficulty": [point.value for point in curves.difficulty],
            "beam_accuracy": [point.value for point in curves.accuracy],
        },
        "quantile_curve": {
            "quantile": list(range(1, len(curve.accuracy) + 1)),
            "accuracy": [point.value for point in curve.accuracy],
            "low": [point.low for point in curve.accuracy],
            "high": [point.high for point in curve.accuracy],
        },
        "drs": as_json(curve.score),
        "auc": {
            metric(name).label: as_json(interval)
            for name, interval in auc_on_random(run, templates, generator("auc")).items()
        },
        "accuracy_distribution": {
            "beam": accuracy_distribution(beam, generator=generator("beam distribution")).tolist(),
            "random": accuracy_distribution(random, generator=generator("random distribution")).tolist(),
        },
    }


def auc_on_random(
    run: KeptRun, templates: Sequence[SearchedTemplate], generator: np.random.Generator
) -> Mapping[str, Interval]:
    """How well each metric ranks wrong above right answers among the random variations, which no search has biased."""
    parts: dict[str, list[Auc]] = {name: [] for name in AUC_METRICS}
    for template in templates:
        counted = [sample for sample in template.random if sample.counts]
        seen = kept_observations(run.features, counted)
        for name, values in all_scores(template.references, AUC_METRICS, seen).items():
            parts[name].append(auc(metric(name).sign * values, _correct(counted)))
    return {name: micro_auc(found, generator=generator) for name, found in parts.items() if found}


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
            "note": "not searched: too few correct replies to measure difficulty from",
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
