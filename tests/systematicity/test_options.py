"""What may be asked for: settings of difficulty, kinds, and one line for everything that cannot be had."""

import json
from pathlib import Path

import pytest

from robust_jax.cli import main
from robust_jax.errors import InputError
from robust_jax.models import register_mock
from robust_jax.systematicity.exam import asked_variations
from robust_jax.systematicity.mocks import LearnerModel
from robust_jax.systematicity.options import GenerateOptions, SystematicityOptions, TaskOptions
from tests.systematicity.learners import run, tasks_of


def test_settings_reach_the_families() -> None:
    options = TaskOptions(
        difficulty=(
            "grammar.extra=8",
            "grammar.vocabulary=letters",
            "raven.features=3",
            "programs.instructions=operations",
            "boolean.constants=true",
        )
    )
    found = {chosen.family.name: chosen.parameters for chosen in options.chosen}
    assert (found["grammar"].extra, found["grammar"].vocabulary) == (8, "letters")
    assert found["raven"].features == 3
    assert found["programs"].instructions == "operations"
    assert found["boolean"].constants is True and found["boolean"].queries == "balanced"


def test_kinds_are_those_that_a_family_has() -> None:
    options = TaskOptions(kinds=("reordering", "rebinding"))
    assert {chosen.family.name: chosen.kinds for chosen in options.chosen} == {
        "grammar": ("reordering",),
        "raven": ("rebinding",),
        "programs": ("reordering",),
        "boolean": ("reordering",),
    }


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--families", "gramar"), "nearest: grammar"),
        (("--families", "raven", "raven"), "each once"),
        (("--families", "raven", "--kinds", "substitution"), "they have rebinding"),
        (("--kinds", "substitutions"), "nearest: substitution"),
        (("--families", "raven", "--difficulty", "raven.features=1"), "raven has no variations"),
        (("--families", "raven", "--difficulty", "raven.features=1", "--kinds", "rebinding"), "no variations"),
        (("--difficulty", "raven.features=4"), "1, 2 or 3"),
        (("--difficulty", "raven.features=two"), "raven.features"),
        (("--difficulty", "raven.feature=2"), "raven.features=2"),
        (("--difficulty", "ravens.features=2"), "nearest: raven"),
        (("--families", "raven", "--difficulty", "grammar.extra=8"), "no chosen family"),
        (("--difficulty", "features=2"), "FAMILY.SETTING=VALUE"),
        (("--difficulty", "raven.features"), "FAMILY.SETTING=VALUE"),
        (("--difficulty", "grammar.primitives=7"), "too few for 7 primitives"),
        (("--difficulty", "grammar.vocabulary=klingon"), "pseudowords"),
        (("--difficulty", "programs.most=9"), "programs.most"),
        (("--difficulty", "boolean.queries=some"), "balanced"),
        (("--families", "raven", "--variations", "7", "--tasks", "1"), "has 6 distinct variations by rebinding"),
        (("--tasks", "0"), "--tasks"),
        (("--variations", "0"), "--variations"),
        (("--attempts", "0"), "--attempts"),
        (("--temperature", "-1"), "--temperature"),
        (("--effort", "huge"), "high"),
        (("--variance", "best"), "unbiased"),
        (("--model", "mock:idea"), "mock:ideal"),
        (("--families", "raven", "--tasks", "1", "--prices", "nowhere.yaml"), "nowhere.yaml"),
    ],
)
def test_what_cannot_be_had_is_one_line_and_leaves_nothing(
    words: tuple[str, ...], named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    model = () if "--model" in words else ("--model", "mock:ideal")
    assert main(["systematicity", "run", "--out", str(out), *model, *words]) == 2
    message = capsys.readouterr().err
    assert named in message and message.count("\n") == 1
    assert not out.exists()


def test_a_run_needs_a_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["systematicity", "run", "--model", "mock:ideal", "--tasks", "1"]) == 2
    assert "--out" in capsys.readouterr().err


def test_tasks_do_not_depend_on_how_many_there_are_or_on_other_families() -> None:
    def variations(**options: object) -> dict[tuple[str, str], object]:
        asked = asked_variations(TaskOptions(variations=3, **options))  # type: ignore[arg-type]
        return {(one.item, one.variation.key): one.variation for one in asked}

    many = variations(families=("raven", "boolean"), tasks=6)
    assert variations(families=("boolean",), tasks=2).items() <= many.items()
    assert variations(families=("boolean", "raven"), tasks=6, limit=2).items() <= many.items()
    assert variations(families=("boolean",), tasks=6, kinds=("reordering",)).items() <= many.items()


def test_generate_writes_the_tasks_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--families", "raven", "programs", "--tasks", "2", "--variations", "3"]
    path = tmp_path / "tasks.jsonl"
    assert main(["systematicity", "generate", *words, "--out", str(path)]) == 0
    assert "16 variations" in capsys.readouterr().out
    run(tmp_path / "run", *words, "--attempts", "1")
    assert path.read_text(encoding="utf-8") == (tmp_path / "run" / "tasks.jsonl").read_text(encoding="utf-8")
    capsys.readouterr()
    assert main(["systematicity", "generate", *words]) == 0
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert shown == tasks_of(tmp_path / "run")
    assert {"item", "rule", "transformation", "prompt", "schema", "gold"} <= shown[0].keys()


def test_a_dry_run_shows_prompts_and_numbers_and_asks_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    def fail(*arguments: object, **named: object) -> list:
        raise AssertionError("a model was asked")

    model = LearnerModel("mock:silent", fail)
    register_mock("silent", lambda: model)
    words = ["--model", "mock:silent", "--dry-run", "--tasks", "2", "--variations", "3", "--attempts", "4"]
    assert main(["systematicity", "run", *words]) == 0
    shown = capsys.readouterr().out
    for family in ("grammar", "raven", "programs", "boolean"):
        assert f"{family}: 2 tasks as generated × 4 attempts" in shown
    assert "grammar: 4 variations by recomposition × 4 attempts" in shown
    replies = 4 * (4 * 2 + 4 * (3 + 1 + 2 + 2))
    assert f"In all {replies} replies" in shown and f"at most {replies * 2048:,} of replies" in shown
    assert shown.count("Queries:") == 4


def test_options_are_the_same_from_python() -> None:
    with pytest.raises(InputError, match="nearest: raven"):
        GenerateOptions(families=("ravn",))
    assert SystematicityOptions().attempts == SystematicityOptions().variations == 5
    assert SystematicityOptions(tasks=9, limit=4).count == 4
