"""`lpds measure`: answer random variations of every template and see which metric predicts failure (Section 3)."""

import math
from dataclasses import replace

from robust_jax.evaluation import Question
from robust_jax.lpds import arms
from robust_jax.lpds.options import MeasureOptions
from robust_jax.lpds.record import ReferenceRecord, write_finished, write_references
from robust_jax.lpds.references import gather_references, template_space
from robust_jax.lpds.session import open_session
from robust_jax.runs import Progress
from robust_jax.search import random_points

BLOCK = 128
"""Variations a template that are asked, and kept, together."""


def generations(options: MeasureOptions) -> dict[str, int]:
    """Replies a template at most, by what they are for."""
    return {
        arms.REFERENCE: options.reference_attempts,
        arms.MEASURE: options.variations * options.attempts,
    }


def run_measure(options: MeasureOptions) -> None:
    """Answer `options.variations` variations a template, none of them a reference; everything is kept.

    Raises:
        InputError: see `open_session`.
        RunError: the disk fails.
    """
    with open_session(options, "lpds measure", ()) as session:
        references = gather_references(session)
        points = {
            template.id: random_points(
                template_space(template),
                options.variations,
                seed=options.seed,
                name=f"{arms.MEASURE} {template.id}",
                exclude=frozenset(references[template.id].keys),
            )
            for template in session.suite.templates
        }
        examiner = replace(session.examiner, input_statistics=session.model.capabilities.hidden_states)
        longest = max(map(len, points.values()))
        total = sum(map(len, points.values())) * options.attempts
        with Progress("measure", total) as progress:
            for number in range(math.ceil(longest / BLOCK)):
                questions = [
                    Question(arms.MEASURE, template.fill(point), attempt)
                    for template in session.suite.templates
                    for point in points[template.id][number * BLOCK : (number + 1) * BLOCK]
                    for attempt in range(options.attempts)
                ]
                examiner.ask(f"{arms.MEASURE}-{number:03d}", questions, progress.advance)
        write_references(session.run.path, {item: ReferenceRecord(found.keys) for item, found in references.items()})
        write_finished(session.run.path, session.run.samples, session.run.features)
