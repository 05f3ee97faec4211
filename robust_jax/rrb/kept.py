"""What the figures of both commands are computed from: each problem's accuracy under each form of asking."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from jaxtyping import Float

from robust_jax.analysis.intervals import Interval, bootstrap, mean, mean_difference
from robust_jax.analysis.paired import mcnemar
from robust_jax.randomness import rng
from robust_jax.report.inputs import as_json
from robust_jax.report.rrb_inputs import Change, FormShown, ProblemShown
from robust_jax.runs import FinishedRun
from robust_jax.types import Sample

Column = Float[np.ndarray, " C"]
"""A number for each of C problems; NaN where there is none."""


class KeptAnswers:
    """The answers of a finished run by arm and problem.

    Args:
        run: the run.
        first: the arm that every problem was asked in.
    """

    def __init__(self, run: FinishedRun, first: str) -> None:
        self.run = run
        self.seed = int(run.options["seed"])
        self.arms = list(dict.fromkeys(sample.arm for sample in run.samples))
        self.items = list(dict.fromkeys(sample.item for sample in run.samples if sample.arm == first))
        self._by_place: dict[tuple[str, str], list[Sample]] = {}
        for sample in sorted(run.samples, key=lambda sample: sample.attempt):
            self._by_place.setdefault((sample.arm, sample.item), []).append(sample)

    def of(self, arm: str, item: str) -> list[Sample]:
        """The attempts at one problem in one form."""
        return self._by_place.get((arm, item), [])

    def accuracy(self, arm: str) -> Column:
        """Each problem's share of right answers among those that count."""
        return self._means(arm, lambda sample: sample.score)

    def reply_tokens(self, arm: str) -> Column:
        """Each problem's mean length of a reply in tokens."""
        return self._means(arm, lambda sample: float(sample.completion_tokens))

    def prompt_tokens(self, arm: str) -> Column:
        """Each problem's mean length of a prompt in tokens."""
        return self._means(arm, lambda sample: float(sample.prompt_tokens))

    def interval(self, name: str, column: Column) -> Interval:
        """The mean over problems with its interval; problems are what is drawn again."""
        return bootstrap(mean, column, generator=rng(self.seed, "bootstrap", name))

    def change(self, name: str, before: Column, after: Column) -> Change:
        """How far accuracy changes on the same problems."""
        test = mcnemar(before, after)
        interval = bootstrap(mean_difference, after, before, generator=rng(self.seed, "bootstrap", name))
        return {"change": as_json(interval), "fell": test.fell, "rose": test.rose, "p": test.p}

    def shown(self) -> list[ProblemShown]:
        """Every problem in all its forms, with the first reply to each."""
        return [
            {
                "problem": item,
                "forms": [_form(sample) for arm in self.arms for sample in self.of(arm, item)[:1]],
            }
            for item in self.items
        ]

    def _means(self, arm: str, number: Callable[[Sample], float]) -> Column:
        return np.array([_mean(number(s) for s in self.of(arm, item) if s.counts) for item in self.items], float)


def _form(sample: Sample) -> FormShown:
    return {
        "form": sample.arm.replace("_", " "),
        "question": sample.question,
        "response": sample.response or sample.message,
        "gold": sample.gold,
        "extracted": sample.extracted,
        "status": sample.status,
        "correct": sample.is_correct,
    }


def mean_of(columns: Sequence[Column]) -> Column:
    """The mean of those columns that hold anything; NaN where one of them is, so that all means are over the same."""
    filled = [column for column in columns if not np.isnan(column).all()]
    return np.mean(filled or columns, axis=0)


def _mean(numbers: Iterable[float]) -> float:
    found = list(numbers)
    return float(np.mean(found)) if found else float("nan")
