"""Levenshtein distances of many responses from many references: cells of the distance table per second.

    python benchmarks/levenshtein.py            # what this machine can run, compared with one another
    python benchmarks/levenshtein.py --bound    # what the compiled Triton kernel could reach; needs no GPU

Every method gives the same distances, which is checked first; then they take turns, and medians are printed. A method
is timed from token lists to distances, or, 'on the device', from arrays that lie there to arrays that lie there.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from unittest import mock

import jax
import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from robust_jax.difficulty.levenshtein import EncodedReferences, usable
from robust_jax.kernels import levenshtein_xla

VOCABULARY = 600
QUEUED = 20
"""Calls that are queued before the clock is read, when only the device's work is timed."""
GPUS = {"A100": (80, 108, 1.41e9), "H100 and H200": (90, 132, 1.83e9)}
"""Compute capability, multiprocessors and boost clock."""


def token_lists(count: int, length: int, seed: int) -> list[list[str]]:
    """Texts of about one length whose tokens are as unequally frequent as words, all variants of one solution."""
    draws = np.random.default_rng(seed)
    weights = 1 / np.arange(1, VOCABULARY + 1)
    weights /= weights.sum()
    solution = np.random.default_rng(0).choice(VOCABULARY, 2 * length, p=weights)
    texts = []
    for _ in range(count):
        size = int(draws.integers(length * 3 // 4, length * 5 // 4 + 1))
        other = draws.random(size) < 0.5
        tokens = np.where(other, draws.choice(VOCABULARY, size, p=weights), solution[:size])
        texts.append([f"t{token}" for token in tokens])
    return texts


def xla_on_the_device(encoded: list[list[int]], references: EncodedReferences) -> Callable[[], object]:
    """The pure JAX version from arrays to arrays."""
    captured: list[tuple[jax.Array, ...]] = []

    def capture(*arrays: object) -> jax.Array:
        captured.append(jax.device_put(arrays))
        return advance(*captured[-1])

    advance = levenshtein_xla._advance_all
    with mock.patch.object(levenshtein_xla, "_advance_all", capture):
        levenshtein_xla.levenshtein_distances(encoded, references.sequences, len(references.ids))
    return lambda: [advance(*arrays) for arrays in captured]


def triton_on_the_device(encoded: list[list[int]], references: EncodedReferences) -> Callable[[], object]:
    """The Triton kernel from arrays to arrays."""
    from robust_jax.kernels import levenshtein_triton

    captured: list[tuple[object, ...]] = []

    def capture(*arguments: object) -> jax.Array:
        arrays, numbers = arguments[:5], arguments[5:]
        captured.append((*jax.device_put(arrays), *numbers))
        return call(*captured[-1])

    call = levenshtein_triton.call_kernel
    with mock.patch.object(levenshtein_triton, "call_kernel", capture):
        levenshtein_triton.levenshtein_distances(encoded, references._pattern_tables())
    return lambda: [call(*arguments) for arguments in captured]


def compare(num_responses: int, num_references: int, length: int, rounds: int) -> None:
    """Time everything that runs here."""
    responses = token_lists(num_responses, length, 1)
    references = EncodedReferences.of(token_lists(num_references, length, 2))
    encoded = [[references.ids.get(token, len(references.ids)) for token in response] for response in responses]
    cells = sum(map(len, encoded)) * sum(map(len, references.sequences))
    print(f"{jax.devices()[0].device_kind}: {num_responses} × {num_references} × ~{length}², {cells / 1e9:.2f} Gcells")

    methods: dict[str, Callable[[], object]] = {
        "rapidfuzz itself, from ids": lambda: process.cdist(
            encoded, references.sequences, scorer=Levenshtein.distance, dtype=np.int32, workers=-1
        ),
        "rapidfuzz": lambda: references.normalised_distances(responses, "rapidfuzz"),
        "pure JAX": lambda: references.normalised_distances(responses, "xla"),
    }
    on_device = {"pure JAX on the device": xla_on_the_device(encoded, references)}
    has_kernel = jax.default_backend() == "gpu" and usable("auto") == "triton"
    if has_kernel:
        methods["Triton"] = lambda: references.normalised_distances(responses, "triton")
        on_device["Triton on the device"] = triton_on_the_device(encoded, references)

    expected = methods["rapidfuzz"]()
    for name in methods.keys() - {"rapidfuzz itself, from ids"}:
        np.testing.assert_array_equal(methods[name](), expected)
    queued = QUEUED if jax.default_backend() != "cpu" else 1
    seconds: dict[str, list[float]] = {name: [] for name in (*methods, *on_device)}
    for round_number in range(rounds + 1):  # the first one is not counted: it compiles
        for name, method in (methods | on_device).items():
            repeats = queued if name in on_device else 1
            start = time.perf_counter()
            jax.block_until_ready([method() for _ in range(repeats)])
            if round_number:
                seconds[name].append((time.perf_counter() - start) / repeats)

    middle = {name: median(taken) for name, taken in seconds.items()}
    for name, taken in middle.items():
        print(f"{name:28} {1e3 * taken:9.3f} ms {cells / taken / 1e9:10.2f} GCUPS")
    ratios = [
        of / itself for of, itself in zip(seconds["rapidfuzz"], seconds["rapidfuzz itself, from ids"], strict=True)
    ]
    print(f"rapidfuzz ÷ rapidfuzz itself: {median(ratios):.3f} (wanted: at most 1.2)")
    if has_kernel:
        faster = middle["pure JAX on the device"] / middle["Triton on the device"]
        speed = cells / middle["Triton on the device"] / 1e12
        print(f"Triton on the device: {speed:.2f} TCUPS (wanted: at least 1)")
        print(f"pure JAX ÷ Triton, on the device: {faster:.1f} (wanted: at least 3)")
    else:
        print("The Triton kernel was not run: it needs an NVIDIA GPU. --bound tells what it could reach.")


def bound(length: int) -> None:
    """What the machine code allows if nothing but its instructions took time."""
    from machine_code import compiled

    from robust_jax.kernels.levenshtein_tables import LANES, WORD_BITS

    words = -(-length // WORD_BITS)
    if words > 8:
        sys.exit("--bound is for references of one strip: give --tokens up to 256")
    with tempfile.TemporaryDirectory() as folder:
        for capability in (80, 90, 100):
            code = compiled(capability, words, Path(folder))
            issued = sum(code.step.values())
            cells = words * WORD_BITS * LANES
            # A multiprocessor issues four instructions of a warp a cycle, and takes two of the integer pipeline.
            cycles = max(issued / 4, code.step_logic / 2)
            print(
                f"sm_{capability}: {issued} instructions for {words * WORD_BITS} cells "
                f"({issued * LANES / cells:.3f} a cell), {code.step_logic} of them in the integer pipeline "
                f"({code.step_logic * LANES / cells:.3f} a cell), {code.registers} registers; "
                f"{cells / cycles:.0f} cells a cycle and multiprocessor"
            )
            for name, (gpu_capability, multiprocessors, clock) in GPUS.items():
                if gpu_capability == capability:
                    peak = cells / cycles * multiprocessors * clock / 1e12
                    useful = peak * length / (words * WORD_BITS)
                    print(f"  {name}: {peak:.1f} TCUPS, {useful:.1f} of them for references of {length} tokens")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--responses", type=int, default=256)
    parser.add_argument("--references", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--bound", action="store_true")
    options = parser.parse_args()
    if options.bound:
        bound(options.tokens)
    else:
        compare(options.responses, options.references, options.tokens, options.rounds)


if __name__ == "__main__":
    main()
