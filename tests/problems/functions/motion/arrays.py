"""Template functions that draw with numpy."""

import numpy as np
import numpy.random as npr
from numpy.random import randint
from tools import speed
from words import NAMES


def numpy_scalars():
    distance, hours = np.random.randint(100, 400), randint(2, 6)
    name = np.random.choice(NAMES)
    return f"{name} rides {distance} km in {hours} h. Speed?", f"{speed(distance, hours):.2f}"


def numpy_arrays():
    lengths = np.random.uniform(1, 5, size=3).round(1)
    counts = np.random.randint(1, 6, size=(2, 2))
    return f"Lengths {lengths.tolist()}, counts {counts.tolist()}. Sum?", f"{lengths.sum() + counts.sum():.1f}"


def numpy_distributions():
    heights = np.random.normal(170, 5, 2)
    calls = npr.poisson(4)
    return f"Heights {heights[0]:.1f} and {heights[1]:.1f}, {calls} calls?", f"{heights.sum() + calls:.1f}"


def numpy_without_replacement():
    numbers = np.random.choice(np.arange(10, 20), size=3, replace=False)
    order = np.random.permutation([1, 2, 3])
    names = list(NAMES)
    np.random.shuffle(names)
    return f"{names[0]}: {numbers.tolist()} in order {order.tolist()}. Sum?", f"{numbers.sum()}"


def local_import():
    import random

    from tools import speed as quotient

    n = random.randint(10, 20)
    return f"{n} km in 4 h?", f"{quotient(n, 4)}"


def own_generators():
    import random

    own, other = random.Random(5), np.random.default_rng(7)
    n, m = own.randint(10, 99), int(other.integers(10, 99))
    return f"{n} and {m} and {random.randint(1, 5)}?", f"{n + m}"
