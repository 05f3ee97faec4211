"""Normalised Levenshtein distances between token sequences (paper C.3.1)."""

import functools
import importlib.util
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import jax
import numpy as np
from jaxtyping import Float
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from robust_jax.errors import InputError
from robust_jax.kernels import levenshtein_xla
from robust_jax.kernels.levenshtein_tables import PatternTables

Implementation = Literal["auto", "rapidfuzz", "xla", "triton"]
"""rapidfuzz on a CPU, triton on an NVIDIA GPU, xla on any device of JAX; auto is the fastest that JAX's default device
allows. Their results are equal."""

_KEPT_BYTES = 1 << 26
"""Larger tables are made anew for every call: one is kept for each template that is searched."""


@dataclass(frozen=True)
class EncodedReferences:
    """References as token ids, prepared once to be compared with many responses."""

    ids: Mapping[str, int]
    """The id of every token the references hold. Those that came together are ordered by frequency: rapidfuzz is
    fastest on small ids."""
    sequences: tuple[list[int], ...]
    """The references, R of them."""
    _tables: list[PatternTables] = field(default_factory=list, repr=False, compare=False)
    """Those of the Triton kernel, once they are needed."""

    @classmethod
    def of(cls, references: Sequence[Sequence[str]]) -> "EncodedReferences":
        """Number the tokens of references."""
        return cls({}, ()).extended(references)

    def extended(self, more: Sequence[Sequence[str]]) -> "EncodedReferences":
        """These references and more; ids stay what they are."""
        counts = Counter(token for reference in more for token in reference if token not in self.ids)
        ids = {**self.ids, **{token: len(self.ids) + rank for rank, (token, _) in enumerate(counts.most_common())}}
        added = [[ids[token] for token in reference] for reference in more]
        tables = [tables.extended(added, len(ids)) for tables in self._tables]
        return EncodedReferences(ids, (*self.sequences, *added), tables)

    def normalised_distances(
        self, responses: Sequence[Sequence[str]], implementation: Implementation = "auto"
    ) -> Float[np.ndarray, "C R"]:
        """See the function of this name."""
        unknown = len(self.ids)
        encoded = [[self.ids.get(token, unknown) for token in response] for response in responses]
        if not encoded or not self.sequences:
            return np.zeros((len(encoded), len(self.sequences)))
        match usable(implementation):
            case "triton":
                from robust_jax.kernels import levenshtein_triton

                distances = levenshtein_triton.levenshtein_distances(encoded, self._pattern_tables())
            case "xla":
                distances = levenshtein_xla.levenshtein_distances(encoded, self.sequences, len(self.ids))
            case _:
                distances = process.cdist(
                    encoded, self.sequences, scorer=Levenshtein.distance, dtype=np.int32, workers=-1
                )
        response_lengths = np.array([len(sequence) for sequence in encoded])
        reference_lengths = np.array([len(sequence) for sequence in self.sequences])
        return distances / np.maximum(np.maximum.outer(response_lengths, reference_lengths), 1)

    def _pattern_tables(self) -> PatternTables:
        if self._tables:
            return self._tables[0]
        tables = PatternTables.of(self.sequences, len(self.ids))
        if tables.nbytes <= _KEPT_BYTES:
            self._tables.append(tables)
        return tables


def normalised_distances(
    responses: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    implementation: Implementation = "auto",
) -> Float[np.ndarray, "C R"]:
    """Levenshtein distance of every response from every reference over the longer one's length (d̃_L of Eq. 5).

    Lies in [0, 1]: 0 for equal sequences, two empty ones among them, 1 where nothing is shared.

    Args:
        responses: C token sequences.
        references: R token sequences.
        implementation: rapidfuzz (CPU), triton (NVIDIA GPU), xla (any device of JAX), or auto, by JAX's default device.

    Raises:
        InputError: the Triton kernel was asked for and does not run here.
    """
    return EncodedReferences.of(references).normalised_distances(responses, implementation)


def usable(implementation: Implementation) -> Literal["rapidfuzz", "xla", "triton"]:
    """The implementation that an option stands for on this machine.

    Raises:
        InputError: the Triton kernel was asked for and does not run here.
    """
    if implementation == "triton" and (reason := _triton_obstacle()):
        raise InputError(f"--levenshtein triton does not run here: {reason}; auto takes what does")
    if implementation != "auto":
        return implementation
    if jax.default_backend() == "cpu":
        return "rapidfuzz"
    return "xla" if _triton_obstacle() else "triton"


@functools.cache
def _triton_obstacle() -> str | None:
    """Why the Triton kernel cannot be used, or None. It is tried on one pair: GPUs, drivers and compilers vary."""
    device = jax.devices()[0]
    if device.platform != "gpu" or "cuda" not in device.client.platform_version.lower():
        return "JAX finds no NVIDIA GPU"
    if not all(map(importlib.util.find_spec, ("triton", "jax_triton"))):
        return "Triton is not installed (the extra robust-jax[gpu] brings it)"
    from robust_jax.kernels import levenshtein_triton

    try:
        found = levenshtein_triton.levenshtein_distances([[0, 1]], PatternTables.of([[1]], 2))
        reason = None if found.tolist() == [[1]] else f"it finds {found.item()} where the distance is 1"
    except Exception as error:  # whatever compilers and drivers raise
        reason = " ".join(str(error).split()) or type(error).__name__
    if reason:
        logging.getLogger(__name__).warning("The Triton kernel does not run on %s: %s", device.device_kind, reason)
    return reason
