"""A template as a space to be searched."""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float

from robust_jax.lpds.cheap_scoring import CheapScore, unknown
from robust_jax.types import Point, Template, Variation


class TemplateSpace:
    """The valid fillings of a template, one slot apart from one another, with a cheap estimate of their difficulty.

    Implements `types.Space`.
    """

    def __init__(self, template: Template, cheap_score: CheapScore = unknown) -> None:
        self.template = template
        self.cheap_score = cheap_score
        """To be replaced when the references have been fitted again."""

    def random(self, rng: np.random.Generator) -> Point:
        return self.template.random(rng)

    def neighbours(self, point: Point) -> Iterator[Point]:
        """Every valid filling with one slot changed, slot after slot."""
        for slot in range(len(self.template.slots)):
            yield from self.template.neighbours(point, slot)

    def key(self, point: Point) -> str:
        return self.template.key(point)

    def cheap(self, points: Sequence[Point]) -> Float[np.ndarray, " C"]:
        return self.cheap_score(points)

    def ask(self, point: Point) -> Variation:
        return self.template.fill(point)
