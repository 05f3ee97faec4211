"""The command line as a user meets it: help, browsing, and one line where something is wrong."""

from pathlib import Path

import pytest

from robust_jax.cli import COMMANDS, main

FAULTY = """
name: faulty
description: One template with a fault.
grading: exact
templates:
  - id: apples
    question: "{n} apples and {m} more. How many apples?"
    solution: |-
      SOLUTION
    slots:
      n: {range: [2, 9]}
      m: {range: [2, 9]}
    constraints: [CONSTRAINT]
    answer: ANSWER
"""


def faulty(
    tmp_path: Path, *, solution: str = "{n} + {m} = {n + m}", constraint: str = "n > 0", answer: str = "n + m"
) -> str:
    path = tmp_path / "faulty.yaml"
    text = FAULTY.replace("SOLUTION", f"{solution}\n      #### {{{answer}}}")
    path.write_text(text.replace("CONSTRAINT", constraint).replace("ANSWER", answer))
    return str(path)


def test_no_words_and_help_list_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["--help"]):
        assert main(words) == 0
        shown = capsys.readouterr().out
        assert all(" ".join(command.words) in shown for command in COMMANDS)


@pytest.mark.parametrize("words", [["lpds"], ["lpds", "--help"], ["lpds", "-h"]])
def test_a_noun_lists_its_verbs(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "lpds search" in shown and "rrb" not in shown


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command.words))
def test_every_command_has_help(command, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(SystemExit) as end:
        main([*command.words, "--help"])
    assert end.value.code in (0, None)
    assert "--config" in capsys.readouterr().out


def test_suites_are_listed_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["templates", "list"]) == 0
    assert "grade_school: 28 templates" in capsys.readouterr().out
    assert main(["templates", "show", "grade_school", "bus_stops", "--fillings", "2"]) == 0
    assert capsys.readouterr().out.count("####") == 2


def test_the_bundled_suite_has_no_faults(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["templates", "check", "grade_school", "--fillings", "20"]) == 0
    assert "no faults" in capsys.readouterr().out


def test_models_are_listed_and_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "list"]) == 0
    assert "builtin:tiny" in capsys.readouterr().out
    assert main(["models", "check", "builtin:tiny"]) == 0
    assert "parameters: 1,771,200" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["lpds", "serach"], "lpds search"),
        (["templates", "show", "grade_schol"], "grade_school"),
        (["templates", "show", "grade_school", "bus_stop"], "bus_stops"),
        (["models", "check", "builtin:tony"], "builtin:tiny"),
        (["report"], "at least one"),
        (["report", "nowhere"], "no run directory"),
        (["lpds", "search"], "--out"),
        (["lpds", "measure", "--variations", "0"], "--variations"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else "",
)
def test_a_mistake_is_one_line_that_names_the_remedy(
    words: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert named in message


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"solution": "{n} + {m} = {n + m + 1}"}, "apples"),
        ({"answer": "n + k"}, "'k'"),
        ({"constraint": "n > 99"}, "n > 99"),
        ({"answer": "__import__('os').getpid()"}, "apples"),
        ({"answer": "n ** n ** n ** n ** n"}, "apples"),
        ({"answer": "().__class__"}, "apples"),
    ],
    ids=str,
)
def test_a_faulty_template_is_refused_by_name(
    tmp_path: Path, change: dict[str, str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = faulty(tmp_path, **change), tmp_path / "run"
    for words in (["templates", "check", path], ["lpds", "search", "--suite", path, "--out", str(out)]):
        assert main(words) == 2
        shown = capsys.readouterr()
        assert shown.err.count("\n") == 1
        assert named in shown.err + shown.out
    assert not out.exists()


def test_the_same_template_without_a_fault_is_fine(tmp_path: Path) -> None:
    assert main(["templates", "check", faulty(tmp_path)]) == 0
