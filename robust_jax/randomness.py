"""One seed, many independent streams: a stream depends on what it is for, never on the order of work."""

import hashlib

import numpy as np


def rng(seed: int, purpose: str, *items: str | int) -> np.random.Generator:
    """The generator for one purpose and item under a seed: same arguments, same stream, on every machine."""
    return np.random.default_rng(derived_seed(seed, purpose, *items, bits=128))


def derived_seed(seed: int, purpose: str, *items: str | int, bits: int = 31) -> int:
    """An integer seed of `bits` bits for one purpose and item, for generators that numpy does not make."""
    name = "\x1f".join([str(seed), purpose, *map(str, items)])
    return int.from_bytes(hashlib.sha256(name.encode()).digest(), "big") >> (256 - bits)
