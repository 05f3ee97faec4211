"""A template as a space to be searched."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from jaxtyping import Float

from robust_jax.types import Point, Template, Variation

CheapScore = Callable[[Sequence[str]], Float[np.ndarray, " C"]]
"""The cheap difficulty of problem texts; higher is harder."""


class TemplateSpace:
    """The valid fillings of a template, one slot apart from one another, with a cheap estimate of their difficulty.

    Implements `types.Space`.
    """

    def __init__(self, template: Template, cheap_score: CheapScore) -> None:
        self.template = template
        self._cheap_score = cheap_score
        self._estimates: dict[str, float] = {}

    def random(self, rng: np.random.Generator) -> Point:
        return self.template.random(rng)

    def neighbours(self, point: Point) -> Iterator[Point]:
        """Every valid filling with one slot changed, slot after slot."""
        for slot in range(len(self.template.slots)):
            yield from self.template.neighbours(point, slot)

    def key(self, point: Point) -> str:
        return self.template.key(point)

    def cheap(self, points: Sequence[Point]) -> Float[np.ndarray, " C"]:
        """The cheap estimate of every point; a point is estimated once as long as the score stays the same."""
        keys = [self.key(point) for point in points]
        new = {key: point for key, point in zip(keys, points, strict=True) if key not in self._estimates}
        if new:
            scores = self._cheap_score([self.template.text(point) for point in new.values()])
            self._estimates.update(zip(new, scores.tolist(), strict=True))
        return np.array([self._estimates[key] for key in keys], float)

    def ask(self, point: Point) -> Variation:
        return self.template.fill(point)

    def change_score(self, cheap_score: CheapScore) -> None:
        """Estimate with another score from now on, because the references have been fitted again."""
        self._cheap_score = cheap_score
        self._estimates.clear()


def template_space(template: Template) -> TemplateSpace:
    """A template as a space to draw from, for which nothing has to be estimated."""
    return TemplateSpace(template, lambda texts: np.zeros(len(texts)))
