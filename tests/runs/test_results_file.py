"""results.json: equal results are equal files."""

import datetime
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from robust_jax.errors import InputError
from robust_jax.runs import read_results, write_results
from tests.runs.making_samples import temporary_folder

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=()), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=80, deadline=None)
@given(results=st.dictionaries(st.text(max_size=3), VALUES, max_size=4))
@example(results={"a": -0.0, "b": 0.1 + 0.2, "c": 1e-300, "d": 1 / 3})
def test_writing_what_was_read_gives_the_same_file(results: dict) -> None:
    with temporary_folder() as folder:
        first, second = folder / "first.json", folder / "second.json"
        write_results(first, results)
        write_results(second, read_results(first))
        assert second.read_bytes() == first.read_bytes()
        write_results(second, dict(reversed(results.items())))
        assert second.read_bytes() == first.read_bytes()
        assert first.read_text(encoding="utf-8").endswith("}\n")


@settings(max_examples=60, deadline=None)
@given(number=st.floats())
def test_floats_keep_ten_digits(number: float) -> None:
    with temporary_folder() as folder:
        path = folder / "results.json"
        write_results(path, {"x": number})
        kept = read_results(path)["x"]
    if abs(number) < 1.79e308:
        assert math.isclose(kept, number, rel_tol=5.1e-10, abs_tol=5e-324)
        assert len(repr(kept).partition("e")[0].replace(".", "").strip("-0")) <= 10 or kept == int(kept)
    else:
        assert kept is None


def test_noise_in_the_last_digits_does_not_show(tmp_path: Path) -> None:
    write_results(tmp_path / "a.json", {"x": 0.1 + 0.2, "y": -0.0})
    write_results(tmp_path / "b.json", {"y": 0.0, "x": 0.3})
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_numpy_is_taken_as_numbers(tmp_path: Path) -> None:
    results = {"a": np.float32(0.5), "b": np.arange(3), "c": (np.bool_(True), np.int64(4)), "d": np.array([np.nan, 1])}
    write_results(tmp_path / "r.json", results)
    assert json.loads((tmp_path / "r.json").read_text()) == {"a": 0.5, "b": [0, 1, 2], "c": [True, 4], "d": [None, 1.0]}


@pytest.mark.parametrize("value", [Path("x"), datetime.datetime(2000, 1, 1), {1: 2}, {1}])
def test_times_paths_and_the_like_stay_out(value: object, tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        write_results(tmp_path / "r.json", {"a": [value]})
    assert not list(tmp_path.iterdir())


def test_missing_and_damaged_results(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no results yet"):
        read_results(tmp_path / "results.json")
    for content in (b'{"a": ', b"[]", b"\xff"):
        (tmp_path / "results.json").write_bytes(content)
        with pytest.raises(InputError, match="damaged"):
            read_results(tmp_path / "results.json")
