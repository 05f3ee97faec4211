"""Asking many variations of many templates in blocks that are kept one after another."""

import math
from collections.abc import Sequence

from robust_jax.evaluation import Examiner, TemplateQuestion
from robust_jax.runs import Progress
from robust_jax.types import Point, Template

BLOCK = 128
"""Variations a template that are asked, and kept, together: all that an interruption can lose."""


def ask_in_blocks(
    examiner: Examiner[TemplateQuestion],
    arm: str,
    title: str,
    wanted: Sequence[tuple[Template, Sequence[Point]]],
    attempts: int = 1,
) -> None:
    """Have the given fillings of every template answered, `attempts` times each; all templates share the batches.

    Args:
        title: what the progress display calls it.

    Raises:
        RunError: the disk fails; every earlier block is kept.
    """
    counts = [len(points) for _, points in wanted]
    with Progress(title, sum(counts) * attempts) as progress:
        for number in range(math.ceil(max(counts) / BLOCK)):
            questions = [
                TemplateQuestion(arm, template.fill(point), attempt)
                for template, points in wanted
                for point in points[number * BLOCK : (number + 1) * BLOCK]
                for attempt in range(attempts)
            ]
            examiner.ask(f"{arm}-{number:03d}", questions, progress.advance)
