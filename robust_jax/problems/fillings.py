"""The valid fillings of a few slots that constraints connect: drawing, counting and listing them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from time import thread_time

import numpy as np
from jaxtyping import Bool, Int

from robust_jax.errors import InputError
from robust_jax.problems.expressions import Expression
from robust_jax.problems.intervals import Column, Table, possible
from robust_jax.types import Size, Slot, Value

ENUMERABLE = 200_000
"""A product of domains up to which all combinations are gone through, and the length of a list of partial ones."""
FIRST_TRIES = 192
"""Rejected draws after which listing fillings is cheaper than going on."""
MAX_TRIES = 5_000_000
"""Rejected draws after which a component counts as unsatisfiable; for every 10 characters of constraints, so many fewer
times."""
MAX_SECONDS = 0.8
"""Time of the thread after which a draw is given up, because the constraints are built to take long."""
MAX_SECONDS_EACH = 0.002
"""Mean time of looking at a combination beyond which a draw is given up, once it has taken this long `_FEW` times."""
_FEW = 100
_HOPELESS = 5
"""How many times the time there is may seem to be needed."""
LISTING_WORK = 500_000
"""Combinations that are looked at, at most, to list the partial fillings of a component that is too large."""
_BLAME_SECONDS = 0.1
"""Time of the thread that goes into finding out which constraint is to blame."""
_USUAL_LENGTH = 2_000
"""Characters of a component's constraints; with twice as many, half the combinations are looked at."""
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


class _OutOfTime(InputError):
    """Constraints take too long."""


class _Clock:
    """The time of the thread that goes into evaluating constraints."""

    def __init__(self, where: str, planned: int = 0) -> None:
        self.where = where
        self.planned = planned
        """Combinations that have to be looked at in any case."""
        self._started = thread_time()
        self._evaluations = 0

    def check(self, evaluated: int = 1) -> None:
        """Give up constraints that are built to take long, after so many more combinations were looked at.

        Raises:
            _OutOfTime: they took too long.
        """
        self._evaluations += evaluated
        spent, looked_at = thread_time() - self._started, max(self._evaluations, _FEW)
        is_hopeless = looked_at > _FEW and spent / looked_at * self.planned > _HOPELESS * MAX_SECONDS
        if is_hopeless or spent > min(MAX_SECONDS, MAX_SECONDS_EACH * looked_at):
            raise _OutOfTime(f"{self.where}: its constraints take too long to evaluate: simplify them")


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
        except _OutOfTime:
            filling = None
        if filling is None:
            raise InputError(self._blame(rng))
        return filling

    def _drawn(self, rng: np.random.Generator) -> tuple[Value, ...] | None:
        lengths = [len(domain) for domain in self._domains]
        if not self.constraints and not self.distinct:
            return self._filling(rng.integers(lengths).tolist())
        clock = _Clock(self.where)
        for _ in range(0, FIRST_TRIES, _BLOCK):
            for row in rng.integers(lengths, size=(_BLOCK, len(lengths))).tolist():
                clock.check()
                filling = self._filling(row)
                if self.is_valid(filling):
                    return filling
        if self._combinations is None:
            return self._draw_rare(rng, clock)
        return self._listed[int(rng.integers(len(self._listed)))] if self._listed else None

    def _draw_rare(self, rng: np.random.Generator, clock: _Clock) -> tuple[Value, ...] | None:
        """A filling where there are too many combinations to list and valid ones are not met soon."""
        for size in _BLOCKS:
            if filling := self._first_valid(self._rows(rng, size), clock):
                return filling
        listed, clock = self._partial, _Clock(self.where)
        size = _BLOCK if len(listed.columns) == len(self.slots) else _LARGE_BLOCK
        for _ in range(0, MAX_TRIES // max(1, self._length // 10) if len(listed.rows) else 0, size):
            rows = self._rows(rng, size)
            rows[:, listed.columns] = listed.rows[rng.integers(len(listed.rows), size=size)]
            if filling := self._first_valid(rows, clock):
                return filling
        return None

    def _rows(self, rng: np.random.Generator, count: int) -> Rows:
        return rng.integers([len(domain) for domain in self._domains], size=(count, len(self.slots)))

    def _first_valid(self, rows: Rows, clock: _Clock) -> tuple[Value, ...] | None:
        rows_left = rows[self._possible(rows)].tolist()
        clock.check(len(rows))
        for filling in map(self._filling, rows_left):
            if self.is_valid(filling):
                return filling
            clock.check()
        return None

    def _filling(self, row: Sequence[int]) -> tuple[Value, ...]:
        return tuple([domain[index] for domain, index in zip(self._domains, row, strict=True)])

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
        if self._combinations is not None:
            return Size(sum(map(self.is_valid, map(self._filling, self._combinations.tolist()))), exact=True)
        listed = self._partial
        if len(listed.columns) == len(lengths) and len(listed.rows) <= COUNTABLE:
            return Size(sum(self.is_valid(self._filling(row)) for row in listed.rows.tolist()), exact=True)
        others = math.prod(length for index, length in enumerate(lengths) if index not in listed.columns)
        return Size(len(listed.rows) * others, exact=False)

    @cached_property
    def _listed(self) -> list[tuple[Value, ...]]:
        """Every valid filling, in the order of the domains, where there are not too many combinations."""
        assert self._combinations is not None
        clock, listed = _Clock(self.where, planned=len(self._combinations)), []
        for filling in map(self._filling, self._combinations.tolist()):
            clock.check()
            if self.is_valid(filling):
                listed.append(filling)
        return listed

    @cached_property
    def _combinations(self) -> Rows | None:
        """Every combination that may be valid, in the order of the domains; None where there are too many to try."""
        lengths = [len(domain) for domain in self._domains]
        if math.prod(lengths) > ENUMERABLE:
            return None
        rows = np.indices(lengths).reshape(len(lengths), -1).T
        return rows[self._possible(rows)]

    @cached_property
    def _partial(self) -> _Partial:
        """What a part of the slots can hold, as far as constraints on them alone tell.

        Constraints are taken up one by one, always the one that promises the shortest list, as long as there is one
        whose list is not too long.
        """
        lengths = [len(domain) for domain in self._domains]
        sample = self._rows(np.random.default_rng(0), _SAMPLE)
        columns = {name: Column(self._tables[index], sample[:, index]) for index, name in enumerate(self._names)}
        pending = [
            (frozenset(self._names.index(name) for name in c.names), possible(c, columns, _SAMPLE).mean() + 1 / _SAMPLE)
            for c in self.constraints
        ]
        listed = _Partial((), np.zeros((1, 0), np.int64))
        work = LISTING_WORK // max(1, self._length // _USUAL_LENGTH)
        while True:
            promises = {
                slots - set(listed.columns): share * math.prod(lengths[index] for index in slots - set(listed.columns))
                for slots, share in pending
                if len(listed.rows) * math.prod(lengths[i] for i in slots - set(listed.columns)) <= work
                and not slots <= set(listed.columns)
            }
            if not promises:
                return listed.in_order()
            added = min(promises, key=lambda slots: (promises[slots], sorted(slots)))
            wider = listed.extended(sorted(added), lengths)
            rows = np.zeros((len(wider.rows), len(lengths)), np.int64)
            rows[:, wider.columns] = wider.rows
            narrowed = wider.rows[self._possible(rows, wider.columns)]
            if len(narrowed) > ENUMERABLE:
                return listed.in_order()
            listed = _Partial(wider.columns, narrowed)

    def _possible(self, rows: Rows, known: Sequence[int] | None = None) -> Bool[np.ndarray, " C"]:
        """Which rows may be valid, as far as the known columns tell; False only for what certainly is not."""
        indices = range(len(self.slots)) if known is None else known
        columns = {self._names[index]: Column(self._tables[index], rows[:, index]) for index in indices}
        result = np.ones(len(rows), bool)
        for constraint in self.constraints:
            if constraint.names <= columns.keys():
                result &= possible(constraint, columns, len(rows))
        return result

    @cached_property
    def _length(self) -> int:
        """Characters of all constraints."""
        return sum(len(constraint.source) for constraint in self.constraints)

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(slot.name for slot in self.slots)

    @cached_property
    def _tables(self) -> list[Table]:
        return [Table(domain) for domain in self._domains]

    @cached_property
    def _domains(self) -> tuple[Sequence[Value], ...]:
        """The slots' domains without the values that a constraint on that slot alone rules out."""
        clock = _Clock(self.where)
        return tuple(self._filtered(slot, clock) for slot in self.slots)

    def _filtered(self, slot: Slot, clock: _Clock) -> Sequence[Value]:
        constraints = [constraint for constraint in self.constraints if constraint.names == {slot.name}]
        if not constraints or len(slot.domain) > ENUMERABLE:
            return slot.domain
        kept = []
        for value in slot.domain:
            clock.check()
            if all(constraint.holds({slot.name: value}) for constraint in constraints):
                kept.append(value)
        # Where nothing is left, drawing from the whole domain fails and says which constraint is to blame.
        return tuple(kept) or slot.domain

    def _blame(self, rng: np.random.Generator) -> str:
        """Which constraint fails most, each counted on its own."""
        failures = dict.fromkeys([c.source for c in self.constraints], 0)
        draws, started = 0, thread_time()
        for row in rng.integers([len(slot.domain) for slot in self.slots], size=(1_000, len(self.slots))).tolist():
            values = {slot.name: slot.domain[index] for slot, index in zip(self.slots, row, strict=True)}
            for constraint in self.constraints:
                failures[constraint.source] += not constraint.holds(values)
            draws += 1
            if thread_time() - started > _BLAME_SECONDS:
                break
        if not failures:
            return f"{self.where}: the slots {', '.join(self._names)} cannot be pairwise distinct: add values"
        worst = max(failures, key=lambda source: failures[source])
        return (
            f"{self.where}: no valid filling found; the constraint that fails most is '{worst[:200]}' "
            f"({100 * failures[worst] // draws} % of random fillings): loosen it or the slots' domains"
        )
