"""Answers that are expressions: compared by meaning, in a process that can be ended."""

import json
import threading
from pathlib import Path

import pytest

from robust_jax.cli import main
from robust_jax.errors import InputError
from robust_jax.rrb.exam import ProblemExam, ProblemQuestion
from robust_jax.rrb.expressions import Judge, judge
from robust_jax.rrb.problem_set import Problem, load_problems
from robust_jax.rrb.prompts import problem_prompt
from robust_jax.types import FinishReason, Grading, Response

ROOT = Problem("p", "What is it?", r"2\sqrt{3}")


def graded(reply: str, finish: FinishReason = "stop") -> tuple[str, float, str | None]:
    question = ProblemQuestion("original", ROOT, problem_prompt(ROOT.text))
    sample = ProblemExam(Grading()).sample(question, Response(reply, finish_reason=finish))
    return sample.status, sample.score, sample.extracted


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (r"so \boxed{2\sqrt{3}}", ("ok", 1.0, r"2\sqrt{3}")),
        (r"so $\boxed{\sqrt{12}}$", ("ok", 1.0, r"\sqrt{12}")),
        (r"\boxed{1}, no, \boxed{\frac{6}{\sqrt 3}}", ("ok", 1.0, r"\frac{6}{\sqrt 3}")),
        (r"\boxed{3\sqrt{2}}", ("ok", 0.0, r"3\sqrt{2}")),
        (r"\boxed{3.4641}", ("ok", 0.0, "3.4641")),
        (r"<think>\boxed{2\sqrt{3}}</think> it is", ("unparsed", 0.0, None)),
        (r"<think>\boxed{2\sqrt{3}}", ("truncated", 0.0, None)),
        ("2√3, or 3.46", ("unparsed", 0.0, None)),
        ("I'm sorry, I can't help with that.", ("refused", 0.0, None)),
    ],
)
def test_grading(reply: str, expected: tuple[str, float, str | None]) -> None:
    assert graded(reply) == expected


def test_a_reply_that_was_cut_behind_its_box_counts() -> None:
    assert graded(r"\boxed{\sqrt{12}} which", "length") == ("ok", 1.0, r"\sqrt{12}")
    assert graded(r"that is \boxed{\sqrt{1", "length") == ("truncated", 0.0, None)
    assert graded("", "error") == ("error", 0.0, None)
    assert graded("", "context") == ("skipped", 0.0, None)


def test_what_takes_for_ever_is_ended_and_the_next_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Judge()
    assert own.same("2", "1+1") is True  # It has started.
    monkeypatch.setattr("robust_jax.rrb.expressions.SECONDS_TO_DECIDE", 0.5)
    assert own.same("1", "9^{9^{9^{9}}}+1") is None
    monkeypatch.setattr("robust_jax.rrb.expressions.SECONDS_TO_DECIDE", 5.0)
    assert own.same("2", "1+1") is True
    own._process.kill()  # type: ignore[union-attr]


def test_in_a_thread() -> None:
    found: list[bool | None] = []
    thread = threading.Thread(target=lambda: found.append(judge().same(r"\frac12", r"\frac{2}{4}")))
    thread.start()
    thread.join()
    assert found == [True]


def test_a_file_of_expressions(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    rows = [{"problem": "One.", "answer": r"$\frac{\pi}{4}$"}, {"problem": "Two.", "answer": r"\sqrt{2}"}]
    file.write_text("\n".join(map(json.dumps, [*rows, {"problem": "Three.", "answer": r"\frac{1}{2}"}])))
    assert [str(problem.answer) for problem in load_problems(str(file)).problems] == [
        r"\frac{\pi}{4}",
        r"\sqrt{2}",
        "1/2",
    ]
    out = tmp_path / "run"
    words = ["--data", str(file), "--perturbation", "word_reversal", "--model", "mock:literal", "--out", str(out)]
    assert main(["rrb", "run", *words]) == 0
    assert json.loads((out / "results.json").read_text())["original"]["value"] == 1.0
    file.write_text(json.dumps({"problem": "One.", "answer": "a lot"}))
    with pytest.raises(InputError, match="no number, and no expression in LaTeX"):
        load_problems(str(file))
