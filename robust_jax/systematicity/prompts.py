"""How a task is put to a model, and how such a prompt is read back."""

import json
from collections.abc import Mapping
from typing import Any

from robust_jax.systematicity.task import Example, Family, Task, X, Y
from robust_jax.types import Message, Prompt

ARROW = " -> "
EXAMPLES, QUERIES = "Examples:", "Queries:"
ANSWER_FORM = (
    'Reply with one JSON object of the form {{"answers": [...]}} that holds one answer for every query, in the order '
    "of the queries. Each answer is {form}."
)


def task_prompt(family: Family[X, Y], task: Task[X, Y]) -> Prompt:
    """The family's instructions as system message; the examples and queries as user message."""
    system = "\n\n".join([family.title, family.instructions(task), ANSWER_FORM.format(form=family.answer_form)])
    examples = [f"{family.show_input(example.x)}{ARROW}{family.show_output(example.y)}" for example in task.support]
    queries = [f"{number}. {family.show_input(x)}" for number, x in enumerate(task.queries, start=1)]
    user = "\n".join([EXAMPLES, *examples, "", QUERIES, *queries])
    return Prompt(
        messages=(Message("system", system), Message("user", user)),
        problem=user,
        raw=f"{system}\n\n{user}\n\nAnswer:\n",
        schema=reply_schema(family, task),
    )


def reply_schema(family: Family[X, Y], task: Task[X, Y]) -> Mapping[str, object]:
    """JSON schema of a reply: one answer a query."""
    count = len(task.queries)
    answers = {"type": "array", "items": dict(family.output_schema(task)), "minItems": count, "maxItems": count}
    return {
        "type": "object",
        "properties": {"answers": answers},
        "required": ["answers"],
        "additionalProperties": False,
    }


def read_prompt(family: Family[X, Y], user: str) -> tuple[list[Example[X, Y]], list[X]]:
    """The examples and queries that a user message shows."""
    shown, asked = user.removeprefix(EXAMPLES).split(QUERIES)
    examples = []
    for line in shown.strip().splitlines():
        x, _, y = line.partition(ARROW)
        output = family.read_output(json_value(y))
        if output is None:
            raise ValueError(f"{y!r} is no output of {family.name}")
        examples.append(Example(family.read_input(x), output))
    return examples, [family.read_input(line.partition(". ")[2]) for line in asked.strip().splitlines()]


def json_value(shown: str) -> Any:
    """An output as a reply gives it in JSON: what is written as JSON is that, anything else a string."""
    try:
        return json.loads(shown)
    except ValueError:
        return shown
