"""Suites of templates: finding them, reading them from YAML, and checking every template before it is used."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from importlib import resources
from pathlib import Path

from robust_jax.errors import InputError
from robust_jax.problems.reader import read_suite
from robust_jax.problems.template import SymbolicTemplate
from robust_jax.problems.trace import check_trace
from robust_jax.randomness import rng
from robust_jax.types import Grading, Point, Suite, Template

MAX_BYTES = 10_000_000
"""Size of a suite file."""
_FILLINGS_AT_LOAD = 5
_ENOUGH = 30
"""Valid fillings below which a template is too small to say anything about a model."""


def list_suites() -> tuple[str, ...]:
    """The names of the bundled suites."""
    return tuple(sorted(_bundled()))


def load_suite(spec: str, *, check: bool = True) -> Suite:
    """The suite that a bundled name or a path to a YAML file stands for.

    Every template is tried on its base problem and a few random fillings, so that a wrong solution is never used;
    without `check` a faulty suite is given out too, for all its faults to be found.

    Raises:
        InputError: there is no such suite, the file is not in the language, or a template is faulty.
    """
    path = _bundled().get(spec) or Path(spec)
    if path.suffix.lower() not in (".yaml", ".yml"):
        nearest = difflib.get_close_matches(spec, list_suites(), n=1, cutoff=0)
        hint = f"did you mean '{nearest[0]}'?" if nearest else "give the path of a .yaml file"
        raise InputError(f"there is no suite '{spec}': {hint}")
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot read the suite {path}: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise InputError(f"the suite {path} is larger than {MAX_BYTES // 10**6} MB: split it")
    suite = replace(read_suite(content, path.name), digest=sha256(content).hexdigest()[:16])
    faults = _check_examples(suite) if check else []
    for template in suite.templates if check else ():
        faults = faults or check_template(template, suite.grading, fillings=_FILLINGS_AT_LOAD)
    if faults:
        raise InputError(f"{path.name}: {faults[0]}")
    return suite


def check_suite(suite: Suite, fillings: int = 200, seed: int = 0) -> list[str]:
    """Every fault found in a suite, one line each, on the bases and `fillings` random fillings of every template."""
    faults = _check_examples(suite)
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


def _check_examples(suite: Suite) -> list[str]:
    return [
        f"example {number}: {fault}"
        for number, example in enumerate(suite.examples, 1)
        for fault in check_trace(example.solution, None, suite.grading)
    ]


def _faults_at(template: Template, grading: Grading, point: Point) -> list[str]:
    try:
        variation = template.fill(point)
    except InputError as error:
        return [str(error)]
    return check_trace(variation.trace, variation.answer, grading)


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
    if 0 < size.count < _ENOUGH:
        faults.append(f"template {template.id}: only {size.count} valid fillings, fewer than {_ENOUGH}")
    return faults


def _bundled() -> Mapping[str, Path]:
    folder = Path(str(resources.files("robust_jax.problems") / "suites"))
    return {path.stem: path for path in folder.glob("*.yaml")}
