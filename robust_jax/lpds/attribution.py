"""Which slots and values make a searched template hard, as the report shows it."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float

from robust_jax.analysis.attribution import (
    ValueEffect,
    clear,
    explained_share,
    percentiles,
    value_effects,
    value_groups,
)
from robust_jax.lpds.searched import SearchedTemplate
from robust_jax.randomness import rng
from robust_jax.report.inputs import Attribution, SlotShare, as_json
from robust_jax.report.inputs import ValueEffect as ValueEffectJson


def attribution(
    templates: Sequence[SearchedTemplate], difficulty: Mapping[str, Float[np.ndarray, " C"]], seed: int
) -> Attribution:
    """The effects of all slots and values of all templates.

    Args:
        templates: what a run keeps of each.
        difficulty: for each template the difficulty of its random variations, in the order of their samples.
        seed: the run's.
    """
    found = [(template, *row) for template in templates for row in _effects(template, difficulty[template.id])]
    is_clear = clear([effect.error.p_value for _, _, effect, _ in found])
    values = [
        ValueEffectJson(
            template=template.id,
            slot=slot,
            value=effect.group.label,
            random_share=effect.error.interval.n / len(template.random),
            search_share=search_share,
            error=as_json(effect.error.interval),
            difficulty=as_json(effect.difficulty.interval),
            is_clear=bool(stands_out),
        )
        for (template, slot, effect, search_share), stands_out in zip(found, is_clear, strict=True)
    ]
    values.sort(key=lambda row: (-abs(row["error"]["value"] or 0.0), row["template"], row["slot"], row["value"]))
    slots = [row for template in templates for row in _slots(template, difficulty[template.id], seed)]
    return {"slots": slots, "values": values}


def _effects(
    template: SearchedTemplate, difficulty: Float[np.ndarray, " C"]
) -> Iterator[tuple[str, ValueEffect, float]]:
    """Every value's slot, its effect, and how many of the explored variations have it."""
    wrong, difficulty, slots = _random_variations(template, difficulty)
    for slot, values in slots.items():
        for effect in value_effects(values, wrong, difficulty):
            explored = [sample.values[slot] in effect.group.values for sample in template.explored]
            yield slot, effect, float(np.mean(explored))


def _slots(template: SearchedTemplate, difficulty: Float[np.ndarray, " C"], seed: int) -> Iterator[SlotShare]:
    wrong, difficulty, slots = _random_variations(template, difficulty)
    for slot, values in slots.items():
        number = {value: place for place, group in enumerate(value_groups(values)) for value in group.values}
        groups = np.array([number[value] for value in values])
        error, strayed = (
            explained_share(groups, outcome, generator=rng(seed, "bootstrap", "slot", of, template.id, slot))
            for of, outcome in (("error", wrong.astype(float)), ("difficulty", percentiles(difficulty)))
        )
        yield {"template": template.id, "slot": slot, "error": as_json(error), "difficulty": as_json(strayed)}


def _random_variations(
    template: SearchedTemplate, difficulty: Float[np.ndarray, " C"]
) -> tuple[Bool[np.ndarray, " n"], Float[np.ndarray, " n"], dict[str, list[str]]]:
    """Of the random variations that count: which were wrong, their difficulty, and the value of every slot."""
    counted = [sample for sample in template.random if sample.counts]
    wrong = np.array([not sample.is_correct for sample in counted], bool)
    names = list(counted[0].values) if counted else []
    slots = {name: [sample.values[name] for sample in counted] for name in names}
    return wrong, difficulty[[sample.counts for sample in template.random]], slots
