"""Does training on difficult variations help more than training on easy ones (Section 5)? Search, split, train, look.

    python experiments/finetuning.py --config experiments/finetuning-tiny.yaml --out runs/finetuning

Every part is a command of `robust-jax`, which is printed before it runs. What is finished is not done again, and what
was interrupted goes on where it stopped: the same command continues after a kill at any moment.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from robust_jax.cli import main as robust_jax
from robust_jax.errors import InputError
from robust_jax.runs import RESULTS_FILE, check_least, parse

SEARCHED = "finished.json"
"""What a finished search leaves."""


@dataclass(frozen=True)
class Options:
    """Search, make the sets, train on each for several seeds, and put everything into one table."""

    out: Path = Path("runs/finetuning")
    """Where everything is kept."""
    search: Path | None = None
    """A finished search to use; none makes one in `out`."""
    search_config: Path | None = None
    """Options of that search, as a file; none takes the paper's."""
    model: str = "builtin:tiny"
    """What is searched and trained."""
    suite: str = "grade_school"
    """What it is searched on."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Of the splits, the draws and the order of training."""
    arms: tuple[str, ...] = ("q_low", "q_mid", "q_high", "mix_20_30_50", "random")
    """Training sets."""
    per_template: int = 100
    """Most wrong variations of a template in the training pool."""
    evaluated: int = 10
    """Variations of a template in the validation set and in the test set."""
    evaluated_wrong: int | None = None
    """Most wrong variations of a template in the thirds of the test pool."""
    training: Path | None = None
    """Options of every training, as a file; none takes the paper's."""

    def __post_init__(self) -> None:
        if not self.seeds or not self.arms:
            raise InputError("name at least one of --seeds and one of --arms")
        check_least("per_template", self.per_template, 1)


def run(finished: Path, *words: object) -> None:
    """One command, unless what it leaves at its end is there already."""
    if finished.exists():
        return
    command = [str(word) for word in words if word is not None]
    print(f"\nrobust-jax {' '.join(command)}", flush=True)
    if code := robust_jax(command):
        sys.exit(code)


def main() -> None:
    try:
        options = parse(Options, sys.argv[1:], prog="finetuning.py")
    except InputError as error:
        sys.exit(f"finetuning.py: {error}")
    search = options.search or options.out / "search"
    chosen = ["--config", options.search_config] if options.search_config else []
    model = ["--model", options.model]
    run(search / SEARCHED, "lpds", "search", *chosen, *model, "--suite", options.suite, "--out", search)
    runs = []
    for seed in options.seeds:
        folder = options.out / f"seed-{seed}"
        sizes = ["--per-template", options.per_template, "--evaluated", options.evaluated]
        sizes += ["--evaluated-wrong", "none" if options.evaluated_wrong is None else options.evaluated_wrong]
        sets = folder / "sets"
        run(sets / RESULTS_FILE, "finetune", "data", "--search", search, "--out", sets, "--seed", seed, *sizes)
        before = folder / "before"
        run(before / RESULTS_FILE, "finetune", "evaluate", *model, "--data", sets, "--seed", seed, "--out", before)
        runs.append(before)
        config = ["--config", options.training] if options.training else []
        for arm in options.arms:
            out = folder / arm
            words = [*config, *model, "--data", sets, "--train", arm, "--seed", seed, "--out", out]
            run(out / RESULTS_FILE, "finetune", "run", *words)
            runs.append(out)
    print(flush=True)
    sys.exit(robust_jax(["finetune", "table", *map(str, runs), "--out", str(options.out)]))


if __name__ == "__main__":
    main()
