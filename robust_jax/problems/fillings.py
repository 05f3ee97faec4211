"""The valid fillings of a few slots that constraints connect: drawing, counting and listing them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int

from robust_jax.errors import InputError
from robust_jax.problems.cost import Cost, cost, length_of
from robust_jax.problems.expressions import Expression
from robust_jax.problems.intervals import Column, Table, possible
from robust_jax.types import Size, Slot, Value

ENUMERABLE = 200_000
"""A product of domains up to which all combinations are gone through, and the length of a list of partial ones."""
DRAWING_WORK = 300_000.0
"""What one draw may cost, in the unit of `robust_jax.problems.cost`; the lists that it needs are apart."""
LISTING_WORK = 1_000_000.0
"""What a list of fillings may cost; one that would cost more is not used."""
COUNTING_WORK = 10_000_000.0
"""What it may cost to count the valid fillings; where it would cost more there is a bound."""
_LESSER_WORK = 100_000.0
"""What shortening the domains may cost, and finding out which constraint is to blame."""
FIRST_TRIES = 192
"""Rejected draws after which listing fillings is cheaper than going on."""
LISTED = 500_000
"""Combinations that are looked at, at most, to list the partial fillings of a component that is too large."""
_SLOT = Cost(exact=0.5, screened=0.1)
"""What a slot of a filling costs beside the constraints."""
_CALL = 1_000
"""Combinations that cost as much as the call by which any number of them is looked at together."""
_BLOCK = 16
"""Draws that are asked of the generator at once, as long as a valid one is soon found."""
_BLOCKS = (64, 512, 4_096)
"""Draws that are then looked at together, before partial fillings are listed."""
_LARGE_BLOCK = 16_384
"""Draws that are looked at together after that."""
_SAMPLE = 4_096
"""Random combinations from which it is judged how much a constraint rules out."""
COUNTABLE = 20_000
"""Possible fillings up to which the exact number of valid ones is counted."""

Rows = Int[np.ndarray, "C slots"]
"""Fillings as positions in the slots' domains, a column a slot."""


@dataclass(frozen=True)
class _Partial:
    """What some of a component's slots can hold, a row a combination."""

    columns: tuple[int, ...]
    """The slots, by position."""
    rows: Rows

    def extended(self, added: Sequence[int], lengths: Sequence[int]) -> _Partial:
        """Every row with every combination of the added slots, whose domains have these lengths."""
        choices = np.indices([lengths[index] for index in added]).reshape(len(added), -1).T
        rows = np.hstack([np.repeat(self.rows, len(choices), axis=0), np.tile(choices, (len(self.rows), 1))])
        return _Partial((*self.columns, *added), rows)

    def in_order(self) -> _Partial:
        """With columns in the order of the slots and rows in the order of the domains."""
        order = np.argsort(self.columns)
        rows = self.rows[:, order]
        return _Partial(tuple(sorted(self.columns)), rows[np.lexsort(rows.T[::-1])] if self.columns else rows)


class _TooMuchWork(InputError):
    """Constraints cost too much."""


@dataclass
class _Budget:
    """The work that is left for a draw or a list."""

    left: float

    def spend(self, work: float) -> None:
        """Account for work that is about to be done.

        Raises:
            _TooMuchWork: so much is not left.
        """
        self.left -= work
        if self.left < 0:
            raise _TooMuchWork


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

        A rejected draw is followed by another, which keeps the draw uniform. After some, fillings are drawn from a
        list: of all valid ones if there are few combinations, else of what a part of the slots can hold, with the
        other slots drawn as before. The result depends on the generator alone, never on earlier calls.

        Raises:
            InputError: none was found; names the constraint that fails most.
        """
        try:
            filling = self._drawn(rng)
        except _TooMuchWork:
            filling = None
        if filling is None:
            raise InputError(self._blame(rng))
        return filling

    def _drawn(self, rng: np.random.Generator) -> tuple[Value, ...] | None:
        lengths = [len(domain) for domain in self._domains]
        if not self.constraints and not self.distinct:
            return self._filling(rng.integers(lengths).tolist())
        budget = _Budget(DRAWING_WORK)
        for _ in range(0, FIRST_TRIES, _BLOCK):
            for row in rng.integers(lengths, size=(_BLOCK, len(lengths))).tolist():
                filling = self._filling(row)
                if self._is_valid(filling, budget):
                    return filling
        if self._listed is None:
            return self._draw_rare(rng, budget)
        return self._listed[int(rng.integers(len(self._listed)))] if self._listed else None

    def _draw_rare(self, rng: np.random.Generator, budget: _Budget) -> tuple[Value, ...] | None:
        """A filling where the valid ones cannot be listed and are not met soon."""
        for size in _BLOCKS:
            if filling := self._first_valid(self._rows(rng, size), budget):
                return filling
        listed = self._partial
        size = _BLOCK if len(listed.columns) == len(self.slots) else _LARGE_BLOCK
        while len(listed.rows):
            rows = self._rows(rng, size)
            rows[:, listed.columns] = listed.rows[rng.integers(len(listed.rows), size=size)]
            if filling := self._first_valid(rows, budget):
                return filling
        return None

    def _rows(self, rng: np.random.Generator, count: int) -> Rows:
        return rng.integers([len(domain) for domain in self._domains], size=(count, len(self.slots)))

    def _first_valid(self, rows: Rows, budget: _Budget) -> tuple[Value, ...] | None:
        budget.spend(self._screening(len(rows)))
        for filling in map(self._filling, rows[self._possible(rows)].tolist()):
            if self._is_valid(filling, budget):
                return filling
        return None

    def _filling(self, row: Sequence[int]) -> tuple[Value, ...]:
        return tuple([domain[index] for domain, index in zip(self._domains, row, strict=True)])

    def is_valid(self, filling: Sequence[Value]) -> bool:
        """Whether the constraints hold; the domains are not looked at."""
        return self._is_valid(filling, _Budget(math.inf))

    def _is_valid(self, filling: Sequence[Value], budget: _Budget) -> bool:
        budget.spend(self._bare.exact)
        values = dict(zip(self._names, filling, strict=True))
        for group in self.distinct:
            if len({values[name] for name in group}) < len(group):
                return False
        for constraint, price in self._prices:
            budget.spend(price.exact)
            if not constraint.holds(values):
                return False
        return True

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
        rows, countable, others = self._combinations, ENUMERABLE, 1
        if rows is None:
            rows, countable = self._partial.rows, COUNTABLE
            others = product // math.prod(lengths[index] for index in self._partial.columns)
        if others == 1 and len(rows) <= countable:
            listed = self._valid(rows, _Budget(COUNTING_WORK))
            if listed is not None:
                return Size(len(listed), exact=True)
        return Size(len(rows) * others, exact=False)

    @cached_property
    def _listed(self) -> list[tuple[Value, ...]] | None:
        """Every valid filling, in the order of the domains; None where they are too many or cost too much to find."""
        return None if self._combinations is None else self._valid(self._combinations, _Budget(LISTING_WORK))

    @cached_property
    def _combinations(self) -> Rows | None:
        """Every combination that may be valid, in the order of the domains; None where there are too many to try."""
        lengths = [len(domain) for domain in self._domains]
        product = math.prod(lengths)
        if product > ENUMERABLE or self._screening(product) > LISTING_WORK:
            return None
        rows = np.indices(lengths).reshape(len(lengths), -1).T
        return rows[self._possible(rows)]

    def _valid(self, rows: Rows, budget: _Budget) -> list[tuple[Value, ...]] | None:
        """The valid ones of some fillings; None where it costs too much to tell."""
        try:
            return [filling for filling in map(self._filling, rows.tolist()) if self._is_valid(filling, budget)]
        except _TooMuchWork:
            return None

    @cached_property
    def _partial(self) -> _Partial:
        """What a part of the slots can hold, as far as constraints on them alone tell.

        Constraints are taken up one by one, always the one that promises the shortest list, as long as there is one
        whose list is not too long.
        """
        listed, budget = _Partial((), np.zeros((1, 0), np.int64)), _Budget(LISTING_WORK)
        try:
            promising = self._promising(budget)
            while extension := self._extended(listed, promising, budget):
                listed = extension
        except _TooMuchWork:
            pass
        return listed.in_order()

    def _promising(self, budget: _Budget) -> list[tuple[frozenset[int], float]]:
        """The slots of every constraint, and the share of random fillings that it may hold for."""
        budget.spend(self._screening(_SAMPLE))
        sample = self._rows(np.random.default_rng(0), _SAMPLE)
        columns = {name: Column(self._tables[index], sample[:, index]) for index, name in enumerate(self._names)}
        return [
            (frozenset(self._names.index(name) for name in c.names), possible(c, columns, _SAMPLE).mean() + 1 / _SAMPLE)
            for c in self.constraints
        ]

    def _extended(
        self, listed: _Partial, promising: Sequence[tuple[frozenset[int], float]], budget: _Budget
    ) -> _Partial | None:
        """With the slots of one constraint more; None where every list would be too long."""
        lengths = [len(domain) for domain in self._domains]
        promises = {}
        for slots, share in promising:
            added = slots - set(listed.columns)
            combinations = math.prod(lengths[index] for index in added)
            if added and len(listed.rows) * combinations <= LISTED:
                promises[added] = share * combinations
        if not promises:
            return None
        added = min(promises, key=lambda slots: (promises[slots], sorted(slots)))
        budget.spend(self._screening(len(listed.rows) * math.prod(lengths[index] for index in added)))
        wider = listed.extended(sorted(added), lengths)
        rows = np.zeros((len(wider.rows), len(lengths)), np.int64)
        rows[:, wider.columns] = wider.rows
        narrowed = wider.rows[self._possible(rows, wider.columns)]
        return _Partial(wider.columns, narrowed) if len(narrowed) <= ENUMERABLE else None

    def _possible(self, rows: Rows, known: Sequence[int] | None = None) -> Bool[np.ndarray, " C"]:
        """Which rows may be valid, as far as the known columns tell; False only for what certainly is not."""
        indices = range(len(self.slots)) if known is None else known
        columns = {self._names[index]: Column(self._tables[index], rows[:, index]) for index in indices}
        result = np.ones(len(rows), bool)
        for constraint in self.constraints:
            if constraint.names <= columns.keys():
                result &= possible(constraint, columns, len(rows))
        return result

    def _screening(self, count: int) -> float:
        """What it costs to look at so many combinations together."""
        return (count + _CALL) * self._cost.screened

    @cached_property
    def _cost(self) -> Cost:
        """Of looking at one combination, if every constraint has to be evaluated."""
        return sum((price for _, price in self._prices), self._bare)

    @cached_property
    def _bare(self) -> Cost:
        """Of a combination without its constraints."""
        return sum([_SLOT] * len(self.slots), Cost(0.0, 0.0))

    @cached_property
    def _prices(self) -> list[tuple[Expression, Cost]]:
        lengths = {slot.name: length_of(slot.domain) for slot in self.slots}
        return [(constraint, cost(constraint, lengths)) for constraint in self.constraints]

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(slot.name for slot in self.slots)

    @cached_property
    def _tables(self) -> list[Table]:
        return [Table(domain) for domain in self._domains]

    @cached_property
    def _domains(self) -> tuple[Sequence[Value], ...]:
        """The slots' domains without the values that a constraint on that slot alone rules out."""
        budget = _Budget(_LESSER_WORK)
        return tuple(self._filtered(slot, budget) for slot in self.slots)

    def _filtered(self, slot: Slot, budget: _Budget) -> Sequence[Value]:
        constraints = [(c, price.exact) for c, price in self._prices if c.names == {slot.name}]
        work = len(slot.domain) * sum(price for _, price in constraints)
        if not constraints or len(slot.domain) > ENUMERABLE or work > budget.left:
            return slot.domain
        budget.spend(work)
        kept = [value for value in slot.domain if all(c.holds({slot.name: value}) for c, _ in constraints)]
        # Where nothing is left, drawing from the whole domain fails and says which constraint is to blame.
        return tuple(kept) or slot.domain

    def _blame(self, rng: np.random.Generator) -> str:
        """Which constraint fails most, each counted on its own."""
        failures = dict.fromkeys([c.source for c in self.constraints], 0)
        draws = max(1, min(1_000, int(_LESSER_WORK / self._cost.exact)))
        for row in rng.integers([len(slot.domain) for slot in self.slots], size=(draws, len(self.slots))).tolist():
            values = {slot.name: slot.domain[index] for slot, index in zip(self.slots, row, strict=True)}
            for constraint in self.constraints:
                failures[constraint.source] += not constraint.holds(values)
        if not failures:
            return f"{self.where}: the slots {', '.join(self._names)} cannot be pairwise distinct: add values"
        worst = max(failures, key=lambda source: failures[source])
        return (
            f"{self.where}: no valid filling found; the constraint that fails most is '{worst[:200]}' "
            f"({100 * failures[worst] // draws} % of random fillings): loosen it or the slots' domains"
        )
