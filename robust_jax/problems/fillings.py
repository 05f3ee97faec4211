"""The valid fillings of a few slots that constraints connect: drawing, counting and listing them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robust_jax.errors import InputError
from robust_jax.problems.expressions import Expression
from robust_jax.types import Size, Slot, Value

ENUMERABLE = 200_000
"""A product of domains up to which all combinations are gone through."""
FIRST_TRIES = 192
"""Rejected draws after which listing all fillings is cheaper than going on."""
MAX_TRIES = 200_000
"""Rejected draws after which a component that cannot be listed counts as unsatisfiable."""
_BLOCK = 16
"""Draws that are asked of the generator at once."""


@dataclass(frozen=True)
class Component:
    """Slots that constraints connect, directly or through others: a filling of one says nothing about another's."""

    where: str
    slots: tuple[Slot, ...]
    indices: tuple[int, ...]
    """The slots' positions in the template."""
    constraints: tuple[Expression, ...] = ()
    distinct: tuple[tuple[str, ...], ...] = ()
    """Groups of slots whose values differ pairwise."""

    def draw(self, rng: np.random.Generator) -> tuple[Value, ...]:
        """A filling, uniform over all valid ones.

        A rejected draw is followed by another, which keeps the draw uniform; after some, the valid fillings are
        listed if there are few combinations. The result depends on the generator alone, never on earlier calls.

        Raises:
            InputError: none was found; names the constraint that fails most.
        """
        domains = self._domains
        lengths = [len(domain) for domain in domains]
        if not self.constraints and not self.distinct:
            return tuple(domain[index] for domain, index in zip(domains, rng.integers(lengths).tolist(), strict=True))
        is_listable = math.prod(lengths) <= ENUMERABLE
        for _ in range(0, FIRST_TRIES if is_listable else MAX_TRIES, _BLOCK):
            for row in rng.integers(lengths, size=(_BLOCK, len(lengths))).tolist():
                filling = tuple([domain[index] for domain, index in zip(domains, row, strict=True)])
                if self.is_valid(filling):
                    return filling
        if not is_listable or not self._listed:
            raise InputError(self._blame(rng))
        return self._listed[int(rng.integers(len(self._listed)))]

    def is_valid(self, filling: Sequence[Value]) -> bool:
        """Whether the constraints hold; the domains are not looked at."""
        values = dict(zip(self._names, filling, strict=True))
        for group in self.distinct:
            if len({values[name] for name in group}) < len(group):
                return False
        return all(constraint.holds(values) for constraint in self.constraints)

    @cached_property
    def size(self) -> Size:
        """How many valid fillings there are; an upper bound where there are too many combinations to go through."""
        lengths = [len(domain) for domain in self._domains]
        product = math.prod(lengths)
        is_one_group = len(self.distinct) == 1 and len(self.distinct[0]) == len(self.slots)
        if not self.constraints and (
            not self.distinct or (is_one_group and all(slot.domain == self.slots[0].domain for slot in self.slots))
        ):
            return Size(math.perm(lengths[0], len(lengths)) if self.distinct else product, exact=True)
        if product <= ENUMERABLE:
            return Size(sum(1 for _ in self.fillings()), exact=True)
        return Size(product, exact=False)

    def fillings(self) -> Iterator[tuple[Value, ...]]:
        """Every valid filling, in the order of the domains; a constraint prunes as soon as its slots are filled."""
        return self._extend({}, 0)

    def _extend(self, values: dict[str, Value], depth: int) -> Iterator[tuple[Value, ...]]:
        if depth == len(self.slots):
            yield tuple(values.values())
            return
        name = self._names[depth]
        constraints, others = self._checks[depth]
        for value in self._domains[depth]:
            if any(values[other] == value for other in others):
                continue
            values[name] = value
            if all(constraint.holds(values) for constraint in constraints):
                yield from self._extend(values, depth + 1)
        values.pop(name, None)

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(slot.name for slot in self.slots)

    @cached_property
    def _checks(self) -> list[tuple[list[Expression], list[str]]]:
        """For each slot, the constraints that it completes and the earlier slots from which its value must differ."""
        checks = []
        for depth, name in enumerate(self._names):
            filled = set(self._names[: depth + 1])
            constraints = [c for c in self.constraints if name in c.names and c.names <= filled]
            others = [o for group in self.distinct if name in group for o in group if o in filled and o != name]
            checks.append((constraints, others))
        return checks

    @cached_property
    def _domains(self) -> tuple[Sequence[Value], ...]:
        """The slots' domains without the values that a constraint on that slot alone rules out."""
        return tuple(self._filtered(slot) for slot in self.slots)

    def _filtered(self, slot: Slot) -> Sequence[Value]:
        constraints = [constraint for constraint in self.constraints if constraint.names == {slot.name}]
        if not constraints or len(slot.domain) > ENUMERABLE:
            return slot.domain
        kept = tuple(value for value in slot.domain if all(c.holds({slot.name: value}) for c in constraints))
        # Where nothing is left, drawing from the whole domain fails and says which constraint is to blame.
        return kept or slot.domain

    @cached_property
    def _listed(self) -> list[tuple[Value, ...]]:
        return list(self.fillings())

    def _blame(self, rng: np.random.Generator) -> str:
        """Which constraint fails most, each counted on its own."""
        failures = dict.fromkeys([c.source for c in self.constraints], 0)
        draws = 1_000
        for row in rng.integers([len(domain) for domain in self._domains], size=(draws, len(self.slots))).tolist():
            values = {s.name: d[i] for s, d, i in zip(self.slots, self._domains, row, strict=True)}
            for constraint in self.constraints:
                failures[constraint.source] += not constraint.holds(values)
        if not failures:
            return f"{self.where}: the slots {', '.join(self._names)} cannot be pairwise distinct: add values"
        worst = max(failures, key=lambda source: failures[source])
        return (
            f"{self.where}: no valid filling found; the constraint that fails most is '{worst}' "
            f"({100 * failures[worst] // draws} % of random fillings): loosen it or the slots' domains"
        )
