"""A Python function that draws from `random` and returns a question with its solution, as a template."""

from __future__ import annotations

import random
import sys
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, no_type_check

import numpy as np

from robust_jax.errors import InputError
from robust_jax.problems.grading import extract
from robust_jax.problems.python_functions.tape import Draw, Site, Tape, UnknownSource, playing
from robust_jax.problems.text import exact, key_of
from robust_jax.randomness import rng
from robust_jax.types import Number, Point, Size, Slot, Value, Variation

MAX_LINES = 200_000
"""Executed lines after which a call counts as endless."""
MAX_TRIES = 2_000
"""Draws that may belong to another template of the same function before one of this one counts as impossible."""
_KEPT_RUNS = 20_000

Line = tuple[str, int]
Structure = frozenset[Line]
"""The lines that a call executes."""


@dataclass(frozen=True)
class Run:
    """What one call gave."""

    question: str
    solution: str
    answer: Number
    structure: Structure
    draws: tuple[Draw, ...]
    is_exact: bool
    """Whether every draw had been given a value that may be drawn there."""

    @property
    def point(self) -> Point:
        return tuple(draw.value for draw in self.draws)


class BadFunction(Exception):
    """A call gave no question with a solution; the message says what it gave instead."""


@dataclass
class Function:
    """A zero-argument function of a collection, ready to be called over a tape."""

    call: Callable[[], Any]
    files: Collection[str]
    """The collection's files."""
    max_values: int
    places: dict[Site, int] = field(default_factory=dict)
    """Decimals that continuous draws are rounded to."""

    def record(self, seed: int) -> Run:
        """A call as it would be under `random.seed(seed)` and `numpy.random.seed(seed)`.

        Raises:
            BadFunction: it raised, or gave something else than two texts with a number at the end.
        """
        tape = Tape(self.files, self.max_values, generators=(random.Random(seed), np.random.RandomState(seed)))
        run = self._run(tape)
        for site, drawn in tape.floats.items():
            if drawn.places is not None:
                self.places[site] = max(drawn.places, self.places.get(site, 0))
        return run

    def play(self, values: Mapping[Site, Value] | Sequence[Value], fallback: np.random.Generator | None = None) -> Run:
        """A call with chosen values for its draws; raises as `record` does."""
        return self._run(Tape(self.files, self.max_values, values=values, fallback=fallback, places=self.places))

    def _run(self, tape: Tape) -> Run:
        tracer = _Tracer(self.files)
        before = sys.gettrace()
        sys.settrace(tracer.call)
        try:
            with playing(tape):
                result = self.call()
        except (BadFunction, UnknownSource) as error:
            raise BadFunction(str(error)) from None
        except Exception as error:
            raise BadFunction(f"it raises {type(error).__name__}: {str(error)[:120]}") from None
        finally:
            sys.settrace(before)
        question, solution = _texts(result)
        answer = extract(solution).value
        if answer is None:
            raise BadFunction("its solution holds no number")
        return Run(question, solution, answer, frozenset(tracer.lines), tuple(tape.draws), tape.is_exact)


class _Tracer:
    """Notes which lines of some files are executed."""

    def __init__(self, files: Collection[str]) -> None:
        self.files = files
        self.lines: set[Line] = set()
        self.count = 0

    # Both are called so often that not even the tests can check their types each time.
    @no_type_check
    def call(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        return self.line if frame.f_code.co_filename in self.files else None

    @no_type_check
    def line(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
        if event == "line":
            self.lines.add((frame.f_code.co_filename, frame.f_lineno))
            self.count += 1
            if self.count > MAX_LINES:
                raise BadFunction(f"it executes more than {MAX_LINES:,} lines")
        return self.line


def _texts(result: object) -> tuple[str, str]:
    match result:
        case (str(question), str(solution), *_) if question.strip():
            return question.strip(), solution.strip()
    raise BadFunction(f"it gives {type(result).__name__}, not a question with its solution")


@dataclass
class FunctionTemplate:
    """The fillings of a function that execute the same lines; implements `robust_jax.types.Template`.

    A point holds the values of the draws in the order in which they happen, which may be more or fewer than `slots`
    where a loop has a drawn length.
    """

    id: str
    function: Function
    structure: Structure
    slots: tuple[Slot, ...]
    """The draws of a longest call that was seen, with what they drew from there."""
    names: Mapping[Site, str]
    """What the draws are called."""
    base: Point | None = None
    _runs: OrderedDict[Point, Run | None] = field(default_factory=OrderedDict, repr=False)

    @property
    def size(self) -> Size:
        """A bound: what one draw can be may depend on another."""
        count = 1
        for slot in self.slots:
            count *= len(slot.domain)
        return Size(count, exact=False)

    def is_valid(self, point: Point) -> bool:
        """Whether the function draws exactly these values and executes the template's lines."""
        return self._run(point) is not None

    def random(self, rng: np.random.Generator) -> Point:
        """A filling, every draw even over its domain, given the ones before it.

        Raises:
            InputError: none was found.
        """
        for _ in range(MAX_TRIES):
            run = self._play({}, rng)
            if run is not None:
                return run.point
        raise InputError(f"template {self.id}: none of {MAX_TRIES} calls executed the template's lines")

    def neighbours(self, point: Point, slot: int) -> Iterator[Point]:
        """Every valid filling with another value for one draw, and another text.

        Draws that cannot keep their value beside it get another, the same in every call.
        """
        run = self._run(point)
        if run is None or slot >= len(run.draws):
            return
        values = {draw.site: draw.value for draw in run.draws}
        changed = run.draws[slot]
        seen = {run.question}
        for value in dict.fromkeys(changed.domain):
            if value == changed.value:
                continue
            generator = rng(0, "values that do not fit", self.id, self.key(point), slot, key_of((value,)))
            other = self._play(values | {changed.site: value}, generator)
            if other is not None and other.question not in seen:
                seen.add(other.question)
                yield other.point

    def key(self, point: Point) -> str:
        """The key of the variation at `point`."""
        return key_of(point)

    def text(self, point: Point) -> str:
        """The problem text at `point`.

        Raises:
            InputError: the point is not valid.
        """
        return self._valid(point).question

    def fill(self, point: Point) -> Variation:
        """The variation at `point`; raises as `text` does."""
        run = self._valid(point)
        values = {self.names.get(draw.site, f"draw{place}"): draw.value for place, draw in enumerate(run.draws, 1)}
        ending = f"#### {exact(run.answer)}"
        trace = run.solution if run.solution.splitlines()[-1:] == [ending] else f"{run.solution}\n{ending}"
        return Variation(self.id, self.key(point), values, run.question, run.answer, trace)

    def _valid(self, point: Point) -> Run:
        run = self._run(point)
        if run is None:
            raise InputError(f"template {self.id}: {self.key(point)[:200]} is no filling of it")
        return run

    def _run(self, point: Point) -> Run | None:
        """The call at a point, if it is valid; calls are remembered, because a search asks for each several times."""
        if point not in self._runs:
            try:
                run = self.function.play(point)
            except BadFunction:
                self._remember(point, None)
            else:
                is_whole = run.is_exact and len(run.draws) == len(point) and run.structure == self.structure
                in_domains = all(draw.value in draw.domain for draw in run.draws)
                self._remember(point, run if is_whole and in_domains else None)
        return self._runs[point]

    def _play(self, values: Mapping[Site, Value], fallback: np.random.Generator) -> Run | None:
        try:
            run = self.function.play(values, fallback)
        except BadFunction:
            return None
        if run.structure != self.structure:
            return None
        self._remember(run.point, run)
        return run

    def _remember(self, point: Point, run: Run | None) -> None:
        self._runs[point] = run
        while len(self._runs) > _KEPT_RUNS:
            self._runs.popitem(last=False)
