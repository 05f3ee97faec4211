"""`rrb dilute`: the design, the controls, answers matched by number, and a stand-in whose weakness must show."""

import json
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_jax.cli import main
from robust_jax.problems.grading import extract
from robust_jax.rrb.dilution import balanced_contexts
from robust_jax.rrb.exam import ProblemExam, ProblemQuestion, reply_to
from robust_jax.rrb.mocks import FORGETFUL_PERIOD
from robust_jax.rrb.problem_set import Problem
from robust_jax.rrb.prompts import several_prompt
from robust_jax.runs import SampleStore
from robust_jax.types import Grading, Response

SIZE, MOST = 12, 4
PROBLEMS = [Problem(f"p{number}", f"Text {number}.", number) for number in range(1, 8)]


@settings(deadline=None)
@given(count=st.integers(1, 7), seed=st.integers(0, 5))
def test_the_design_is_balanced(count: int, seed: int) -> None:
    contexts = balanced_contexts(PROBLEMS, count, seed)
    assert contexts == balanced_contexts(PROBLEMS, count, seed)
    for place in range(count):
        standing = Counter(context.problems[place].id for context in contexts)
        assert standing == Counter({problem.id: 1 for problem in PROBLEMS})
    assert all(len(set(context.problems)) == count for context in contexts)
    if count < len(PROBLEMS):
        longer = {context.target.id: context for context in balanced_contexts(PROBLEMS, count + 1, seed)}
        assert all(longer[context.target.id].problems[1:] == context.problems for context in contexts)


# --------------------------------------------------------------------------------------------------
# Answers are matched by number


def answer(text: str, place: int, count: int) -> str | None:
    found = extract(reply_to(text, place, count), "marked").value
    return None if found is None else str(found)


@pytest.mark.parametrize(
    ("reply", "answers"),
    [
        (
            "First …\nAnswer to problem 1: \\boxed{5}\n\nSecond …\n**Answer to problem 2:** \\boxed{6}\n"
            "Answer to problem 3: $\\boxed{7}$",
            ["5", "6", "7"],
        ),
        # The answer to the first problem, given for the third, is wrong even though it is some problem's answer.
        ("Answer to problem 1: \\boxed{5}\nAnswer to problem 3: \\boxed{5}", ["5", None, "5"]),
        ("Answer to problem 2: \\boxed{6}", [None, "6", None]),
        (
            "## Problem 1\nas in problem 3 \\boxed{5}\n## Problem 2\n\\boxed{6}\n### Problem 3:\nso \\boxed{7}",
            ["5", "6", "7"],
        ),
        ("Answer to problem 3: \\boxed{1}\n…\nAnswer to problem 3: \\boxed{7}", [None, None, "7"]),
        ("so \\boxed{5}, then \\boxed{6} and \\boxed{\\frac{7}{2}}", ["5", "6", "7/2"]),
        ("so \\boxed{5} and \\boxed{7}", [None, None, None]),
        ("<think>Answer to problem 3: \\boxed{9}</think>Answer to problem 3: \\boxed{7}", [None, None, "7"]),
        ("Answer to problem 13: \\boxed{5}", [None, None, None]),
        ("", [None, None, None]),
        ("The answers are 5, 6 and 7.", [None, None, None]),
    ],
)
def test_answers_belong_to_the_problem_they_name(reply: str, answers: list[str | None]) -> None:
    assert [answer(reply, place, 3) for place in (1, 2, 3)] == answers


@settings(deadline=None)
@given(st.lists(st.integers(0, 999), min_size=2, max_size=6), st.randoms())
def test_answers_in_any_order_are_found_by_number(values: list[int], random) -> None:
    lines = [f"Working.\nAnswer to problem {place}: \\boxed{{{value}}}" for place, value in enumerate(values, 1)]
    random.shuffle(lines)
    reply = "\n\n".join(lines)
    assert [answer(reply, place, len(values)) for place in range(1, len(values) + 1)] == [str(v) for v in values]


def test_only_the_last_problem_is_graded() -> None:
    question = ProblemQuestion("sequence 3", PROBLEMS[2], several_prompt(["a", "b", "c"]), count=3)
    exam = ProblemExam(Grading())
    right = "Answer to problem 1: \\boxed{9}\nAnswer to problem 2: \\boxed{9}\nAnswer to problem 3: \\boxed{3}"
    swapped = "Answer to problem 1: \\boxed{3}\nAnswer to problem 2: \\boxed{2}\nAnswer to problem 3: \\boxed{1}"
    assert exam.sample(question, Response(right)).score == 1
    assert exam.sample(question, Response(swapped)).score == 0
    cut = exam.sample(question, Response("Answer to problem 1: \\boxed{9}\nNow the second", finish_reason="length"))
    assert cut.status == "truncated"
    open_thinking = exam.sample(question, Response("<think>Answer to problem 3: \\boxed{3}"))
    assert open_thinking.status == "truncated"
    refusal = exam.sample(question, Response("I'm sorry, I can't help with that."))
    assert refusal.status == "refused"


# --------------------------------------------------------------------------------------------------
# A stand-in that forgets


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "forgetful"
    words = ["--model", "mock:forgetful", "--limit", str(SIZE), "--most", str(MOST), "--out", str(out)]
    assert main(["rrb", "dilute", *words]) == 0
    return out


def test_what_the_forgetful_stand_in_loses(forgetful: Path) -> None:
    results = json.loads((forgetful / "results.json").read_text(encoding="utf-8"))
    accuracy = {(row["condition"], row["n"]): row["accuracy"]["value"] for row in results["conditions"]}
    for n in range(2, MOST + 1):
        # At position n it solves the problems whose number leaves n − 1 or more over a period.
        share = Fraction(FORGETFUL_PERIOD - (n - 1), FORGETFUL_PERIOD)
        assert accuracy["sequence", n] == pytest.approx(float(share))
        assert accuracy["neutral", n] == accuracy["solved", n] == accuracy["alone", 1] == 1.0
        effects = {row["effect"]: row["change"]["value"] for row in results["effects"] if row["n"] == n}
        assert effects["length"] == effects["content"] == 0.0
        assert effects["total"] == effects["own reasoning"] == pytest.approx(float(share) - 1)


def test_controls_are_as_long_as_each_other(forgetful: Path) -> None:
    samples = SampleStore(forgetful / "samples.jsonl")
    for n in range(2, MOST + 1):
        neutral = {s.item: s for s in samples.by_arm(f"neutral {n}")}
        solved = {s.item: s for s in samples.by_arm(f"solved {n}")}
        assert neutral.keys() == solved.keys() and len(neutral) == SIZE
        for item, sample in neutral.items():
            assert abs(sample.prompt_tokens / solved[item].prompt_tokens - 1) <= 0.01
            assert sample.variation == solved[item].variation


def test_every_problem_is_graded_once_in_every_arm(forgetful: Path) -> None:
    samples = SampleStore(forgetful / "samples.jsonl")
    arms = Counter(sample.arm for sample in samples)
    assert set(arms.values()) == {SIZE}
    assert len(arms) == 1 + 3 * (MOST - 1)
    assert len({(s.arm, s.item) for s in samples}) == sum(arms.values())


def test_report(forgetful: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (forgetful / "results.json").read_bytes()
    assert main(["report", str(forgetful)]) == 0
    assert (forgetful / "results.json").read_bytes() == before
    shown = capsys.readouterr().out
    assert f"As the last of {MOST}, a problem is solved 75.0 points less often." in shown
    assert "own reasoning" in shown
    for figure in ("accuracy_on_the_last_problem", "what_hurts"):
        assert (forgetful / "figures" / f"{figure}.png").stat().st_size > 1000


def test_without_controls(tmp_path: Path) -> None:
    out = tmp_path / "x"
    words = ["--model", "mock:forgetful", "--limit", "4", "--most", "2", "--controls", "off", "--attempts", "2"]
    assert main(["rrb", "dilute", *words, "--out", str(out)]) == 0
    results = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert {row["effect"] for row in results["effects"]} == {"total"}
    assert len(SampleStore(out / "samples.jsonl")) == 4 * 2 * 2


def test_dry_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rrb", "dilute", "--dry-run", "--limit", "5", "--most", "3"]) == 0
    shown = capsys.readouterr().out
    assert "35 replies, 20 of which hang on the others" in shown
    assert "Problem 3: " in shown


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--most", "1"], "--most must be at least 2"),
        (["--limit", "3"], "a context of 4 problems needs as many"),
        (["--data", "FILE"], "holds 2 problems"),
    ],
)
def test_bad_input(words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "two.jsonl"
    file.write_text('{"problem": "a", "answer": 1}\n{"problem": "b", "answer": 2}\n')
    words = [str(file) if word == "FILE" else word for word in words]
    out = tmp_path / "x"
    assert main(["rrb", "dilute", "--model", "mock:forgetful", "--out", str(out), *words]) == 2
    said = capsys.readouterr().err
    assert message in said and said.strip().count("\n") == 0
