"""What is wrong with a suite: every template is tried on its base problem and on random fillings."""

from __future__ import annotations

from robust_jax.errors import InputError
from robust_jax.problems.template import SymbolicTemplate
from robust_jax.problems.trace import check_trace
from robust_jax.randomness import rng
from robust_jax.types import Grading, Point, Suite, Template

ENOUGH = 30
"""Valid fillings below which a template is too small to say anything about a model."""


def check_suite(suite: Suite, fillings: int = 200, seed: int = 0) -> list[str]:
    """Every fault found in a suite, one line each, on the bases and `fillings` random fillings of every template."""
    faults = check_examples(suite)
    for template in suite.templates:
        faults += check_template(template, suite.grading, fillings=fillings, seed=seed)
        if isinstance(template, SymbolicTemplate):
            faults += _check_slots(template)
    return faults


def check_template(template: Template, grading: Grading, *, fillings: int, seed: int = 0) -> list[str]:
    """The faults of one template on its base and random fillings: each line of the solution is named once."""
    generator = rng(seed, "check", template.id)
    points = [] if template.base is None else [template.base]
    faults: dict[str, str] = {}
    try:
        points += [template.random(generator) for _ in range(fillings)]
    except InputError as error:
        faults["unsatisfiable"] = str(error)
    for point in points:
        for fault in _faults_at(template, grading, point):
            # What precedes the colon says where: `line 2`, or `template apples, answer`.
            faults.setdefault(fault.partition(":")[0], f"template {template.id} at {template.key(point)}: {fault}")
    return list(faults.values())


def check_examples(suite: Suite) -> list[str]:
    """The faults of a suite's worked examples."""
    equations = not suite.templates or any(_checks_equations(template) for template in suite.templates)
    return [
        f"example {number}: {fault}"
        for number, example in enumerate(suite.examples, 1)
        for fault in check_trace(example.solution, None, suite.grading, equations=equations)
    ]


def base_notes(suite: Suite) -> list[str]:
    """Base problems that violate a condition of their own template.

    That is no fault. A base is the problem from which the template was made, and the search starts there, but it is no
    filling of the template and never drawn.
    """
    notes = []
    for template in suite.templates:
        if isinstance(template, SymbolicTemplate) and template.base is not None:
            values = dict(zip((slot.name for slot in template.slots), template.base, strict=True))
            violated = [constraint.source for constraint in template.constraints if not constraint.holds(values)]
            if violated:
                notes.append(f"template {template.id}: the base problem violates '{violated[0]}'")
    return notes


def _checks_equations(template: Template) -> bool:
    return isinstance(template, SymbolicTemplate) and template.checks_equations


def _faults_at(template: Template, grading: Grading, point: Point) -> list[str]:
    try:
        variation = template.fill(point)
    except InputError as error:
        return [str(error)]
    if isinstance(variation.answer, str):  # LaTeX is compared with replies, not with a solution.
        return []
    return check_trace(variation.trace, variation.answer, grading, equations=_checks_equations(template))


def _check_slots(template: SymbolicTemplate) -> list[str]:
    """Slots that the reader of the problem learns nothing about, and a template with too few fillings."""
    told = template.question.names.union(*(constraint.names for constraint in template.constraints))
    faults = [
        f"template {template.id}: slot '{slot.name}' occurs neither in the question nor in a constraint"
        for slot in template.slots
        if slot.name not in told
    ]
    try:
        size = template.size
    except InputError:  # No filling at all is already a fault of the template.
        return faults
    if 0 < size.count < ENOUGH:
        faults.append(f"template {template.id}: only {size.count} valid fillings, fewer than {ENOUGH}")
    return faults
