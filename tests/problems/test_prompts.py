"""Prompts: the exact plain form, one prefix for all problems, no example that is the tested problem."""

import logging

import pytest

from robust_jax.errors import InputError
from robust_jax.problems.prompts import INSTRUCTION, STOP, PromptForm, ShotsAs, build_prompt
from robust_jax.types import Example, Suite

SUITE = Suite(
    name="tiny",
    templates=(),
    examples=tuple(Example(f"What is {n} + 1?", f"{n} + 1 = {n + 1}\n#### {n + 1}") for n in range(3)),
)


def test_plain_form_without_examples() -> None:
    prompt = build_prompt(SUITE, "How many?", shots=0)
    assert prompt.raw == "Question: How many?\nAnswer:"
    assert prompt.problem == "How many?"


def test_plain_form_with_examples() -> None:
    raw = build_prompt(SUITE, "How many?", shots=2).raw
    assert raw == (
        "Question: What is 0 + 1?\nAnswer: 0 + 1 = 1\n#### 1\n\n"
        "Question: What is 1 + 1?\nAnswer: 1 + 1 = 2\n#### 2\n\n"
        "Question: How many?\nAnswer:"
    )


def test_a_run_on_is_cut_where_the_next_question_begins() -> None:
    raw = build_prompt(SUITE, "How many?", shots=2).raw
    assert raw is not None
    reply_and_run_on = raw.removeprefix("Question: What is 0 + 1?\nAnswer:")
    assert reply_and_run_on.split(STOP[0])[0].strip() == SUITE.examples[0].solution


def test_one_message() -> None:
    [system, user] = build_prompt(SUITE, "How many?", shots=1, form=PromptForm(system="Be brief.")).messages
    assert (system.role, system.content) == ("system", "Be brief.")
    assert user.role == "user"
    assert user.content.startswith(INSTRUCTION)
    assert user.content.endswith("Question: How many?\nAnswer:")
    assert "####" in INSTRUCTION and "step by step" in INSTRUCTION


def test_turns() -> None:
    messages = build_prompt(SUITE, "How many?", shots=2, form=PromptForm("turns")).messages
    assert [message.role for message in messages] == ["user", "assistant"] * 2 + ["user"]
    assert messages[1].content == SUITE.examples[0].solution
    assert messages[-1].content.endswith("How many?")


def test_plain_text_has_no_messages_and_begins_with_the_system_text() -> None:
    prompt = build_prompt(SUITE, "How many?", shots=1, form=PromptForm(system="Be brief.", chat=False))
    assert prompt.messages == ()
    assert prompt.raw is not None
    assert prompt.raw.startswith("Be brief.\n\nQuestion: What is 0 + 1?")
    assert prompt.raw.endswith("Question: How many?\nAnswer:")


@pytest.mark.parametrize("style", ["one", "turns"])
@pytest.mark.parametrize("shots", [0, 3])
def test_the_prefix_is_the_same_for_all_problems(style: ShotsAs, shots: int) -> None:
    prefixes = set()
    for problem in ("How many?", "What is 5 + 1?", "{}"):
        prompt = build_prompt(SUITE, problem, shots=shots, form=PromptForm(style, "S"))
        whole = "\x1f".join(message.content for message in prompt.messages)
        assert prompt.raw is not None and whole.count(problem) == prompt.raw.count(problem) == 1
        prefixes.add((whole.split(problem)[0], prompt.raw.split(problem)[0]))
    assert len(prefixes) == 1


def test_the_tested_problem_is_no_example(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        prompt = build_prompt(SUITE, "What is  0 + 1?", shots=2)
    assert prompt.raw is not None and prompt.raw.count("0 + 1?") == 1
    assert prompt.raw.startswith("Question: What is 1 + 1?")
    assert "tested problem" in caplog.text
    # Where no other example can take its place, one fewer is shown: the run must not end for it.
    all_shown = build_prompt(SUITE, "What is 0 + 1?", shots=3)
    assert all_shown.raw is not None and all_shown.raw.count("Question:") == 3


def test_problems_to_exclude_keep_one_prefix() -> None:
    excluded = ["What is 0 + 1?"]
    problems = ["What is 0 + 1?", "How many?"]
    raws = [build_prompt(SUITE, problem, shots=2, exclude_question=excluded).raw for problem in problems]
    assert len({raw.removesuffix(f"Question: {p}\nAnswer:") for raw, p in zip(raws, problems, strict=True)}) == 1  # type: ignore[union-attr]


@pytest.mark.parametrize("shots", [4, -1])
def test_too_many_shots(shots: int) -> None:
    with pytest.raises(InputError, match="3 examples"):
        build_prompt(SUITE, "How many?", shots=shots)
