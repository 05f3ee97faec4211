"""Where the attention of the last problem's answer goes, for a model that runs here: kept beside the answers."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from robust_jax.errors import InputError
from robust_jax.rrb.exam import ProblemQuestion, last_answer_start
from robust_jax.runs import Progress, RunDirectory
from robust_jax.types import AttentiveModel, Prompt, Sample, TextSpan

ATTENTION = "attention"
"""Name of the kept feature: [C, L, 3], NaN where a reply does not show where its last answer begins."""
OWN_PROBLEM, EARLIER_PROBLEMS, EARLIER_REASONING = range(3)
"""The sets of text along its last axis; what is left to 1 goes to instructions and to what the answer has written."""


class Reading(NamedTuple):
    """An answered question, and what stands in its prompt."""

    question: ProblemQuestion
    reply: Sample
    problems: Sequence[str]
    """The texts of the problems, in order, the graded one last."""
    solutions: Sequence[str] = ()
    """Those that the prompt gives for all problems but the last."""


def record_attention(model: AttentiveModel, run: RunDirectory, readings: Sequence[Reading]) -> None:
    """Keep for every answer how much attention its tokens give to each set of text, layer by layer.

    Raises:
        InputError: the model's chat template changes the text of a question.
        RunError: the disk fails; what was recorded before is kept.
    """
    together: dict[tuple[str, str], list[Reading]] = {}
    for reading in readings:
        together.setdefault((reading.question.arm, reading.question.problem.id), []).append(reading)
    with Progress("attention", len(readings)) as progress:
        for (arm, item), group in together.items():
            keys = [reading.question.key for reading in group]
            if not run.features.has_all(keys):
                rows = np.stack([attention_of(model, reading) for reading in group])
                run.features.write(item, f"{ATTENTION} {arm}", keys, {ATTENTION: rows})
            progress.advance(len(group))


def attention_of(model: AttentiveModel, reading: Reading) -> Float[np.ndarray, "L 3"]:
    """The mean attention mass that the tokens of the last answer give to each set of text, in every layer."""
    prompt, reply = reading.question.prompt, reading.reply.response
    start = last_answer_start(reply, reading.question.count)
    asking = [] if start is None else [TextSpan(True, start, len(reply))]
    written = [TextSpan(True, 0, start or 0)]
    *earlier, own = _spans(model.prompt_text(prompt), prompt, _in_order(reading))
    step = 2 if reading.solutions else 1
    solutions = earlier[1::2] if reading.solutions else []
    return model.attention_mass(prompt, reply, asking, [[own], earlier[::step], [*solutions, *written]])


def _in_order(reading: Reading) -> list[str]:
    """Problems and solutions as the prompt has them."""
    if not reading.solutions:
        return list(reading.problems)
    solved = zip(reading.problems[:-1], reading.solutions, strict=True)
    return [text for pair in solved for text in pair] + [reading.problems[-1]]


def _spans(text: str, prompt: Prompt, parts: Iterable[str]) -> list[TextSpan]:
    """Where parts of a question stand in the prompt as the model reads it; the last of them ends the question.

    Raises:
        InputError: the question does not stand in it as it was put.
    """
    question = prompt.messages[-1].content.strip()
    place = text.rfind(question)
    if place < 0:
        raise InputError("the model's chat template changes the text of questions, which --attention cannot follow")
    end = place + len(question)
    spans = []
    for part in reversed([part.strip() for part in parts]):
        end = text.rindex(part, place, end)
        spans.append(TextSpan(False, end, end + len(part)))
    return spans[::-1]
