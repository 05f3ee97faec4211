"""The headline claims what the stored intervals allow, and numbers are written as they are."""

import math
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from robust_jax.report import headline
from robust_jax.report.wording import decimal, percent, points, ranked, span
from tests.report.made_up_results import make_measure_results, make_search_results, without_numbers

SHARES = st.floats(0, 1)
SEARCH = make_search_results(5)
MEASURE = make_measure_results(5)


def search_with(random: float, beam: float, low: float | None, high: float | None) -> dict[str, Any]:
    difference = {"value": random - beam, "low": low, "high": high, "n": 5}
    accuracy = {
        arm: {"value": value, "low": None, "high": None, "n": 5} for arm, value in (("random", random), ("beam", beam))
    }
    return {**SEARCH, "accuracy": {**SEARCH["accuracy"], **accuracy}, "error_difference": difference}


@given(random=SHARES, beam=SHARES, ends=st.tuples(st.floats(-1, 1), st.floats(-1, 1)))
def test_a_difference_is_claimed_only_where_the_interval_is_clear_of_zero(
    random: float, beam: float, ends: tuple[float, float]
) -> None:
    low, high = sorted(ends)
    sentence = headline(search_with(random, beam, low, high)).sentence
    is_more = "times as often" in sentence or "more often" in sentence
    assert is_more == (low > 0)
    assert ("fewer" in sentence) == (high < 0)
    assert ("no clear difference" in sentence) == (low <= 0 <= high)


@given(random=SHARES, beam=SHARES)
def test_the_headline_divides_the_error_rates(random: float, beam: float) -> None:
    assume(random < 1)
    sentence = headline(search_with(random, beam, 0.1, 0.2)).sentence
    ratio = (1 - beam) / (1 - random)
    if ratio >= 1.1:
        assert f"{decimal(ratio, 1)} times as often" in sentence
    else:
        assert "times" not in sentence


def test_no_failures_at_random_is_not_divided_by() -> None:
    assert "more often" in headline(search_with(1.0, 0.9, 0.05, 0.15)).sentence


def test_without_an_interval_nothing_is_claimed() -> None:
    assert "no clear difference" in headline(search_with(0.9, 0.5, None, None)).sentence


def test_the_ratio_of_drops_is_left_out_where_it_is_undefined() -> None:
    assert "times as far" in headline(SEARCH).detail
    for drops in (None, {**SEARCH["drops"], "ratio": None}):
        assert "times as far" not in headline({**SEARCH, "drops": drops}).detail


def test_the_best_metric_is_named_and_compared_with_chance() -> None:
    assert headline(MEASURE).sentence == "Of all metrics, MD_H of the output tells wrong answers apart best."
    weak = [{**row, "auc": {"value": 0.52, "low": 0.49, "high": 0.55, "n": 9}} for row in MEASURE["metrics"]]
    assert "clearly better than chance" in headline({**MEASURE, "metrics": weak}).sentence


@pytest.mark.parametrize("results", [SEARCH, MEASURE])
def test_missing_numbers_are_said_to_be_missing(results: dict[str, Any]) -> None:
    assert headline(without_numbers(results)).sentence
    for write in (decimal, percent, points):
        assert write(None) == write(math.nan) == write(math.inf) == "n/a"
    assert span(None) == span({"value": 1.0, "low": None, "high": 2.0, "n": 3}) == "n/a"


@given(number=st.floats(-1e12, 1e12), digits=st.integers(1, 3))
def test_decimals_are_near_and_never_nothing(number: float, digits: int) -> None:
    text = decimal(number, digits)
    read = float(text.replace("−", "-").replace(",", ""))
    assert abs(read - number) <= max(0.5 * 10**-digits, 0.05 * abs(number)) * 1.001
    assert (read == 0) == (number == 0)
    assert text.startswith("−") == (number < 0) and not text.startswith("-")


@given(share=st.floats(-1, 1))
def test_points_and_percent_are_one_number(share: float) -> None:
    assert percent(share) == points(share) + "%"
    assert float(points(share).replace("−", "-")) == pytest.approx(100 * share, abs=0.0501)
    assert points(share) != "−0.0"


@given(st.dictionaries(st.text(max_size=4), st.floats(0, 1) | st.none(), max_size=6))
def test_metrics_are_ranked_whatever_their_order(values: dict[str, float | None]) -> None:
    auc = {name: {"value": value, "low": None, "high": None, "n": 1} for name, value in values.items()}
    found = [interval["value"] for _, interval in ranked(auc)]
    known = [value for value in found if value]
    assert known == sorted(known, reverse=True) == found[: len(known)]
    assert ranked(auc) == ranked(dict(reversed(auc.items())))
