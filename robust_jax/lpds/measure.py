"""`lpds measure`: answer random variations of every template and see which metric predicts failure (Section 3)."""

from dataclasses import replace

from robust_jax.lpds import arms
from robust_jax.lpds.blocks import ask_in_blocks
from robust_jax.lpds.options import MeasureOptions
from robust_jax.lpds.record import REFERENCES_FILE, ReferenceRecord, write_references
from robust_jax.lpds.references import gather_references
from robust_jax.lpds.session import Session
from robust_jax.lpds.space import TemplateSpace
from robust_jax.runs import write_finished
from robust_jax.search import random_points


def generations(options: MeasureOptions) -> dict[str, int]:
    """Replies a template at most, by what they are for."""
    return {
        arms.REFERENCE: options.reference_attempts if options.reference == "self" else 0,
        arms.MEASURE: options.variations * options.attempts,
    }


def run_measure(session: Session[MeasureOptions]) -> None:
    """Answer as many variations a template as the options say, none of them a reference; everything is kept.

    Args:
        session: an open one of `lpds measure`.

    Raises:
        RunError: the disk fails.
    """
    options = session.options
    references = gather_references(session)
    wanted = [
        (
            template,
            random_points(
                TemplateSpace(template),
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
