"""What is known about some responses to variations of one template."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

Need = Literal["text", "hidden", "embeddings", "output_statistics", "input_statistics"]
"""A column of `Observations` that a metric is computed from."""


@dataclass(frozen=True, eq=False)
class Observations:
    """C responses to variations of one template, a column for everything that a metric may need; None is unknown.

    Raises:
        ValueError: a column has another length than `keys`.
    """

    keys: tuple[str, ...]
    """The variations' keys."""
    text: tuple[str, ...] | None = None
    """The replies."""
    hidden: Float[np.ndarray, "C l D"] | None = None
    """Mean hidden states of the replies, one row a recorded layer; NaN for an empty reply."""
    embeddings: Float[np.ndarray, "C d"] | None = None
    """Mean input embeddings of the problems."""
    output_statistics: Float[np.ndarray, "C 3"] | None = None
    """`TokenStatistics` of the replies given their prompts, field by field; NaN for an empty reply."""
    input_statistics: Float[np.ndarray, "C 3"] | None = None
    """`TokenStatistics` of the problems."""

    def __post_init__(self) -> None:
        for need in get_args(Need):
            column = getattr(self, need)
            if column is not None and len(column) != len(self.keys):
                raise ValueError(f"{len(column)} rows of {need} for {len(self.keys)} observations")

    def __len__(self) -> int:
        return len(self.keys)
