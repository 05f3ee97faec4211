"""RRB runs in words, cards and tables."""

from collections.abc import Sequence

from robust_jax.report.cards import Card, accuracy_card
from robust_jax.report.inputs import Interval, finite
from robust_jax.report.rrb_inputs import Change, DilutionResults, RewritingResults
from robust_jax.report.tables import (
    INTERVAL,
    Cell,
    Column,
    Table,
    count_cell,
    counts_table,
    share_cell,
    word_cell,
)
from robust_jax.report.wording import MISSING, Headline, decimal, percent, points, share_span

REWRITING_TERMS = {
    "Rewriting": "A perturbation that changes how a problem is written and not what it asks; the model is told how to "
    "undo it.",
    "Change": "Accuracy on the rewritten problems minus accuracy on the same problems as they are, in percentage "
    "points.",
    "p": "McNemar's exact test: the chance of as uneven a split into problems lost and gained if neither were "
    "likelier. Adjusted by Holm for the number of rewritings.",
}
DILUTION_TERMS = {
    "sequence": "All problems are solved in one reply; the last one is graded.",
    "alone": "The graded problem in a fresh context: what a reset would give.",
    "neutral": "Behind text that says nothing of use, with as many tokens as the solved problems have.",
    "solved": "Behind the same problems with the model's own solutions, which it does not have to write again.",
    "length": "What neutral text alone does to accuracy: alone → neutral.",
    "content": "What other problems do beyond their length: neutral → solved.",
    "own reasoning": "What solving them in the same reply does beyond that: solved → sequence.",
}
COMMON_TERMS = {
    "95% interval": "Were the run repeated with other problems of the same sort, 95 of 100 such intervals would hold "
    "the true figure.",
    "Status": "unparsed, truncated and refused count as wrong; error and skipped stand outside every accuracy.",
}


def rewriting_headline(results: RewritingResults) -> Headline:
    """How far accuracy falls under the rewritings, claimed only where the interval is clear of none."""
    average, original = results["average"]["change"], results["original"]["value"]
    if finite(average["value"]) is None or finite(original) is None:
        return Headline("There are too few answers to compare rewritten problems with the problems as they are.", "")
    if original == 0:
        sentence = "No problem is solved as it is, so that rewriting has nothing to take away."
    elif _is_below_zero(average):
        sentence = f"Rewritten, problems are solved {points(-(average['value'] or 0))} points less often."
    elif _is_above_zero(average):
        sentence = "Rewritten, problems are solved more often than as they are."
    else:
        sentence = "Rewriting the problems makes no clear difference on average."
    detail = f"Accuracy is {percent(original)} on the problems as they are"
    asked, given = sum(row["accuracy"]["n"] > 0 for row in results["perturbations"]), len(results["perturbations"])
    which = "all rewritings" if asked == given else f"the {asked} of {given} rewritings that could be asked"
    detail += f" and changes by {points(average['value'])} points ({share_span(average)}) over {which}."
    worst = min(results["perturbations"], key=lambda row: finite(row["change"]["value"]) or 0.0, default=None)
    if worst is not None and _is_below_zero(worst["change"]):
        detail += f" The worst is {worst['name'].replace('_', ' ')}: {percent(worst['accuracy']['value'])}."
    return Headline(sentence, detail)


def rewriting_cards(results: RewritingResults) -> list[Card]:
    """The figures that a reader wants first."""
    average = results["average"]["change"]
    shown = [
        accuracy_card("As they are", results["original"], "base"),
        Card("Change, points", points(average["value"]), share_span(average), average["n"], "beam"),
    ]
    for row in results["categories"]:
        shown.append(accuracy_card(row["category"].capitalize(), row["accuracy"], "plain"))
    return shown


def rewriting_tables(results: RewritingResults) -> list[Table]:
    """The tables of a run over perturbations, the problems' own left out."""
    original = (
        word_cell("as they are"),
        share_cell(results["original"]["value"]),
        word_cell(""),
        word_cell(""),
        _tokens_cell(results["original_tokens"]),
    )
    rows = [
        (
            word_cell(row["name"].replace("_", " ")),
            share_cell(row["accuracy"]["value"]),
            *_change_cells(row),
            _tokens_cell(row["tokens"]),
        )
        for row in results["perturbations"]
    ]
    accuracy = Table(
        "Accuracy by rewriting",
        (
            Column("Rewriting", is_numeric=False),
            Column("Accuracy"),
            Column("Change, points"),
            Column(INTERVAL),
            Column("Tokens"),
        ),
        (original, *rows),
        "Change compares the same problems as they are and rewritten; tokens are those of a reply.",
    )
    return [accuracy, _tests_table(results), _categories_table(results), counts_table(results["counts"])]


def _tests_table(results: RewritingResults) -> Table:
    rows = [
        (
            word_cell(row["name"].replace("_", " ")),
            word_cell(row["category"]),
            count_cell(row["fell"]),
            count_cell(row["rose"]),
            _p_cell(row["p"]),
            _p_cell(row["p_adjusted"]),
            count_cell(row["change"]["n"]),
        )
        for row in results["perturbations"]
    ]
    return Table(
        "Problems lost and gained",
        (
            Column("Rewriting", is_numeric=False),
            Column("Category", is_numeric=False),
            Column("Lost"),
            Column("Gained"),
            Column("p"),
            Column("Adjusted"),
            Column("n"),
        ),
        tuple(rows),
        "p: McNemar's exact test; adjusted by Holm for all rewritings.",
    )


def _categories_table(results: RewritingResults) -> Table:
    columns = [Column("Category", is_numeric=False), Column("Accuracy"), Column("Change, points"), Column(INTERVAL)]
    columns += [Column("p")]
    rows = [
        (word_cell(row["category"]), share_cell(row["accuracy"]["value"]), *_change_cells(row), _p_cell(row["p"]))
        for row in results["categories"]
    ]
    average = results["average"]
    rows.append((word_cell("all"), word_cell(""), *_change_cells(average), _p_cell(average["p"])))
    return Table("Accuracy by category", tuple(columns), tuple(rows))


def rewritten_problems_table(results: RewritingResults) -> Table:
    """A row a problem."""
    columns = (
        Column("Problem", is_numeric=False),
        Column("As it is"),
        Column("Rewritten"),
        Column("Lost under", is_numeric=False),
    )
    rows = [
        (
            word_cell(row["id"]),
            share_cell(row["original"]),
            share_cell(row["rewritten"]),
            word_cell(row["lost"].replace("_", " ")),
        )
        for row in results["problems"]
    ]
    return Table("Problems", columns, tuple(rows))


def dilution_headline(results: DilutionResults) -> Headline:
    """What solving several problems in one context does, claimed only where the interval is clear of none."""
    last = max((row["n"] for row in results["effects"]), default=0)
    effects = {row["effect"]: row["change"] for row in results["effects"] if row["n"] == last}
    total = effects.get("total")
    if total is None or finite(total["value"]) is None:
        return Headline("There are too few answers to compare contexts of several problems with single ones.", "")
    alone = next((row["accuracy"]["value"] for row in results["conditions"] if row["n"] == 1), None)
    if alone == 0:
        sentence = "No problem is solved alone, so that the ones before it have nothing to take away."
    elif _is_below_zero(total):
        sentence = f"As the last of {last}, a problem is solved {points(-(total['value'] or 0))} points less often."
    elif _is_above_zero(total):
        sentence = f"As the last of {last}, a problem is solved more often than alone."
    else:
        sentence = f"As the last of {last}, a problem is solved about as often as alone."
    detail = f"The change is {points(total['value'])} points ({share_span(total)})"
    parts = [
        f"{points(effects[name]['value'])} by {words} ({share_span(effects[name])})"
        for name, words in (
            ("length", "length"),
            ("content", "the other problems' content"),
            ("own reasoning", "the model's own reasoning about them"),
        )
        if name in effects
    ]
    return Headline(sentence, detail + (f": {', '.join(parts)}." if parts else "."))


def dilution_cards(results: DilutionResults) -> list[Card]:
    """The figures that a reader wants first."""
    last = max((row["n"] for row in results["conditions"]), default=0)
    arms = {"alone": "base", "sequence": "beam"}
    return [
        accuracy_card(
            "Alone" if row["n"] == 1 else f"{row['condition'].capitalize()}, {row['n']}",
            row["accuracy"],
            arms.get(row["condition"], "plain"),
        )
        for row in results["conditions"]
        if row["n"] in (1, last)
    ]


def dilution_tables(results: DilutionResults) -> list[Table]:
    """The tables of a run over several problems, the problems' own left out."""
    conditions = Table(
        "Accuracy on the last problem",
        (
            Column("Problems"),
            Column("Condition", is_numeric=False),
            Column("Accuracy"),
            Column(INTERVAL),
            Column("Prompt tokens"),
            Column("n"),
        ),
        tuple(
            (
                count_cell(row["n"]),
                word_cell(row["condition"]),
                share_cell(row["accuracy"]["value"]),
                word_cell(share_span(row["accuracy"])),
                _tokens_cell(row["prompt_tokens"]),
                count_cell(row["accuracy"]["n"]),
            )
            for row in results["conditions"]
        ),
    )
    effects = Table(
        "What changes accuracy",
        (
            Column("Problems"),
            Column("Effect", is_numeric=False),
            Column("Change, points"),
            Column(INTERVAL),
            Column("p"),
            Column("n"),
        ),
        tuple(
            (
                count_cell(row["n"]),
                word_cell(row["effect"]),
                *_change_cells(row),
                _p_cell(row["p"]),
                count_cell(row["change"]["n"]),
            )
            for row in results["effects"]
        ),
        note="Paired over the same problems; length, content and own reasoning add up to the total.",
    )
    shown = [conditions, effects]
    if attention := results.get("attention"):
        titles = ("Problems", "Condition", "Layer", "Own", "Earlier", "Reasoning", "Rest")
        columns = (Column(title, is_numeric=title != "Condition") for title in titles)
        rows = tuple(
            (
                count_cell(row["n"]),
                word_cell(row["condition"]),
                count_cell(row["layer"]),
                share_cell(row["own_problem"]["value"]),
                share_cell(row["earlier_problems"]["value"]),
                share_cell(row["earlier_reasoning"]["value"]),
                share_cell(row["rest"]["value"]),
            )
            for row in attention
        )
        note = "On the problem itself, on the ones before it, on the reasoning about those, and on the rest."
        shown.append(Table("Attention of the last answer", tuple(columns), rows, note))
    return [*shown, counts_table(results["counts"])]


def diluted_problems_table(results: DilutionResults) -> Table:
    """A row a problem."""
    longest = max((len(row["last"]) for row in results["problems"]), default=0)
    columns = [Column("Problem", is_numeric=False), Column("Alone")]
    columns += [Column(f"Last of {n}") for n in range(2, longest + 2)]
    rows = [
        (word_cell(row["id"]), share_cell(row["alone"]), *map(share_cell, row["last"])) for row in results["problems"]
    ]
    return Table("Problems", tuple(columns), tuple(rows))


def comparison_table(runs: Sequence[RewritingResults]) -> Table:
    """A row a run: accuracy as they are, the average change (paper Figure 5), and accuracy by category (Figure 4)."""
    categories = dict.fromkeys(row["category"] for run in runs for row in run["categories"])
    columns = [Column("Model", is_numeric=False), Column("Data", is_numeric=False), Column("As they are")]
    columns += [Column("Change, points"), Column(INTERVAL)]
    columns += [Column(category.capitalize()) for category in categories]
    rows = []
    for run in runs:
        found = {row["category"]: row["accuracy"]["value"] for row in run["categories"]}
        change = run["average"]["change"]
        rows.append(
            (
                word_cell(run["model"]),
                word_cell(run["suite"]),
                share_cell(run["original"]["value"]),
                Cell(points(change["value"]), finite(change["value"])),
                word_cell(share_span(change)),
                *(share_cell(found.get(category)) for category in categories),
            )
        )
    return Table("Runs side by side", tuple(columns), tuple(rows), "Change: mean over all rewritings of the run.")


def _change_cells(row: Change) -> tuple[Cell, Cell]:
    change = row["change"]
    return (
        Cell(points(change["value"]), finite(change["value"])),
        word_cell(share_span(change)),
    )


def _p_cell(p: float | None) -> Cell:
    known = finite(p)
    return Cell(MISSING if known is None else "< 0.001" if known < 0.001 else f"{known:.3f}", known)


def _tokens_cell(tokens: Interval) -> Cell:
    return Cell(decimal(tokens["value"], 0), finite(tokens["value"]))


def _is_below_zero(interval: Interval) -> bool:
    high = finite(interval["high"])
    return high is not None and high < 0


def _is_above_zero(interval: Interval) -> bool:
    low = finite(interval["low"])
    return low is not None and low > 0
