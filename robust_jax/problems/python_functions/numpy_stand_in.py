"""What template functions get in the place of `numpy.random`: every draw goes over the current tape."""

from __future__ import annotations

from collections.abc import Callable, MutableSequence, Sequence
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from robust_jax.problems.python_functions.random_stand_in import (
    module,
    possible,
    shuffled,
    typical,
    without_replacement,
)
from robust_jax.problems.python_functions.tape import current_tape

T = TypeVar("T")


def _array(size: Any, actual: Any, draw: Callable[[Any], Any], dtype: Any = float) -> Any:
    """One result, or an array of them."""
    if size is None:
        return draw(actual)
    count = int(np.prod(size))
    flat = [None] * count if actual is None else np.asarray(actual).ravel()
    return np.array([draw(value) for value in flat], dtype).reshape(size)


def _distribution(name: str, parameters: int, *, whole: bool = False, low: float = float("-inf")) -> Callable[..., Any]:
    """The method for a distribution that is not even, with so many parameters before the size."""

    def draw(self: _Random, *args: Any, size: Any = None, **kwargs: Any) -> Any:
        args, rest = args[:parameters], args[parameters:]
        size = rest[0] if rest else size
        actual = self._ask(lambda g: getattr(g, name)(*args, size=size, **kwargs))
        values = typical(np.random.RandomState, name, args, tuple(kwargs.items()))

        return _array(size, actual, lambda value: _real(low, value, values, whole), int if whole else float)

    return draw


def _real(low: float, value: Any, typical: tuple[float, ...], whole: bool) -> int | float:
    drawn = current_tape().real(low, float("inf"), None if value is None else float(value), typical)
    return round(drawn) if whole else drawn


def _integer(value: Any) -> int | None:
    return None if value is None else int(value)


class _Random:
    """`numpy.random.RandomState` and `numpy.random.Generator`; without either, the module's own functions."""

    def __init__(self, own: np.random.RandomState | np.random.Generator | None = None) -> None:
        self._own = own

    def _ask(self, ask: Callable[[Any], T]) -> T | None:
        return current_tape().actual(lambda _, state: ask(state if self._own is None else self._own))

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        actual = self._ask(lambda g: g.uniform(low, high, size))
        return _array(size, actual, lambda value: current_tape().real(float(low), float(high), value))

    def random(self, size: Any = None) -> Any:
        actual = self._ask(lambda g: g.random(size))
        return _array(size, actual, lambda value: current_tape().real(0.0, 1 - 2**-53, value))

    random_sample = ranf = random

    def rand(self, *dims: Any) -> Any:
        return self.random(dims or None)

    def randn(self, *dims: Any) -> Any:
        return self.standard_normal(size=dims or None)

    def randint(self, low: Any, high: Any = None, size: Any = None, dtype: Any = int) -> Any:
        numbers = range(low) if high is None else range(low, high)
        actual = self._ask(lambda g: g.randint(low, high, size, dtype))
        return _array(size, actual, lambda value: current_tape().pick(numbers, _integer(value)), dtype)

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> Any:
        first, last = (0, low) if high is None else (low, high)
        numbers, kind = range(first, last + endpoint), np.dtype(dtype).type
        actual = self._ask(lambda g: g.integers(low, high, size, dtype, endpoint))
        return _array(size, actual, lambda value: kind(current_tape().pick(numbers, _integer(value))), dtype)

    def choice(self, a: Any, size: Any = None, replace: bool = True, p: Sequence[Any] | None = None) -> Any:
        actual = self._ask(lambda g: g.choice(a, size, replace, p))
        population = np.arange(a) if isinstance(a, (int, np.integer)) else np.asarray(a)
        elements = possible(list(population), p)
        if replace or size is None:
            return _array(size, actual, lambda value: current_tape().pick(elements, value), population.dtype)
        flat = None if actual is None else list(np.asarray(actual).ravel())
        return np.array(without_replacement(elements, flat, int(np.prod(size))), population.dtype).reshape(size)

    def permutation(self, x: Any) -> Any:
        population = np.arange(x) if isinstance(x, (int, np.integer)) else np.asarray(x)
        actual = self._ask(lambda g: list(g.permutation(x)))
        return np.array(without_replacement(list(population), actual, len(population)), population.dtype)

    def shuffle(self, x: MutableSequence[Any]) -> None:
        x[:] = without_replacement(list(x), self._ask(lambda g: shuffled(g, x)), len(x))

    def seed(self, seed: Any = None) -> None:
        """Seeds a recording, as it would a plain call; a playback has nothing to seed."""
        self._ask(lambda g: g.seed(seed))

    normal = _distribution("normal", 2)
    standard_normal = _distribution("standard_normal", 0)
    lognormal = _distribution("lognormal", 2, low=0.0)
    exponential = _distribution("exponential", 1, low=0.0)
    triangular = _distribution("triangular", 3)
    beta = _distribution("beta", 2, low=0.0)
    gamma = _distribution("gamma", 2, low=0.0)
    poisson = _distribution("poisson", 1, whole=True, low=0.0)
    binomial = _distribution("binomial", 2, whole=True, low=0.0)


class _Numpy(ModuleType):
    """numpy with another `random`."""

    def __init__(self, randomness: ModuleType) -> None:
        super().__init__("numpy")
        self.random = randomness

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


NUMPY_RANDOM = module(
    "numpy.random",
    _Random(),
    RandomState=lambda seed=None: _Random(np.random.RandomState(seed)),
    default_rng=lambda seed=None: _Random(np.random.default_rng(seed)),
)
NUMPY = _Numpy(NUMPY_RANDOM)
