"""What a finished `lpds search` has explored, read from its run directory: the raw material of training."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from robust_jax.errors import InputError
from robust_jax.finetune.problem import Problem
from robust_jax.problems import load_suite
from robust_jax.runs import FinishedRun, intact, read_config
from robust_jax.types import Point, Sample, Suite, Template, Value, Variation

SEARCH_FILE = "search.jsonl"
EXPLORED, BASE = "beam", "base"
"""Arms of the search: what it explored, and the original problems."""
COMMAND = "lpds search"
INHERITED = (
    "suite",
    "suite_digest",
    "grid_values",
    "model",
    "model_digest",
    "shots",
    "shots_as",
    "system",
    "chat_template",
    "max_tokens",
    "extract",
    "difficulty",
)
"""Options of the search that hold for everything made of it."""


@dataclass(frozen=True)
class Searched:
    """The problems of a search with the replies' grades."""

    options: Mapping[str, Any]
    """The options that the search was made with."""
    suite: Suite
    explored: dict[str, list[Problem]]
    """By template, in the order of the search, the original problems left out."""
    base: list[Problem]
    """The original problems."""
    without_reply: int = field(default=0)
    """Explored variations that got no reply; they are in no list."""


def read_searched(path: Path, *, run_python: bool = False) -> Searched:
    """What a search has explored, every variation written out with its worked solution.

    Args:
        path: the search's run directory.
        run_python: whether a suite of Python functions may be run again.

    Raises:
        InputError: the directory holds no finished search or not all of it, its suite has changed since, or nothing
            in it has a difficulty.
    """
    command = read_config(path)["fingerprint"].get("command")
    if command != COMMAND:
        raise InputError(f"{path} holds a run of {command!r}: give the directory of an `{COMMAND}`")
    run = FinishedRun(path)
    options = run.options
    if missing := sorted(set(INHERITED) - options.keys()):
        raise InputError(f"{path} was made by another version ({missing[0]} is missing): search again")
    suite = suite_of(options, run_python=run_python)
    if suite.digest != options["suite_digest"]:
        raise InputError(f"the suite {options['suite']} has changed since {path} searched it: search again")
    difficulties = _difficulties(path)
    samples = run.samples
    writers = {template.id: Writer(template) for template in suite.templates}
    explored: dict[str, list[Problem]] = {}
    without_reply = 0
    for (template, key), difficulty in difficulties.items():
        sample = samples.get((EXPLORED, template, key, 0))
        if sample is None or template not in writers:
            raise InputError(f"{path} has lost the reply to {key} of {template}: run its command again")
        if not sample.counts:
            without_reply += 1
            continue
        if not writers[template].is_base(sample):
            problem = writers[template].problem(sample, difficulty)
            explored.setdefault(template, []).append(problem)
    base = [writers[s.item].problem(s, None) for s in samples.by_arm(BASE) if s.counts and s.item in writers]
    return Searched(options, suite, explored, base, without_reply)


def suite_of(options: Mapping[str, Any], *, run_python: bool) -> Suite:
    """The suite that a search was made of, which has checked its templates.

    Raises:
        InputError: it cannot be read any more.
    """
    return load_suite(str(options["suite"]), check=False, run_python=run_python, grid_values=options["grid_values"])


def _difficulties(path: Path) -> dict[tuple[str, str], float | None]:
    """The difficulty of everything explored, by template and key, under the last fit."""
    with intact(path / SEARCH_FILE):
        rows = [json.loads(line) for line in (path / SEARCH_FILE).read_text(encoding="utf-8").splitlines()]
        found = {(str(row["template"]), str(row["key"])): row["difficulty"] for row in rows}
    if all(value is None for value in found.values()):
        raise InputError(f"nothing in {path} has a difficulty to be ranked by: search with --difficulty MD_H")
    return found


class Writer:
    """Writes a template's variations out again from the values that samples keep as printed."""

    def __init__(self, template: Template) -> None:
        self.template = template
        self._values: list[dict[str, Value]] = [
            {str(getattr(value, "word", value)): value for value in slot.domain} for slot in template.slots
        ]
        for values, value in zip(self._values, template.base or (), strict=bool(template.base)):
            values.setdefault(str(getattr(value, "word", value)), value)
        self._base = None if template.base is None else template.key(template.base)

    def is_base(self, sample: Sample) -> bool:
        """Whether that is the original problem."""
        return sample.variation == self._base

    def problem(self, sample: Sample, difficulty: float | None) -> Problem:
        """The problem that was asked, with its worked solution.

        Raises:
            InputError: the template does not give that problem.
        """
        variation = self._variation(sample)
        if variation is None or (variation.key, variation.text) != (sample.variation, sample.question):
            raise InputError(f"template {sample.item} no longer gives {sample.variation}: search its suite again")
        return Problem.of(variation, difficulty=difficulty, was_correct=sample.is_correct)

    def _variation(self, sample: Sample) -> Variation | None:
        point: list[Value] = []
        for slot, values in zip(self.template.slots, self._values, strict=True):
            value = values.get(sample.values.get(slot.name, ""))
            if value is None:
                return None
            point.append(value)
        filled: Point = tuple(point)
        return self.template.fill(filled)
