"""What is written: all the files, the same every time, whole or not at all."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from robust_jax.errors import InputError, RunError
from robust_jax.report import page, write_report
from tests.report.made_up_results import make_examples, make_search_results


@pytest.fixture
def without_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures take most of the time, and these tests are not about them."""
    monkeypatch.setattr("robust_jax.report.figures", lambda results: [])


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def blocks(folder: Path) -> list[dict[str, Any]]:
    source = (folder / "report.html").read_text(encoding="utf-8")
    found = re.findall(r'<script type="application/json" id="examples-\d+">(.*?)</script>', source, re.DOTALL)
    return [json.loads(block) for block in found]


def test_a_report_is_a_page_and_its_figures_the_same_every_time(tmp_path: Path) -> None:
    for name in ("first", "second"):
        write_report(tmp_path / name, make_search_results(2), make_examples(1, 2))
    written = content(tmp_path / "first")
    searches = ["search_against_random", "search_curves", "error_by_template", "quantile_curve"]
    figures = [*searches, "accuracy_distribution", "auc", "value_effects", "metric_distributions"]
    assert set(written) == {f"figures/{name}.{form}" for name in figures for form in ("png", "svg", "csv")} | {
        "report.html",
        "tables.md",
    }
    assert content(tmp_path / "second") == written
    tables = written["tables.md"].decode()
    assert tables.count("**") == 2 * 7 and "| Random sampling |" in tables


@pytest.mark.usefixtures("without_figures")
def test_what_cannot_be_drawn_leaves_the_old_report(tmp_path: Path) -> None:
    write_report(tmp_path, make_search_results(2), [])
    before = content(tmp_path)
    with pytest.raises(InputError):
        write_report(tmp_path, {**make_search_results(2), "drs": None}, [])
    assert content(tmp_path) == before


@pytest.mark.usefixtures("without_figures")
def test_a_failing_disk_leaves_the_old_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_report(tmp_path, make_search_results(2), [])
    before = content(tmp_path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(RunError, match="No space left"):
        write_report(tmp_path, make_search_results(3), [])
    assert content(tmp_path) == before


@pytest.mark.usefixtures("without_figures")
def test_a_reply_shared_by_variations_is_held_once(tmp_path: Path) -> None:
    examples = make_examples(1, 6)
    shared, other = (examples[0]["variations"][number]["reference"] for number in (0, 1))
    for place, variation in enumerate(examples[0]["variations"]):
        variation["reference"] = [shared, other, None][place % 3]
    write_report(tmp_path, make_search_results(1), examples)
    (block,) = blocks(tmp_path)
    assert [kept["response"] for kept in block["references"]] == [shared["response"], other["response"]]
    assert [variation["reference"] for variation in block["variations"]] == [0, 1, None, 0, 1, None]
    assert block["variations"][2]["reply_differences"] is None


@pytest.mark.usefixtures("without_figures")
def test_a_page_holds_the_first_variations_and_says_how_many_there_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "SHOWN_OF_ONE", 4)
    monkeypatch.setattr(page, "SHOWN_OF_ALL", 9)
    for templates, shown in ((1, 4), (3, 3), (12, 1)):
        examples = make_examples(templates, 5)
        write_report(tmp_path, make_search_results(1), examples)
        for block, given in zip(blocks(tmp_path), examples, strict=True):
            assert block["given"] == 5
            questions = [variation["question"] for variation in block["variations"]]
            assert questions == [variation["question"] for variation in given["variations"]][:shown]
