"""Tables hold the results' numbers in every form, in an order that results.json cannot disturb."""

import json
import re
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from robust_jax.report import as_markdown, as_text, metrics_table, print_summary, tables, templates_table
from robust_jax.report.tables import (
    Cell,
    Column,
    Table,
    accuracy_table,
    behind_table,
    comparison_table,
    counts_table,
)
from robust_jax.report.wording import decimal, one_line, percent, points
from tests.report.made_up_results import make_measure_results, make_search_results, without_numbers

ANY_RESULTS = pytest.mark.parametrize("results", [make_search_results(7), make_measure_results(7)])


def markdown_rows(text: str) -> list[list[str]]:
    lines = [line for line in text.split("\n") if line.startswith("|")]
    rows = [re.split(r"(?<!\\)(?:\\\\)*\|", line)[1:-1] for line in lines]
    return [[cell.strip() for cell in row] for row in rows]


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


@ANY_RESULTS
def test_every_form_holds_every_cell(results: dict[str, Any]) -> None:
    for table in [*tables(results), templates_table(results)]:
        header, _, *rows = markdown_rows(as_markdown(table))
        assert header == [column.title for column in table.columns]
        assert rows == texts(table)
        plain = as_text(table)
        assert all(text in plain for row in texts(table) for text in row)
        assert all(len(row) == len(table.columns) for row in table.rows)


@given(st.lists(st.lists(st.text(max_size=8), min_size=2, max_size=2), max_size=4))
def test_no_text_breaks_out_of_its_markdown_cell(rows: list[list[str]]) -> None:
    cells = tuple(tuple(Cell(one_line(text), None) for text in row) for row in rows)
    lines = [
        line for line in as_markdown(Table("T", (Column("a"), Column("b")), cells)).split("\n") if line.startswith("|")
    ]
    assert len(lines) == 2 + len(rows)
    for line in lines:
        assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 3


@ANY_RESULTS
def test_order_does_not_depend_on_the_order_of_keys(results: dict[str, Any]) -> None:
    stored = json.loads(json.dumps(results, sort_keys=True))
    assert tables(results) == tables(stored)
    assert templates_table(results) == templates_table(stored)


def test_accuracies_and_drops(search_results: dict[str, Any]) -> None:
    base, random, beam = texts(accuracy_table(search_results))
    accuracy, drops = search_results["accuracy"], search_results["drops"]
    assert base[:2] == ["Base problems", percent(accuracy["base"]["value"])]
    assert random[1] == percent(accuracy["random"]["value"]) and random[3] == points(drops["random"]["value"])
    assert beam[1] == percent(accuracy["beam"]["value"]) and beam[3] == points(drops["beam"]["value"])


def test_a_suite_without_base_problems_has_no_drops(search_results: dict[str, Any]) -> None:
    nothing = {"value": None, "low": None, "high": None, "n": 0}
    search_results["accuracy"]["base"], search_results["drops"] = nothing, None
    assert [row[0] for row in texts(accuracy_table(search_results))] == ["Random sampling", "Search"]
    assert not any("rop" in column.title for column in accuracy_table(search_results).columns)
    assert not any("rop" in row[0] for row in texts(comparison_table(search_results)))


def test_an_undefined_ratio_is_called_undefined(search_results: dict[str, Any]) -> None:
    search_results["drops"]["ratio"] = None
    assert ["Drop under search ÷ drop at random", "undefined", "n/a", ""] in texts(comparison_table(search_results))


def test_runs_stand_side_by_side_as_in_table_1() -> None:
    first, second = make_measure_results(3, seed=1), make_measure_results(3, seed=2)
    second["suite"], second["metrics"] = "finance", second["metrics"][2:]
    table = metrics_table([first, second])
    assert [column.title for column in table.columns if "AUC" in column.title] == ["grade-school: AUC", "finance: AUC"]
    assert len(table.rows) == len(first["metrics"])
    assert texts(table)[0][6:] == ["n/a"] * 4
    row = next(row for row in texts(table) if row[:2] == ["Output", "MD_H"])
    assert row[2] == row[6] == decimal(0.80) and row[4] == decimal(0.14)


def test_models_stand_below_each_other_as_in_table_8() -> None:
    runs = [make_measure_results(3, seed=seed) for seed in range(4)]
    for run, (model, suite) in zip(runs, [("small", "a"), ("small", "b"), ("large", "a"), ("small", "a")], strict=True):
        run["model"], run["suite"] = model, suite
    runs[3]["metrics"][0]["auc"]["value"] = 0.99
    table = metrics_table(runs)
    assert [column.title for column in table.columns][:3] == ["Model", "Span", "Metric"]
    assert len(table.rows) == 2 * len(runs[0]["metrics"])
    small, large = texts(table)[0], texts(table)[len(runs[0]["metrics"])]
    assert (small[0], large[0]) == ("small", "large")
    assert small[3] == decimal(0.99)  # the later of two runs of one model on one suite
    assert large[7:] == ["n/a"] * 4


def test_layers_of_one_metric_are_told_apart(measure_results: dict[str, Any]) -> None:
    row = next(row for row in measure_results["metrics"] if row["metric"] == "MD_H")
    measure_results["metrics"].append({**row, "layer": 28, "behind": row["auc"]})
    names = [row[1] for row in texts(metrics_table([measure_results]))]
    assert {"MD_H, block 21", "MD_H, block 28", "KNN_H"} <= set(names)
    assert [row[1] for row in texts(behind_table(measure_results))] == [
        name for name in names if name != "MD_H, block 21"
    ]


def test_what_must_be_known_of_figures_is_said_once(measure_results: dict[str, Any]) -> None:
    for row in measure_results["metrics"]:
        row["note"] = "odds ratio: the metric is constant" if row["metric"] == "Entropy" else ""
    note = metrics_table([measure_results]).note
    assert note.count("no value for 3 answers") == 1
    assert "Input Entropy, Output Entropy: odds ratio: the metric is constant." in note


STATUSES = st.dictionaries(st.sampled_from(["ok", "error", "truncated"]), st.integers(0, 9999))


@given(st.dictionaries(st.sampled_from(["base", "beam", "own arm"]), STATUSES))
def test_counts_add_up(counts: dict[str, dict[str, int]]) -> None:
    table = counts_table(counts)
    assert len(table.rows) == len(counts)
    for row in table.rows:
        assert row[-1].key == sum(cell.key for cell in row[1:-1])
    assert sum(row[-1].key for row in table.rows) == sum(sum(arm.values()) for arm in counts.values())


def test_a_terminal_is_not_steered(search_results: dict[str, Any]) -> None:
    search_results["templates"][0]["note"] = "\x1b[31mred\x07\n[bold]x"
    search_results["counts"]["\x1b]0;title\x07"] = {"ok": 1}
    out = StringIO()
    print_summary(search_results, Console(file=out, force_terminal=False, width=120))
    text = out.getvalue() + as_text(templates_table(search_results))
    assert "\x1b" not in text and "\x07" not in text
    assert "[31mred  [bold]x" in text


@ANY_RESULTS
def test_the_summary_of_nothing(results: dict[str, Any]) -> None:
    out = StringIO()
    print_summary(without_numbers(results), Console(file=out, width=100))
    assert "not available" in out.getvalue()
    assert "None" not in out.getvalue() and "nan" not in out.getvalue()
