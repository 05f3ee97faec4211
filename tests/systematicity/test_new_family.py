"""A fifth family is one file: the rest of the protocol needs no word about it."""

import sys
from pathlib import Path

import pytest

from robust_jax.systematicity import families
from robust_jax.systematicity.families import FAMILIES
from robust_jax.systematicity.mocks import LearnerModel
from tests.systematicity.invariants import check_task, check_variations
from tests.systematicity.learners import run, use

FILE = '''
"""Adding a hidden number."""

from dataclasses import dataclass

from robust_jax.systematicity.task import Draft


@dataclass(frozen=True)
class Parameters:
    largest: int = 50


@dataclass(frozen=True)
class Adding:
    number: int

    def __call__(self, x: int, /) -> int:
        return x + self.number


class SumsFamily:
    name = "sums"
    parameters = Parameters
    title = "Add the hidden number."
    answer_form = "a number"

    def kinds(self, parameters):
        return ("reordering",)

    def draft(self, parameters, deal, generator):
        inputs = generator.permutation(parameters.largest)[:8].tolist()
        return Draft(Adding(int(generator.integers(9))), tuple(inputs[:4]), tuple(inputs[4:]))

    def change(self, task, kind, generator):
        raise AssertionError("reordering is everybody's")

    def instructions(self, task):
        return "It is the same for all."

    def show_input(self, x):
        return str(x)

    def show_output(self, y):
        return str(y)

    def read_input(self, text):
        return int(text)

    def read_output(self, value):
        return value if isinstance(value, int) else None

    def output_schema(self, task):
        return {"type": "integer"}


FAMILY = SumsFamily()
'''


@pytest.fixture
def sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    (tmp_path / "sums.py").write_text(FILE, encoding="utf-8")
    monkeypatch.setattr(families, "__path__", [*families.__path__, str(tmp_path)])
    found = families._modules(families)
    assert found.keys() == {*FAMILIES, "sums"}
    monkeypatch.setitem(FAMILIES, "sums", found["sums"].FAMILY)  # type: ignore[misc]
    yield found["sums"].FAMILY
    del sys.modules[f"{families.__name__}.sums"]


def test_a_family_in_one_file_is_generated_asked_and_reported(sums, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    from robust_jax.systematicity.generation import generate_task, variations

    task = generate_task(sums, sums.parameters(), 0, 0)
    check_task(task)
    check_variations(variations(sums, task, "reordering", 4), task, "reordering")
    use(LearnerModel("mock:adder", lambda family, support, queries: [x + support[0].y - support[0].x for x in queries]))
    words = ("--families", "sums", "--difficulty", "sums.largest=30", "--tasks", "3", "--attempts", "1")
    (found,) = run(tmp_path / "run", *words, model="mock:adder")["families"]
    assert (found["family"], found["parameters"], found["metrics"]["all"]["value"]) == ("sums", {"largest": 30}, 1)
