"""Where attention goes: which text is looked at, and what a run keeps and shows of it."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from robust_jax.cli import main
from robust_jax.errors import InputError
from robust_jax.models import register_mock
from robust_jax.rrb.attention import Reading, attention_of
from robust_jax.rrb.dilution import DilutionOptions, readings, sequence_questions, solved_questions
from robust_jax.rrb.exam import ProblemExam, ProblemQuestion, last_answer_start
from robust_jax.rrb.mocks import Forgetful
from robust_jax.rrb.problem_set import Problem, ProblemSet
from robust_jax.runs import SampleStore
from robust_jax.types import Grading, Prompt, Response, TextSpan

REPLY = (
    "First.\nAnswer to problem 1: \\boxed{5}\n\nThen.\n**Answer to problem 2:** \\boxed{6}\n"
    "Last\nAnswer to problem 3: 7"
)


@pytest.mark.parametrize(
    ("reply", "count", "last"),
    [
        (REPLY, 3, "Last\nAnswer to problem 3: 7"),
        (REPLY, 2, "\nThen.\n**Answer to problem 2:** \\boxed{6}\nLast\nAnswer to problem 3: 7"),
        (REPLY, 1, REPLY),
        # An answer that is told again at the end does not begin the last problem anew.
        (
            f"{REPLY}\nAnswer to problem 2: \\boxed{{6}}\n",
            3,
            "Last\nAnswer to problem 3: 7\nAnswer to problem 2: \\boxed{6}\n",
        ),
        ("## Problem 1\n5\n## Problem 2\n6", 2, "## Problem 2\n6"),
        ("it is 5, and then 6", 2, None),
        ("Answer to problem 1: 5", 2, None),
        ("", 2, None),
    ],
)
def test_where_the_last_answer_begins(reply: str, count: int, last: str | None) -> None:
    start = last_answer_start(reply, count)
    assert (None if start is None else reply[start:]) == last


class Noting:
    """Notes the texts of the spans that it is asked about."""

    def __init__(self, before: str = "<user>") -> None:
        self.before = before
        self.asking = ""
        self.sets: list[list[str]] = []

    def prompt_text(self, prompt: Prompt) -> str:
        return f"{self.before}{prompt.messages[-1].content.strip()}<assistant>"

    def attention_mass(
        self, prompt: Prompt, reply: str, asking: Sequence[TextSpan], sets: Sequence[Sequence[TextSpan]]
    ) -> np.ndarray:
        def text(span: TextSpan) -> str:
            return (reply if span.in_reply else self.prompt_text(prompt))[span.start : span.end]

        self.asking = "".join(map(text, asking))
        self.sets = [[text(span) for span in spans] for spans in sets]
        return np.zeros((2, len(sets)), np.float32)


PROBLEMS = [Problem(f"p{number}", f"How much is {number} + 1?", number + 1) for number in range(3)]


def answered(questions: Sequence[ProblemQuestion], reply: str, path: Path) -> SampleStore:
    store = SampleStore(path)
    store.append([ProblemExam(Grading()).sample(question, Response(reply)) for question in questions])
    return store


def test_what_is_looked_at(tmp_path: Path) -> None:
    options = DilutionOptions(model="m", limit=3, most=3)
    alone = sequence_questions(PROBLEMS, 1, options)
    store = answered(alone, "Easy. \\boxed{1}", tmp_path / "samples.jsonl")
    kept = {(sample.item, sample.attempt): sample for sample in store}
    for count in (2, 3):
        for make in (sequence_questions(PROBLEMS, count, options), solved_questions(PROBLEMS, count, options, kept)):
            store.append([ProblemExam(Grading()).sample(question, Response(REPLY)) for question in make])
    found = readings(PROBLEMS, options, store)
    assert len(found) == 3 * (1 + 2 + 2)
    for reading in found:
        model = Noting()
        attention_of(model, reading)
        own, problems, reasoning = model.sets
        texts = [
            next(p.text for p in PROBLEMS if p.id == name) for name in reading.question.variation.split("\n") if name
        ]
        assert own == [reading.question.problem.text] and problems == texts
        if reading.question.arm == "alone":
            assert (model.asking, reasoning) == ("Easy. \\boxed{1}", [""])
        elif reading.question.arm.startswith("solved"):
            assert (model.asking, reasoning) == (REPLY, ["Easy. \\boxed{1}"] * len(texts) + [""])
        else:
            assert model.asking == REPLY[last_answer_start(REPLY, len(texts) + 1) :]
            assert reasoning == [REPLY[: -len(model.asking)]]


def test_a_template_that_changes_the_question_is_refused(tmp_path: Path) -> None:
    options = DilutionOptions(model="m", limit=3, most=2)
    (question, *_) = sequence_questions(PROBLEMS, 1, options)
    (sample,) = answered([question], "\\boxed{1}", tmp_path / "samples.jsonl")
    model = Noting()
    model.prompt_text = lambda prompt: prompt.messages[-1].content.upper()  # type: ignore[method-assign]
    with pytest.raises(InputError, match="chat template changes"):
        attention_of(model, Reading(question, sample, [question.problem.text]))


def test_a_run_keeps_and_shows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    masses = np.array([[0.5, 0.2, 0.1], [0.25, 0.25, 0.5]], np.float32)
    asked: list[str] = []

    class Attentive(Forgetful):
        def prompt_text(self, prompt: Prompt) -> str:
            return prompt.messages[-1].content

        def attention_mass(self, prompt: Prompt, reply: str, *spans: object) -> np.ndarray:
            asked.append(reply)
            return masses

    def register(problems: ProblemSet) -> None:
        register_mock("attentive", lambda: Attentive(problems.problems))

    monkeypatch.setattr("robust_jax.rrb.session.register_mocks", register)
    words = ["rrb", "dilute", "--model", "mock:attentive", "--limit", "4", "--most", "3", "--attention"]
    words += ["--out", str(tmp_path)]
    assert main(words) == 0
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    rows = results["attention"]
    places = [("alone", 1), ("sequence", 2), ("solved", 2), ("sequence", 3), ("solved", 3)]
    assert [(row["condition"], row["n"], row["layer"]) for row in rows] == [
        (*p, layer) for p in places for layer in (1, 2)
    ]
    for row in rows:
        parts = [row[part] for part in ("own_problem", "earlier_problems", "earlier_reasoning", "rest")]
        shares = masses[row["layer"] - 1]
        assert [part["value"] for part in parts] == pytest.approx([*shares, 1 - shares.sum()], abs=1e-6)
        assert [part["n"] for part in parts] == [4] * 4
    assert (tmp_path / "figures" / "attention.csv").read_text().count("\n") == 1 + 4
    assert len(asked) == 4 * 5
    before = (tmp_path / "results.json").read_bytes()
    assert main(words) == 0
    assert (tmp_path / "results.json").read_bytes() == before and len(asked) == 4 * 5


@pytest.mark.slow
def test_a_decoder(tmp_path: Path) -> None:
    words = ["rrb", "dilute", "--data", "grade_school", "--limit", "4", "--most", "2", "--max-tokens", "48"]
    assert main([*words, "--attention", "--out", str(tmp_path)]) == 0
    rows = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["attention"]
    assert {row["layer"] for row in rows} == {1, 2, 3, 4}
    for row in rows:
        shares = [row[part]["value"] for part in ("own_problem", "earlier_problems", "earlier_reasoning", "rest")]
        if row["condition"] == "alone":
            assert shares[0] > 0 and shares[1:3] == [0, 0]
        if row["condition"] == "solved":
            assert min(shares) > 0


def test_a_stand_in_cannot_tell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["rrb", "dilute", "--model", "mock:forgetful", "--attention", "--out", str(tmp_path / "x")]
    assert main(words) == 2
    assert "--attention: mock:forgetful cannot tell" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
