"""`rrb run` on a stand-in with a known weakness: the report shows that weakness, exactly, and nothing else."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from robust_jax.cli import main
from robust_jax.rrb.mocks import Literal
from robust_jax.rrb.perturbations import THIRTEEN, Setting, find_perturbation, perturb
from robust_jax.rrb.problem_set import BUNDLED, load_problems
from robust_jax.runs import SampleStore
from robust_jax.types import Prompt, Response

SIZE = 12
"""Problems of the bundled set that are asked."""
ORCHARD = Path(__file__).parent / "orchard.yaml"


@pytest.fixture(scope="module")
def literal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "literal"
    assert main(["rrb", "run", "--model", "mock:literal", "--limit", str(SIZE), "--out", str(out)]) == 0
    return out


def results_of(directory: Path) -> dict:
    return json.loads((directory / "results.json").read_text(encoding="utf-8"))


def test_what_the_literal_stand_in_loses(literal: Path) -> None:
    results = results_of(literal)
    assert results["original"]["value"] == 1.0 and results["original"]["n"] == SIZE
    assert [row["name"] for row in results["perturbations"]] == list(THIRTEEN)
    problems = load_problems(BUNDLED).problems
    texts = {problem.text for problem in problems}
    for row in results["perturbations"]:
        # It solves what a rewriting leaves as it was, and that alone.
        perturbation = find_perturbation(row["name"])
        kept = 0
        for place, problem in enumerate(problems[:SIZE]):
            setting = Setting(problem.id, problems[(place + 1) % len(problems)].text)
            kept += perturb(problem.text, perturbation, setting).text in texts
        assert row["accuracy"]["value"] == pytest.approx(kept / SIZE)
        assert row["change"]["value"] == pytest.approx(kept / SIZE - 1)
        assert (row["fell"], row["rose"]) == (SIZE - kept, 0)
        assert row["p"] == pytest.approx(min(1, 2 * 0.5 ** (SIZE - kept)))
        assert row["p"] <= row["p_adjusted"] <= min(1, 13 * row["p"] + 1e-12)
    assert results["average"]["change"]["high"] < -0.9


def test_counts_and_categories(literal: Path) -> None:
    results = results_of(literal)
    assert results["counts"]["original"] == {"ok": SIZE}
    assert results["counts"]["rail_fence"] == {"unparsed": SIZE}
    by_category: dict[str, list[float]] = {}
    for row in results["perturbations"]:
        by_category.setdefault(row["category"], []).append(row["accuracy"]["value"])
    for row in results["categories"]:
        values = by_category[row["category"]]
        assert row["accuracy"]["value"] == pytest.approx(sum(values) / len(values))


def test_lengths_are_those_of_the_replies(literal: Path) -> None:
    results = results_of(literal)
    # `I know it. \boxed{…}` is four words, and `I see no problem. \boxed{unknown}` five.
    assert results["original_tokens"]["value"] == 4
    (grid,) = [row for row in results["perturbations"] if row["name"] == "rail_fence"]
    assert grid["tokens"]["value"] == 5


def test_report_of_a_finished_run(literal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (literal / "results.json").read_bytes()
    assert main(["report", str(literal)]) == 0
    shown = capsys.readouterr().out
    assert "points less often" in shown and "rail fence" in shown and "Attempts by status" in shown
    assert (literal / "results.json").read_bytes() == before
    for figure in ("heat_map", "accuracy_by_perturbation", "accuracy_by_category", "reply_length"):
        assert (literal / "figures" / f"{figure}.svg").stat().st_size > 1000
        assert (literal / "figures" / f"{figure}.csv").read_text().count("\n") >= 2
    page = (literal / "report.html").read_text(encoding="utf-8")
    assert "Problems and replies" in page and "GRID START" in page


def test_resume_asks_nothing_twice(literal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (literal / "results.json").read_bytes()

    def never(*words: object) -> None:
        raise AssertionError("asked again")

    monkeypatch.setattr("robust_jax.rrb.mocks.Literal.reply", never)
    assert main(["rrb", "run", "--model", "mock:literal", "--limit", str(SIZE), "--out", str(literal)]) == 0
    assert (literal / "results.json").read_bytes() == before


def test_another_option_is_another_run(literal: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["rrb", "run", "--model", "mock:literal", "--limit", str(SIZE), "--out", str(literal)]
    assert main([*words, "--rails", "4"]) == 2
    assert "rails was 3, now 4" in capsys.readouterr().err


def test_some_perturbations_and_several_attempts(tmp_path: Path) -> None:
    out = tmp_path / "some"
    words = ["--perturbation", "rail_fence,compose:word_reversal+snake_vertical", "--attempts", "2", "--limit", "3"]
    assert main(["rrb", "run", "--model", "mock:literal", "--out", str(out), *words]) == 0
    assert len(SampleStore(out / "samples.jsonl")) == 3 * 3 * 2
    results = results_of(out)
    assert [row["category"] for row in results["perturbations"]] == ["visual", "visual"]
    assert [row["fell"] for row in results["perturbations"]] == [3, 3]


def test_a_rewriting_that_does_not_fit_is_left_out_of_means(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    respond = Literal.respond

    def narrow(self: Literal, prompts: Sequence[Prompt], *words: Any) -> list[Response]:
        responses = respond(self, prompts, *words)
        fits = ["GRID START" not in prompt.messages[-1].content for prompt in prompts]
        return [r if fit else Response("", finish_reason="context") for r, fit in zip(responses, fits, strict=True)]

    monkeypatch.setattr(Literal, "respond", narrow)
    words = ["--model", "mock:literal", "--limit", "3", "--perturbation", "word_reversal,rail_fence"]
    assert main(["rrb", "run", *words, "--out", str(tmp_path)]) == 0
    results = results_of(tmp_path)
    first, second = results["perturbations"]
    assert results["counts"]["rail_fence"] == {"skipped": 3}
    assert second["accuracy"]["n"] == 0 and second["p"] is None and second["p_adjusted"] is None
    assert first["p_adjusted"] == first["p"] and results["average"]["change"]["value"] == -1
    assert "over the 1 of 2 rewritings that could be asked" in " ".join(capsys.readouterr().out.split())


def test_base_problems_of_a_suite_and_a_file(tmp_path: Path) -> None:
    words = ["rrb", "run", "--model", "mock:literal", "--perturbation", "word_reversal", "--limit", "4"]
    assert main([*words, "--data", str(ORCHARD), "--out", str(tmp_path / "suite")]) == 0
    assert results_of(tmp_path / "suite")["original"]["value"] == 1.0
    file = tmp_path / "mine.jsonl"
    file.write_text('{"problem": "What is 1 + 1?", "answer": "2"}\n{"problem": "What is 2 + 2?", "answer": 4}\n')
    assert main([*words, "--data", str(file), "--out", str(tmp_path / "file")]) == 0
    assert results_of(tmp_path / "file")["suite"] == str(file)


def test_dry_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["rrb", "run", "--dry-run", "--limit", "2", "--out", str(tmp_path / "x")]) == 0
    shown = capsys.readouterr().out
    assert "28 replies" in shown
    # Told once in every prompt but those of the problems as they are and of not_not; the protocol names it, too.
    assert shown.count("TRANSFORMATION RULE: ") == 12
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--data", "nothing"], "there are no problems 'nothing'"),
        (["--model", "mock:nobody"], "no stand-in"),
        (["--model", "openai:m"], "--base-url"),
        (["--model", "openai:m", "--base-url", "ftp://x"], "--base-url must begin with"),
        (["--perturbation", "x"], "there is no perturbation"),
        (["--concurrency", "0"], "--concurrency must be at least 1"),
        (["--request-timeout", "0"], "--request-timeout must be more than 0"),
    ],
)
def test_bad_input(words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "x"
    assert main(["rrb", "run", "--model", "mock:literal", "--out", str(out), *words]) == 2
    said = capsys.readouterr().err
    assert message in said and said.strip().count("\n") == 0
    assert not out.exists()
