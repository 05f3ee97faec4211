"""A figure draws the results' numbers, says them again as CSV, and survives their absence."""

import copy
import csv
import math
import xml.etree.ElementTree as ElementTree
from io import BytesIO
from typing import Any

import matplotlib.image
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_jax.report.checking import checked_results
from robust_jax.report.drawing import BEAM, RANDOM, Figure, as_csv, as_png, as_svg
from robust_jax.report.figures import figures
from tests.report.made_up_results import make_measure_results, make_search_results, without_numbers

ALL_KINDS = pytest.mark.parametrize("results", [make_search_results(4), make_measure_results(4)])


def named(results: dict[str, Any], name: str) -> Figure:
    return next(figure for figure in figures(checked_results(results)) if figure.name == name)


def columns(figure: Figure) -> dict[str, list[float | None]]:
    header, *rows = csv.reader(as_csv(figure).splitlines())
    found = zip(*rows, strict=True) if rows else [()] * len(header)
    return {
        name: [float(text) if text else None for text in values] for name, values in zip(header, found, strict=True)
    }


def fills(svg: str, colour: str) -> int:
    return svg.count(f"fill: {colour}")


@ALL_KINDS
def test_the_same_numbers_give_the_same_svg(results: dict[str, Any]) -> None:
    for figure in figures(checked_results(results)):
        svg = as_svg(figure)
        assert svg == as_svg(figure)
        assert "<dc:date>" not in svg and "Matplotlib" not in svg
        ElementTree.fromstring(svg)


@ALL_KINDS
def test_png_shows_something(results: dict[str, Any]) -> None:
    for figure in figures(checked_results(results)):
        pixels = matplotlib.image.imread(BytesIO(as_png(figure)))
        assert pixels.shape[1] == 920
        assert pixels.min() < 0.3 and 0.01 < np.mean(pixels < 0.95) < 0.9


def test_csv_holds_the_results() -> None:
    results = make_search_results(3)
    curves, quantiles, drawn = (results[name] for name in ("search_curves", "quantile_curve", "accuracy_distribution"))
    found = columns(named(results, "search_curves"))
    assert found["iteration"] == curves["iteration"] and found["beam_accuracy"] == curves["beam_accuracy"]
    for single in curves["templates"]:
        assert found[f"max_difficulty {single['id']}"] == single["max_difficulty"]
    assert columns(named(results, "quantile_curve")) == quantiles
    found = columns(named(results, "accuracy_distribution"))
    assert (found["random"], found["beam"]) == (drawn["random"], drawn["beam"])
    found = columns(named(results, "error_by_template"))
    assert found["beam_error"] == [row["beam_error"] for row in results["templates"]]
    rows = list(csv.DictReader(as_csv(named(results, "search_against_random")).splitlines()))
    assert [float(row["value"]) for row in rows] == [results["drops"][arm]["value"] for arm in ("random", "beam")]
    rows = list(csv.DictReader(as_csv(named(results, "auc")).splitlines()))
    assert {row["metric"]: float(row["auc"]) for row in rows} == {
        name: auc["value"] for name, auc in results["auc"].items()
    }


def test_a_suite_without_base_problems_shows_error_rates() -> None:
    results = make_search_results(3)
    results["drops"] = None
    figure = named(results, "search_against_random")
    assert figure.title == "Error rate"
    for row, arm in zip(csv.DictReader(as_csv(figure).splitlines()), ("random", "beam"), strict=True):
        accuracy = results["accuracy"][arm]
        assert float(row["value"]) == 1 - accuracy["value"]
        assert (float(row["low"]), float(row["high"])) == (1 - accuracy["high"], 1 - accuracy["low"])


@settings(max_examples=8, deadline=None)
@given(pairs=st.lists(st.tuples(st.floats(0, 1) | st.none(), st.floats(0, 1) | st.none()), min_size=1, max_size=6))
def test_the_scatter_has_a_marker_for_each_template_with_both_rates(pairs: list[tuple[float | None, ...]]) -> None:
    results = make_search_results(len(pairs))
    for row, (random, beam) in zip(results["templates"], pairs, strict=True):
        row["random_error"], row["beam_error"] = random, beam
    svg = as_svg(named(results, "error_by_template"))
    both = [(100 * random, 100 * beam) for random, beam in pairs if random is not None and beam is not None]
    legend = [any(beam > random for random, beam in both), any(beam < random for random, beam in both)]
    assert fills(svg, BEAM) == sum(beam > random for random, beam in both) + legend[0]
    assert fills(svg, RANDOM) == sum(beam < random for random, beam in both) + legend[1]


@ALL_KINDS
def test_without_numbers_a_figure_says_so(results: dict[str, Any]) -> None:
    drawn = figures(checked_results(without_numbers(results)))
    assert drawn
    for figure in drawn:
        svg = as_svg(figure)
        assert "not available" in svg and figure.title in svg
        as_png(figure)
    assert not any("not available" in as_svg(figure) for figure in figures(checked_results(results)))


def test_distributions_hold_every_answer(measure_results: dict[str, Any]) -> None:
    measure_results["metrics"][2]["distribution"] = None
    figure = named(measure_results, "metric_distributions")
    rows = list(csv.DictReader(as_csv(figure).splitlines()))
    for power in measure_results["metrics"]:
        own = [row for row in rows if row["metric"] == f"{power['span']}: {power['metric']}"]
        shape = power["distribution"]
        assert [float(row["right"]) for row in own] == ([] if shape is None else shape["right"])
        assert [float(row["from"]) for row in own] == ([] if shape is None else shape["edges"][:-1])
    svg = as_svg(figure)
    assert svg.count("Output: ") == 6 and svg.count("Input: ") == 3


@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_holes_do_not_stop_a_drawing(data: st.DataObject) -> None:
    results = with_holes(make_search_results(data.draw(st.integers(1, 3))), data)
    for figure in figures(checked_results(results)):
        as_svg(figure)
        for row in csv.reader(as_csv(figure).splitlines()[1:]):
            assert not {"nan", "inf", "None"} & {text.lower() for text in row}


def with_holes(value: Any, data: st.DataObject) -> Any:
    """Some of the numbers that may be null are null, or no numbers."""
    value = copy.deepcopy(value)
    shares = [value["accuracy"][arm] for arm in ("base", "random", "beam")] + [value["drops"]["beam"], value["drs"]]
    for interval in [*shares, *value["auc"].values()]:
        for name in data.draw(st.sets(st.sampled_from(["value", "low", "high"]))):
            interval[name] = data.draw(st.sampled_from([None, math.nan, math.inf]))
    for lists in (value["search_curves"], value["quantile_curve"]):
        for name, numbers in lists.items():
            if name not in ("iteration", "quantile", "templates") and data.draw(st.booleans()):
                lists[name] = [number if data.draw(st.booleans()) else None for number in numbers]
    value["accuracy_distribution"]["beam"] = data.draw(st.lists(st.floats(0, 1) | st.just(math.nan), max_size=3))
    value["drops"] = data.draw(st.sampled_from([None, value["drops"]]))
    return value


def test_text_in_a_figure_is_text() -> None:
    results = make_search_results(2)
    results["auc"] = {"<b>&$x$": {"value": 0.7, "low": None, "high": None, "n": 2}}
    svg = as_svg(named(results, "auc"))
    words = [
        "".join(element.itertext()) for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("text")
    ]
    assert "<b>&$x$" in words
