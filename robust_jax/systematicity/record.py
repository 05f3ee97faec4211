"""tasks.jsonl: every variation of a run, one a line, from which its figures are computed without making tasks anew."""

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from robust_jax.runs import intact, json_text, keeping, plain, read_finished_file, write_atomically
from robust_jax.systematicity.exam import Asked
from robust_jax.systematicity.replies import answers_text

TASKS_FILE = "tasks.jsonl"


class VariationRecord(NamedTuple):
    """One variation as a line of tasks.jsonl."""

    item: str
    """Id of the task."""
    family: str
    parameters: dict[str, Any]
    """The family's settings."""
    arm: str
    """`original`, or the kind of variation."""
    variation: str
    """Key of the variation within its task."""
    rule: str
    """The hidden rule."""
    transformation: dict[str, Any]
    """What made the variation of the task as it was generated: the two orders and the change."""
    prompt: dict[str, str]
    """System and user message."""
    schema: dict[str, Any]
    """JSON schema of a reply."""
    gold: str
    """The right answers, as JSON."""


def record(asked: Asked) -> VariationRecord:
    """A variation as it is kept."""
    task = asked.variation.task
    return VariationRecord(
        item=asked.item,
        family=task.family,
        parameters=_as_dictionary(task.parameters),
        arm=asked.arm,
        variation=asked.variation.key,
        rule=str(task.rule),
        transformation=_as_dictionary(asked.variation.transformation),
        prompt={message.role: message.content for message in asked.prompt.messages},
        schema=_as_dictionary(asked.prompt.schema),
        gold=answers_text(asked.family, task.answers),
    )


def _as_dictionary(value: object) -> dict[str, Any]:
    dictionary = plain(value)
    assert isinstance(dictionary, dict)
    return dictionary


def as_lines(records: Iterable[VariationRecord]) -> str:
    """The content of tasks.jsonl."""
    return "".join(json_text(one._asdict()) + "\n" for one in records)


def digest(lines: str) -> str:
    """What tells these tasks from others, such as those that another version makes of the same options."""
    return sha256(lines.encode()).hexdigest()[:16]


def write_tasks(path: Path, lines: str) -> None:
    """Write the file, whole or not at all; its folder is made.

    Raises:
        RunError: the disk fails.
    """
    with keeping(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, lines.encode())


def read_tasks(path: Path, expected: str) -> Sequence[VariationRecord]:
    """The variations of a run.

    Args:
        path: of the file.
        expected: the digest of its content.

    Raises:
        InputError: the file is missing or damaged.
    """
    with intact(path):
        lines = read_finished_file(path)
        if digest(lines) != expected:
            raise ValueError("not what was written")
        return [VariationRecord(**json.loads(line)) for line in lines.splitlines()]
