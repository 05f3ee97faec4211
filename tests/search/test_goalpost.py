import pytest
from hypothesis import given
from hypothesis import strategies as st

from robust_jax.errors import InputError
from robust_jax.search.goalpost import Goalpost


def test_a_refit_is_due_once_fifty_have_gathered_and_takes_all_of_them() -> None:
    goalpost = Goalpost()
    keys = [str(i) for i in range(130)]
    assert goalpost.end_iteration(keys[:49]) == ()
    assert goalpost.end_iteration([]) == ()
    assert goalpost.end_iteration(keys[49:80]) == tuple(keys[:80])
    assert goalpost.end_iteration(keys[80:129]) == ()
    assert goalpost.end_iteration(keys[129:]) == tuple(keys[80:])


@given(st.integers(1, 5), st.lists(st.lists(st.integers(0, 20).map(str), max_size=6), max_size=12))
def test_every_key_joins_once_in_the_order_told_and_never_early(every: int, iterations: list[list[str]]) -> None:
    goalpost = Goalpost(every)
    told: list[str] = []
    joined: list[str] = []
    for keys in iterations:
        told += [key for key in dict.fromkeys(keys) if key not in told]
        due = goalpost.end_iteration(keys)
        joined += due
        assert not 0 < len(due) < every
        assert len(told) - len(joined) < every
        assert joined == told[: len(joined)]


def test_a_goalpost_that_moves_for_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="at least 1"):
        Goalpost(0)
