"""Asking, grading and keeping: a block is answered whole or read back whole."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from robust_jax.evaluation import (
    EMBEDDING,
    HIDDEN,
    INPUT_STATISTICS,
    OUTPUT_STATISTICS,
    Examiner,
    TemplateExam,
    TemplateQuestion,
)
from robust_jax.lpds.space import TemplateSpace
from robust_jax.problems import load_suite
from robust_jax.runs import RunDirectory
from robust_jax.search import random_points
from robust_jax.types import Response, Sampling
from tests.lpds.fragile import SUITE, WIDTH, Fragile


class Scripted(Fragile):
    """Gives the replies it is handed."""

    def __init__(self, replies: Sequence[Response]) -> None:
        super().__init__()
        self.replies = list(replies)

    def respond(self, prompts, sampling, features, on_reply=None):  # type: ignore[no-untyped-def]
        return self.replies


@pytest.fixture
def examiner(tmp_path: Path) -> Examiner[TemplateQuestion]:
    path = tmp_path / "adding.yaml"
    path.write_text(SUITE)
    run = RunDirectory(tmp_path / "run", {}, {})
    exam = TemplateExam(load_suite(str(path)), shots=0)
    return Examiner(Fragile(), exam, run, Sampling(max_tokens=9), 0, (1, 2), input_statistics=True)


def questions(examiner: Examiner[TemplateQuestion], count: int, arm: str = "measure") -> list[TemplateQuestion]:
    template = examiner.exam.suite.templates[1]
    points = random_points(TemplateSpace(template), count, seed=0, name="test")
    return [TemplateQuestion(arm, template.fill(point)) for point in points]


def test_a_block_is_read_back_as_it_was_answered(examiner: Examiner[TemplateQuestion]) -> None:
    asked = questions(examiner, 7)
    first = examiner.ask("block", asked)
    assert examiner.model.asked == 7
    again = examiner.ask("block", asked)
    assert examiner.model.asked == 7
    assert again.samples == first.samples
    assert first.features.keys() == {HIDDEN, EMBEDDING, OUTPUT_STATISTICS, INPUT_STATISTICS}
    assert first.features[HIDDEN].shape == (7, 2, WIDTH)
    for name, array in first.features.items():
        np.testing.assert_array_equal(again.features[name], array)


def test_a_block_with_anything_missing_is_answered_whole(examiner: Examiner[TemplateQuestion]) -> None:
    asked = questions(examiner, 7)
    examiner.ask("block", asked[:3])
    examiner.ask("block", asked)
    assert examiner.model.asked == 10


def test_progress_counts_every_reply_once_asked_or_kept(examiner: Examiner[TemplateQuestion]) -> None:
    for _ in range(2):
        steps: list[int] = []
        examiner.ask("block", questions(examiner, 5), steps.append)
        assert sum(steps) == 5


def test_right_and_wrong_follow_from_the_exact_answer(examiner: Examiner[TemplateQuestion]) -> None:
    for sample in examiner.ask("block", questions(examiner, 40)).samples:
        a, b = Fragile.numbers(sample.question)
        assert sample.is_correct == (a * b <= 1800)
        assert sample.status == "ok"
        assert sample.gold == str(a + b)


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (Response(" no idea at all"), "unparsed"),
        (Response(" 3 + 4 = 7 and so", finish_reason="length"), "truncated"),
        (Response("", finish_reason="error", message="no answer"), "error"),
        (Response("", finish_reason="context", message="too long"), "skipped"),
        (Response("", hidden=None), "unparsed"),
    ],
)
def test_a_reply_without_an_answer_keeps_its_status(
    examiner: Examiner[TemplateQuestion], reply: Response, status: str
) -> None:
    (sample,) = replace(examiner, model=Scripted([reply])).ask("block", questions(examiner, 1)).samples
    assert sample.status == status
    assert sample.score == 0
    assert sample.counts == (status not in ("error", "skipped"))


def test_nothing_but_text_is_kept_where_nothing_else_is_wanted(examiner: Examiner[TemplateQuestion]) -> None:
    texts_only = replace(examiner, layers=(), statistics=False, input_statistics=False, embeddings=False)
    asked = questions(examiner, 3)
    first = texts_only.ask("block", asked)
    assert first.features == {}
    assert texts_only.ask("block", asked) == first
    assert examiner.model.asked == 3


def test_no_questions_no_answers(examiner: Examiner[TemplateQuestion]) -> None:
    assert examiner.ask("block", []) == ([], {})
