"""Several searches side by side: seeds are averaged, settings named, and differences paired by template."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from robust_jax.cli import main
from robust_jax.lpds.comparison import comparison
from robust_jax.models import register_mock
from tests.lpds.fragile import SUITE, Fragile
from tests.report.made_up_results import make_search_results


def made_up(errors: dict[str, float], **settings: Any) -> Any:
    results = make_search_results(len(errors))
    results["settings"] = {"seed": 0, "explore": 0.2, "width": 16, **settings}
    for row, (item, error) in zip(results["templates"], errors.items(), strict=True):
        row |= {"id": item, "base_accuracy": 1.0, "random_error": 0.2, "beam_error": error}
    return results


def test_seeds_are_averaged_and_settings_named() -> None:
    first = made_up({"a": 0.4, "b": 0.6, "c": 0.5})
    other_seed = made_up({"a": 0.6, "b": 0.6, "c": 0.5}, seed=1)
    wider = made_up({"c": 0.7, "b": 0.8, "a": 0.6}, explore=0.4)
    found = comparison([first, other_seed, wider])["searches"]
    assert [search["name"] for search in found] == ["builtin:tiny", "explore 0.4"]
    assert found[0]["seeds"] == [0, 1]
    assert found[0]["templates"] == {"a": 0.5, "b": 0.6, "c": 0.5}
    assert found[0]["behind"] is None
    assert found[1]["behind"]["value"] == pytest.approx((0.1 + 0.2 + 0.2) / 3)
    assert found[1]["ratio"]["value"] == pytest.approx(0.7 / 0.2)
    assert len(found[0]["beam_accuracy"]) == 2
    assert found[0]["drs"]["value"] == pytest.approx(first["drs"]["value"])


def test_other_suites_are_not_paired_and_missing_templates_left_out() -> None:
    first, other = made_up({"a": 0.4, "b": 0.6}), made_up({"a": 0.5, "b": 0.5})
    other["suite"] = "other"
    other["templates"][1] |= {"beam_error": None, "random_error": None, "base_accuracy": None}
    found = comparison([first, other])["searches"]
    assert [search["name"] for search in found] == ["builtin:tiny, grade-school", "builtin:tiny, other"]
    assert found[1]["behind"] is None
    assert found[1]["beam_error"]["n"] == 1
    assert found[1]["templates"] == {"a": 0.5, "b": None}


def test_report_shows_searches_on_one_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    register_mock("fragile", Fragile)
    (tmp_path / "suite.yaml").write_text(SUITE)
    small = ["--reference-count", "20", "--iterations", "2", "--width", "2", "--branching", "4"]
    runs = {"a": [], "b": ["--seed", "1"], "c": ["--explore", "0.6"]}
    for name, more in runs.items():
        words = ["lpds", "search", "--model", "mock:fragile", "--suite", str(tmp_path / "suite.yaml"), *small, *more]
        assert main([*words, "--out", str(tmp_path / name)]) == 0
    capsys.readouterr()
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["report", *(str(tmp_path / name) for name in runs), "--out", str(tmp_path / "page")]) == 0
    assert "explore 0.6" in capsys.readouterr().out
    page = (tmp_path / "page" / "report.html").read_text()
    data = json.loads(re.search(r'id="page-data">(.*?)</script>', page, re.DOTALL)[1])
    rows = data["tables"]["templates-table"]["rows"]
    assert [row[0][0] for row in rows] == ["marbles", "stamps"]
    figures = sorted(path.name for path in (tmp_path / "page" / "figures").glob("*.csv"))
    assert figures == ["beam_accuracy.csv", "error_rates.csv", "quantile_accuracy.csv"]
    header = (tmp_path / "page" / "figures" / "beam_accuracy.csv").read_text().splitlines()[0]
    assert header == "iteration,mock:fragile | seed 0,mock:fragile | seed 1,explore 0.6 | seed 0"


def test_a_page_of_one_search_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    register_mock("fragile", Fragile)
    (tmp_path / "suite.yaml").write_text(SUITE)
    small = ["--reference-count", "10", "--iterations", "1", "--width", "1", "--branching", "2"]
    words = ["lpds", "search", "--model", "mock:fragile", "--suite", str(tmp_path / "suite.yaml"), *small]
    assert main([*words, "--out", str(tmp_path / "a")]) == 0
    assert main(["report", str(tmp_path / "a"), "--out", str(tmp_path / "page")]) == 2
    assert "two or more" in capsys.readouterr().err
    assert not (tmp_path / "page").exists()
