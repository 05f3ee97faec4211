"""What holds of the tasks of every family: sound, solvable, invertible, and the same wherever they are made."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from robust_jax.errors import InputError
from robust_jax.randomness import rng
from robust_jax.systematicity.families import FAMILIES, SOLVERS, family
from robust_jax.systematicity.generation import generate_task, original, variations
from robust_jax.systematicity.mocks import LearnerModel, ideal, surface
from robust_jax.systematicity.prompts import read_prompt, task_prompt
from robust_jax.systematicity.replies import grade
from robust_jax.systematicity.rules.grammar import Grammar
from robust_jax.systematicity.task import Example, Kind, Task
from robust_jax.types import Sampling
from tests.systematicity.invariants import check_task, check_variations
from tests.systematicity.tasks import SETTINGS, VARIED, family_of, task, tasks

DIGESTS = """
from hashlib import sha256
from robust_jax.systematicity.families import FAMILIES
from robust_jax.systematicity.generation import generate_task, variations
for name, family in FAMILIES.items():
    for number in range(4):
        task = generate_task(family, family.parameters(), 3, number)
        found = [variations(family, task, kind, 4) for kind in family.kinds(family.parameters())]
        print(name, number, sha256(repr((task, found)).encode()).hexdigest())
"""


@pytest.mark.parametrize("setting", SETTINGS)
def test_tasks_are_sound(setting: str) -> None:
    for made in tasks(setting):
        check_task(made)


@pytest.mark.parametrize(("setting", "kind"), VARIED)
def test_variations_are_distinct_and_can_be_undone(setting: str, kind: Kind) -> None:
    for made in tasks(setting):
        check_variations(variations(family_of(setting), made, kind, 5), made, kind)


def run_invariants(setting: str, count: int) -> None:
    """In a process of its own, where no annotation is checked at run time: that takes ten times as long."""
    command = [sys.executable, "-m", "tests.systematicity.invariants", setting, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3_000)
    assert done.returncode == 0, done.stderr
    assert f"{count} tasks" in done.stdout


@pytest.mark.parametrize(("setting", "count"), [("grammar", 60), ("programs", 60), ("raven", 300), ("boolean", 200)])
def test_variations_of_many_tasks(setting: str, count: int) -> None:
    run_invariants(setting, count)


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_variations_of_thousands_of_tasks(setting: str) -> None:
    run_invariants(setting, 2_000)


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_prompt_says_all_and_reads_back(setting: str) -> None:
    family = family_of(setting)
    for made in tasks(setting)[:2]:
        prompt = task_prompt(family, made)
        assert read_prompt(family, prompt.messages[1].content) == (list(made.support), list(made.queries))
        assert prompt.messages[0].content.startswith(family.title + "\n")
        assert prompt.raw is not None and all(message.content in prompt.raw for message in prompt.messages)


def test_titles_tell_the_families_apart() -> None:
    assert len({family.title for family in FAMILIES.values()}) == len(FAMILIES)
    assert FAMILIES.keys() == SOLVERS.keys() == {"grammar", "raven", "programs", "boolean"}


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_ideal_learner_solves_every_variation_from_the_prompt_alone(setting: str) -> None:
    family, learner = family_of(setting), LearnerModel("ideal", ideal)
    for made in tasks(setting)[:1]:
        varied = [v.task for kind in family.kinds(made.parameters) for v in variations(family, made, kind, 4)]
        replies = learner.respond([task_prompt(family, other) for other in varied], Sampling())
        assert [grade(reply, family, other).score for reply, other in zip(replies, varied, strict=True)] == [1.0] * len(
            varied
        )


def solved_by_surface(setting: str) -> float:
    family, learner = family_of(setting), LearnerModel("surface", surface)
    made = tasks(setting)
    replies = learner.respond([task_prompt(family, other) for other in made], Sampling())
    return sum(grade(reply, family, other).score for reply, other in zip(replies, made, strict=True)) / len(made)


def test_copying_the_most_similar_example_is_not_enough_except_off_the_boundary() -> None:
    for setting in ("grammar", "raven", "programs"):
        assert solved_by_surface(setting) == 0
    assert solved_by_surface("boolean") < 0.5
    assert solved_by_surface("boolean, rest") == 1


def too_few(made: Task) -> list[Example]:
    """One example alone; of a language, all that leave out one of its functions; of a concept, one of each class."""
    if isinstance(made.rule, Grammar):
        return [example for example in made.support if made.rule.functions[0].word not in example.x]
    if made.family == "boolean":
        return list({example.y: example for example in made.support}.values())
    return list(made.support[:1])


@pytest.mark.parametrize("name", FAMILIES)
def test_examples_that_leave_the_rule_open_have_no_ideal_answer(name: str) -> None:
    assert any(SOLVERS[name](too_few(made), made.queries) is None for made in tasks(name)[:4])


def digests(hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.run(
        [sys.executable, "-c", DIGESTS], env=environment, capture_output=True, text=True, check=True, timeout=300
    ).stdout


def test_tasks_do_not_depend_on_the_hash_seed() -> None:
    first = digests("1")
    assert first.count("\n") == 4 * len(FAMILIES)
    assert digests("2") == first


@pytest.mark.parametrize("setting", ["grammar", "raven", "programs", "boolean"])
def test_a_task_does_not_depend_on_how_many_are_asked_for(setting: str) -> None:
    family = family_of(setting)
    parameters = family.parameters()
    backwards = [generate_task(family, parameters, 0, number) for number in (4, 2)]
    assert backwards == [task(setting, 4), task(setting, 2)]
    assert generate_task(family, parameters, 1, 2) != task(setting, 2)
    for kind in family.kinds(parameters):
        assert variations(family, task(setting, 2), kind, 5)[:3] == variations(family, task(setting, 2), kind, 3)


def test_what_there_is_none_of_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="nearest: grammar"):
        family("gramar")
    with pytest.raises(InputError, match="grammar-0000 has no rebinding; it has substitution, recomposition"):
        variations(FAMILIES["grammar"], task("grammar", 0), "rebinding", 2)


def test_a_family_that_finds_no_task_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    raven = FAMILIES["raven"]
    monkeypatch.setattr("robust_jax.systematicity.generation.DRAFTS", 3)
    monkeypatch.setattr(type(raven), "draft", lambda *arguments: None)
    with pytest.raises(InputError, match="--difficulty"):
        generate_task(raven, raven.parameters(), 0, 0)


def test_a_task_whose_examples_mislead_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A draft is kept only if the solver finds its answers: with a solver that never does, there is no task."""
    monkeypatch.setattr("robust_jax.systematicity.generation.DRAFTS", 20)
    for answers in (None, [], [(99, 99)]):
        monkeypatch.setitem(SOLVERS, "raven", lambda support, queries, answers=answers: answers)
        with pytest.raises(InputError):
            generate_task(FAMILIES["raven"], FAMILIES["raven"].parameters(), 0, 0)


def test_undoing_uses_the_inverse_of_the_orders() -> None:
    made = task("boolean", 0)
    order = tuple(rng(0, "test").permutation(len(made.support)).tolist())
    transformation = replace(original(made).transformation, support_order=order)
    varied = transformation.apply(made)
    assert [varied.support[i] for i in range(len(order))] == [made.support[place] for place in order]
    assert transformation.undo(varied) == made != varied
