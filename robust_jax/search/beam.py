"""Beam search for the hardest points of a space (paper Section 4.1, Appendix C.4 and Algorithm 1).

The search calls no model. It proposes points and is told how hard they were, so that the searches of many templates
can share one batch of the model:

    while proposals := search.propose():
        search.observe({candidate.key: difficulty(candidate.point) for candidate in proposals})
    hardest, how_hard = search.best
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Generic, Literal

import numpy as np

from robust_jax.errors import InputError
from robust_jax.randomness import rng
from robust_jax.search.baseline import unseen_points
from robust_jax.types import P, Space

Origin = Literal["start", "neighbour", "explored", "selected"]
"""How a point came to be proposed. start: the search began there; neighbour: among a beam node's hardest neighbours
by the cheap estimate; selected: drawn from that node's other neighbours; explored: drawn from the whole space."""


@dataclass(frozen=True)
class BeamConfig:
    """Settings of the beam search.

    Raises:
        InputError: a setting is out of its range.
    """

    iterations: int = 15
    """T: how often the beam is expanded after the start was scored."""
    width: int = 16
    """w: how many points the beam keeps."""
    branching: int = 16
    """b: how many candidates every point of the beam contributes to an iteration."""
    explore: float = 0.2
    """ρ_expl: share of the candidates that are drawn from the whole space."""
    select: float = 0.4
    """ρ_sel: share of the neighbours that are drawn at random instead of taken by the cheap estimate."""

    def __post_init__(self) -> None:
        for name, count, least in (
            ("iterations", self.iterations, 0),
            ("width", self.width, 1),
            ("branching", self.branching, 1),
        ):
            if count < least:
                raise InputError(f"beam {name} is {count}: give {least} or more")
        for name, share in (("explore", self.explore), ("select", self.select)):
            if not 0 <= share <= 1:
                raise InputError(f"beam {name} is {share}: give a share between 0 and 1")

    @property
    def hardest(self) -> int:
        """Neighbours of a node that are taken by the cheap estimate: (1 − ρ_sel) of those not explored."""
        return self._neighbours - self.selected

    @property
    def selected(self) -> int:
        """Neighbours of a node that are drawn from its remaining ones: ρ_sel of those not explored, rounded."""
        return round(self.select * self._neighbours)

    @property
    def _neighbours(self) -> int:
        return self.branching - round(self.explore * self.branching)


@dataclass(frozen=True)
class Candidate(Generic[P]):
    """A proposed point and how the search came to it."""

    point: P
    key: str
    iteration: int
    """When it was proposed; 0 for the start."""
    parent: str | None
    """Key of the beam node it is a neighbour of; None for the start and for explored points."""
    origin: Origin
    cheap: float
    """The cheap estimate f̃ under the fit of that iteration; NaN for the start, which was not chosen by it."""


Scored = tuple[Candidate[P], float]
"""A candidate with its difficulty f under the present fit of the references."""


class BeamSearch(Generic[P]):
    """One beam search, driven from outside by `propose` and `observe` in turn.

    It is a deterministic function of its arguments and of the difficulties it is told: replaying them gives the same
    proposals. No point is proposed twice. A difficulty of NaN ranks like −∞, and ties are broken by key.

    Args:
        space: what to search.
        config: the settings.
        seed: the seed of the run.
        name: the space's name, such as its template's id; it keeps the draws of two searches apart.
        start: where to begin. The search begins at a random point if it is None, excluded or without a neighbour.
        exclude: keys that may never be proposed.
        budget: how many points may be proposed in all; None is without limit. A smaller budget gives the beginning
            of the search that a larger one gives.

    Raises:
        InputError: the budget is negative.
    """

    def __init__(
        self,
        space: Space[P],
        config: BeamConfig,
        *,
        seed: int,
        name: str,
        start: P | None = None,
        exclude: frozenset[str] = frozenset(),
        budget: int | None = None,
    ) -> None:
        if budget is not None and budget < 0:
            raise InputError(f"the search budget is {budget}: give 0 or more generations")
        self.iteration = 0
        """The iteration of the latest proposals."""
        self._space = space
        self._config = config
        self._seed = seed
        self._name = name
        self._start = start
        self._budget = budget
        self._finished = False
        self._taken = set(exclude)  # every key that may not be proposed (any more)
        self._pending: dict[str, Candidate[P]] = {}  # proposed, not yet observed
        self._candidates: dict[str, Candidate[P]] = {}  # observed, in the order of their proposal
        self._difficulty: dict[str, float] = {}
        self._beam: list[str] = []
        self._neighbourhoods: dict[str, dict[str, P]] = {}  # of the beam's nodes: what may still be proposed

    @property
    def beam(self) -> list[Scored[P]]:
        """The hardest `width` points, hardest first."""
        return [self._scored(key) for key in self._beam]

    @property
    def best(self) -> Scored[P] | None:
        """The hardest of all observed points, which need not be in the beam after a rescoring; None before any."""
        if not self._candidates:
            return None
        return self._scored(self._hardest_first(self._candidates)[0])

    @property
    def explored(self) -> list[Scored[P]]:
        """All observed points in the order of their proposal."""
        return [self._scored(key) for key in self._candidates]

    def propose(self) -> list[Candidate[P]]:
        """The next points to be scored: the start, then an iteration's candidates, in beam order.

        An empty list is the end: the iterations or the budget are used up, or the space has nothing new.

        Raises:
            RuntimeError: the last proposals have not been observed.
        """
        if self._pending:
            raise RuntimeError("the last proposals must be observed before new ones are made")
        if self._finished or len(self._candidates) == self._budget:
            return []
        if not self._candidates:
            candidates = self._begin()
        elif self.iteration < self._config.iterations:
            candidates = self._expand(self.iteration + 1)
        else:
            candidates = []
        if self._budget is not None:
            candidates = candidates[: self._budget - len(self._candidates)]
        if candidates:
            self.iteration = candidates[0].iteration
        else:
            self._finished = True
        self._pending = {candidate.key: candidate for candidate in candidates}
        return candidates

    def observe(self, scores: Mapping[str, float]) -> None:
        """Takes the difficulty f of the last proposals and updates the beam.

        Raises:
            ValueError: the keys are not exactly those of the last proposals.
        """
        _check_keys(scores, self._pending)
        self._candidates.update(self._pending)
        self._difficulty.update((key, float(scores[key])) for key in self._pending)
        self._beam = self._hardest_first([*self._beam, *self._pending])[: self._config.width]
        self._pending = {}

    def rescore(self, scores: Mapping[str, float]) -> None:
        """Takes the difficulty of all observed points under a new fit of the references; the beam keeps its points.

        Raises:
            ValueError: the keys are not exactly those of the observed points.
        """
        _check_keys(scores, self._candidates)
        self._difficulty = {key: float(scores[key]) for key in self._candidates}
        self._beam = self._hardest_first(self._beam)

    def _begin(self) -> list[Candidate[P]]:
        """The start, or a random point where it can't be one; nothing where every point is excluded."""
        if self._start is not None and next(iter(self._space.neighbours(self._start)), None) is not None:
            key = self._space.key(self._start)
            if key not in self._taken:
                self._taken.add(key)
                return [Candidate(self._start, key, 0, None, "start", math.nan)]
        unseen = unseen_points(self._space, rng(self._seed, "beam", self._name, 0), self._taken)
        return [Candidate(point, key, 0, None, "start", math.nan) for key, point in islice(unseen, 1)]

    def _expand(self, iteration: int) -> list[Candidate[P]]:
        """Steps 1 to 3 of the paper for every node of the beam: neighbours, cheap scores, pruning."""
        generator = rng(self._seed, "beam", self._name, iteration)
        unseen = unseen_points(self._space, generator, self._taken)
        self._neighbourhoods = {key: self._neighbourhood(key) for key in self._beam}
        points = {key: point for near in self._neighbourhoods.values() for key, point in near.items()}
        cheap = self._cheap(points)

        picks: list[tuple[str, str | None, Origin]] = []
        for node, neighbourhood in self._neighbourhoods.items():
            free = [key for key in neighbourhood if key not in self._taken]
            hardest = sorted(free, key=lambda key: _rank(cheap[key], key))[: self._config.hardest]
            # In the space's order, not by estimate: the draw must not hang on the estimates' last digits.
            taken = set(hardest)
            others = [key for key in free if key not in taken]
            count = min(self._config.selected, len(others))
            selected = [others[i] for i in generator.choice(len(others), count, replace=False)]
            self._taken.update(hardest, selected)
            explored = dict(islice(unseen, self._config.branching - len(hardest) - len(selected)))
            points.update(explored)
            picks.extend((key, node, "neighbour") for key in hardest)
            picks.extend((key, node, "selected") for key in selected)
            picks.extend((key, None, "explored") for key in explored)

        # Explored points were not chosen by their estimate; among them it can be compared with the difficulty.
        cheap.update(self._cheap({key: points[key] for key, _, _ in picks if key not in cheap}))
        return [Candidate(points[key], key, iteration, parent, origin, cheap[key]) for key, parent, origin in picks]

    def _neighbourhood(self, node: str) -> dict[str, P]:
        """The neighbours of a beam node that may still be proposed, by key."""
        known = self._neighbourhoods.get(node)
        if known is None:
            known = {self._space.key(point): point for point in self._space.neighbours(self._candidates[node].point)}
        return {key: point for key, point in known.items() if key not in self._taken}

    def _cheap(self, points: Mapping[str, P]) -> dict[str, float]:
        """The cheap estimate of all points, in one call."""
        if not points:
            return {}
        estimates: list[float] = np.asarray(self._space.cheap(list(points.values()))).tolist()
        return dict(zip(points, estimates, strict=True))

    def _scored(self, key: str) -> Scored[P]:
        return (self._candidates[key], self._difficulty[key])

    def _hardest_first(self, keys: Iterable[str]) -> list[str]:
        return sorted(keys, key=lambda key: _rank(self._difficulty[key], key))


def _rank(score: float, key: str) -> tuple[float, str]:
    """Sorts the highest score first, NaN like −∞, and ties by key."""
    return (math.inf if math.isnan(score) else -score, key)


def _check_keys(scores: Mapping[str, float], expected: Mapping[str, object]) -> None:
    if scores.keys() != expected.keys():
        missing, unknown = len(expected.keys() - scores.keys()), len(scores.keys() - expected.keys())
        raise ValueError(f"scores must cover exactly the points asked for: {missing} missing, {unknown} unknown")
