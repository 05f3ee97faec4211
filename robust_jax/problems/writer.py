"""Writes a suite in the template language, so that reading it again gives the same fillings for the same seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import yaml

from robust_jax.errors import InputError
from robust_jax.problems.domains import Grid, common_kind
from robust_jax.problems.template import SymbolicTemplate
from robust_jax.problems.text import Hole, Text, exact, exact_places
from robust_jax.types import Grading, Number, Pair, Slot, Suite, Value


def suite_to_yaml(suite: Suite) -> str:
    """The suite as a YAML file in the template language.

    Raises:
        InputError: a template is no symbolic one, or uses what the language has no words for.
    """
    content: dict[str, Any] = {"name": suite.name, "description": suite.description}
    content["grading"] = _grading(suite.grading)
    if suite.examples:
        content["examples"] = [{"question": e.question, "solution": e.solution} for e in suite.examples]
    content["templates"] = [_template(template) for template in suite.templates]
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


class _Dumper(yaml.SafeDumper):
    """Decimals as they are, and a list of plain values in one line."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


class _Row(list[Any]):
    """A list that is written in one line."""


_Dumper.add_representer(_Row, lambda d, row: d.represent_sequence("tag:yaml.org,2002:seq", row, flow_style=True))
_Dumper.add_representer(Fraction, lambda d, number: d.represent_scalar("tag:yaml.org,2002:float", exact(number)))


def _grading(grading: Grading) -> object:
    if grading == Grading():
        return "exact"
    return {"absolute": _number(grading.absolute), "relative": _number(grading.relative)}


def _number(number: Number) -> Number | str:
    """A number as the reader takes it where a number is wanted; a fraction without a short decimal is a text there."""
    return number if isinstance(number, int) or exact_places(number) is not None else str(number)


def _template(template: object) -> dict[str, Any]:
    if not isinstance(template, SymbolicTemplate) or not template.checks_equations:
        raise InputError("only suites of the template language can be written in it")
    where = f"template {template.id}"
    entry: dict[str, Any] = {"id": template.id}
    for key in ("title", "steps", "difficulty"):
        if getattr(template, key):
            entry[key] = getattr(template, key)
    entry["question"], entry["solution"] = _text(template.question), _text(template.solution)
    entry["slots"] = _slots(template, where)
    if template.constraints:
        entry["constraints"] = [constraint.source for constraint in template.constraints]
    entry["answer"] = template.answer.source
    if template.base is not None:
        entry["base"] = {s.name: _value(v) for s, v in zip(template.slots, template.base, strict=True)}
    return entry


def _text(text: Text) -> str:
    return "".join(_hole(p) if isinstance(p, Hole) else p.replace("{", "{{").replace("}", "}}") for p in text.pieces)


def _hole(hole: Hole) -> str:
    comma = "," if hole.thousands else ""
    places = "" if hole.rounded_to is None else f".{hole.rounded_to}f"
    return "{" + hole.expression.source + (f":{comma}{places}" if comma or places else "") + "}"


def _slots(template: SymbolicTemplate, where: str) -> dict[str, Any]:
    groups = {name: group for group in template.distinct for name in group}
    entries: dict[str, Any] = {}
    for slot in template.slots:
        group = groups.get(slot.name, (slot.name,))
        entry = _domain(slot, f"{where}, slot '{slot.name}'")
        if entries.setdefault(", ".join(group), entry) != entry:
            raise InputError(f"{where}: the slots {', '.join(group)} are distinct, but not over the same values")
    return entries


def _domain(slot: Slot, where: str) -> dict[str, Any]:
    domain = slot.domain
    places: Mapping[str, int] = {"places": slot.places} if slot.places else {}
    if isinstance(domain, Grid):
        ends = (domain.start, domain.start + domain.step * (len(domain) - 1), domain.step)
        form = "range" if all(isinstance(end, int) for end in ends) else "grid"
        return {form: _Row(map(_number, ends)), **places}
    if common_kind(domain) is Pair:
        return {"pairs": [_Row([pair.word, _number(pair.number)]) for pair in _pairs(domain)]}
    if any(isinstance(value, Fraction) and exact_places(value) is None for value in domain):
        raise InputError(f"{where}: a list holds a fraction that is no short decimal")
    return {"choice": _Row(domain), **places}


def _pairs(domain: Sequence[Value]) -> list[Pair]:
    return [value for value in domain if isinstance(value, Pair)]


def _value(value: Value) -> object:
    if isinstance(value, Pair):
        return _Row([value.word, _number(value.number)])
    return value if isinstance(value, str) else _number(value)
