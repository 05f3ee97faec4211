"""Runs one command under many settings, from one YAML file, and compares what comes out.

    python experiments/grid.py experiments/lpds/ablations.yaml --out runs/ablations

The file names a command, options that all runs share, and the runs with what is their own:

    command: lpds search
    shared: {suite: grade_school, limit: 5}
    runs:
      paper: {}
      greedy: {width: 1, iterations: 240}
    seeds: [0, 1, 2]            # each run once a seed; may be left out

Every run has its directory, OUT/NAME or OUT/NAME-SEED. Started again, finished runs are left alone and the interrupted
one goes on. At the end all are shown on one page, OUT/comparison.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import yaml

from robust_jax.cli import main
from robust_jax.runs import RESULTS_FILE, flag


def runs(grid: dict, out: Path) -> Iterator[tuple[Path, list[str]]]:
    """The directory and the words of every run."""
    for name, own in grid["runs"].items():
        for seed in grid.get("seeds", [None]):
            options = {**grid.get("shared", {}), **own, **({} if seed is None else {"seed": seed})}
            path = out / (name if seed is None else f"{name}-{seed}")
            words = [word for option, value in options.items() for word in (flag(option), str(value))]
            yield path, [*grid["command"].split(), *words, "--out", str(path)]


def run_grid(file: Path, out: Path, dry_run: bool, only: str | None) -> int:
    """Run what has not finished; the exit code of the first run that fails."""
    chosen = [(path, words) for path, words in runs(yaml.safe_load(file.read_text()), out) if only in (None, path.name)]
    for path, words in chosen:
        print(f"== {path.name}: robust-jax {' '.join(words)}", flush=True)
        if dry_run:
            words = [*words, "--dry-run"]
        elif (path / RESULTS_FILE).exists():
            continue
        if code := main(words):
            return code
    if dry_run or len(chosen) < 2:
        return 0
    return main(["report", *(str(path) for path, _ in chosen), "--out", str(out / "comparison")])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dry-run", action="store_true", help="only show what each run would ask")
    parser.add_argument("--only", help="one run, by the name of its directory")
    given = parser.parse_args()
    sys.exit(run_grid(given.file, given.out, given.dry_run, given.only))
