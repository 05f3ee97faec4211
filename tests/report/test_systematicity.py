"""The report of systematicity: what it says is what is stored, and what comes from outside stays text."""

import csv
import html
import json
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from robust_jax.errors import InputError
from robust_jax.report.systematicity import checked, print_systematicity, write_systematicity_report
from robust_jax.report.systematicity_figures import comparison_figures, run_figures
from robust_jax.report.systematicity_tables import comparison_table, headline, run_tables, variance_comparison_table
from tests.report.test_page import ATTACKS, Elements, browse, needs_browser, tampered


def interval(value: float | None, spread: float = 0.1, n: int = 24) -> dict[str, Any]:
    ends = (None, None) if value is None else (value - spread, value + spread)
    return {"value": value, "low": ends[0], "high": ends[1], "n": n}


def metrics(any_: float | None, fraction: float | None, all_: float | None, spread: float = 0.1) -> dict[str, Any]:
    gap = None if any_ is None or all_ is None else any_ - all_
    shares = {"any": any_, "fraction": fraction, "all": all_, "gap": gap}
    return {**{name: interval(share, spread) for name, share in shares.items()}, "undecided": 0}


def variance(total: float | None, within: float | None) -> dict[str, Any]:
    between = None if total is None or within is None else max(0.0, total - within)
    shares = {"total": total, "within": within, "between": between}
    return {**{name: interval(share) for name, share in shares.items()}, "undefined": 3, "incomplete": 0}


def make_results(**changes: Any) -> dict[str, Any]:
    def family(name: str, kinds: dict[str, tuple[float, float, float]]) -> dict[str, Any]:
        return {
            "family": name,
            "parameters": {"extra": 4},
            "tasks": 24,
            "metrics": metrics(*(sum(column) / len(kinds) for column in zip(*kinds.values(), strict=True))),
            "kinds": [
                {"kind": kind, "metrics": metrics(*shares), "variance": variance(0.31, 0.14)}
                for kind, shares in kinds.items()
            ],
            "tokens": {"attempts": 360, "prompt": 123_456, "completion": 7_890, "dollars": None},
        }

    return {
        "kind": "systematicity run",
        "model": "openai:model",
        "suite": "grammar, raven",
        "settings": {"variance": "unbiased", "effort": None},
        "counts": {"original": {"ok": 230, "unparsed": 10}},
        "families": [
            family("grammar", {"substitution": (0.75, 0.5, 0.25), "reordering": (0.85, 0.6, 0.45)}),
            family("raven", {"rebinding": (0.5, 0.5, 0.5)}),
        ],
        **changes,
    }


def make_task(name: str, text: str = "RED") -> dict[str, Any]:
    attempt = {"response": f"It is {text}.", "extracted": None, "status": "unparsed", "correct": False}
    right = {"response": f'{{"answers": ["{text}"]}}', "extracted": f'["{text}"]', "status": "ok", "correct": True}
    variations = [("original", True, [right, right, attempt]), ("reordering-1", None, [attempt])]
    return {
        "task": name,
        "family": name.split("-")[0],
        "variations": [
            {
                "variation": key,
                "rule": "[] -> RED",
                "prompt": f"Examples:\n{text}",
                "gold": "[]",
                "passed": passed,
                "attempts": attempts,
            }
            for key, passed, attempts in variations
        ],
    }


def written(results: dict[str, Any]) -> str:
    console = Console(width=200, record=True, file=None, quiet=False)
    with console.capture() as capture:
        print_systematicity(results, console)
    return capture.get()


def test_the_tables_say_what_is_stored() -> None:
    by_title = {table.title: table for table in run_tables(checked(make_results()))}
    rows = [[cell.text for cell in row] for row in by_title["Systematicity"].rows]
    assert rows[1] == ["grammar", "substitution", "75.0%", "50.0%", "25.0%", "50.0", "24"]
    spans = [cell.text for cell in by_title["95% intervals"].rows[1]]
    assert spans[2:] == ["65.0 to 85.0", "15.0 to 35.0", "40.0 to 60.0"]
    assert [row[:2] for row in rows] == [
        ["grammar", "all kinds"],
        ["grammar", "substitution"],
        ["grammar", "reordering"],
        ["raven", "all kinds"],
        ["raven", "rebinding"],
    ]
    assert [cell.text for cell in by_title["Variance of success"].rows[0]][:5] == [
        "grammar",
        "substitution",
        "0.31",
        "0.14",
        "0.17",
    ]
    assert [cell.text for cell in by_title["Tokens"].rows[0]] == ["grammar", "360", "123,456", "7,890"]
    priced = make_results()
    priced["families"][0]["tokens"]["dollars"] = 1.5
    tokens = {table.title: table for table in run_tables(checked(priced))}["Tokens"]
    assert [cell.text for cell in tokens.rows[0]][-1] == "1.50"


@pytest.mark.parametrize(
    ("shares", "spread", "said"),
    [
        ((0.9, 0.7, 0.4), 0.1, "not systematic on raven"),
        ((0.9, 0.8, 0.85), 0.1, "no clear lack"),
        ((0.9, 0.9, 0.9), 0.0, "is systematic"),
        ((0.0, 0.0, 0.0), 0.0, "passes no variation"),
        ((None, None, None), 0.0, "too few answers"),
    ],
)
def test_the_headline_claims_no_more_than_the_interval(
    shares: tuple[float | None, float | None, float | None], spread: float, said: str
) -> None:
    results = make_results()
    results["families"] = results["families"][1:]
    results["families"][0]["metrics"] = metrics(*shares, spread)
    assert said in headline(checked(results)).sentence
    assert said in written(results)


def test_left_out_tasks_are_mentioned() -> None:
    results = make_results()
    assert "left out" not in run_tables(checked(results))[0].note
    results["families"][0]["metrics"]["undecided"] = 5
    assert "5 tasks are left out" in run_tables(checked(results))[0].note


def test_figures_hold_the_numbers_that_they_draw(tmp_path: Path) -> None:
    results = make_results()
    write_systematicity_report(tmp_path, results, [make_task("grammar-0000")])
    for name, count in (("families", 2), ("kinds", 3)):
        rows = list(csv.DictReader((tmp_path / "figures" / f"{name}.csv").open(encoding="utf-8")))
        assert len(rows) == count
        assert {"any", "fraction", "all", "gap_low", "gap_high"} <= rows[0].keys()
        assert (tmp_path / "figures" / f"{name}.png").stat().st_size > 5_000
        assert "gap" in (tmp_path / "figures" / f"{name}.svg").read_text(encoding="utf-8")
    assert float(rows[0]["any"]) == 0.75 and rows[0]["name"] == "grammar, substitution"
    assert "| grammar | substitution |" in (tmp_path / "tables.md").read_text(encoding="utf-8")


def test_runs_stand_side_by_side_family_after_family() -> None:
    runs: Any = [{"name": name, "results": checked(make_results(model=name))} for name in ("effort low", "effort high")]
    del runs[1]["results"]["families"][1]
    assert [figure.name for figure in comparison_figures(runs)] == ["runs_grammar", "runs_raven"]
    assert [row[0] for row in comparison_figures(runs)[0].rows] == ["effort low", "effort high"]
    found = [[cell.text for cell in row][:2] for row in comparison_table(runs).rows]
    assert found == [["grammar", "effort low"], ["grammar", "effort high"], ["raven", "effort low"]]
    rows = [[cell.text for cell in row][:3] for row in variance_comparison_table(runs).rows]
    assert len(rows) == 5 and ["grammar", "reordering", "effort high"] in rows


def test_results_without_numbers_can_be_drawn(tmp_path: Path) -> None:
    results = make_results()
    for family in results["families"]:
        family["metrics"] = metrics(None, None, None)
        for kind in family["kinds"]:
            kind["metrics"], kind["variance"] = metrics(None, None, None), variance(None, None)
    write_systematicity_report(tmp_path, results, [])
    assert "too few answers" in (tmp_path / "report.html").read_text(encoding="utf-8")
    results["counts"] = {"original": {"skipped": 1_200, "ok": 3}, "rebinding": {"error": 2, "skipped": 1}}
    assert "Of 1,206 attempts, 1,201 have prompts too long for the model, and 2 got no" in written(results)
    assert not any(figure.is_available for figure in run_figures(checked(results)))


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda results: results.pop("model"), "model"),
        (lambda results: results["families"][0]["metrics"].pop("gap"), "gap"),
        (lambda results: results["families"][0].update(tasks="many"), "tasks"),
    ],
)
def test_results_of_another_shape_are_refused_by_place(change: Any, place: str) -> None:
    results = deepcopy(make_results())
    change(results)
    with pytest.raises(InputError, match=place):
        checked(results)


def test_the_page_holds_as_many_tasks_as_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robust_jax.report.systematicity.MOST_CHARACTERS", 400)
    tasks = [make_task(f"{family}-{number:04d}") for family in ("grammar", "raven") for number in range(9)]
    write_systematicity_report(tmp_path, make_results(), tasks)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    (names,) = re.findall(r'id="names">(.*?)</script>', page)
    shown = json.loads(names)
    assert 2 <= len(shown) < 18 and {name.split("-")[0] for name in shown} == {"grammar", "raven"}
    assert f"The page holds {len(shown)} of 18 tasks" in page


def test_a_long_reply_is_cut_in_its_middle(tmp_path: Path) -> None:
    task = make_task("grammar-0000")
    task["variations"][0]["attempts"][0]["response"] = "start " + "x" * 9_000 + " end"
    write_systematicity_report(tmp_path, make_results(), [task])
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "start x" in page and "x end" in page and "x" * 5_000 not in page


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("attacked")
    attack = "\n".join(ATTACKS)
    results = make_results(model=attack)
    results["settings"]["base"] = attack
    results["families"][0]["family"] = ATTACKS[0]
    write_systematicity_report(folder, results, [make_task("grammar-0000", attack), make_task("raven-0001")])
    return folder


def test_attacks_do_not_leave_their_place(attacked: Path) -> None:
    source = (attacked / "report.html").read_text(encoding="utf-8")
    opened = re.findall(r"<script[^>]*>", source)
    assert opened.count("<script>") == 1 and len(opened) == source.count("</script>") == 1 + 1 + 2
    for block in re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', source, re.DOTALL):
        assert "<" not in block
        json.loads(block)
    assert all(reference.startswith("#") for reference in Elements(source).references)
    assert "Content-Security-Policy\" content=\"default-src 'none'" in source


CLICKS = """
const log = {first: [...document.querySelectorAll("#shown h4")].map((h) => h.textContent)};
log.texts = [...document.querySelectorAll("#shown .text")].map((text) => text.textContent);
log.verdicts = [...document.querySelectorAll("#shown .facts b")].map((b) => b.textContent);
document.getElementById("next").click();
log.second = document.querySelector("#shown .text").textContent;
log.chosen = document.getElementById("chosen").value;
log.title = document.title;
log.requests = performance.getEntriesByType("resource").length;
const out = document.createElement("pre");
out.id = "log";
out.textContent = JSON.stringify(log);
document.body.append(out);
"""


@needs_browser
def test_a_reader_browses_variations_side_by_side(attacked: Path, tmp_path: Path) -> None:
    dom = browse(tampered(attacked / "report.html", tmp_path / "copy.html", CLICKS), tmp_path)
    found = re.search(r'<pre id="log">(.*?)</pre>', dom, re.DOTALL)
    assert found
    log = json.loads(html.unescape(found[1]))
    assert log["first"] == ["original", "reordering-1"]
    assert log["verdicts"] == ["✓ passed", "2 of 3", "undecided", "0 of 1"]
    assert all(any(attack in text for text in log["texts"]) for attack in ATTACKS[:5])
    assert (log["chosen"], log["second"]) == ("raven-0001", "Examples:\nRED")
    assert log["title"] != "taken" and log["requests"] == 0
