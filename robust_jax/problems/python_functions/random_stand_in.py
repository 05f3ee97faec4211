"""What template functions get in the place of `random`: every draw goes over the current tape.

What comes from the functions is `Any`: their authors may pass whatever the real ones take.

Each function asks the generator for its whole result first, if the tape is a recording, and then puts the result
together draw by draw: a recording gives what a plain call gives, and a playback takes the same path.
"""

from __future__ import annotations

import random
from collections.abc import Callable, MutableSequence, Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any, TypeVar

from robust_jax.problems.python_functions.tape import current_tape

T = TypeVar("T")

_TYPICAL = 100
"""Values that stand for a distribution that is not even."""


def several(elements: Sequence[T], actual: Sequence[T] | None, count: int) -> list[T]:
    """Draws with replacement."""
    tape = current_tape()
    return [tape.pick(elements, None if actual is None else actual[place]) for place in range(count)]


def without_replacement(elements: Sequence[T], actual: Sequence[T] | None, count: int) -> list[T]:
    """Draws of different elements.

    Raises:
        ValueError: there are fewer elements.
    """
    if not 0 <= count <= len(elements):
        raise ValueError("Sample larger than population or is negative")
    tape, left, drawn = current_tape(), list(elements), []
    for place in range(count):
        element = tape.pick(left, None if actual is None else actual[place])
        del left[next(index for index, other in enumerate(left) if other is element)]
        drawn.append(element)
    return drawn


def possible(population: Sequence[T], weights: Sequence[Any] | None) -> Sequence[T]:
    """The elements whose weight is not zero."""
    if weights is None:
        return population
    return [element for element, weight in zip(population, weights, strict=True) if weight > 0]


def shuffled(generator: Any, elements: Sequence[T]) -> list[T]:
    """A generator's own shuffling of a copy."""
    copy = list(elements)
    generator.shuffle(copy)
    return copy


@lru_cache(maxsize=1_000)
def typical(
    kind: Callable[[int], Any], name: str, args: tuple[Any, ...], kwargs: tuple[tuple[str, Any], ...]
) -> tuple[float, ...]:
    """Values spread as a distribution spreads its own."""
    generator = kind(0)
    drawn = sorted(float(getattr(generator, name)(*args, **dict(kwargs))) for _ in range(10 * _TYPICAL))
    return tuple(drawn[5::10])


def _distribution(name: str, low: float = float("-inf")) -> Callable[..., float]:
    """The method for a distribution that is not even."""

    def draw(self: _Random, *args: Any, **kwargs: Any) -> float:
        actual = self._ask(lambda generator: getattr(generator, name)(*args, **kwargs))
        values = typical(random.Random, name, args, tuple(kwargs.items()))
        return current_tape().real(low, float("inf"), actual, values)

    return draw


class _Random:
    """`random.Random`."""

    def __init__(self, seed: Any = None) -> None:
        self._own = random.Random(seed)

    def _ask(self, ask: Callable[[random.Random], T]) -> T | None:
        return current_tape().actual(lambda *_: ask(self._own))

    def random(self) -> float:
        return current_tape().real(0.0, 1.0 - 2**-53, self._ask(lambda g: g.random()))

    def uniform(self, a: Any, b: Any) -> float:
        return current_tape().real(float(min(a, b)), float(max(a, b)), self._ask(lambda g: g.uniform(a, b)))

    def randint(self, a: Any, b: Any) -> int:
        return current_tape().pick(range(a, b + 1), self._ask(lambda g: g.randint(a, b)))

    def randrange(self, *args: Any) -> int:
        return current_tape().pick(range(*args), self._ask(lambda g: g.randrange(*args)))

    def getrandbits(self, k: int) -> int:
        return current_tape().pick(range(2**k), self._ask(lambda g: g.getrandbits(k)))

    def choice(self, seq: Sequence[T]) -> T:
        return current_tape().pick(seq, self._ask(lambda g: g.choice(seq)))

    def choices(
        self,
        population: Sequence[T],
        weights: Sequence[Any] | None = None,
        *,
        cum_weights: Sequence[Any] | None = None,
        k: int = 1,
    ) -> list[T]:
        actual = self._ask(lambda g: g.choices(population, weights, cum_weights=cum_weights, k=k))
        if cum_weights is not None:
            weights = [after - before for before, after in zip([0, *cum_weights], cum_weights, strict=False)]
        return several(possible(population, weights), actual, k)

    def sample(self, population: Sequence[T], k: int, *, counts: Sequence[int] | None = None) -> list[T]:
        actual = self._ask(lambda g: g.sample(population, k, counts=counts))
        if counts is not None:
            population = [element for element, count in zip(population, counts, strict=True) for _ in range(count)]
        return without_replacement(population, actual, k)

    def shuffle(self, x: MutableSequence[Any]) -> None:
        x[:] = without_replacement(list(x), self._ask(lambda g: shuffled(g, x)), len(x))

    def seed(self, a: Any = None, version: int = 2) -> None:
        """Seeds a recording, as it would a plain call; a playback has nothing to seed."""
        self._ask(lambda g: g.seed(a, version))

    gauss = _distribution("gauss")
    normalvariate = _distribution("normalvariate")
    lognormvariate = _distribution("lognormvariate", 0.0)
    expovariate = _distribution("expovariate", 0.0)
    triangular = _distribution("triangular")
    betavariate = _distribution("betavariate", 0.0)
    gammavariate = _distribution("gammavariate", 0.0)
    paretovariate = _distribution("paretovariate", 1.0)
    weibullvariate = _distribution("weibullvariate", 0.0)
    vonmisesvariate = _distribution("vonmisesvariate", 0.0)


class _ModuleRandom(_Random):
    """The module's own functions, which draw from the generator that the tape was seeded with."""

    def _ask(self, ask: Callable[[random.Random], T]) -> T | None:
        return current_tape().actual(lambda generator, _: ask(generator))


def module(name: str, functions: object, **classes: object) -> ModuleType:
    """A module with the public methods of an object as its functions, and with nothing else that draws."""
    made = ModuleType(name)
    methods = {attribute: getattr(functions, attribute) for attribute in dir(functions) if attribute[0] != "_"}
    for attribute, value in {**methods, **classes}.items():
        setattr(made, attribute, value)
    return made


RANDOM = module("random", _ModuleRandom(), Random=_Random, SystemRandom=_Random)
