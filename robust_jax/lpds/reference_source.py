"""Where the correct replies come from that difficulty is measured from (paper Appendix D.1, Table 12)."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

from robust_jax.errors import InputError
from robust_jax.lpds import arms
from robust_jax.lpds.kept import KeptRun
from robust_jax.lpds.options import LpdsOptions
from robust_jax.lpds.space import TemplateSpace
from robust_jax.search import random_points
from robust_jax.types import Point, Sample, Suite, Template, Variation

Given = tuple[Variation, str]
"""A variation and the reply that is put into the model's mouth."""


@dataclass(frozen=True)
class ReferenceSource:
    """Whose correct replies the references are."""

    identity: str
    """The same for the same replies, wherever they lie."""
    given: Callable[[Template], list[Given]] | None
    """The replies for a template; None if the model is to be asked for its own."""


def reference_source(options: LpdsOptions, suite: Suite) -> ReferenceSource:
    """What `--reference` names.

    Raises:
        InputError: it is neither self, nor trace, nor the directory of a finished run of the same suite.
    """
    if options.reference == "self":
        return ReferenceSource("self", None)
    if options.reference == "trace":
        return ReferenceSource("trace", lambda template: _worked_solutions(template, options))
    path = Path(options.reference)
    if not path.is_dir():
        raise InputError(f"--reference {options.reference}: give self, trace or the directory of another model's run")
    run = KeptRun(path)
    if run.options["suite_digest"] != suite.digest:
        raise InputError(f"--reference {path}: its run is of another suite, {run.options['suite']}, or version of it")
    replies = {item: run.reference_samples(item)[: options.reference_count] for item in run.reference_record}
    content = {item: [(sample.variation, sample.response) for sample in of_item] for item, of_item in replies.items()}
    digest = sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
    return ReferenceSource(
        f"{run.options['model']} ({digest})",
        lambda template: [(_variation(sample), sample.response) for sample in replies.get(template.id, [])],
    )


def reference_points(template: Template, options: LpdsOptions, count: int) -> list[Point]:
    """The random variations that references are made of, in the order in which they are drawn."""
    name = f"{arms.REFERENCE} {template.id}"
    return random_points(TemplateSpace(template), count, seed=options.seed, name=name)


def _worked_solutions(template: Template, options: LpdsOptions) -> list[Given]:
    variations = map(template.fill, reference_points(template, options, options.reference_count))
    # A reply begins behind a space where a prompt ends in "Answer:".
    return [(variation, f" {variation.trace}") for variation in variations]


def _variation(sample: Sample) -> Variation:
    """What a sample was asked, as far as that is needed to ask it again."""
    answer = Fraction(sample.gold)
    return Variation(
        template=sample.item,
        key=sample.variation,
        values=sample.values,
        text=sample.question,
        answer=answer.numerator if answer.denominator == 1 else answer,
        trace="",
    )
