"""What a rule-induction task is, and what turns it into another of the same structure (paper Sections 3.3 and 3.4)."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np

X = TypeVar("X", bound=Hashable)
"""Inputs of a family's rules."""
Y = TypeVar("Y", bound=Hashable)
"""Their outputs."""
X_contra = TypeVar("X_contra", bound=Hashable, contravariant=True)
Y_co = TypeVar("Y_co", bound=Hashable, covariant=True)

Kind = Literal["substitution", "rebinding", "recomposition", "reordering"]
"""Symbols replaced, features bound to other places, constituents permuted within a query, or examples reordered."""
KINDS: tuple[Kind, ...] = ("substitution", "rebinding", "recomposition", "reordering")


@runtime_checkable
class Rule(Protocol[X_contra, Y_co]):
    """f: the hidden rule of a task. Its text is the rule as a person would write it."""

    def __call__(self, x: X_contra, /) -> Y_co: ...


@dataclass(frozen=True)
class Example(Generic[X, Y]):
    """One support pair."""

    x: X
    y: Y


@dataclass(frozen=True)
class Task(Generic[X, Y]):
    """T = (f, S, Q): a hidden rule, pairs that show it, and inputs whose outputs are asked for."""

    family: str
    parameters: Any
    """The family's settings, a frozen dataclass."""
    seed: int
    number: int
    """Place among the tasks of that seed, from 0."""
    rule: Rule[X, Y]
    support: tuple[Example[X, Y], ...]
    queries: tuple[X, ...]
    answers: tuple[Y, ...]

    @property
    def id(self) -> str:
        return f"{self.family}-{self.number:04d}"

    @property
    def surface(self) -> Hashable:
        """All that a learner sees: tasks of equal surface are the same task to it."""
        return self.support, self.queries

    @property
    def is_sound(self) -> bool:
        """Whether no input occurs twice, in the support, the queries, or both."""
        inputs = [*(example.x for example in self.support), *self.queries]
        return len(set(inputs)) == len(inputs)


@dataclass(frozen=True)
class Parts(Generic[X, Y]):
    """What a task is made of and a change works on: the outputs follow from it."""

    rule: Rule[X, Y]
    support: tuple[X, ...]
    queries: tuple[X, ...]


def make_task(family: str, parameters: object, seed: int, number: int, parts: Parts[X, Y]) -> Task[X, Y]:
    """The task of a rule and inputs, with the outputs that the rule gives."""
    rule = parts.rule
    examples = tuple(Example(x, rule(x)) for x in parts.support)
    return Task(family, parameters, seed, number, rule, examples, parts.queries, tuple(map(rule, parts.queries)))


@runtime_checkable
class Change(Protocol[X, Y]):
    """φ and ψ: what a variation does to symbols, features or constituents."""

    def apply(self, parts: Parts[X, Y]) -> Parts[X, Y]:
        """The same structure with another surface: f̃ = ψ ∘ f ∘ φ⁻¹, and φ of every input."""

    def inverse(self) -> "Change[X, Y]":
        """What undoes it."""


@dataclass(frozen=True)
class Transformation(Generic[X, Y]):
    """τ = (π, σ, φ, ψ) of Section 3.4. The change comes first, then the two orders."""

    support_order: tuple[int, ...]
    """π: place i shows support pair π(i) of the task."""
    query_order: tuple[int, ...]
    """σ: place j asks query σ(j) of the task."""
    change: Change[X, Y] | None = None
    """φ and ψ; none leaves every symbol as it is."""

    def apply(self, task: Task[X, Y]) -> Task[X, Y]:
        """τ(T), its outputs derived anew from the changed rule."""
        parts = _parts(task)
        if self.change is not None:
            parts = self.change.apply(parts)
        return _with_parts(task, _reordered(parts, self.support_order, self.query_order))

    def undo(self, task: Task[X, Y]) -> Task[X, Y]:
        """τ⁻¹(T)."""
        parts = _reordered(_parts(task), _inverse(self.support_order), _inverse(self.query_order))
        return _with_parts(task, parts if self.change is None else self.change.inverse().apply(parts))


def _parts(task: Task[X, Y]) -> Parts[X, Y]:
    return Parts(task.rule, tuple(example.x for example in task.support), task.queries)


def _with_parts(task: Task[X, Y], parts: Parts[X, Y]) -> Task[X, Y]:
    return make_task(task.family, task.parameters, task.seed, task.number, parts)


def _reordered(parts: Parts[X, Y], support_order: Sequence[int], query_order: Sequence[int]) -> Parts[X, Y]:
    support = tuple(parts.support[place] for place in support_order)
    return Parts(parts.rule, support, tuple(parts.queries[place] for place in query_order))


def _inverse(order: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(range(len(order)), key=order.__getitem__))


@dataclass(frozen=True)
class Variation(Generic[X, Y]):
    """A task with another surface, and how it came by it."""

    kind: Kind | None
    """None: the task as it was generated, which every kind counts as its first variation."""
    number: int
    """Among those of its kind; 0 is the task as it was generated."""
    transformation: Transformation[X, Y]
    task: Task[X, Y]

    @property
    def key(self) -> str:
        """Its name among the variations of its task."""
        return "original" if self.kind is None else f"{self.kind}-{self.number}"


Deal = Callable[[Sequence[float]], int]
"""Gives a task its share of what is dealt out among all tasks of a seed: a place among the given weights."""


@dataclass(frozen=True)
class Draft(Generic[X, Y]):
    """A rule with the inputs that are to show it: what a family proposes for a task."""

    rule: Rule[X, Y]
    curriculum: tuple[X, ...]
    """Support that must suffice to find the rule."""
    queries: tuple[X, ...]
    extra: tuple[X, ...] = ()
    """Support beyond that."""
    probes: tuple[X, ...] = ()
    """Further inputs on which the curriculum must settle the outputs; they are not asked."""


@runtime_checkable
class Family(Protocol[X, Y]):
    """A kind of task. A new one is one file in `families/` that names an object like this FAMILY."""

    @property
    def name(self) -> str: ...

    @property
    def parameters(self) -> type[Any]:
        """Frozen dataclass of its settings of difficulty; a field's docstring says what it sets."""

    def kinds(self, parameters: Any) -> tuple[Kind, ...]:
        """The variations that its tasks have under these settings."""

    def draft(self, parameters: Any, deal: Deal, generator: np.random.Generator) -> Draft[X, Y] | None:
        """A proposal for a task; None where this draw leads to none.

        Args:
            parameters: its settings.
            deal: gives the task its share of what is dealt out among all tasks.
            generator: for everything else.
        """

    def change(self, task: Task[X, Y], kind: Kind, generator: np.random.Generator) -> Change[X, Y]:
        """A change of a kind other than reordering, uniform over all there are."""

    @property
    def title(self) -> str:
        """What is to be done, in one line: every prompt of the family begins with it, and none of another."""

    def instructions(self, task: Task[X, Y]) -> str:
        """What else a learner is told of the family."""

    @property
    def answer_form(self) -> str:
        """What one answer is in JSON, as a phrase."""

    def show_input(self, x: X) -> str: ...

    def show_output(self, y: Y) -> str: ...

    def read_input(self, text: str) -> X:
        """The input of a line that `show_input` wrote."""

    def read_output(self, value: object) -> Y | None:
        """The output that a JSON value states, in any of the spellings that a reply may use; None if it states none."""

    def output_schema(self, task: Task[X, Y]) -> Mapping[str, object]:
        """JSON schema of one output."""


@runtime_checkable
class Solver(Protocol):
    """An ideal learner of a family, which knows its instructions."""

    def __call__(self, support: Sequence[Example[Any, Any]], queries: Sequence[Any]) -> Sequence[Any] | None:
        """The answers that follow from the support; None where it leaves them open."""
