"""Kept samples and features as what the metrics and the references read."""

from collections.abc import Iterable, Sequence

import numpy as np

from robust_jax.difficulty import Observations
from robust_jax.evaluation import EMBEDDING, HIDDEN, INPUT_STATISTICS, OUTPUT_STATISTICS, Answers
from robust_jax.runs import FeatureStore, sample_key
from robust_jax.types import ReferenceSet, Sample


def observations(answers: Answers) -> Observations:
    """What the metrics read of one template's answers, row by row."""
    return Observations(
        keys=tuple(sample.variation for sample in answers.samples),
        text=tuple(sample.response for sample in answers.samples),
        hidden=answers.features.get(HIDDEN),
        embeddings=answers.features.get(EMBEDDING),
        output_statistics=answers.features.get(OUTPUT_STATISTICS),
        input_statistics=answers.features.get(INPUT_STATISTICS),
    )


def kept_observations(features: FeatureStore, samples: Sequence[Sample]) -> Observations:
    """What the metrics read of kept samples; their features come from disk."""
    keys = [sample_key(sample) for sample in samples]
    arrays = features.gather(keys) if features.has_all(keys) else {}
    return observations(Answers(list(samples), arrays))


def reference_set(features: FeatureStore, samples: Sequence[Sample]) -> ReferenceSet:
    """References made of kept samples, in their order; those whose features are not finite are left out."""
    seen = kept_observations(features, samples)
    count = len(samples)
    hidden = np.zeros((count, 0, 0), np.float32) if seen.hidden is None else seen.hidden
    embeddings = np.zeros((count, 0), np.float32) if seen.embeddings is None else seen.embeddings
    is_finite = np.isfinite(hidden).all(axis=(1, 2)) & np.isfinite(embeddings).all(axis=1)
    usable: list[int] = np.flatnonzero(is_finite).tolist()
    return ReferenceSet(
        keys=tuple(seen.keys[row] for row in usable),
        texts=tuple(samples[row].response for row in usable),
        hidden=hidden[usable],
        embeddings=embeddings[usable],
    )


def by_key(samples: Iterable[Sample]) -> list[Sample]:
    """Samples in an order that does not hang on when each was answered, for figures that draw from them."""
    return sorted(samples, key=sample_key)


def by_item(samples: Sequence[Sample]) -> dict[str, list[Sample]]:
    """Samples sorted into their templates, in order."""
    grouped: dict[str, list[Sample]] = {}
    for sample in samples:
        grouped.setdefault(sample.item, []).append(sample)
    return grouped


def answers_by_item(answers: Answers) -> dict[str, Answers]:
    """Answers sorted into their templates, in order."""
    rows: dict[str, list[int]] = {}
    for row, sample in enumerate(answers.samples):
        rows.setdefault(sample.item, []).append(row)
    return {
        item: Answers(
            [answers.samples[row] for row in places],
            {name: array[places] for name, array in answers.features.items()},
        )
        for item, places in rows.items()
    }
