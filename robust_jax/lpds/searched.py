"""What a run directory keeps of a finished search, template by template."""

from dataclasses import dataclass

from robust_jax.difficulty import References
from robust_jax.lpds import arms
from robust_jax.lpds.features import by_item, by_key
from robust_jax.lpds.kept import KeptRun
from robust_jax.lpds.record import CandidateRecord, read_candidates
from robust_jax.types import Sample


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
