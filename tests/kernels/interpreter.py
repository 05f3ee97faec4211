"""The Triton kernel's own code, run by Triton's interpreter in a process of its own.

Whether a kernel is interpreted is settled by an environment variable when the kernel is defined. So a second process,
which has that variable, defines the kernel once more and runs it for the tests.
"""

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from unittest import mock

import numpy as np

from robust_jax.kernels.levenshtein_tables import BlockGroup, PatternTables


@contextmanager
def interpreter() -> Iterator[ProcessPoolExecutor]:
    """One process in which kernels are interpreted."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        with mock.patch.dict(os.environ, TRITON_INTERPRET="1"):
            pool.submit(int).result()  # starts the process, which takes the environment along
        yield pool


def interpreted_distances(responses: Sequence[Sequence[int]], tables: PatternTables) -> np.ndarray:
    """`levenshtein_distances` of a process in which kernels are interpreted."""
    from robust_jax.kernels.levenshtein_triton import levenshtein_distances

    return levenshtein_distances(responses, tables, launch)


def launch(group: BlockGroup, texts: np.ndarray, starts: np.ndarray, carry_size: int) -> np.ndarray:
    """`launch_on_gpu` of a process in which kernels are interpreted."""
    import torch

    from robust_jax.kernels.levenshtein_triton import distances_kernel

    grid = len(starts) - 1, len(group.lengths)
    distances = torch.full((*grid, group.lanes), -1, dtype=torch.int32)
    # Not zeros: scratch memory that is read before it was written has to show.
    carry = torch.from_numpy(np.full(max(1, group.chains * grid[0] * carry_size), 0x55555555, np.uint32))
    arrays = [torch.from_numpy(a) for a in (group.matches, group.descriptions, group.lengths, texts, starts)]
    distances_kernel[grid](*arrays, carry_size, distances, carry, WORDS=group.words, LANES=group.lanes)
    return distances.numpy()
