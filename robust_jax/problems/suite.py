"""Suites of templates: finding them, reading them from YAML, and checking every template before it is used."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
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
_FILLINGS_AT_LOAD = 3
_ENOUGH = 30
"""Valid fillings below which a template is too small to say anything about a model."""


def list_suites() -> tuple[str, ...]:
    """The names of the bundled suites."""
    return tuple(sorted(_bundled()))


def load_suite(spec: str) -> Suite:
    """The suite that a bundled name or a path to a YAML file stands for.

    Every template is tried on its base problem and a few random fillings, so that a wrong solution is never used.

    Raises:
        InputError: there is no such suite, the file is not in the language, or a template is faulty.
    """
    path = _bundled().get(spec) or Path(spec)
    if path.suffix not in (".yaml", ".yml"):
        nearest = difflib.get_close_matches(spec, list_suites(), n=1, cutoff=0)
        hint = f"did you mean '{nearest[0]}'?" if nearest else "give the path of a .yaml file"
        raise InputError(f"there is no suite '{spec}': {hint}")
    try:
        content = path.read_bytes() if path.stat().st_size <= MAX_BYTES else None
    except OSError as error:
        raise InputError(f"cannot read the suite {path}: {error.strerror}") from None
    if content is None:
        raise InputError(f"the suite {path} is larger than {MAX_BYTES // 10**6} MB: split it")
    suite = read_suite(content, path.name)
    for template in suite.templates:
        for fault in check_template(template, suite.grading, fillings=_FILLINGS_AT_LOAD):
            raise InputError(f"{path.name}: {fault}")
    return suite


def check_suite(suite: Suite, fillings: int = 200, seed: int = 0) -> list[str]:
    """Every fault found in a suite, one line each, on the bases and `fillings` random fillings of every template."""
    faults = []
    for template in suite.templates:
        faults += check_template(template, suite.grading, fillings=fillings, seed=seed)
        if isinstance(template, SymbolicTemplate):
            faults += _unused_slots(template)
        try:
            size = template.size
        except InputError:
            continue
        if size.count < _ENOUGH:
            faults.append(f"template {template.id}: only {size.count} valid fillings, fewer than {_ENOUGH}")
    for number, example in enumerate(suite.examples, 1):
        faults += [f"example {number}: {fault}" for fault in check_trace(example.solution, None, suite.grading)]
    return faults


def check_template(template: Template, grading: Grading, *, fillings: int, seed: int = 0) -> list[str]:
    """The faults of one template: for each kind of fault the first filling that shows it, one line each."""
    generator = rng(seed, "check", template.id)
    faults: dict[str, str] = {}
    points = [] if template.base is None else [("base problem", template.base)]
    try:
        points += [("filling", template.random(generator)) for _ in range(fillings)]
    except InputError as error:
        faults["unsatisfiable"] = str(error)
    for label, point in points:
        for fault in _faults_at(template, grading, point):
            faults.setdefault(fault, f"template {template.id}, {label} {template.key(point)}: {fault}")
    return list(faults.values())[:10]


def _faults_at(template: Template, grading: Grading, point: Point) -> list[str]:
    try:
        variation = template.fill(point)
    except InputError as error:
        return [str(error)]
    return check_trace(variation.trace, variation.answer, grading)


def _unused_slots(template: SymbolicTemplate) -> list[str]:
    used = template.question.names
    return [
        f"template {template.id}: slot '{slot.name}' does not occur in the question"
        for slot in template.slots
        if slot.name not in used
    ]


def _bundled() -> Mapping[str, Path]:
    folder = Path(str(resources.files("robust_jax.problems") / "suites"))
    return {path.stem: path for path in folder.glob("*.yaml")}
