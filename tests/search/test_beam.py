import itertools
import math
import random
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_jax.errors import InputError
from robust_jax.search.beam import BeamConfig, BeamSearch, Candidate
from tests.search.lattice import Lattice, Point, lattices, values

few = settings(max_examples=40, deadline=None)


@dataclass
class Case:
    """A search and everything it is told."""

    space: Lattice
    config: BeamConfig
    seed: int
    start: Point | None
    exclude: frozenset[str]
    budget: int | None
    difficulty: dict[str, float]

    def search(self) -> BeamSearch[Point]:
        return BeamSearch(
            self.space,
            self.config,
            seed=self.seed,
            name="lattice",
            start=self.start,
            exclude=self.exclude,
            budget=self.budget,
        )

    def run(self, search: BeamSearch[Point] | None = None) -> list[list[Candidate[Point]]]:
        search = search or self.search()
        levels = []
        while proposals := search.propose():
            levels.append(proposals)
            search.observe({c.key: self.difficulty[c.key] for c in proposals})
        return levels


@st.composite
def cases(draw: st.DrawFn) -> Case:
    space = draw(lattices())
    keys = [space.key(point) for point in itertools.product(*map(range, space.sizes))]
    share = st.sampled_from([0.0, 0.2, 0.4, 0.5, 1.0])
    return Case(
        space=space,
        config=BeamConfig(
            iterations=draw(st.integers(0, 5)),
            width=draw(st.integers(1, 4)),
            branching=draw(st.integers(1, 6)),
            explore=draw(share),
            select=draw(share),
        ),
        seed=draw(st.integers(0, 3)),
        start=draw(st.none() | st.sampled_from(space.points())),
        exclude=draw(st.just(frozenset()) | st.frozensets(st.sampled_from(keys))),
        budget=draw(st.none() | st.integers(0, 30)),
        difficulty=draw(st.fixed_dictionaries({key: values for key in keys})),
    )


def as_number(score: float) -> float:
    return -math.inf if math.isnan(score) else score


@few
@given(cases())
def test_proposals_are_valid_distinct_and_never_excluded(case: Case) -> None:
    keys = [c.key for c in itertools.chain(*case.run())]
    assert len(keys) == len(set(keys))
    assert not case.exclude.intersection(keys)
    assert set(keys) <= {case.space.key(p) for p in case.space.points()}


@few
@given(cases())
def test_a_budget_gives_the_beginning_of_the_unlimited_search(case: Case) -> None:
    limited = [repr(c) for c in itertools.chain(*case.run())]
    unlimited = [repr(c) for c in itertools.chain(*replace(case, budget=None).run())]
    assert limited == unlimited[: case.budget]


@pytest.mark.parametrize("budget", [0, 1, 2, 16, 17, 18, 272, 273, 274, 1_000])
def test_a_budget_is_used_up_exactly(budget: int) -> None:
    search = BeamSearch(Lattice([30] * 4), BeamConfig(), seed=0, name="x", budget=budget)
    while proposals := search.propose():
        search.observe({c.key: 0.0 for c in proposals})
    assert len(search.explored) == budget


@few
@given(cases())
def test_replay_gives_the_same_search_and_the_order_of_the_scores_is_irrelevant(case: Case) -> None:
    first, second = case.search(), case.search()
    while proposals := first.propose():
        assert repr(second.propose()) == repr(proposals)
        scores = [(c.key, case.difficulty[c.key]) for c in proposals]
        first.observe(dict(scores))
        second.observe(dict(random.Random(0).sample(scores, len(scores))))
        assert repr(first.beam) == repr(second.beam)
        assert repr(first.explored) == repr(second.explored)
    assert second.propose() == []


@few
@given(cases())
def test_beam_and_best_are_the_hardest_of_all_that_was_scored(case: Case) -> None:
    search = case.search()
    assert search.best is None
    assert search.beam == []
    scored: list[Candidate[Point]] = []
    while proposals := search.propose():
        search.observe({c.key: case.difficulty[c.key] for c in proposals})
        scored += proposals
        order = sorted(scored, key=lambda c: (-as_number(case.difficulty[c.key]), c.key))
        assert [c.key for c, _ in search.beam] == [c.key for c in order[: case.config.width]]
        assert search.best is not None
        assert search.best[0] == order[0]
        assert [c for c, _ in search.explored] == scored
        assert all(repr(f) == repr(case.difficulty[c.key]) for c, f in search.explored)
        assert search.iteration == proposals[0].iteration


@few
@given(cases(), st.data())
def test_the_best_so_far_never_falls_between_refits(case: Case, data: st.DataObject) -> None:
    search, best = case.search(), -math.inf
    while proposals := search.propose():
        search.observe({c.key: case.difficulty[c.key] for c in proposals})
        assert search.best is not None
        assert as_number(search.best[1]) >= best
        best = as_number(search.best[1])
        if data.draw(st.booleans()):
            search.rescore(data.draw(st.fixed_dictionaries({c.key: values for c, _ in search.explored})))
            best = as_number(search.best[1])


@few
@given(cases())
def test_every_iteration_follows_the_paper_step_by_step(case: Case) -> None:
    """An independent reading of Section 4.1, steps 1 to 3, node by node."""
    case = replace(case, budget=None)
    space, b = case.space, case.config.branching
    search = case.search()
    seen = set(case.exclude)
    explored_per_node = round(case.config.explore * b)
    selected_per_node = round(case.config.select * (b - explored_per_node))
    while True:
        beam = [c for c, _ in search.beam]
        space.cheap_calls.clear()
        proposals = search.propose()
        if not proposals:
            break
        search.observe({c.key: case.difficulty[c.key] for c in proposals})
        if not beam:
            assert [(c.origin, c.iteration, c.parent) for c in proposals] == [("start", 0, None)]
            assert math.isnan(proposals[0].cheap)
            seen.add(proposals[0].key)
            continue

        unseen = {p for node in beam for p in space.neighbours(node.point) if space.key(p) not in seen}
        if unseen:
            assert len(space.cheap_calls[0]) == len(unseen)
            assert set(space.cheap_calls[0]) == unseen
        estimates = {space.key(p): float(space.cheap([p])[0]) for p in space.points()}
        assert all(repr(c.cheap) == repr(estimates[c.key]) for c in proposals)

        queue = list(proposals)
        space_is_exhausted = False
        for node in beam:
            free = [k for k in map(space.key, space.neighbours(node.point)) if k not in seen]
            free.sort(key=lambda k: (-as_number(estimates[k]), k))
            top = free[: b - explored_per_node - selected_per_node]
            others = set(free[len(top) :])
            part = []
            while queue and queue[0].parent == node.key:
                part.append(queue.pop(0))
            assert [c.key for c in part if c.origin == "neighbour"] == top
            selected = [c.key for c in part if c.origin == "selected"]
            assert len(selected) == min(selected_per_node, len(others))
            assert others.issuperset(selected)
            explored = []
            while queue and queue[0].origin == "explored" and len(part) + len(explored) < b:
                assert queue[0].parent is None
                explored.append(queue.pop(0))
            seen.update(c.key for c in part + explored)
            if len(part) + len(explored) < b:
                # 64 points and patience for a thousand draws: what is left can only be unseen neighbours.
                space_is_exhausted = True
                assert {space.key(p) for p in space.points()} <= seen
        assert not queue
        assert {c.iteration for c in proposals} == {search.iteration}
        if space_is_exhausted:
            assert search.propose() == []


@few
@given(lattices(), st.integers(0, 5))
def test_a_search_of_enough_iterations_finds_every_point_and_ends(space: Lattice, seed: int) -> None:
    search = BeamSearch(space, BeamConfig(iterations=100, width=2, branching=3), seed=seed, name="all")
    explored = 0
    while proposals := search.propose():
        explored += len(proposals)
        search.observe({c.key: 0.0 for c in proposals})
    assert explored == len(space.points())
    assert search.propose() == []


@few
@given(cases(), st.data())
def test_rescoring_reorders_the_beam_and_the_best_of_all_levels(case: Case, data: st.DataObject) -> None:
    search = case.search()
    while proposals := search.propose():
        search.observe({c.key: case.difficulty[c.key] for c in proposals})
        keys = [c.key for c, _ in search.explored]
        held = {c.key for c, _ in search.beam}
        refit = data.draw(st.fixed_dictionaries({key: values for key in keys}))
        search.rescore(refit)
        order = sorted(keys, key=lambda k: (-as_number(refit[k]), k))
        assert [c.key for c, _ in search.beam] == [key for key in order if key in held]
        assert search.best is not None
        assert search.best[0].key == order[0]
        assert all(repr(f) == repr(refit[c.key]) for c, f in search.explored)


@pytest.mark.parametrize("wrong", [{}, {"0": 1.0, "other": 1.0}])
def test_scores_must_cover_exactly_the_points_asked_for(wrong: dict[str, float]) -> None:
    search = BeamSearch(Lattice([5]), BeamConfig(), seed=0, name="x", start=(0,))
    search.propose()
    with pytest.raises(ValueError, match="exactly"):
        search.observe(wrong)
    with pytest.raises(RuntimeError, match="observed"):
        search.propose()
    search.observe({"0": 1.0})
    with pytest.raises(ValueError, match="exactly"):
        search.rescore(wrong)


def test_a_start_outside_the_space_leads_to_its_neighbours() -> None:
    space = Lattice([3, 3])
    search = BeamSearch(space, BeamConfig(iterations=1, explore=0.0, branching=2), seed=0, name="x", start=(7, 1))
    [first] = search.propose()
    assert (first.key, first.origin) == ("7,1", "start")
    search.observe({"7,1": 0.0})
    second = search.propose()
    assert len(second) == 2
    assert all(c.parent == "7,1" and c.point[1] == 1 and space.is_valid(c.point) for c in second)


@pytest.mark.parametrize("start, exclude", [((7, 7), frozenset()), ((1, 1), frozenset({"1,1"})), (None, frozenset())])
def test_a_start_without_neighbours_or_excluded_is_replaced_by_a_random_point(
    start: Point | None, exclude: frozenset[str]
) -> None:
    space = Lattice([3, 3])
    starts = set()
    for seed in range(20):
        search = BeamSearch(space, BeamConfig(), seed=seed, name="x", start=start, exclude=exclude)
        [first] = search.propose()
        assert first.origin == "start"
        assert first.point in space.points()
        assert first.key not in exclude
        starts.add(first.key)
    assert len(starts) > 3


def test_the_name_and_the_seed_keep_searches_apart() -> None:
    def drawn(seed: int, name: str) -> list[str]:
        search = BeamSearch(Lattice([50, 50]), BeamConfig(explore=1.0), seed=seed, name=name, start=(0, 0))
        search.observe({c.key: 0.0 for c in search.propose()})
        return [c.key for c in search.propose()]

    assert len({tuple(drawn(seed, name)) for seed in (0, 1) for name in ("a", "b")}) == 4


def test_estimates_are_asked_for_anew_after_a_refit() -> None:
    space = Lattice([10, 10])
    search = BeamSearch(
        space, BeamConfig(width=1, branching=2, explore=0.0, select=0.0), seed=0, name="x", start=(0, 0)
    )
    search.observe({c.key: 9.0 for c in search.propose()})
    assert [c.point for c in search.propose()] == [(0, 9), (9, 0)]
    search.observe({"0,9": 0.0, "9,0": 0.0})
    space.estimates = {(0, 1): 100.0, (1, 0): 99.0}
    assert [c.point for c in search.propose()] == [(0, 1), (1, 0)]


def test_the_beam_climbs_to_a_maximum_that_random_points_miss() -> None:
    peak = np.array([37, 11, 52, 24, 8])
    space = Lattice([60] * 5)  # 778 million points

    def difficulty(point: Point) -> float:
        return float(-np.abs(np.array(point) - peak).sum())

    noise = np.random.default_rng(0)
    space.cheap = lambda points: np.array([difficulty(p) for p in points]) + noise.normal(0, 20, len(points))  # type: ignore[method-assign]
    search = BeamSearch(space, BeamConfig(), seed=0, name="hill", start=(0, 0, 0, 0, 0))
    while proposals := search.propose():
        search.observe({c.key: difficulty(c.point) for c in proposals})
    assert search.best is not None
    assert search.best[0].point == tuple(peak)
    generator = np.random.default_rng(0)
    drawn = max(difficulty(space.random(generator)) for _ in search.explored)
    assert drawn < -10


def test_the_defaults_propose_three_explored_eight_hardest_and_five_others_a_node() -> None:
    config = BeamConfig()
    assert (config.hardest, config.selected) == (8, 5)
    search = BeamSearch(Lattice([30] * 4), config, seed=0, name="x")
    sizes = []
    while proposals := search.propose():
        sizes.append(len(proposals))
        search.observe({c.key: float(sum(c.point)) for c in proposals})
    assert sizes == [1, 16] + [256] * 14


@pytest.mark.parametrize(
    "setting",
    [{"iterations": -1}, {"width": 0}, {"branching": 0}, {"explore": 1.1}, {"select": -0.1}, {"select": math.nan}],
)
def test_impossible_settings_cannot_be_constructed(setting: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(setting))):
        BeamConfig(**setting)  # type: ignore[arg-type]


def test_a_negative_budget_is_refused() -> None:
    with pytest.raises(InputError, match="budget"):
        BeamSearch(Lattice([3]), BeamConfig(), seed=0, name="x", budget=-1)
