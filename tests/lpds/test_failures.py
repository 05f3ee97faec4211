"""What goes wrong with a model or a template ends in a stated result, never in a traceback or a silent gap."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robust_jax.cli import main
from robust_jax.lpds.record import read_candidates, read_references
from robust_jax.models import register_mock
from robust_jax.types import FeatureRequest, Prompt, Response, Sampling
from tests.lpds.fragile import SUITE, Fragile

SMALL = [
    *("--reference-count", "20", "--reference-attempts", "200"),
    *("--iterations", "3", "--width", "3", "--branching", "5"),
]


class Faulty(Fragile):
    """Fragile, but for some problems, told by its two numbers, the reply is another one."""

    name = "mock:faulty"

    def __init__(self, fault: Callable[[int, int, Response], Response], *, marbles_only: bool = False) -> None:
        super().__init__()
        self.fault = fault
        self.marbles_only = marbles_only

    def respond(
        self,
        prompts: Sequence[Prompt],
        sampling: Sampling | Sequence[Sampling],
        features: FeatureRequest = FeatureRequest(),
        on_reply: Callable[[int], None] | None = None,
    ) -> list[Response]:
        replies = super().respond(prompts, sampling, features, on_reply)
        return [
            reply
            if self.marbles_only and "marbles" not in prompt.problem
            else self.fault(*self.numbers(prompt.problem), reply)
            for prompt, reply in zip(prompts, replies, strict=True)
        ]


def run(tmp_path: Path, model: Fragile, *more: str, suite: str = SUITE) -> tuple[int, Path]:
    register_mock("faulty", lambda: model)
    (tmp_path / "suite.yaml").write_text(suite)
    words = ["lpds", "search", "--model", "mock:faulty", "--suite", str(tmp_path / "suite.yaml")]
    return main([*words, "--out", str(tmp_path / "run"), *SMALL, *more]), tmp_path / "run"


def results(out: Path) -> dict[str, Any]:
    return json.loads((out / "results.json").read_text())


def row_of(out: Path, item: str) -> dict[str, Any]:
    return next(row for row in results(out)["templates"] if row["id"] == item)


def not_a_number(a: int, b: int, reply: Response) -> Response:
    return replace(reply, hidden=np.full_like(reply.hidden, np.nan)) if (a + b) % 3 == 0 else reply


def test_nan_features_rank_last_join_no_references_and_are_counted(tmp_path: Path) -> None:
    more = ["--iterations", "5", "--width", "6", "--branching", "12"]
    code, out = run(tmp_path, Faulty(not_a_number), *more)
    assert code == 0
    candidates, references = read_candidates(out), read_references(out)
    unknown = [row for row in candidates if row.difficulty is None]
    assert unknown
    assert max(row.fit for row in candidates) > 0  # the goalpost moved past them
    for item, record in references.items():
        of_item = [row for row in candidates if row.template == item]
        assert not {row.key for row in of_item if row.difficulty is None} & {*record.initial, *record.added}
        last = max(row.iteration for row in of_item)
        assert all(row.difficulty is not None for row in of_item if last in row.in_beam)
    assert sum(row["explored"] for row in results(out)["templates"]) == len(candidates)


def test_a_template_without_correct_references_is_reported_and_the_others_are_searched(tmp_path: Path) -> None:
    wrong = Faulty(lambda a, b, reply: replace(reply, text="#### 7000"), marbles_only=True)
    code, out = run(tmp_path, wrong)
    assert code == 0
    assert row_of(out, "marbles")["explored"] == 0
    assert "0 distinct references" in row_of(out, "marbles")["note"]
    assert row_of(out, "stamps")["explored"] > 10
    assert "0 distinct references" in (out / "report.html").read_text()


def test_traces_stand_in_where_no_reply_is_right(tmp_path: Path) -> None:
    wrong = Faulty(lambda a, b, reply: replace(reply, text="#### 7000"))
    code, out = run(tmp_path, wrong, "--reference", "trace")
    assert code == 0
    assert all(row["explored"] > 10 and row["random_error"] == 1.0 for row in results(out)["templates"])


def test_a_template_with_fewer_fillings_than_branches_is_searched_to_its_end(tmp_path: Path) -> None:
    before, _, after = SUITE.rpartition("a: {range: [2, 60]}\n      b: {range: [2, 60]}")
    tiny = f"{before}a: {{range: [2, 7]}}\n      b: {{range: [2, 7]}}{after}"
    code, out = run(tmp_path, Fragile(), "--branching", "40", "--width", "2", suite=tiny)
    assert code == 0
    references = len(read_references(out)["stamps"].initial)
    explored = [row for row in read_candidates(out) if row.template == "stamps"]
    assert len(explored) == 36 - references
    assert row_of(out, "stamps")["explored"] == 36 - references


def test_a_model_that_always_answers_the_same_is_left_out_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    same = Faulty(lambda a, b, reply: replace(reply, text="#### 20", hidden=np.ones_like(reply.hidden)))
    code, _ = run(tmp_path, same)
    assert code == 1
    assert "no template has enough correct replies" in capsys.readouterr().err
    (tmp_path / "other").mkdir()
    more = ["--difficulty", "LD_min", "--reference-attempts", "3000", "--references", "paper"]
    code, out = run(tmp_path / "other", same, *more)
    assert code == 0
    assert all(row["beam_error"] > 0.8 for row in results(out)["templates"])


def test_an_empty_answer_is_wrong_and_ranks_last(tmp_path: Path) -> None:
    def silent(a: int, b: int, reply: Response) -> Response:
        nothing = np.full_like(reply.hidden, np.nan)
        return replace(reply, text="", token_ids=(), hidden=nothing) if a % 4 == 0 else reply

    code, out = run(tmp_path, Faulty(silent))
    assert code == 0
    empty = [row for row in read_candidates(out) if row.difficulty is None]
    assert empty
    statuses = results(out)["counts"]["beam"]
    assert statuses["unparsed"] == len(empty)
