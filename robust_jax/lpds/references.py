"""Finding the correct replies that difficulty is measured from (paper Section 3.1, Appendix C.3.2)."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from robust_jax.difficulty import select_references
from robust_jax.evaluation import TemplateQuestion
from robust_jax.lpds import arms
from robust_jax.lpds.features import by_item, reference_set
from robust_jax.lpds.reference_source import Given, reference_points
from robust_jax.lpds.session import Session
from robust_jax.runs import Progress
from robust_jax.types import Point, ReferenceSet, Sample, Template

SLOWEST_RATE = 0.2
"""A round asks for as many variations as would do at the rate of right answers so far, but at no lower rate than
this: a few unlucky answers must not send a thousand prompts at once."""


@dataclass
class _Quest:
    """The hunt for one template's references."""

    template: Template
    points: list[Point]
    """What may be asked, in order."""
    samples: list[Sample] = field(default_factory=list)

    @property
    def correct(self) -> list[Sample]:
        return [sample for sample in self.samples if sample.is_correct]

    def next_points(self, wanted: int) -> list[Point]:
        """The variations of the next round."""
        asked, right = len(self.samples), len(self.correct)
        rate = max(right / asked, SLOWEST_RATE) if asked else 1.0
        return self.points[asked : asked + math.ceil(max(0, wanted - right) / rate)]


def gather_references(session: Session[Any]) -> dict[str, ReferenceSet]:
    """The initial references of every template; an empty set where there are none."""
    if session.source.given is None:
        return _own_references(session)
    return _given_references(session, session.source.given)


def _own_references(session: Session[Any]) -> dict[str, ReferenceSet]:
    """Correct replies of the model itself.

    Variations are asked in rounds until there are as many correct replies as the policy can use, or the attempts or
    the template's fillings are used up. All templates share the batches of a round.
    """
    options = session.options
    # Half of the correct replies are to remain, so twice as many are of use.
    wanted = options.reference_count * (2 if options.references == "half" else 1)
    quests = [
        _Quest(template, reference_points(template, options, options.reference_attempts))
        for template in session.suite.templates
    ]
    number = 0
    while questions := [
        TemplateQuestion(arms.REFERENCE, quest.template.fill(point))
        for quest in quests
        for point in quest.next_points(wanted)
    ]:
        with Progress(f"references, round {number + 1}", len(questions)) as progress:
            answers = session.examiner.ask(f"{arms.REFERENCE}-{number:03d}", questions, progress.advance)
        samples = by_item(answers.samples)
        for quest in quests:
            quest.samples += samples.get(quest.template.id, [])
        number += 1
    references = {}
    for quest in quests:
        chosen = select_references(quest.correct, maximum=options.reference_count, policy=options.references)
        references[quest.template.id] = reference_set(session.run.features, chosen)
    return references


def _given_references(session: Session[Any], given: Callable[[Template], list[Given]]) -> dict[str, ReferenceSet]:
    """Correct replies of someone else, with the hidden states that the model has when it reads them as its own."""
    replies = [pair for template in session.suite.templates for pair in given(template)]
    questions = [TemplateQuestion(arms.REFERENCE, variation) for variation, _ in replies]
    with Progress("references", len(questions)) as progress:
        answers = session.examiner.ask(
            f"{arms.REFERENCE}-000", questions, progress.advance, given=[reply for _, reply in replies]
        )
    samples = by_item([sample for sample in answers.samples if sample.is_correct])
    return {
        template.id: reference_set(session.run.features, samples.get(template.id, []))
        for template in session.suite.templates
    }
