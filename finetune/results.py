"""What `finetune run` and `finetune evaluate` store of a trained model: accuracy on every set, before and after."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from robust_jax.analysis.intervals import Interval
from robust_jax.finetune.data import BASE, EVALUATED, TEST, Data
from robust_jax.finetune.evaluation import Tally, change, share_right, tally
from robust_jax.finetune.problem import Problem
from robust_jax.report.tables import Cell, Column, Table
from robust_jax.report.wording import percent, points, share_span
from robust_jax.types import Sample

BEFORE = "before"
"""Name of the model that nothing was trained in."""
TITLES = {TEST: "Test", "test_low": "Test low", "test_mid": "Test mid", "test_high": "Test high", BASE: "Base"}


def evaluated_results(
    answers: Mapping[str, Sequence[Sample]], sets: Mapping[str, Sequence[Problem]], data: Data, *, has_before: bool
) -> dict[str, Any]:
    """Accuracy on every set, with what a table over several runs needs."""
    return {
        name: set_results(tally(answers[name], problems, has_before=has_before), data.settings["seed"], name)
        for name, problems in sets.items()
    }


def set_results(counted: Tally, seed: int, name: str) -> dict[str, Any]:
    """The figures of one set."""
    changed = change(counted, seed, name)
    return {
        "accuracy": asdict(share_right(counted, seed, name)),
        "change": None if changed is None else asdict(changed),
        "problems": sum(n for n, _, _ in counted.values()),
        "templates": {item: list(row) for item, row in counted.items()},
    }


def read_tally(stored: Mapping[str, Any]) -> Tally:
    """What `set_results` stored of one set."""
    return {item: (n, right, had) for item, (n, right, had) in stored["templates"].items()}


def accuracy_table(title: str, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> Table:
    """Accuracies in the layout of Table 6: a row a training set, a column a set of problems.

    Args:
        rows: labels with the sets' results.
    """
    columns = [Column("Train set", is_numeric=False)]
    for name in EVALUATED:
        columns += [Column(TITLES[name]), Column("95% interval")]
    cells = []
    for label, sets in rows:
        row = [Cell(label, label)]
        for name in EVALUATED:
            interval = sets[name]["accuracy"]
            row += [Cell(percent(interval["value"]), interval["value"]), Cell(share_span(interval), None)]
        cells.append(tuple(row))
    return Table(title, tuple(columns), tuple(cells))


def change_table(title: str, note: str, rows: Sequence[tuple[str, Mapping[str, Interval | None]]]) -> Table:
    """Differences in accuracy, in percentage points, laid out like the accuracies."""
    columns = [Column("Train set", is_numeric=False)]
    for name in EVALUATED:
        columns += [Column(TITLES[name]), Column("95% interval")]
    cells = []
    for label, differences in rows:
        row = [Cell(label, label)]
        for name in EVALUATED:
            found = differences[name]
            row += [
                Cell(points(found.value if found else None), found.value if found else None),
                Cell(share_span(None if found is None else asdict(found)), None),  # type: ignore[arg-type]
            ]
        cells.append(tuple(row))
    return Table(title, tuple(columns), tuple(cells), note)
