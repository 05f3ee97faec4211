"""The replies the page shows: the hardest variations beside base problem and nearest reference (Figure 77)."""

from collections.abc import Sequence

import numpy as np

from robust_jax.difficulty import math_tokens, normalised_distances
from robust_jax.lpds import arms
from robust_jax.lpds.kept import KeptRun
from robust_jax.lpds.searched import SearchedTemplate
from robust_jax.report import Answers, Attempt, TemplateExamples, VariationExample
from robust_jax.report.inputs import AnswerRow
from robust_jax.report.wording import one_line
from robust_jax.types import Sample

HARDEST, MIDDLE, EASIEST = 30, 5, 5
"""How many explored variations a template are shown, from each part of the difficulty range."""


def search_examples(run: KeptRun, templates: Sequence[SearchedTemplate]) -> list[TemplateExamples]:
    """What the page shows of every searched template, the hardest variations first."""
    return [_template_examples(run, template) for template in templates]


def _template_examples(run: KeptRun, template: SearchedTemplate) -> TemplateExamples:
    difficulty = {row.key: row.difficulty for row in template.candidates}
    ranked = sorted(
        (sample for sample in template.explored if difficulty[sample.variation] is not None),
        key=lambda sample: (-(difficulty[sample.variation] or 0.0), sample.variation),
    )
    shown = _spread(ranked)
    references = run.reference_samples(template.id)
    nearest = _nearest(shown, references)
    return {
        "template": template.id,
        "base": _attempt(template.base[0], difficulty.get(template.base[0].variation)) if template.base else None,
        "variations": [
            VariationExample(
                **_attempt(sample, difficulty[sample.variation]),
                reference=None if reference is None else _attempt(reference, None),
            )
            for sample, reference in zip(shown, nearest, strict=True)
        ],
    }


def _spread(ranked: Sequence[Sample]) -> list[Sample]:
    """The hardest ones, then some from the middle, then the easiest; each once."""
    middle = len(ranked) // 2 - MIDDLE // 2
    places = [*range(HARDEST), *range(middle, middle + MIDDLE), *range(len(ranked) - EASIEST, len(ranked))]
    return [ranked[place] for place in sorted({place for place in places if 0 <= place < len(ranked)})]


def _nearest(samples: Sequence[Sample], references: Sequence[Sample]) -> list[Sample | None]:
    """The reference with the smallest Levenshtein distance to each reply; never the same variation."""
    if not samples or not references:
        return [None] * len(samples)
    distances = normalised_distances(
        [math_tokens(sample.response) for sample in samples],
        [math_tokens(reference.response) for reference in references],
    )
    same = np.array([[s.variation == r.variation for r in references] for s in samples])
    distances = np.where(same, np.inf, distances)
    return [references[int(row.argmin())] if np.isfinite(row.min()) else None for row in distances]


def _attempt(sample: Sample, difficulty: float | None) -> Attempt:
    return {
        "variation": sample.variation,
        "question": sample.question,
        "response": sample.response,
        "gold": sample.gold,
        "extracted": sample.extracted,
        "status": sample.status,
        "correct": sample.is_correct,
        "difficulty": difficulty,
    }


def search_answers(templates: Sequence[SearchedTemplate]) -> Answers:
    """Every answer of a search in brief: the page's table of all of them."""
    rows: list[AnswerRow] = []
    slots: list[tuple[str, list[str]]] = []
    for number, template in enumerate(templates):
        difficulty = {row.key: row.difficulty for row in template.candidates}
        samples = [*template.base, *template.explored, *template.random]
        slots.append((one_line(template.id), list(samples[0].values) if samples else []))
        rows += [
            (
                number,
                sample.arm,
                list(sample.values.values()),
                _short(difficulty.get(sample.variation) if sample.arm == arms.BEAM else None),
                (1 if sample.is_correct else 0) if sample.counts else 2,
                sample.extracted,
                sample.gold,
            )
            for sample in samples
        ]
    return {"slots": slots, "rows": rows}


def _short(difficulty: float | None) -> float | None:
    return None if difficulty is None else float(f"{difficulty:.5g}")
