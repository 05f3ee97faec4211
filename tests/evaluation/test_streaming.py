"""A model behind a server, asked by the examiner: every reply is kept as it comes, and nothing is asked twice."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from robust_jax.errors import RunError
from robust_jax.evaluation import Examiner
from robust_jax.models import load_model
from robust_jax.problems.grading import grade
from robust_jax.runs import Key, RunDirectory, SampleStore
from robust_jax.types import Grading, Message, Prompt, Response, Sample, Sampling, ServerSettings
from tests.models.faulty_server import FAULTS, FaultyServer, Request, asked, completion, random_faults, serving


@dataclass(frozen=True)
class Sum:
    """What is one more than a number?"""

    number: int
    attempt: int = 0

    @property
    def key(self) -> Key:
        return ("sums", f"item {self.number % 7}", str(self.number), self.attempt)


class Sums:
    def prompt(self, question: Sum) -> Prompt:
        return Prompt((Message("user", f"number {question.number} attempt {question.attempt}"),))

    def sample(self, question: Sum, response: Response) -> Sample:
        result = grade(response, question.number + 1, Grading())
        return Sample(
            *question.key,
            values={},
            question=str(question.number),
            gold=str(question.number + 1),
            response=response.text,
            extracted=None if result.value is None else str(result.value),
            rule=result.rule,
            status=result.status,
            score=result.score,
            finish_reason=response.finish_reason,
            prompt_tokens=response.prompt_tokens,
            completion_tokens=response.num_tokens,
        )


def number_in(request: Request) -> int:
    """What is asked about; −1 for what finds out what the server can do."""
    words = asked(request).split()
    return int(words[1]) if words[0] == "number" else -1


def right(request: Request) -> Request:
    return completion(f"#### {number_in(request) + 1}", reasoning_content=f"about {asked(request)}")


def examiner_at(server: FaultyServer, run: RunDirectory, **settings: object) -> Examiner[Sum]:
    model = load_model("openai:m", server=ServerSettings(base_url=server.url, **settings))  # type: ignore[arg-type]
    return Examiner(model, Sums(), run, Sampling(), seed=0, statistics=False)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path / "run", {}, {})


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robust_jax.models.remote_pool.FIRST_PAUSE", 0.001)


def test_a_thousand_attempts_with_three_of_ten_requests_failing(run: RunDirectory) -> None:
    questions = [Sum(number, attempt) for number in range(250) for attempt in range(4)]
    # Hanging requests take their time, so that they are few among the faults.
    quick_faults = [fault for fault in FAULTS if fault not in ("hang", "slow", "429 with a date")]
    kinds = (*FAULTS, *quick_faults * 5)
    with serving(FaultyServer(reply=right, fault=random_faults(0.3, kinds=kinds))) as server:
        examiner = examiner_at(server, run, concurrency=32, retries=50, request_timeout=3.0)
        steps: list[int] = []
        answers = examiner.ask("all", questions, steps.append)
        failed = len(server.requests) - 1000
    assert 300 < failed < 600  # 0.3 / 0.7 of a thousand.
    assert sum(steps) == 1000
    lines = [json.loads(line) for line in (run.path / "samples.jsonl").read_text().splitlines()]
    keys = Counter((line["arm"], line["item"], line["variation"], line["attempt"]) for line in lines)
    assert keys == Counter(question.key for question in questions)
    assert [sample.is_correct for sample in answers.samples] == [True] * 1000
    assert answers.samples[5].reasoning == "about number 1 attempt 1"


def test_only_what_is_missing_or_failed_is_asked_again(run: RunDirectory) -> None:
    questions = [Sum(number) for number in range(40)]

    def fault(request: Request, number: int) -> str:
        return "400 not this one" if number_in(request) in (3, 7) and number == 0 else ""

    with serving(FaultyServer(reply=right, fault=fault)) as server:
        examiner = examiner_at(server, run)
        examiner.ask("some", questions[:20])
        assert [s.status for s in run.samples if s.variation in ("3", "7")] == ["error", "error"]
        assert not any(s.counts for s in run.samples if s.variation in ("3", "7"))
        assert "not this one" in next(s.message for s in run.samples if s.variation == "3")
        answers = examiner.ask("all", questions)
        assert len(server.requests) == 42
        assert [sample.status for sample in answers.samples] == ["ok"] * 40
        examiner.ask("all", questions)
        assert len(server.requests) == 42
    assert len(SampleStore(run.path / "samples.jsonl")) == 40


def test_a_dead_server_leaves_what_came(run: RunDirectory) -> None:
    questions = [Sum(number) for number in range(200)]
    with serving(FaultyServer(reply=right, fault=lambda r, n: "500" if number_in(r) >= 50 else "")) as server:
        with pytest.raises(RunError, match="what came is kept"):
            examiner_at(server, run, concurrency=4, retries=1).ask("all", questions)
        kept = SampleStore(run.path / "samples.jsonl")
        assert sum(sample.status == "ok" for sample in kept) == 50
    with serving(FaultyServer(reply=right)) as server:
        answers = examiner_at(server, run).ask("all", questions)
        assert len(server.requests) == 150
    assert all(sample.is_correct for sample in answers.samples)


def test_nothing_left_to_ask_needs_no_server(run: RunDirectory) -> None:
    questions = [Sum(number) for number in range(5)]
    with serving(FaultyServer(reply=right)) as server:
        examiner = examiner_at(server, run)
        first = examiner.ask("all", questions)
    assert examiner.ask("all", questions) == first


def test_ctrl_c_ends_soon_and_keeps_what_came(tmp_path: Path) -> None:
    def fault(request: Request, number: int) -> str:
        return "hang" if server.answered.total() >= 30 else ""

    with serving(FaultyServer(reply=lambda request: completion("\\boxed{1}"), fault=fault, hang=60.0)) as server:
        out = tmp_path / "run"
        words = ["rrb", "run", "--model", "openai:m", "--base-url", server.url, "--out", str(out)]
        words += ["--perturbation", "word_reversal", "--attempts", "3", "--concurrency", "8"]
        process = subprocess.Popen(
            [sys.executable, "-m", "robust_jax", *words],
            cwd=Path(__file__).parents[2],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
        )
        while server.at_once < 8 or server.answered.total() < 30:
            time.sleep(0.05)
            assert process.poll() is None, process.stderr.read()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)  # The requests on their way hang for longer.
    assert process.returncode == 1 and "interrupted; the same command goes on" in said
    kept = SampleStore(out / "samples.jsonl")
    assert len(kept) == server.answered.total() >= 30
    with serving(FaultyServer(reply=lambda request: completion("\\boxed{1}"))) as server:
        words[words.index("--base-url") + 1] = server.url
        subprocess.run([sys.executable, "-m", "robust_jax", *words], cwd=Path(__file__).parents[2], check=True)
        assert server.answered.total() == 39 * 2 * 3 - len(kept)
