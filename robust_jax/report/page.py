"""The page of a run: one HTML file that opens offline and needs nothing else."""

from typing import Any

from robust_jax.report.attribution import slots_table, values_table
from robust_jax.report.cards import Card, accuracy_card
from robust_jax.report.differences import differences
from robust_jax.report.drawing import Figure
from robust_jax.report.html import json_block, render_page
from robust_jax.report.inputs import Answers, Attempt, Results, TemplateExamples, finite
from robust_jax.report.tables import Table, tables, templates_table
from robust_jax.report.wording import (
    ARMS,
    best_metric,
    decimal,
    headline,
    one_line,
    row_name,
    span,
    times,
)

SHOWN_OF_ONE, SHOWN_OF_ALL = 50, 5_000
"""Variations of one template, and of all, that the page holds: it is to be sent about and opened on a phone."""

_GLOSSARY = {
    "95% interval": "Were the run repeated with other templates of the same sort, 95 of 100 such intervals would hold "
    "the true figure.",
    "Difficulty": "How far a reply strays from right replies to the same template. It is measured without knowing "
    "whether the reply is right.",
    "Right reply": "A reply of the same model to another variation of the template that was graded right.",
    "AUC": "How often a wrong answer scores as more difficult than a right one; 0.50 is chance, 1.00 is perfect.",
    "Status": "unparsed, truncated and refused count as wrong; error and skipped stand outside every accuracy.",
}
_SEARCH_GLOSSARY = {
    "Search": "Beam search over the slots of each template for the variations that are most difficult for this model.",
    "Random sampling": "As many variations of each template, drawn at random.",
    "Base problem": "The filling of a template that counts as the original problem.",
    "Drop ratio": "How far accuracy falls from the base problems under search, divided by how far it falls at random.",
    "Explains": "Share of the variance of right and wrong, or of difficulty, over random variations that the values of "
    "a slot explain; 0% if it does not matter, 100% if it alone decides.",
    "Clear": "The change stands out of what chance does among so many values: of all that are called clear, about one "
    "in twenty is expected to be chance.",
    "Robustness score": "The difficulty-robustness score: area below the curve of accuracy over quantiles of "
    "difficulty; 1 is perfect.",
}


def render(
    results: Results, examples: list[TemplateExamples], answers: Answers, drawings: list[tuple[Figure, str]]
) -> str:
    """The page as text. `drawings` are the run's figures with their SVG."""
    limit = max(1, min(SHOWN_OF_ONE, SHOWN_OF_ALL // max(1, len(examples))))
    return render_page(
        "run.html",
        ["search.js"],
        run=[results["kind"], one_line(results["model"]), one_line(results["suite"])],
        headline=headline(results),
        drawings=drawings,
        tables=tables(results),
        cards=cards(results),
        glossary={**(_SEARCH_GLOSSARY if results["kind"] == "lpds search" else {}), **_GLOSSARY},
        settings=results["settings"],
        has_slots=results["kind"] == "lpds search",
        page_data=json_block(
            {
                "tables": {name: paged(table) for name, table in paged_tables(results).items()},
                "examples": [one_line(shown["template"]) for shown in examples],
                "arms": ARMS,
                "slots": answers["slots"],
            }
        ),
        examples=[json_block(_block(shown, limit)) for shown in examples],
        answers=json_block(answers["rows"]) if answers["rows"] else None,
    )


def paged_tables(results: Results) -> dict[str, Table]:
    """The tables that are too long to be shown at once, by the id of their place on the page."""
    shown = {"templates-table": templates_table(results)}
    if results["kind"] == "lpds search":
        shown |= {"slots-table": slots_table(results), "values-table": values_table(results)}
    return shown


def paged(table: Table) -> dict[str, Any]:
    """A table as the script reads it."""
    columns = [{"title": column.title, "kind": "number" if column.is_numeric else "words"} for column in table.columns]
    return {"columns": columns, "rows": table.rows}


def cards(results: Results) -> list[Card]:
    """The figures that a reader wants first."""
    if results["kind"] == "lpds measure":
        accuracy, best = results["accuracy"], best_metric(results)
        shown = [accuracy_card("Accuracy", accuracy, "random")]
        if best is not None:
            label = f"AUC of {row_name(best, results['metrics'])}, {best['span'].lower()}"
            shown.append(Card(label, decimal(best["auc"]["value"]), span(best["auc"]), best["auc"]["n"], "metric"))
        return shown
    accuracies, drops, drs = results["accuracy"], results["drops"], results["drs"]
    shown = [
        accuracy_card("Random accuracy", accuracies["random"], "random"),
        accuracy_card("Search accuracy", accuracies["beam"], "beam"),
    ]
    if finite(accuracies["base"]["value"]) is not None:
        shown.insert(0, accuracy_card("Base accuracy", accuracies["base"], "base"))
    if drops is not None:
        ratio = drops["ratio"]
        value = "undefined" if ratio is None else times(ratio["value"])
        shown.append(Card("Drop ratio", value, span(ratio, digits=1), ratio and ratio["n"], "plain"))
    shown.append(Card("Robustness score", decimal(drs["value"]), span(drs), drs["n"], "plain"))
    return shown


# --------------------------------------------------------------------------------------------------
# What the script reads


def _block(examples: TemplateExamples, limit: int) -> dict[str, Any]:
    """One template's first examples with differences marked; replies that serve several of them are held once."""
    base = examples["base"]
    shown = examples["variations"][:limit]
    references: dict[tuple[str, str], Attempt] = {}
    for item in shown:
        if item["reference"] is not None:
            references.setdefault(_content(item["reference"]), item["reference"])
    places = {content: place for place, content in enumerate(references)}
    variations = []
    for item in shown:
        reference = item["reference"]
        variations.append(
            {
                **_attempt(item),
                "extracted": item["extracted"],
                "gold": item["gold"],
                "status": item["status"],
                "correct": item["correct"],
                "difficulty": finite(item["difficulty"]),
                "shown_difficulty": decimal(item["difficulty"], 2),
                "reference": None if reference is None else places[_content(reference)],
                "question_differences": base and differences(base["question"], item["question"]),
                "reply_differences": reference and differences(reference["response"], item["response"]),
            }
        )
    return {
        "given": len(examples["variations"]),
        "base": base and _attempt(base),
        "references": [_attempt(reference) for reference in references.values()],
        "variations": variations,
    }


def _content(attempt: Attempt) -> tuple[str, str]:
    return attempt["question"], attempt["response"]


def _attempt(attempt: Attempt) -> dict[str, str]:
    return {"question": attempt["question"], "response": attempt["response"]}
