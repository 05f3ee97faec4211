"""What does not have the report's shape is turned away in one line that names the place."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_jax.errors import InputError
from robust_jax.report import checked_examples, checked_results
from tests.report.made_up_results import make_measure_results, make_search_results


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside, the first two items of a list standing for all."""
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value[:2]))
    return [path, *(place for name, item in inner for place in places(item, (*path, name)))]


def parent(value: Any, path: tuple[Any, ...]) -> Any:
    for name in path[:-1]:
        value = value[name]
    return value


def name_of(path: tuple[Any, ...], root: str) -> str:
    return root + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


KINDS = st.sampled_from([make_search_results(3), make_measure_results(3)])


def test_results_pass_as_they_are(
    search_results: dict[str, Any], measure_results: dict[str, Any], examples: list[dict[str, Any]]
) -> None:
    for results in (search_results, measure_results):
        assert checked_results(results) is results
        assert checked_results(json.loads(json.dumps(results))) == results
    assert checked_examples(examples) is examples


def test_further_keys_are_ignored(search_results: dict[str, Any]) -> None:
    search_results["search_curves"]["n"] = 7
    search_results["accuracy"]["beam"]["method"] = "bootstrap"
    checked_results(search_results)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_missing_key_is_named(data: st.DataObject) -> None:
    results = copy.deepcopy(data.draw(KINDS))
    required = [
        path
        for path in places(results)
        if path and isinstance(path[-1], str) and path != ("kind",) and not set(path[:-1]) & {"settings", "counts"}
        if path[:1] not in (("auc",), ("distributions",)) or len(path) == 3
        if path != ("search_curves", "templates")
    ]
    path = data.draw(st.sampled_from(required))
    del parent(results, path)[path[-1]]
    with pytest.raises(InputError) as raised:
        checked_results(results)
    assert str(raised.value).startswith(f"{name_of(path, 'results')} is missing")
    assert "\n" not in str(raised.value)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_value_of_another_type_is_named(data: st.DataObject) -> None:
    results = copy.deepcopy(data.draw(KINDS))
    path = data.draw(st.sampled_from([path for path in places(results) if path and path != ("kind",)]))
    parent(results, path)[path[-1]] = ({"nested": ["odd"]},)  # a tuple fits nothing
    with pytest.raises(InputError) as raised:
        checked_results(results)
    assert str(raised.value).startswith(f"{name_of(path, 'results')} is ")


@pytest.mark.parametrize("raw", [None, [], {}, {"kind": "lpds"}, {"kind": ["lpds search"]}])
def test_unknown_kind(raw: object) -> None:
    with pytest.raises(InputError, match="'lpds search' or 'lpds measure'"):
        checked_results(raw)


@pytest.mark.parametrize("flag", [True, "0.5"])
def test_a_flag_or_a_text_is_no_number(search_results: dict[str, Any], flag: object) -> None:
    search_results["drs"]["value"] = flag
    with pytest.raises(InputError, match=r"results\.drs\.value is .*, not a number"):
        checked_results(search_results)


def test_unequal_lists_are_named(search_results: dict[str, Any]) -> None:
    search_results["search_curves"]["templates"][3]["beam_accuracy"].pop()
    with pytest.raises(InputError, match=r"results\.search_curves: its lists have lengths \[15, 16\]"):
        checked_results(search_results)


def test_a_distribution_of_another_length_than_its_bins_is_named(measure_results: dict[str, Any]) -> None:
    measure_results["metrics"][4]["distribution"]["wrong"].pop()
    with pytest.raises(InputError, match=r"results\.metrics\[4\]: its lists have lengths \[39, 40\]"):
        checked_results(measure_results)


def test_an_unknown_status_is_named(examples: list[dict[str, Any]]) -> None:
    examples[1]["variations"][2]["reference"]["status"] = "fine"
    with pytest.raises(InputError, match=r"examples\[1\]\.variations\[2\]\.reference\.status is 'fine', not one of ok"):
        checked_examples(examples)
