"""The fine-tuning commands as the command line calls them: do the work, and print what came of it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from robust_jax.finetune.data import EVALUATED, VALIDATION, make_data, read_data
from robust_jax.finetune.evaluation import evaluate as run_evaluate
from robust_jax.finetune.evaluation import shots
from robust_jax.finetune.export import export as run_export
from robust_jax.finetune.memory import keep_freed_memory
from robust_jax.finetune.options import (
    DataOptions,
    EvaluateOptions,
    ExportOptions,
    ModelRunOptions,
    SweepOptions,
    TableOptions,
    TrainOptions,
)
from robust_jax.finetune.splits import TRAIN_SETS
from robust_jax.finetune.tables import make_tables, sets_table
from robust_jax.finetune.training import train as run_training
from robust_jax.problems import build_prompt
from robust_jax.report.publishing import write_files
from robust_jax.report.tables import Cell, Column, Table, as_markdown, as_rich


def data(options: DataOptions) -> None:
    """`robust-jax finetune data`."""
    tables = data_tables(make_data(options))
    assert options.out is not None
    write_files(options.out, {Path("tables.md"): "\n".join(map(as_markdown, tables)).encode()})
    console = Console()
    for table in tables:
        console.print(as_rich(table))
    console.print(f"Written to {options.out}", highlight=False, soft_wrap=True)


def run(options: TrainOptions) -> None:
    """`robust-jax finetune run`."""
    if options.dry_run:
        print_plan(options)
        return
    keep_freed_memory()
    _print_accuracy(run_training(options))


def evaluate(options: EvaluateOptions) -> None:
    """`robust-jax finetune evaluate`."""
    if options.dry_run:
        print_plan(options)
        return
    _print_accuracy(run_evaluate(options))


def sweep(options: SweepOptions) -> None:
    """`robust-jax finetune sweep`."""
    if options.dry_run:
        print_plan(options)
        return
    from robust_jax.finetune.sweep import best_table  # Optuna is an extra.
    from robust_jax.finetune.sweep import sweep as run_sweep

    keep_freed_memory()
    Console().print(as_rich(best_table(run_sweep(options), options.train)))


def export(options: ExportOptions) -> None:
    """`robust-jax finetune export`."""
    print(f"Written to {run_export(options)}: give it as --model, or to transformers' from_pretrained")


def table(options: TableOptions) -> None:
    """`robust-jax finetune table`."""
    console = Console()
    for each in make_tables(options):
        console.print(as_rich(each))


def report(directories: Sequence[Path], out: Path | None) -> None:
    """`robust-jax report` of trained models: their table."""
    table(TableOptions(tuple(directories), out))


def data_tables(results: Mapping[str, Any]) -> list[Table]:
    """The counts of the sets (C.5.1), and how difficult each bucket is (Figure 19)."""
    counts = [
        ("Templates", results["templates"]),
        ("Templates left out because the model solved no variation", len(results["discarded"])),
        ("Variations that the search explored", results["explored"]),
        ("of them answered wrongly", results["wrong"]),
        ("Training pool", results["pool"]),
        *(
            (f"Training set {TRAIN_SETS.get(name, name)}" if name in TRAIN_SETS else f"Set {name}", row["problems"])
            for name, row in results["sets"].items()
        ),
    ]
    sizes = Table(
        "Counts",
        (Column("What", is_numeric=False), Column("Number")),
        tuple((Cell(name, name), Cell(f"{count:,}", count)) for name, count in counts),
        "All training sets have one size. What has no difficulty is in no bucket: "
        f"{results['without_difficulty']} variations; {results['without_reply']} got no reply.",
    )
    names = list(next(iter(results["difficulty"].values())))
    spread = Table(
        "Difficulty of the buckets (MD_H)",
        (Column("Bucket", is_numeric=False), *(Column(name.replace("_", " ").capitalize()) for name in names)),
        tuple(
            (Cell(f"Q_{bucket}", bucket), *(Cell(f"{row[name]:.1f}", row[name]) for name in names))
            for bucket, row in results["difficulty"].items()
        ),
    )
    return [sizes, spread]


def print_plan(options: ModelRunOptions) -> None:
    """A prompt with its solution, and how much is trained on and asked; no model is touched."""
    assert options.data is not None
    found = read_data(options.data, run_python=options.run_python)
    console = Console()
    if isinstance(options, TrainOptions):
        problem = found.problems(options.train)[0]
        console.rule(options.train)
        prompt = build_prompt(found.suite, problem.question, shots=shots(found, options), form=found.form)
        console.print(prompt.raw, markup=False)
        console.print(problem.trace, markup=False, highlight=False)
        console.rule()
        seen = options.steps * options.batch * options.accumulation
        console.print(
            f"{options.steps} steps of {options.accumulation} × {options.batch} problems: {seen:,} in all, of "
            f"{len(found.problems(options.train)):,}",
            highlight=False,
        )
    for name in (VALIDATION, *EVALUATED):
        console.print(f"{name}: {len(found.problems(name)):,} replies", highlight=False)


def _print_accuracy(results: Mapping[str, Any]) -> None:
    title = f"{results['model']} on {results['suite']}"
    if results["train"] in TRAIN_SETS:
        title += f", trained on {TRAIN_SETS[results['train']]}"
    Console().print(as_rich(sets_table(title, results["sets"])))
