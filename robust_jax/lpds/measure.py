"""`lpds measure`: answer random variations of every template and see which metric predicts failure (Section 3)."""

from dataclasses import replace

from robust_jax.lpds import arms
from robust_jax.lpds.blocks import ask_in_blocks
from robust_jax.lpds.options import MeasureOptions
from robust_jax.lpds.record import REFERENCES_FILE, ReferenceRecord, write_references
from robust_jax.lpds.references import gather_references
from robust_jax.lpds.session import open_session
from robust_jax.lpds.space import template_space
from robust_jax.runs import write_finished
from robust_jax.search import random_points


def generations(options: MeasureOptions) -> dict[str, int]:
    """Replies a template at most, by what they are for."""
    return {
        arms.REFERENCE: options.reference_attempts if options.reference == "self" else 0,
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
        wanted = [
            (
                template,
                random_points(
                    template_space(template),
                    options.variations,
                    seed=options.seed,
                    name=f"{arms.MEASURE} {template.id}",
                    exclude=frozenset(references[template.id].keys),
                ),
            )
            for template in session.suite.templates
        ]
        examiner = replace(session.examiner, input_statistics=session.model.capabilities.hidden_states)
        ask_in_blocks(examiner, arms.MEASURE, "measure", wanted, options.attempts)
        write_references(session.run.path, {item: ReferenceRecord(found.keys) for item, found in references.items()})
        write_finished(session.run.path, session.run.samples, session.run.features, (REFERENCES_FILE,))
