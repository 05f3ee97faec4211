"""Normalised Levenshtein distances between token sequences (paper C.3.1)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import jax
import numpy as np
from jaxtyping import Float
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from robust_jax.kernels.levenshtein_xla import levenshtein_distances

Implementation = Literal["auto", "rapidfuzz", "xla"]
"""rapidfuzz on a CPU, XLA on an accelerator; auto is the one for JAX's default device. Their results are equal."""


@dataclass(frozen=True)
class EncodedReferences:
    """References as token ids, prepared once to be compared with many responses."""

    ids: Mapping[str, int]
    """The id of every token the references hold, the most frequent first: rapidfuzz is fastest on small ids."""
    sequences: tuple[list[int], ...]
    """The references, R of them."""

    @classmethod
    def of(cls, references: Sequence[Sequence[str]]) -> "EncodedReferences":
        """Number the tokens of references by their frequency."""
        counts = Counter(token for reference in references for token in reference)
        ids = {token: rank for rank, (token, _) in enumerate(counts.most_common())}
        return cls(ids, tuple([ids[token] for token in reference] for reference in references))

    def normalised_distances(
        self, responses: Sequence[Sequence[str]], implementation: Implementation = "auto"
    ) -> Float[np.ndarray, "C R"]:
        """See the function of this name."""
        unknown = len(self.ids)
        encoded = [[self.ids.get(token, unknown) for token in response] for response in responses]
        if not encoded or not self.sequences:
            return np.zeros((len(encoded), len(self.sequences)))
        if implementation == "xla" or (implementation == "auto" and jax.default_backend() != "cpu"):
            distances = levenshtein_distances(encoded, self.sequences, len(self.ids))
        else:
            distances = process.cdist(encoded, self.sequences, scorer=Levenshtein.distance, dtype=np.int32, workers=-1)
        response_lengths = np.array([len(sequence) for sequence in encoded])
        reference_lengths = np.array([len(sequence) for sequence in self.sequences])
        return distances / np.maximum(np.maximum.outer(response_lengths, reference_lengths), 1)


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
        implementation: rapidfuzz (CPU), xla (any device of JAX), or auto, by JAX's default device.
    """
    return EncodedReferences.of(references).normalised_distances(responses, implementation)
