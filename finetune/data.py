"""`finetune data`: the sets of a search as files, with their counts; and reading them back."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from robust_jax.errors import InputError
from robust_jax.finetune.figures import bucket_figure
from robust_jax.finetune.options import DataOptions
from robust_jax.finetune.problem import Problem, read_problems, templates_of, write_problems
from robust_jax.finetune.searched import INHERITED, SEARCH_FILE, Searched, read_searched, suite_of
from robust_jax.finetune.splits import BUCKETS, TRAIN_SETS, Datasets, make_datasets
from robust_jax.problems import PromptForm
from robust_jax.report.drawing import as_svg
from robust_jax.report.publishing import figure_files, write_files
from robust_jax.runs import RESULTS_FILE, RunDirectory, plain, read_config, read_results, write_results
from robust_jax.types import Suite

COMMAND = "finetune data"
VALIDATION, TEST, BASE = "validation", "test", "base"
EVALUATED = (TEST, *(f"test_{bucket}" for bucket in BUCKETS), BASE)
"""The sets that a trained model is evaluated on, in the columns of Table 6."""


@dataclass(frozen=True)
class Data:
    """The sets that `finetune data` made."""

    path: Path
    settings: Mapping[str, Any]
    """What they were made with."""
    suite: Suite

    def problems(self, name: str) -> list[Problem]:
        """One of the training sets or of the sets to evaluate on.

        Raises:
            InputError: its file is damaged or lost.
        """
        return read_problems(_file(self.path, name))

    @property
    def form(self) -> PromptForm:
        """How the search put its problems to the model, and so how the model is trained and evaluated."""
        asked = self.settings
        return PromptForm(asked["shots_as"], asked["system"], chat=asked["chat_template"] == "auto")

    @property
    def digest(self) -> str:
        """The same for the same sets."""
        return _digest(self.path)


def make_data(options: DataOptions) -> dict[str, Any]:
    """Write the sets of a search into `options.out`; their counts, which `results.json` there has too.

    Raises:
        InputError: the search cannot be used, or is too small; nothing is written.
        RunError: the disk fails.
    """
    assert options.search is not None and options.out is not None
    searched = read_searched(options.search, run_python=options.run_python)
    datasets = make_datasets(searched.explored, searched.base, options.splitting, options.seed)
    settings = {
        "command": COMMAND,
        "search": sha256((options.search / SEARCH_FILE).read_bytes()).hexdigest()[:16],
        "seed": options.seed,
        **{name: plain(getattr(options, name)) for name in ("split", "per_template", "evaluated", "evaluated_wrong")},
        **{name: searched.options[name] for name in INHERITED},
    }
    with RunDirectory(options.out, settings, settings):
        for name, problems in datasets.train.items():
            write_problems(_file(options.out, name), problems)
        write_problems(_file(options.out, VALIDATION), datasets.validation)
        evaluated = [datasets.test, *(datasets.thirds[bucket] for bucket in BUCKETS), datasets.base]
        for name, problems in zip(EVALUATED, evaluated, strict=True):
            write_problems(_file(options.out, name), problems)
        figure = bucket_figure({name: datasets.train[f"q_{name}"] for name in BUCKETS})
        write_files(options.out, figure_files(figure, as_svg(figure)))
        results = {**data_results(searched, datasets), "seal": seal(options.out)}
        write_results(options.out / RESULTS_FILE, results)
    return results


def read_data(path: Path, *, run_python: bool = False) -> Data:
    """The sets in a directory.

    Args:
        path: what `finetune data` wrote.
        run_python: whether a suite of Python functions may be run.

    Raises:
        InputError: there are none, they are not what was written, or their suite has changed since.
    """
    settings = read_config(path)["fingerprint"]
    if settings.get("command") != COMMAND:
        raise InputError(f"{path} holds a run of {settings.get('command')!r}: give the directory of `{COMMAND}`")
    results = read_results(path / RESULTS_FILE)  # Written last: without it the sets are not complete.
    if results.get("seal") != seal(path):
        raise InputError(f"{path} is not as `robust-jax {COMMAND}` left it: run that again, into another --out")
    suite = suite_of(settings, run_python=run_python)
    if suite.digest != settings["suite_digest"]:
        raise InputError(f"the suite {settings['suite']} has changed since {path} was made: search and split it again")
    return Data(path, settings, suite)


def seal(path: Path) -> str:
    """What `results.json` keeps of the sets and of what they were made with, so that an edited file is noticed.

    Raises:
        InputError: a file is lost.
    """
    return sha256(f"{read_config(path)['fingerprint']} {_digest(path)}".encode()).hexdigest()[:16]


def data_results(searched: Searched, datasets: Datasets) -> dict[str, Any]:
    """How large everything is (C.5.1), and how difficult each bucket (Figure 19)."""
    explored = sum(map(len, searched.explored.values()))
    sets = {
        **datasets.train,
        VALIDATION: datasets.validation,
        **dict(zip(EVALUATED, [datasets.test, *datasets.thirds.values(), datasets.base], strict=True)),
    }
    return {
        "kind": COMMAND,
        "explored": explored,
        "wrong": sum(not row.was_correct for rows in searched.explored.values() for row in rows),
        "without_reply": searched.without_reply,
        "without_difficulty": datasets.without_difficulty,
        "templates": len(searched.explored) - len(datasets.discarded),
        "discarded": list(datasets.discarded),
        "pool": len(datasets.pool),
        "sets": {
            name: {
                "problems": len(problems),
                "templates": len(templates_of(problems)),
                "wrong": sum(not problem.was_correct for problem in problems),
            }
            for name, problems in sets.items()
        },
        "difficulty": {name: _spread(datasets.train[f"q_{name}"]) for name in BUCKETS},
    }


def _spread(problems: list[Problem]) -> dict[str, float]:
    """Least, quartiles and largest difficulty."""
    values = [problem.difficulty for problem in problems if problem.difficulty is not None]
    names = ("least", "lower_quartile", "median", "upper_quartile", "largest")
    return dict(zip(names, np.quantile(values, [0, 0.25, 0.5, 0.75, 1]).tolist(), strict=True))


def _digest(path: Path) -> str:
    names = [*TRAIN_SETS, VALIDATION, *EVALUATED]
    try:
        return sha256(b"".join(_file(path, name).read_bytes() for name in names)).hexdigest()[:16]
    except OSError as error:
        raise InputError(
            f"{error.filename} cannot be read ({error.strerror}): run `robust-jax {COMMAND}` again"
        ) from None


def _file(path: Path, name: str) -> Path:
    return path / ("train" if name in TRAIN_SETS else "") / f"{name}.jsonl"
