"""Making tasks and their variations, each from (seed, purpose, item) alone, however many are asked for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robust_jax.errors import InputError
from robust_jax.randomness import rng
from robust_jax.systematicity.families import SOLVERS
from robust_jax.systematicity.task import (
    Draft,
    Example,
    Family,
    Kind,
    Parts,
    Task,
    Transformation,
    Variation,
    X,
    Y,
    make_task,
)

DRAFTS = 5_000
"""Proposals for one task after which its settings are said to allow none."""
TRIES = 20
"""So many times the number of variations found are tried in vain before a kind counts as exhausted: of variations
that are equally likely to be drawn, one more would have been missed with a chance below e⁻²⁰."""


@dataclass(frozen=True)
class TaskDeal:
    """Deals a fixed set of structures out among the tasks of one seed: each once before any comes again."""

    seed: int
    family: str
    number: int
    """Of the task."""

    def __call__(self, weights: Sequence[float]) -> int:
        """The place of this task's structure among those of the given weights.

        A round is a draw of all of them without replacement, in proportion to the weights at every draw: the order of
        exponential times of those rates. No task depends on another's.
        """
        turn, place = divmod(self.number, len(weights))
        times = rng(self.seed, "systematicity deal", self.family, turn).exponential(size=len(weights)) / weights
        return int(np.argsort(times, kind="stable")[place])


def generate_task(family: Family[X, Y], parameters: Any, seed: int, number: int) -> Task[X, Y]:
    """Task `number` of a family: the first draft whose answers its ideal solver finds from the curriculum alone.

    Raises:
        InputError: the settings allow no such task.
    """
    deal = TaskDeal(seed, family.name, number)
    generator = rng(seed, "systematicity task", family.name, number)
    for _ in range(DRAFTS):
        draft = family.draft(parameters, deal, generator)
        if draft is not None and _is_solvable(family, draft):
            support = (*draft.curriculum, *draft.extra)
            order = generator.permutation(len(support)).tolist()
            parts = Parts(draft.rule, tuple(support[place] for place in order), draft.queries)
            task = make_task(family.name, parameters, seed, number, parts)
            if task.is_sound:
                return task
    raise InputError(f"{DRAFTS:,} drafts of a {family.name} task led to none: change its --difficulty")


def _is_solvable(family: Family[X, Y], draft: Draft[X, Y]) -> bool:
    solver = SOLVERS.get(family.name)
    if solver is None:
        return True
    examples = [Example(x, draft.rule(x)) for x in draft.curriculum]
    asked = (*draft.queries, *draft.probes)
    found = solver(examples, asked)
    return found is not None and tuple(found) == tuple(map(draft.rule, asked))


def variations(family: Family[X, Y], task: Task[X, Y], kind: Kind, count: int) -> list[Variation[X, Y]]:
    """`count` distinct variations of one kind, the first of which is the task as it was generated.

    The later ones do not depend on how many are asked for.

    Raises:
        InputError: there are not so many, or the task has none of that kind.
    """
    if kind not in family.kinds(task.parameters):
        raise InputError(
            f"{task.id} has no {kind}; it has {', '.join(family.kinds(task.parameters)) or 'no variations'}"
        )
    found: list[Variation[X, Y]] = [original(task)]
    seen = {task.surface}
    draws = _draws(family, task, kind)
    while len(found) < count:
        for _ in range(TRIES * (len(found) + 1)):
            transformation = next(draws)
            varied = transformation.apply(task)
            if varied.is_sound and varied.surface not in seen:
                break
        else:
            raise InputError(
                f"{task.id} has {len(found)} distinct variations by {kind}, itself included: give --variations no more"
            )
        seen.add(varied.surface)
        found.append(Variation(kind, len(found), transformation, varied))
    return found


def original(task: Task[X, Y]) -> Variation[X, Y]:
    """The task as it was generated."""
    return Variation(None, 0, Transformation(_in_order(task.support), _in_order(task.queries)), task)


def _draws(family: Family[X, Y], task: Task[X, Y], kind: Kind) -> Iterator[Transformation[X, Y]]:
    """Random transformations of one kind without end."""
    generator = rng(task.seed, "systematicity variation", task.id, kind)
    while True:
        if kind == "reordering":
            support, queries = generator.permutation(len(task.support)), generator.permutation(len(task.queries))
            yield Transformation(tuple(support.tolist()), tuple(queries.tolist()))
        else:
            change = family.change(task, kind, generator)
            yield Transformation(_in_order(task.support), _in_order(task.queries), change)


def _in_order(items: Sequence[object]) -> tuple[int, ...]:
    return tuple(range(len(items)))
