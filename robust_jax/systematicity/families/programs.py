"""Program induction over integer lists (paper Section 4.3): applying a hidden chain of operations to new lists."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import prod
from typing import Literal

import numpy as np

from robust_jax.errors import InputError
from robust_jax.systematicity.rules.programs import ELEMENTS, LITERALS, WEIGHTS, List, Operation, Program, with_elements
from robust_jax.systematicity.solvers.programs import shortest_programs
from robust_jax.systematicity.task import Change, Deal, Draft, Example, Kind, Parts, Task

DIGITS = 10
"""Elements of examples are drawn from 0 to 9."""
EXAMPLES = 8
"""Support pairs, and queries."""


@dataclass(frozen=True)
class Parameters:
    """Settings of the programs family.

    Raises:
        InputError: there are no such tasks.
    """

    fewest: int = 2
    """Operations of a program, at least."""
    most: int = 3
    """Operations of a program, at most."""
    longest: int = 16
    """m: length of the longest list."""
    instructions: Literal["general", "operations"] = "general"
    """Whether the operations are described (Figure 9)."""

    def __post_init__(self) -> None:
        if not 1 <= self.fewest <= self.most <= 3:
            raise InputError(
                f"programs of {self.fewest} to {self.most} operations: give 1 ≤ programs.fewest ≤ programs.most ≤ 3"
            )
        if not 12 <= self.longest <= 40:
            raise InputError(f"programs.longest must be from 12 to 40, not {self.longest}")

    @property
    def support_lengths(self) -> tuple[int, ...]:
        """Short ones and long ones, so that no query is as long as an example."""
        return (1, 2, 3, 4, *range(self.longest - 3, self.longest + 1))

    @property
    def query_lengths(self) -> tuple[int, ...]:
        """What lies between, in turn."""
        between = range(5, self.longest - 3)
        return tuple(between[place % len(between)] for place in range(EXAMPLES))


Skeleton = tuple[str, ...]
"""A program without its literals: the names of its operations, the innermost first."""

EXPLAINED_AWAY: tuple[Skeleton, ...] = (
    ("tail", "tail"),
    ("tail", "swap", "shift"),
    ("tail", "shift", "swap"),
    ("repeat", "swap", "swap"),
)
"""What fewer operations do as well, whatever the literals: no program contains it."""


@cache
def skeletons(fewest: int, most: int) -> tuple[Skeleton, ...]:
    """The skeletons of programs that no shorter program explains away."""
    chains = (chain for size in range(fewest, most + 1) for chain in product(LITERALS, repeat=size))
    return tuple(chain for chain in chains if not any(_contains(chain, part) for part in EXPLAINED_AWAY))


def _contains(chain: Skeleton, part: Skeleton) -> bool:
    return any(chain[start : start + len(part)] == part for start in range(len(chain)))


def draw_program(skeleton: Skeleton, generator: np.random.Generator) -> Program:
    """A skeleton with literals."""
    return Program(
        tuple(
            Operation(name, tuple(values[generator.integers(len(values))] for values in LITERALS[name]))
            for name in skeleton
        )
    )


@dataclass(frozen=True)
class Substitution:
    """Other elements: φ = ψ maps every element of a list, and so the elements that a program inserts."""

    elements: tuple[int, ...]
    """For every element from 0, the one that takes its place. What no list of examples is drawn from stays."""

    def apply(self, parts: Parts[List, List]) -> Parts[List, List]:
        program = parts.rule
        assert isinstance(program, Program)
        renamed = Program(tuple(with_elements(operation, self.elements) for operation in program.operations))
        support, queries = (
            tuple(tuple(self.elements[element] for element in x) for x in lists)
            for lists in (parts.support, parts.queries)
        )
        return Parts(renamed, support, queries)

    def inverse(self) -> "Substitution":
        return Substitution(tuple(sorted(range(len(self.elements)), key=self.elements.__getitem__)))


class ProgramsFamily:
    """Implements `task.Family`."""

    name = "programs"
    parameters = Parameters
    title = "Find the program that turns every list of numbers into another list, and apply it to new lists."
    answer_form = "a list of numbers"

    def kinds(self, parameters: Parameters) -> tuple[Kind, ...]:
        return ("substitution", "reordering")

    def draft(self, parameters: Parameters, deal: Deal, generator: np.random.Generator) -> Draft[List, List] | None:
        """Skeletons are dealt out: no two tasks have the same as long as there are others.

        A program that a shorter one explains away, that changes no list, or that makes all equal is none of this kind.
        """
        chains = skeletons(parameters.fewest, parameters.most)
        skeleton = chains[deal([prod(WEIGHTS[name] for name in chain) for chain in chains])]
        program = draw_program(skeleton, generator)
        support = _draw_lists(parameters.support_lengths, generator)
        queries = _draw_lists(parameters.query_lengths, generator)
        lists = (*support, *queries)
        outputs = [program(x) for x in lists]
        if len(set(outputs)) == 1 or all(x == y for x, y in zip(lists, outputs, strict=True)):
            return None
        examples = tuple(Example(x, y) for x, y in zip(support, outputs, strict=False))
        if len(shortest_programs(examples)[0].operations) < len(program.operations):
            return None
        return Draft(program, support, queries)

    def change(self, task: Task[List, List], kind: Kind, generator: np.random.Generator) -> Change[List, List]:
        return Substitution((*generator.permutation(DIGITS).tolist(), *ELEMENTS[DIGITS:]))

    def instructions(self, task: Task[List, List]) -> str:
        return GENERAL if task.parameters.instructions == "general" else GENERAL + OPERATIONS

    def show_input(self, x: List) -> str:
        return str(list(x))

    show_output = show_input

    def read_input(self, text: str) -> List:
        return tuple(json.loads(text))

    def read_output(self, value: object) -> List | None:
        """A list of whole numbers."""
        given = value if isinstance(value, list) else [None]
        elements = [element for element in given if isinstance(element, int) and not isinstance(element, bool)]
        return tuple(elements) if len(elements) == len(given) else None

    def output_schema(self, task: Task[List, List]) -> Mapping[str, object]:
        return {"type": "array", "items": {"type": "integer"}}


def _draw_lists(lengths: tuple[int, ...], generator: np.random.Generator) -> tuple[List, ...]:
    return tuple(tuple(generator.integers(DIGITS, size=length).tolist()) for length in lengths)


GENERAL = """The program is the same for all lists of the task. It is a chain of a few simple operations on lists: \
each takes the list that the one before it gives and gives another list. Find the simplest program that explains all \
examples, and answer every query with the list that it gives."""

OPERATIONS = """

The operations, with numbers in the places of their other arguments that are fixed in the program, are:
- swap(list): the second half of the list, then its first half; of an odd number of elements, the middle one belongs \
to the second half;
- remove(list, position): the list without the element at that position;
- insert(list, position, element): the list with the element put in, so that it precedes what stood at that position;
- tail(list, n): the last n elements of the list;
- repeat(list, n): the list repeated without end and cut to its first n elements;
- shift(list, n): the list rotated to the right by n places, so that its last n elements come first.
Positions count from 0, and negative ones from the end, -1 being the last element. Where the list has no such position \
it stays as it is; a position one past the end is one that something can be inserted at."""


FAMILY = ProgramsFamily()
