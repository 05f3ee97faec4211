"""training.jsonl: what every step and every validation told, a JSON object a line, in the order of the steps."""

import json
from collections.abc import Mapping
from pathlib import Path

from robust_jax.errors import InputError
from robust_jax.runs import json_text, keeping, write_atomically

LOG_FILE = "training.jsonl"

Line = dict[str, int | float]
"""`step` with `loss`, `rate`, `gradient_norm`, `tokens_per_second`, or with `validation` accuracy."""


class TrainingLog:
    """The log of one run directory; a resumed run goes on behind the step that it resumes from.

    Raises:
        InputError: what is there is no log.
    """

    def __init__(self, run: Path, step: int) -> None:
        self.path = run / LOG_FILE
        self.lines: list[Line] = [line for line in _read(self.path) if line["step"] <= step]

    def note(self, step: int, values: Mapping[str, float]) -> None:
        """Note what a step told."""
        self.lines.append({"step": step, **values})

    def column(self, name: str) -> list[tuple[int, float]]:
        """The steps that have a figure, with it."""
        return [(int(line["step"]), line[name]) for line in self.lines if name in line]

    def write(self) -> None:
        """Write everything noted so far; before a checkpoint, which the lines up to it are then as safe as.

        Raises:
            RunError: the disk fails; an earlier file stays as it was.
        """
        text = "".join(json_text(line) + "\n" for line in self.lines)
        with keeping(self.path.parent):
            write_atomically(self.path, text.encode())


def _read(path: Path) -> list[Line]:
    if not path.exists():
        return []
    try:
        lines: list[Line] = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        if all(isinstance(line["step"], int) for line in lines):
            return lines
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    raise InputError(f"{path} is damaged: train again, into another --out")
