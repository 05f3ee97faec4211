"""Rates at which problems are varied and replies are graded, in processor time of one core.

    python benchmarks/problems.py [neighbours] [grading] [fillings] --rounds 5

- neighbours: valid changes of one slot per second, for every template of the bundled suites all of whose numbers are
  whole (its neighbours are listed around random fillings, slot by slot);
- grading: replies per minute, short ones and worked solutions of several hundred characters, with the answer boxed,
  behind `####`, in a sentence, or nowhere;
- fillings: random fillings with text, answer and solution per second, for every bundled suite.

The work takes turns within each round, and medians over the rounds are printed.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from statistics import median

from robust_jax.problems import grade, list_suites, load_suite
from robust_jax.problems.domains import Grid
from robust_jax.problems.template import SymbolicTemplate
from robust_jax.randomness import rng
from robust_jax.types import Grading, Response, Slot

REPLY_FORMS = (
    "{}",
    "The answer is {}.",
    "So \\boxed{{{}}} apples are left.",
    "First we add the numbers. That gives the total.\n#### {}",
    "It costs ${}.00 in total, which is what was asked for.",
    "I am not sure what is meant here.",
)


def rate(work: Callable[[], int]) -> float:
    """How many things a second some work does."""
    started = time.process_time()
    count = work()
    return count / (time.process_time() - started)


def medians(works: dict[str, Callable[[], int]], rounds: int) -> dict[str, float]:
    found: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            found[name].append(rate(work))
    return {name: median(rates) for name, rates in found.items()}


def is_whole(slot: Slot) -> bool:
    """Whether a slot holds words or whole numbers alone."""
    if isinstance(slot.domain, Grid):
        return isinstance(slot.domain.start, int) and isinstance(slot.domain.step, int)
    return all(isinstance(value, (str, int)) for value in slot.domain)


def whole_templates() -> Iterator[SymbolicTemplate]:
    for suite in list_suites():
        for template in load_suite(suite, check=False).templates:
            if isinstance(template, SymbolicTemplate) and all(map(is_whole, template.slots)):
                yield template


def neighbours(rounds: int) -> None:
    def work(template: SymbolicTemplate) -> Callable[[], int]:
        generator = rng(0, "benchmark", template.id)
        points = [template.random(generator) for _ in range(40)]
        slots = range(len(template.slots))
        return lambda: sum(1 for point in points for slot in slots for _ in template.neighbours(point, slot))

    rates = sorted(medians({template.id: work(template) for template in whole_templates()}, rounds).values())
    print(f"neighbours a second, {len(rates)} templates of whole numbers:")
    print(f"  median {median(rates):,.0f}, least {rates[0]:,.0f}, most {rates[-1]:,.0f}")


def replies() -> list[tuple[Response, int]]:
    """The forms above, and the same behind a worked solution of a bundled suite."""
    graded = []
    for suite in list_suites():
        for template in load_suite(suite, check=False).templates:
            solution = template.fill(template.random(rng(0, "replies", template.id))).trace.rpartition("####")[0]
            for number, form in enumerate(REPLY_FORMS, len(solution)):
                graded += [(Response(start + form.format(f"{number:,}")), number) for start in ("", solution)]
    return graded


def grading(rounds: int) -> None:
    graded = replies()
    rules = {"exact": Grading(), "1 % tolerance": Grading(Fraction(1, 10**6), Fraction(1, 100))}

    def work(rule: Grading) -> Callable[[], int]:
        return lambda: sum(grade(response, right, rule).score >= 0 for response, right in graded)

    length = sum(len(response.text) for response, _ in graded) / len(graded)
    print(f"replies graded a minute, {len(graded):,} replies of {length:.0f} characters on average:")
    for name, found in medians({name: work(rule) for name, rule in rules.items()}, rounds).items():
        print(f"  {name}: {60 * found:,.0f}")


def fillings(rounds: int) -> None:
    def work(name: str) -> Callable[[], int]:
        templates = load_suite(name, check=False).templates
        generator = rng(0, "fillings", name)

        def fill() -> int:
            for template in templates:
                for _ in range(20):
                    template.fill(template.random(generator))
            return 20 * len(templates)

        return fill

    print("fillings with solutions a second:")
    for name, found in medians({name: work(name) for name in list_suites()}, rounds).items():
        print(f"  {name}: {found:,.0f}")


MEASURED = {"neighbours": neighbours, "grading": grading, "fillings": fillings}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", nargs="*", choices=[*MEASURED, []])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for name in options.measured or MEASURED:
        MEASURED[name](options.rounds)
