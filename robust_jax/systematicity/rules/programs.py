"""The rule of the programs family: a chain of operations on a list of integers (paper Section 4.3)."""

from collections.abc import Sequence
from dataclasses import dataclass

List = tuple[int, ...]

POSITIONS = tuple(range(-3, 4))
ELEMENTS = tuple(range(11))
LENGTHS = (1, 2, 3)
REPEAT_LENGTHS = tuple(range(5, 10))

LITERALS: dict[str, tuple[tuple[int, ...], ...]] = {
    "swap": (),
    "remove": (POSITIONS,),
    "insert": (POSITIONS, ELEMENTS),
    "tail": (LENGTHS,),
    "repeat": (REPEAT_LENGTHS,),
    "shift": (LENGTHS,),
}
"""The operations with the values that each of their arguments may have."""
WEIGHTS = {name: 1 / 6 if name == "swap" else 1 / 15 for name in LITERALS}
"""Probabilities of the productions LIST → operation(LIST, …); that of LIST → x is 1/2."""


@dataclass(frozen=True)
class Operation:
    """One step of a program."""

    name: str
    literals: tuple[int, ...] = ()

    def __call__(self, x: List, /) -> List:
        size = len(x)
        match self.name, self.literals:
            case "swap", ():
                return x[size // 2 :] + x[: size // 2]
            case "remove", (position,):
                place = _place(position, size)
                return x[:place] + x[place + 1 :] if 0 <= place < size else x
            case "insert", (position, element):
                place = _place(position, size)
                return (*x[:place], element, *x[place:]) if 0 <= place <= size else x
            case "tail", (length,):
                return x[-length:]
            case "repeat", (length,):
                return (x * length)[:length]
            case "shift", (steps,):
                turn = steps % size if size else 0
                return x[size - turn :] + x[: size - turn]
        raise ValueError(f"no operation {self.name} of {len(self.literals)} literals")


def _place(position: int, size: int) -> int:
    """Positions count from 0, negative ones from the end."""
    return position + size if position < 0 else position


@dataclass(frozen=True)
class Program:
    """Operations, the innermost first."""

    operations: tuple[Operation, ...]

    def __call__(self, x: List, /) -> List:
        for operation in self.operations:
            x = operation(x)
        return x

    @property
    def skeleton(self) -> tuple[str, ...]:
        """The program without its literals."""
        return tuple(operation.name for operation in self.operations)

    def __str__(self) -> str:
        text = "x"
        for operation in self.operations:
            text = f"{operation.name}({', '.join([text, *map(str, operation.literals)])})"
        return text


def with_elements(operation: Operation, elements: Sequence[int]) -> Operation:
    """The operation with the element that it holds, if any, looked up in a table; positions and lengths stay."""
    if operation.name != "insert":
        return operation
    position, element = operation.literals
    return Operation("insert", (position, elements[element]))
