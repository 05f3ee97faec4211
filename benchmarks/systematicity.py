"""Tasks of rule induction: seconds that a thousand of each family take, at default size, on one core.

    python benchmarks/systematicity.py              # every family; two minutes or so
    python benchmarks/systematicity.py programs     # one of them

Every task is made as a run makes it: drafted until its ideal solver finds the answers from the examples, so that the
solver's time is part of it. (That of programs runs while a draft is made, to tell whether a shorter program would do.)
Families take turns, a hundred tasks at a time: a busy machine is busy for all of them.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any
from unittest import mock

from robust_jax.systematicity.families import FAMILIES, SOLVERS
from robust_jax.systematicity.generation import generate_task, variations

TASKS = 1_000
TURN = 100
WANTED = 60.0
"""Seconds that a thousand tasks may take."""


class Stopwatch:
    """Adds up the processor time of what it wraps, and counts the calls."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)

    def wrap(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            start = time.process_time()
            try:
                return function(*arguments)
            finally:
                self.seconds[name] += time.process_time() - start
                self.calls[name] += 1

        return timed


def main(names: list[str]) -> None:
    watch = Stopwatch()
    solvers = {name: watch.wrap(f"{name} solver", SOLVERS[name]) for name in names}
    with mock.patch.dict(SOLVERS, solvers):
        for start in range(0, TASKS, TURN):
            for name in names:
                family = FAMILIES[name]
                parameters = family.parameters()
                for number in range(start, start + TURN):
                    task = watch.wrap(name, generate_task)(family, parameters, 0, number)
                    for kind in family.kinds(parameters):
                        watch.wrap(f"{name} variations", variations)(family, task, kind, 5)
    print(f"processor seconds of {TASKS:,} tasks (wanted: under {WANTED:.0f}); K = 5 variations of every kind")
    print(f"{'family':<10} {'tasks':>7} {'of which solver':>16} {'solved drafts a task':>21} {'variations':>11}")
    for name in names:
        seconds, solver, drafts = watch.seconds[name], watch.seconds[f"{name} solver"], watch.calls[f"{name} solver"]
        varied = watch.seconds[f"{name} variations"]
        print(f"{name:<10} {seconds:>7.1f} {solver:>16.1f} {drafts / TASKS:>21.2f} {varied:>11.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", choices=[*FAMILIES, []], metavar="FAMILY")
    main(parser.parse_args().families or list(FAMILIES))
