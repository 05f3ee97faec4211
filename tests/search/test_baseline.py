from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from robust_jax.search.baseline import PATIENCE, random_points
from tests.search.lattice import Lattice, lattices


@settings(max_examples=40, deadline=None)
@given(lattices(), st.integers(0, 80), st.data())
def test_points_are_distinct_valid_not_excluded_and_as_many_as_there_are(
    space: Lattice, count: int, data: st.DataObject
) -> None:
    points = space.points()
    exclude = data.draw(st.frozensets(st.sampled_from([space.key(p) for p in points])))
    drawn = random_points(space, count, seed=0, name="x", exclude=exclude)
    assert len(set(drawn)) == len(drawn) == min(count, len(points) - len(exclude))
    assert all(p in points and space.key(p) not in exclude for p in drawn)


def test_a_shorter_draw_begins_a_longer_one_and_names_and_seeds_differ() -> None:
    space = Lattice([40, 40])
    long = random_points(space, 50, seed=0, name="a")
    assert random_points(space, 20, seed=0, name="a") == long[:20]
    assert random_points(space, 50, seed=0, name="b") != long
    assert random_points(space, 50, seed=1, name="a") != long


def test_an_exhausted_space_costs_a_bounded_number_of_draws() -> None:
    space = Lattice([2])
    assert sorted(random_points(space, 1_000_000, seed=0, name="x")) == [(0,), (1,)]
    assert space.draws < 2 * PATIENCE


def test_repeated_draws_do_not_end_a_space_that_still_has_points() -> None:
    space = Lattice([40, 40])
    assert len(random_points(space, 1_580, seed=0, name="x")) == 1_580
    assert space.draws - 1_580 > 3 * PATIENCE


def test_every_point_is_equally_likely_to_come_first() -> None:
    space = Lattice([2, 3])
    firsts = [random_points(space, 1, seed=seed, name="x")[0] for seed in range(3_000)]
    assert chisquare([firsts.count(p) for p in space.points()]).pvalue > 0.001
