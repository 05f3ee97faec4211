"""Splits, buckets and mixtures: no variation in two splits, equal sizes, the promised shares, the same from a seed."""

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from robust_jax.errors import InputError
from robust_jax.finetune.problem import Problem
from robust_jax.finetune.splits import BUCKETS, MIXTURES, RANDOM, TRAIN_SETS, Datasets, SplitOptions, make_datasets


def problem(template: str, number: int, difficulty: float | None, correct: bool) -> Problem:
    return Problem(template, f"{number}", {"n": f"{number}"}, "?", "#### 1", "1", difficulty, correct)


@st.composite
def searches(draw: st.DrawFn) -> dict[str, list[Problem]]:
    found: dict[str, list[Problem]] = {}
    for name in range(draw(st.integers(3, 6))):
        generator = draw(st.randoms(use_true_random=False))
        share = draw(st.sampled_from([0.1, 0.5, 0.7]))
        count = draw(st.integers(30, 60))
        found[f"t{name}"] = [
            problem(f"t{name}", number, round(generator.uniform(0, 20), 1), generator.random() < share)
            for number in range(count)
        ]
        found[f"t{name}"].append(problem(f"t{name}", count, None, False))
        found[f"t{name}"].append(problem(f"t{name}", count + 1, 3.0, True))
    return found


def made(found: Mapping[str, list[Problem]], options: SplitOptions, seed: int) -> Datasets:
    """The sets, if there is enough for them."""
    try:
        return make_datasets(found, [], options, seed)
    except InputError as error:
        assert "bucket empty" in str(error)
        assume(False)
        raise


def identities(problems: list[Problem]) -> set[tuple[str, str]]:
    return {row.identity for row in problems}


def evaluated(sets: Datasets) -> set[tuple[str, str]]:
    return identities([*sets.test, *(row for rows in sets.thirds.values() for row in rows)])


@settings(max_examples=40, deadline=None)
@given(searches(), st.sampled_from(["variations", "templates"]), st.integers(0, 5))
def test_no_variation_is_in_two_splits_and_sizes_are_equal(
    found: Mapping[str, list[Problem]], split: str, seed: int
) -> None:
    options = SplitOptions(split, per_template=15, evaluated=4)  # type: ignore[arg-type]
    sets = made(found, options, seed)
    trained = {identity for rows in sets.train.values() for identity in identities(rows)}
    validated, tested = identities(sets.validation), evaluated(sets)
    assert not trained & validated and not trained & tested and not validated & tested
    if split == "templates":
        splits = [{template for template, _ in part} for part in (trained, validated, tested)]
        assert not splits[0] & splits[1] and not splits[0] & splits[2] and not splits[1] & splits[2]

    assert list(sets.train) == list(TRAIN_SETS)
    assert len({len(rows) for rows in sets.train.values()}) == 1
    assert len({len(rows) for rows in sets.thirds.values()}) == 1
    for rows in [*sets.train.values(), *sets.thirds.values()]:
        assert len(identities(rows)) == len(rows), "nothing is drawn twice"
        assert all(not row.was_correct and row.difficulty is not None for row in rows)
    for rows in (sets.validation, sets.test):
        assert max(Counter(row.template for row in rows).values()) <= 4
    pool = identities(sets.pool)
    assert all(identities(rows) <= pool for rows in sets.train.values())
    assert len(sets.pool) == 3 * len(sets.train["q_low"])


@settings(max_examples=40, deadline=None)
@given(searches(), st.integers(0, 5))
def test_buckets_are_ordered_and_mixtures_have_their_shares(found: Mapping[str, list[Problem]], seed: int) -> None:
    sets = made(found, SplitOptions(), seed)
    for buckets in ([sets.train[f"q_{name}"] for name in BUCKETS], [sets.thirds[name] for name in BUCKETS]):
        ends = [[row.difficulty or 0.0 for row in bucket] for bucket in buckets]
        assert max(ends[0]) <= min(ends[1]) and max(ends[1]) <= min(ends[2])
    whole = {name: identities(sets.train[f"q_{name}"]) for name in BUCKETS}
    for mixture in MIXTURES:
        rows = sets.train[mixture.name]
        for name, share in zip(BUCKETS, mixture, strict=True):
            count = len(identities(rows) & whole[name])
            assert abs(count - len(rows) * share / 100) < 1
    assert identities(sets.train[RANDOM]) <= set.union(*whole.values())


@settings(max_examples=10, deadline=None)
@given(searches())
def test_everything_follows_from_the_seed(found: Mapping[str, list[Problem]]) -> None:
    one, again, other = (made(found, SplitOptions(), seed) for seed in (3, 3, 4))
    assert one == again
    assert one.test != other.test


def test_the_table_has_the_rows_of_the_paper() -> None:
    assert len(TRAIN_SETS) == 14
    assert all(sum(mixture) == 100 for mixture in MIXTURES)
    assert TRAIN_SETS["mix_20_30_50"] == "Q_low (20%) - Q_mid (30%) - Q_high (50%)"
    assert TRAIN_SETS["q_high"] == "Q_high (100%)"
    assert TRAIN_SETS["mix_30_70_0"] == "Q_low (30%) - Q_mid (70%)"


def grown(correct: int, wrong: int, template: str = "t") -> list[Problem]:
    return [problem(template, n, float(n), n < correct) for n in range(correct + wrong)]


def test_templates_never_solved_are_left_out_and_so_are_their_base_problems() -> None:
    found = {"solved": grown(10, 50, "solved"), "hopeless": grown(0, 50, "hopeless")}
    base = [problem("solved", 99, None, True), problem("hopeless", 99, None, False)]
    sets = make_datasets(found, base, SplitOptions(), 0)
    assert sets.discarded == ("hopeless",)
    assert [row.template for row in sets.base] == ["solved"]
    assert {row.template for rows in (*sets.train.values(), sets.test) for row in rows} == {"solved"}


def test_the_shares_are_those_of_the_paper() -> None:
    sets = make_datasets({"t": grown(10, 990)}, [], SplitOptions(per_template=2000, evaluated=2000), 0)
    assert (len(sets.validation), len(sets.test)) == (150, 150)
    assert 680 <= len(sets.pool) <= 700


@pytest.mark.parametrize(
    ("found", "split", "complaint"),
    [
        ({"t": grown(0, 50)}, "variations", "solved no variation"),
        ({"t": grown(50, 0)}, "variations", "leave a bucket empty"),
        ({"t": grown(1, 1)}, "variations", "variations of template t: 2, too few to split"),
        ({"t": grown(9, 50), "u": grown(9, 50, "u")}, "templates", "2 templates cannot be split into three"),
        ({"t": grown(60, 4)}, "variations", "leave a bucket empty"),
    ],
)
def test_what_is_too_small_is_refused_in_one_line(found: dict[str, list[Problem]], split: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint) as caught:
        make_datasets(found, [], SplitOptions(split), 0)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
