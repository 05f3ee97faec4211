"""Having a model solve sets of problems, by the engine and the grading of everything else in this project."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from robust_jax.analysis.intervals import Interval, bootstrap
from robust_jax.evaluation import Examiner, TemplateExam, TemplateQuestion
from robust_jax.finetune.data import Data
from robust_jax.finetune.options import ModelRunOptions
from robust_jax.finetune.problem import Problem
from robust_jax.problems import STOP
from robust_jax.randomness import rng
from robust_jax.runs import Progress, RunDirectory
from robust_jax.types import Model, Sample, Sampling

BLOCK = 512
"""Problems that are asked, and kept, together."""

Tally = dict[str, tuple[int, int, int | None]]
"""By template: answers that count, how many of them are right, and how many the searched model had right; the last is
None where it was asked otherwise."""


def ask_all(
    model: Model, data: Data, options: ModelRunOptions, run: RunDirectory, sets: Mapping[str, Sequence[Problem]]
) -> dict[str, list[Sample]]:
    """The model's graded replies to several sets, as `ask` gives them, with a display of how far they have come."""
    with Progress("evaluation", sum(map(len, sets.values())) * options.attempts) as progress:
        return {
            name: ask(model, data, options, run, name, problems, progress.advance) for name, problems in sets.items()
        }


def ask(
    model: Model,
    data: Data,
    options: ModelRunOptions,
    run: RunDirectory,
    arm: str,
    problems: Sequence[Problem],
    on_reply: Callable[[int], None] | None = None,
) -> list[Sample]:
    """The model's graded replies to a set; what the run directory keeps is not asked again.

    Args:
        arm: what their replies are kept under.
        on_reply: told how many replies have come in.

    Raises:
        RunError: the disk fails; finished blocks are kept.
    """
    examiner = Examiner(
        model=model,
        exam=TemplateExam(data.suite, shots(data, options), data.settings["extract"]),
        run=run,
        sampling=Sampling(max_tokens=max_tokens(data, options), temperature=options.temperature, stop=STOP),
        seed=options.seed,
        statistics=False,
        embeddings=False,
    )
    questions = [
        TemplateQuestion(arm, problem.variation, attempt) for problem in problems for attempt in range(options.attempts)
    ]
    blocks = [questions[start : start + BLOCK] for start in range(0, len(questions), BLOCK)]
    return [
        sample
        for number, block in enumerate(blocks)
        for sample in examiner.ask(f"{arm}-{number:03d}", block, on_reply).samples
    ]


def shots(data: Data, options: ModelRunOptions) -> int:
    """Worked examples before each problem: as asked for, or as in the search."""
    return int(data.settings["shots"]) if options.shots is None else options.shots


def max_tokens(data: Data, options: ModelRunOptions) -> int:
    """Longest reply: as asked for, or as in the search."""
    return int(data.settings["max_tokens"]) if options.max_tokens is None else options.max_tokens


def accuracy(samples: Sequence[Sample]) -> float:
    """Share of right answers among those that count; 0 where none counts."""
    counted = [sample.is_correct for sample in samples if sample.counts]
    return sum(counted) / max(1, len(counted))


def tally(samples: Sequence[Sample], problems: Sequence[Problem], *, has_before: bool) -> Tally:
    """Right answers by template, beside those of the searched model.

    Args:
        problems: what the samples answer.
        has_before: whether the searched model answered them under the same conditions as this one.
    """
    before = {problem.identity: problem.was_correct for problem in problems}
    counted: Tally = {}
    for sample in samples:
        if sample.counts:
            n, right, was_right = counted.get(sample.item, (0, 0, 0 if has_before else None))
            had = None if was_right is None else was_right + before[sample.item, sample.variation]
            counted[sample.item] = (n + 1, right + sample.is_correct, had)
    return counted


def pooled(tallies: Sequence[Tally]) -> Tally:
    """Several runs' tallies as one: the same templates' answers together."""
    joined: Tally = {}
    for one in tallies:
        for item, (n, right, had) in one.items():
            n_before, right_before, had_before = joined.get(item, (0, 0, 0))
            both = None if had is None or had_before is None else had + had_before
            joined[item] = (n + n_before, right + right_before, both)
    return joined


def share_right(counted: Tally, seed: int, name: str) -> Interval:
    """Accuracy over all answers, with a bootstrap interval over templates."""
    n, right = (np.array([row[column] for row in counted.values()], float) for column in (0, 1))
    return bootstrap(_share, right, n, generator=rng(seed, "bootstrap", "accuracy", name))


def change(counted: Tally, seed: int, name: str) -> Interval | None:
    """Accuracy after minus before, paired by problem, with a bootstrap interval over templates."""
    if any(row[2] is None for row in counted.values()):
        return None
    n, right, had = (np.array([row[column] for row in counted.values()], float) for column in (0, 1, 2))
    return bootstrap(_share, right - had, n, generator=rng(seed, "bootstrap", "change", name))


def difference(first: Tally, second: Tally, seed: int, name: str) -> Interval:
    """Accuracy of one model minus that of another on the same problems, with a bootstrap interval over templates."""
    items = [item for item in first if item in second]
    columns = [np.array([one[item][column] for item in items], float) for one in (first, second) for column in (1, 0)]

    def shares_apart(right: np.ndarray, n: np.ndarray, other_right: np.ndarray, other_n: np.ndarray) -> np.ndarray:
        return _share(right, n) - _share(other_right, other_n)

    return bootstrap(shares_apart, *columns, generator=rng(seed, "bootstrap", "difference", name))


def _share(right: np.ndarray, n: np.ndarray) -> np.ndarray:
    share: np.ndarray = right.sum(axis=-1) / n.sum(axis=-1)
    return share
