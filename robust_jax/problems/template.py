"""Symbolic templates: a text, its worked solution and its answer over slots with domains and constraints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robust_jax.errors import InputError
from robust_jax.problems.cost import cost, length_of
from robust_jax.problems.domains import Grid, common_kind
from robust_jax.problems.expressions import Expression
from robust_jax.problems.fillings import Component
from robust_jax.problems.text import Text, key_of
from robust_jax.types import Point, Size, Slot, Value, Variation

MAX_CHECKING_WORK = 5_000
"""What the constraints may cost on one filling, in the unit of `robust_jax.problems.cost`."""
MAX_WRITING_WORK = 40_000
"""What question, solution and answer of one filling may cost."""


@dataclass(frozen=True)
class SymbolicTemplate:
    """A problem family in the project's template language; implements `robust_jax.types.Template`."""

    id: str
    slots: tuple[Slot, ...]
    question: Text
    solution: Text
    """A worked solution that ends in `#### answer`."""
    answer: Expression
    constraints: tuple[Expression, ...] = ()
    distinct: tuple[tuple[str, ...], ...] = ()
    """Groups of slots whose values differ pairwise."""
    base: Point | None = None
    """The filling that counts as the original problem; it may lie outside the slots' domains."""
    title: str = ""
    steps: int | None = None
    """Steps of the solution, as its author counts them."""
    difficulty: str = ""
    """basic, intermediate or advanced, as its author judges it."""
    checks_equations: bool = True
    """Whether every equation of the solution has to be plain arithmetic that holds, and not its last number alone."""

    @cached_property
    def size(self) -> Size:
        """How many valid fillings there are; the product over components, which do not depend on each other."""
        sizes = [component.size for component in self._components]
        return Size(math.prod(size.count for size in sizes), all(size.exact for size in sizes))

    def is_valid(self, point: Point) -> bool:
        """Whether every value lies in its slot's domain and every constraint holds."""
        return self._is_valid_without(point, None)

    def random(self, rng: np.random.Generator) -> Point:
        """A valid filling, uniform over all valid ones.

        Raises:
            InputError: none was found; names the constraint that fails most.
        """
        point: list[Value] = [0] * len(self.slots)
        for component in self._components:
            for index, value in zip(component.indices, component.draw(rng), strict=True):
                point[index] = value
        return tuple(point)

    def neighbours(self, point: Point, slot: int) -> Iterator[Point]:
        """Every valid filling that differs from `point` in slot number `slot` alone, in the order of its domain."""
        if not self._is_valid_without(point, slot):
            return
        values = self._values(point)
        name, current = self.slots[slot].name, point[slot]
        constraints = self._constraints_by_slot[slot]
        excluded = {values[other] for group in self.distinct if name in group for other in group}
        excluded.add(current)
        before, after = point[:slot], point[slot + 1 :]
        for value in self.slots[slot].domain:
            if value in excluded:
                continue
            values[name] = value
            for constraint in constraints:
                if not constraint.holds(values):
                    break
            else:
                yield (*before, value, *after)

    def key(self, point: Point) -> str:
        """The key of the variation at `point`, such as `Ava|12|5`; a backslash marks a bar within a word."""
        return key_of(point)

    def text(self, point: Point) -> str:
        """The problem text at `point`, without solving it."""
        return self.question.render(self._values(point))

    def fill(self, point: Point) -> Variation:
        """The variation at `point`.

        Raises:
            InputError: the answer or a hole of the solution has no value there.
        """
        values = self._values(point)
        return Variation(
            template=self.id,
            key=self.key(point),
            values=values,
            text=self.question.render(values),
            answer=self.answer.number(values),
            trace=self.solution.render(values),
        )

    def _values(self, point: Point) -> dict[str, Value]:
        return dict(zip(self._names, point, strict=True))

    def _is_valid_without(self, point: Point, skipped: int | None) -> bool:
        """Whether `point` is valid as far as it does not concern the skipped slot."""
        if len(point) != len(self.slots):
            return False
        for index, (slot, value) in enumerate(zip(self.slots, point, strict=True)):
            if index != skipped and value not in slot.domain:
                return False
        values = self._values(point)
        name = None if skipped is None else self._names[skipped]
        for group in self.distinct:
            others = [values[other] for other in group if other != name]
            if len(set(others)) < len(others):
                return False
        return all(constraint.holds(values) for constraint in self.constraints if name not in constraint.names)

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(slot.name for slot in self.slots)

    @cached_property
    def _constraints_by_slot(self) -> tuple[tuple[Expression, ...], ...]:
        return tuple(tuple(c for c in self.constraints if slot.name in c.names) for slot in self.slots)

    @cached_property
    def _components(self) -> tuple[Component, ...]:
        """The slots' connected components, where constraints and groups of distinct slots are the connections."""
        # Slots that nothing constrains share the label -1: they can be drawn together.
        connections = [*(constraint.names for constraint in self.constraints), *self.distinct]
        constrained = frozenset().union(*connections)
        label = {name: index if name in constrained else -1 for index, name in enumerate(self._names)}
        for connected in connections:
            labels = {label[name] for name in connected}
            label = {name: min(labels) if old in labels else old for name, old in label.items()}
        components = []
        for wanted in sorted(set(label.values())):
            indices = tuple(index for index, name in enumerate(self._names) if label[name] == wanted)
            names = {self._names[index] for index in indices}
            components.append(
                Component(
                    where=f"template {self.id}",
                    slots=tuple(self.slots[index] for index in indices),
                    indices=indices,
                    constraints=tuple(c for c in self.constraints if c.names <= names),
                    distinct=tuple(group for group in self.distinct if names.issuperset(group)),
                )
            )
        return tuple(components)


def affordable(template: SymbolicTemplate) -> SymbolicTemplate:
    """The template itself, if no filling of it is a long computation.

    Raises:
        InputError: one may be.
    """
    lengths = {slot.name: length_of(slot.domain) for slot in template.slots}
    holes = template.question.expressions + template.solution.expressions
    written = (template.answer, *holes)
    for expressions, most in ((template.constraints, MAX_CHECKING_WORK), (written, MAX_WRITING_WORK)):
        work = 0.0
        for expression in expressions:
            work += cost(expression, lengths).exact
            if work > most:
                raise InputError(f"template {template.id}: its expressions take too long to compute: simplify them")
    return template


def restricted(template: SymbolicTemplate, domains: Mapping[str, Sequence[Value]]) -> SymbolicTemplate:
    """The same template with other domains for some slots; texts, constraints and base stay.

    Raises:
        InputError: there is no such slot, or the domain is empty or of another kind than the slot's.
    """
    known = {slot.name: slot for slot in template.slots}
    for name, domain in domains.items():
        if name not in known:
            raise InputError(f"template {template.id}: there is no slot '{name}' (slots: {', '.join(known)})")
        if not domain or common_kind(domain) is not common_kind(known[name].domain):
            raise InputError(f"template {template.id}: the domain of slot '{name}' is empty or of another kind")
    frozen = {name: domain if isinstance(domain, Grid) else tuple(domain) for name, domain in domains.items()}
    slots = tuple(replace(slot, domain=frozen.get(slot.name, slot.domain)) for slot in template.slots)
    return replace(template, slots=slots)
