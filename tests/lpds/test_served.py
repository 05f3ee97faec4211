"""A search of a model that gives texts alone: by their distance, and with the embeddings of another one."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robust_jax.cli import main
from robust_jax.lpds.record import read_candidates
from robust_jax.types import Capabilities, FeatureRequest, Prompt, Response, Sampling
from tests.lpds.fragile import SUITE, Fragile
from tests.lpds.test_failures import SMALL, results, run
from tests.models.faulty_server import FaultyServer, Request, asked, completion, random_faults, serving


class Served(Fragile):
    """Gives texts alone, as a server does."""

    name = "mock:faulty"
    capabilities = Capabilities(hidden_states=False, statistics=False, embeddings=False)
    num_layers = 0

    def respond(
        self,
        prompts: Sequence[Prompt],
        sampling: Sampling | Sequence[Sampling],
        features: FeatureRequest = FeatureRequest(),
        on_reply: Callable[[int], None] | None = None,
    ) -> list[Response]:
        assert not features.layers and not features.statistics
        replies = super().respond(prompts, sampling, features, on_reply)
        return [replace(reply, hidden=None, statistics=None) for reply in replies]

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        raise AssertionError("it has no embeddings")


def test_a_served_model_is_searched_by_its_texts_and_a_proxy_s_embeddings(tmp_path: Path) -> None:
    code, out = run(tmp_path, Served(), "--proxy", "builtin:tiny")
    assert code == 0
    found = results(out)
    assert found["settings"]["difficulty"] == "LD_min"
    assert {"LD_min", "MD_E"} == set(found["auc"])
    neighbours = [row for row in read_candidates(out) if row.origin == "neighbour"]
    assert neighbours and all(row.cheap is not None and row.cheap > 0 for row in neighbours)


def test_a_request_that_failed_for_good_is_neither_wrong_nor_difficult(tmp_path: Path) -> None:
    class Failing(Served):
        def respond(self, *asked: Any, **more: Any) -> list[Response]:
            replies = super().respond(*asked, **more)
            numbers = [self.numbers(prompt.problem) for prompt in asked[0]]
            failed = Response("", finish_reason="error", message="broken")
            return [failed if a % 5 == 0 else reply for (a, _), reply in zip(numbers, replies, strict=True)]

    code, out = run(tmp_path, Failing(), "--proxy", "builtin:tiny")
    assert code == 0
    failed = results(out)["counts"]["beam"]["error"]
    assert failed == sum(row.difficulty is None for row in read_candidates(out)) > 0
    assert all(point < 1.0 for point in results(out)["search_curves"]["max_difficulty"])


def test_a_served_model_without_a_proxy_is_told_of_it_and_can_do_without(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = run(tmp_path, Served())
    assert code == 2
    assert "--proxy" in capsys.readouterr().err
    assert not out.exists()
    code, out = run(tmp_path, Served(), "--select", "1")
    assert code == 0
    assert all(row.origin != "neighbour" and row.cheap is None for row in read_candidates(out))
    code, _ = run(tmp_path, Served(), "--difficulty", "MD_H", "--select", "1")
    assert code == 2
    assert "LD_min" in capsys.readouterr().err


def reply(request: Request) -> dict[str, Any]:
    """The sum of the problem's numbers, ten too large where they are large."""
    numbers = [int(number) for number in re.findall(r"\d+", asked(request))]
    if len(numbers) < 2:
        return completion("Hello.")
    a, b = numbers[-2:]
    total = a + b + (10 if a * b > 1800 else 0)
    return completion(f"There are {a} + {b} = {total}.\n#### {total}")


def test_a_search_over_http_with_failing_requests_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("robust_jax.models.remote_pool.FIRST_PAUSE", 0.001)
    (tmp_path / "suite.yaml").write_text(SUITE)
    words = ["lpds", "search", "--suite", str(tmp_path / "suite.yaml"), "--model", "openai:m", "--shots", "0"]
    words += ["--proxy", "builtin:tiny", "--retries", "20", *SMALL, "--out", str(tmp_path / "run")]
    fault = random_faults(0.1, kinds=("500", "drop", "not JSON"))
    with serving(FaultyServer(reply=reply, fault=fault)) as server:
        assert main([*words, "--base-url", server.url]) == 0
        first = (tmp_path / "run" / "results.json").read_bytes()
        lines = (tmp_path / "run" / "samples.jsonl").read_text().splitlines(keepends=True)
        (tmp_path / "run" / "samples.jsonl").write_text("".join(lines[:-20]))
        (tmp_path / "run" / "results.json").unlink()
        before = sum(server.answered.values())
        assert main([*words, "--base-url", server.url]) == 0
        assert sum(server.answered.values()) == before + 20
    assert (tmp_path / "run" / "results.json").read_bytes() == first
    assert all(row["beam_error"] is not None for row in results(tmp_path / "run")["templates"])
