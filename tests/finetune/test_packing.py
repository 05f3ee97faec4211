"""Lines of rows: everything is there once and in its place, and the order of training follows from the seed."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_jax.finetune.packing import SAMPLED, Costs, Schedule, Shape, common_shapes, pack, packed, step_batch
from tests.finetune.small import ROWS, one_shape, rows

sizes = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=20)


@settings(deadline=None)
@given(st.lists(st.integers(1, 40), max_size=40), st.integers(40, 200))
def test_every_row_has_one_line_with_room_for_it(lengths: list[int], room: int) -> None:
    lines = pack(lengths, room)
    assert sorted(place for line in lines for place in line) == list(range(len(lengths)))
    assert all(sum(lengths[place] for place in line) <= room for line in lines)
    # First fit never leaves two lines that are both at most half full.
    assert sum(sum(lengths[place] for place in line) <= room / 2 for line in lines) <= 1


@settings(max_examples=30, deadline=None)
@given(sizes)
def test_a_packed_batch_holds_every_row_and_nothing_else(lengths: list[tuple[int, int]]) -> None:
    learnt = rows(*lengths)
    batch = packed(learnt, one_shape(learnt, [range(len(learnt))]))
    found = []
    for line in range(batch.tokens.shape[0]):
        for number in range(1, batch.sequences[line].max() + 1):
            places = np.flatnonzero(batch.sequences[line] == number)
            assert places.tolist() == list(range(places[0], places[0] + len(places))), "a row lies in one piece"
            np.testing.assert_array_equal(batch.positions[line, places], np.arange(len(places)))
            targets = [
                (int(place), int(token))
                for place, token, counts in zip(
                    batch.places[line], batch.targets[line], batch.is_target[line], strict=True
                )
                if counts and places[0] <= place <= places[-1]
            ]
            # Each target is the token behind the place that it is predicted from, in the same row.
            assert all(batch.tokens[line, place + 1] == token for place, token in targets)
            assert [place for place, _ in targets] == list(range(places[-1] - len(targets), places[-1]))
            found.append((tuple(batch.tokens[line, places].tolist()), tuple(token for _, token in targets)))
    assert sorted(found) == sorted((row.tokens, row.reply) for row in learnt)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.integers(1, 8), st.integers(1, 4), st.integers(0, 3))
def test_a_pass_shows_every_row_once(count: int, batch: int, accumulation: int, seed: int) -> None:
    schedule = Schedule(rows(*[(1, 1)] * count), batch, accumulation, seed)
    steps = 2 * count
    shown = [place for step in range(steps) for group in schedule.micro_batches(step) for place in group]
    assert all(len(group) == batch for group in schedule.micro_batches(0))
    for start in range(0, len(shown) - count + 1, count):
        assert sorted(shown[start : start + count]) == list(range(count))


def test_the_order_follows_from_the_seed_and_the_step_alone() -> None:
    one, other = Schedule(ROWS, 2, 2, 0), Schedule(ROWS, 2, 2, 0)
    assert one.micro_batches(7) == [*map(list, other.micro_batches(7))]
    assert any(one.micro_batches(step) != Schedule(ROWS, 2, 2, 1).micro_batches(step) for step in range(5))


def test_one_shape_holds_all_batches_and_splits_over_devices() -> None:
    schedule = Schedule(rows(*[(3 + n % 9, 2 + n % 7) for n in range(50)]), 8, 2, 0)
    groups = [group for step in range(20) for group in schedule.micro_batches(step)]
    for ways in (1, 4, 8):
        shape = one_shape(schedule.rows, groups, ways)
        assert shape.lines % ways == 0
        for group in groups:
            batch = packed([schedule.rows[place] for place in group], shape)
            assert batch.is_target.sum() == sum(len(schedule.rows[place].reply) for place in group)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 9), st.sampled_from([1, 2, 4]), st.sampled_from([0.03, 0.3]))
def test_steps_take_the_cheapest_shape_that_holds_them(seed: int, ways: int, long: float) -> None:
    lengths = np.random.default_rng(seed).choice([8, 60], size=200, p=[1 - long, long]).tolist()
    schedule = Schedule(rows(*[(length, 4) for length in lengths]), 4, 2, seed)
    steps = [schedule.micro_batches(step) for step in range(25)]
    costs = Costs(1.0, 0.01, 0.5)
    shapes = common_shapes(schedule.rows, steps, costs, ways)
    assert all(shape.lines % ways == 0 for shape in shapes)
    assert sorted(map(costs.total, shapes)) == [*map(costs.total, shapes)]
    spent = 0.0
    for step in steps:
        learnt = [[schedule.rows[place] for place in group] for group in step]
        batch = step_batch(learnt, shapes)
        assert batch.is_target.sum() == sum(len(row.reply) for group in learnt for row in group)
        spent += costs.total(Shape(*batch.tokens.shape[1:], batch.targets.shape[-1]))
    alone = costs.total(common_shapes(schedule.rows, [[group for step in steps for group in step]], costs, ways)[0])
    assert spent <= 1.000001 * alone * len(steps)
    if long == 0.03:
        assert spent < 0.8 * alone * len(steps), "steps without a long row are spared its lines"


def test_a_step_that_costs_are_not_taken_from_fits_too() -> None:
    learnt = rows(*[(12, 4)] * 40, (90, 4), (12, 60))
    short, long, wordy = list(range(8)), [*range(6), 40], [*range(7), 41]
    steps = [[short]] * (3 * SAMPLED)
    steps[SAMPLED + 1], steps[2 * SAMPLED + 2] = [long], [wordy]
    shapes = common_shapes(learnt, steps, Costs(1.0, 0.01, 0.5))
    for group in (short, long, wordy):
        batch = step_batch([[learnt[place] for place in group]], shapes)
        assert batch.is_target.sum() == sum(len(learnt[place].reply) for place in group)


def test_lines_are_short_where_attention_is_dear() -> None:
    learnt = rows(*[(20, 10)] * 16)
    free, dear = (common_shapes(learnt, [[range(16)]], Costs(1.0, pair, 0.0))[0] for pair in (0.0, 1.0))
    assert dear.length == 32 < free.length == 120


def test_packing_wastes_little() -> None:
    learnt = rows(*[(40 + n % 30, 20 + n % 25) for n in range(64)])
    shape = one_shape(learnt, [range(start, start + 16) for start in range(0, 64, 16)])
    padded = Shape(16, max(len(row.tokens) for row in learnt), 0)
    assert shape.lines * shape.length < padded.lines * padded.length
