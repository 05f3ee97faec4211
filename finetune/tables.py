"""`finetune table`: finished runs side by side, in the layouts of the paper's Tables 2, 5, 6 and 7."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from robust_jax.analysis.intervals import Interval
from robust_jax.errors import InputError
from robust_jax.finetune.accuracy import BEFORE, Tally, change, difference, pooled, read_tally, set_results
from robust_jax.finetune.data import BASE, EVALUATED, TEST
from robust_jax.finetune.options import TableOptions
from robust_jax.finetune.splits import RANDOM, TRAIN_SETS
from robust_jax.report.publishing import write_files
from robust_jax.report.tables import Cell, Column, Table, as_markdown
from robust_jax.report.wording import percent, points, share_span
from robust_jax.runs import RESULTS_FILE, intact, read_results, write_results

TITLES = {TEST: "Test", "test_low": "Test low", "test_mid": "Test mid", "test_high": "Test high", BASE: "Base"}
HYPER_PARAMETERS = {"rate": "η", "accumulation": "k", "warm_up": "α_warmup", "weight_decay": "λ"}
Row = list[Mapping[str, Any]]
"""The results of the runs on one training set, a run a seed."""


def make_tables(options: TableOptions) -> list[Table]:
    """The tables of some runs; pooled over the seeds of each training set.

    Raises:
        InputError: a directory holds no finished run of `finetune run` or `finetune evaluate`, runs are of different
            models or suites, or two runs are of one training set and one seed.
    """
    rows = _rows([_read(run / RESULTS_FILE) for run in options.runs])
    tallies = {name: _tallies(of_name) for name, of_name in rows.items()}
    seed = min(int(run["settings"]["data_seed"]) for of_name in rows.values() for run in of_name)
    pooled_sets = {
        name: {column: set_results(counted, seed, column) for column, counted in of_name.items()}
        for name, of_name in tallies.items()
    }
    count = max(map(len, rows.values()))
    seeds = f", {count} seeds pooled" if count > 1 else ""
    first = next(iter(rows.values()))[0]
    title = f"Accuracy (%) after fine-tuning {first['model']} on {first['suite']}{seeds}"
    tables = [accuracy_table(title, [(_label(name), found) for name, found in pooled_sets.items()])]
    changes = {
        name: {column: change(counted, seed, column) for column, counted in of_name.items()}
        for name, of_name in tallies.items()
        if name != BEFORE
    }
    paired = "Paired by problem; intervals by a bootstrap over templates."
    tables.append(change_table("Change by training, points", paired, _labelled(changes)))
    if RANDOM in tallies and len(tallies) > 1:
        apart: dict[str, Mapping[str, Interval | None]] = {
            name: {column: difference(counted, tallies[RANDOM][column], seed, column) for column, counted in of.items()}
            for name, of in tallies.items()
            if name not in (BEFORE, RANDOM)
        }
        note = "Same problems; intervals by a bootstrap over templates."
        tables.append(
            change_table("Against training on a random sample of the same size, points", note, _labelled(apart))
        )
    tables.append(_hyper_parameters(rows))
    if options.out is not None:
        write_files(options.out, {Path("tables.md"): "\n".join(map(as_markdown, tables)).encode()})
        write_results(options.out / RESULTS_FILE, {"kind": "finetune table", "rows": pooled_sets})
    return tables


def accuracy_table(title: str, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> Table:
    """Accuracies in the layout of Table 6: a row a training set, a column a set of problems.

    Args:
        title: of the table.
        rows: labels with the sets' results.
    """
    found = [(label, {name: sets[name]["accuracy"] for name in EVALUATED}) for label, sets in rows]
    return _by_set(title, "With 95% intervals by a bootstrap over templates.", percent, found)


def change_table(title: str, note: str, rows: Sequence[tuple[str, Mapping[str, Interval | None]]]) -> Table:
    """Differences in accuracy, in percentage points, laid out like the accuracies."""
    found = [
        (label, {name: None if one is None else asdict(one) for name, one in of_label.items()})
        for label, of_label in rows
    ]
    return _by_set(title, note, points, found)


def sets_table(title: str, sets: Mapping[str, Any]) -> Table:
    """The accuracies of one model: a row a set of problems, with the change by training where it is known."""
    columns = ("Accuracy", "95% interval", "Change, points", "95% interval", "Problems")
    rows = []
    for name in EVALUATED:
        accuracy, changed = sets[name]["accuracy"], sets[name]["change"]
        texts = [
            percent(accuracy["value"]),
            share_span(accuracy),
            points(changed["value"] if changed else None),
            share_span(changed),
            f"{sets[name]['problems']:,}",
        ]
        rows.append((Cell(TITLES[name], name), *(Cell(text, None) for text in texts)))
    return Table(title, (Column("Set", is_numeric=False), *map(Column, columns)), tuple(rows))


def _by_set(
    title: str, note: str, written: Callable[[float | None], str], rows: Sequence[tuple[str, Mapping[str, Any]]]
) -> Table:
    """A row a training set, a column a set of problems; an interval stands in brackets behind what it belongs to."""
    columns = (Column("Train set", is_numeric=False), *(Column(TITLES[name]) for name in EVALUATED))
    cells = []
    for label, of_label in rows:
        row = [Cell(label, label)]
        for name in EVALUATED:
            interval = of_label[name]
            value = interval["value"] if interval else None
            row.append(Cell(f"{written(value)} ({share_span(interval)})" if interval else written(value), value))
        cells.append(tuple(row))
    return Table(title, columns, tuple(cells), note)


def _read(file: Path) -> Mapping[str, Any]:
    """The results of one run, of which everything is there that a table takes."""
    run = read_results(file)
    if run.get("kind") not in ("finetune run", "finetune evaluate"):
        raise InputError(f"a run of {run.get('kind')!r} has no place in this table: give runs of finetune")
    with intact(file):
        _tallies([run])
        texts, numbers = (run[name] for name in ("train", "model", "suite")), run["settings"]
        if not (
            all(isinstance(text, str) for text in texts) and isinstance(numbers["seed"] + numbers["data_seed"], int)
        ):
            raise TypeError("not what a run writes")
    return run


def _rows(runs: Sequence[Mapping[str, Any]]) -> dict[str, Row]:
    """Runs by training set, in the order of Table 6."""
    if len(kinds := {(run["model"], run["suite"]) for run in runs if run["train"] in (BEFORE, *TRAIN_SETS)}) > 1:
        named = "; ".join(f"{model} on {suite}" for model, suite in sorted(kinds))
        raise InputError(f"the runs are not of one model on one suite: {named}")
    order = [BEFORE, *TRAIN_SETS, *(run["train"] for run in runs)]
    rows = {name: [run for run in runs if run["train"] == name] for name in dict.fromkeys(order)}
    for name, of_name in rows.items():
        seeds = [(run["settings"]["seed"], run["settings"]["data_seed"]) for run in of_name]
        if len(set(seeds)) < len(seeds):
            raise InputError(f"two of the runs are of {name} and of the same seed: name one of them")
    return {name: of_name for name, of_name in rows.items() if of_name}


def _tallies(runs: Row) -> dict[str, Tally]:
    return {column: pooled([read_tally(run["sets"][column]) for run in runs]) for column in EVALUATED}


def _label(name: str) -> str:
    return "-" if name == BEFORE else TRAIN_SETS.get(name, name)


def _labelled(
    rows: Mapping[str, Mapping[str, Interval | None]],
) -> list[tuple[str, Mapping[str, Interval | None]]]:
    return [(_label(name), found) for name, found in rows.items()]


def _hyper_parameters(rows: Mapping[str, Row]) -> Table:
    """What each was trained with (Table 5)."""
    columns = [Column("Train set", is_numeric=False), *map(Column, HYPER_PARAMETERS.values())]
    cells = []
    for name, runs in rows.items():
        if "rate" in runs[0]["settings"]:
            row = [Cell(_label(name), name)]
            for option in HYPER_PARAMETERS:
                values = dict.fromkeys(f"{run['settings'][option]:g}" for run in runs)
                row.append(Cell(", ".join(values), None))
            cells.append(tuple(row))
    return Table("Hyper-parameters", tuple(columns), tuple(cells))
