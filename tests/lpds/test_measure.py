"""`lpds measure` from the command to Table 1, and its report made anew with other choices and without the model."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from robust_jax.analysis.odds_ratio import odds_ratio
from robust_jax.cli import main
from robust_jax.difficulty import MahalanobisFit, metric_names
from robust_jax.lpds.kept import KeptRun
from robust_jax.lpds.record import read_references
from robust_jax.models import register_mock
from robust_jax.runs import SampleStore, sample_key
from robust_jax.types import Capabilities, FeatureRequest, Prompt, Response
from tests.lpds.fragile import SUITE, Fragile

SMALL = ["--reference-count", "20", "--variations", "60"]


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    path = tmp_path / "adding.yaml"
    path.write_text(SUITE)
    return path


def measure(suite: Path, out: Path, *more: str, model: Fragile | None = None) -> int:
    stand_in = model or Fragile()
    register_mock("fragile", lambda: stand_in)
    words = ["lpds", "measure", "--model", "mock:fragile", "--suite", str(suite), "--out", str(out)]
    return main([*words, *SMALL, *more])


def results(out: Path) -> dict:
    return json.loads((out / "results.json").read_text())


def rows(out: Path) -> dict[tuple[str, str, int | None], dict]:
    return {(row["span"], row["metric"], row["layer"]): row for row in results(out)["metrics"]}


def test_the_metric_that_sees_the_weakness_comes_first(suite: Path, tmp_path: Path, is_drawn: bool) -> None:
    out = tmp_path / "run"
    assert measure(suite, out, "--variations", "150") == 0
    found = results(out)
    power = rows(out)
    assert len(power) == len(metric_names())
    assert power["Output", "MD_H", 2]["auc"]["value"] > 0.95
    assert "separates" in power["Output", "MD_H", 2]["note"]
    assert power["Output", "Perplexity", None]["odds_ratio"]["high"] < 0.5
    assert found["counts"]["measure"] == {"ok": 300}
    references = read_references(out)
    measured = SampleStore(out / "samples.jsonl").by_arm("measure")
    assert not {s.variation for s in measured if s.item == "stamps"} & set(references["stamps"].initial)
    assert np.isfinite(found["accuracy"]["low"])
    leader = max(power.values(), key=lambda row: row["auc"]["value"])
    for row in power.values():
        assert (row["behind"] is None) == (row is leader)
        if row["behind"] is not None:
            assert row["behind"]["value"] == pytest.approx(leader["auc"]["value"] - row["auc"]["value"])
    # The mock's entropy is the same for every reply.
    constant = power["Output", "Entropy", None]
    assert constant["auc"]["value"] == 0.5
    assert constant["odds_ratio"]["value"] is None
    assert "constant" in constant["note"]
    for row in power.values():
        shape = row["distribution"]
        assert sum(shape["right"]) + sum(shape["wrong"]) == 300
        assert len(shape["edges"]) == 41
    assert {path.stem for path in (out / "figures").iterdir()} == {"auc", "metric_distributions"}


def test_figures_are_those_of_the_stored_features(suite: Path, tmp_path: Path) -> None:
    """Every step from the features on disk to a row of the table, by other means."""
    out = tmp_path / "run"
    assert measure(suite, out, "--layers", "1", "3", "--shrinkage", "oas") == 0
    run, power = KeptRun(out), rows(out)
    assert {layer for _, metric, layer in power if metric == "MD_H"} == {1, 3}
    for place, layer in enumerate((1, 3)):
        wins, pairs, values, correct = 0.0, 0, [], []
        for item in ("marbles", "stamps"):
            keys = [("reference", item, key, 0) for key in read_references(out)[item].initial]
            asked = sorted((s for s in run.samples.by_arm("measure") if s.item == item), key=lambda s: s.variation)
            references, seen = (
                run.features.gather(part)["hidden"][:, place] for part in (keys, [sample_key(s) for s in asked])
            )
            distance = MahalanobisFit.fit(references, "oas").score(seen)
            right = np.array([s.is_correct for s in asked])
            pairs += right.sum() * (~right).sum()
            wins += roc_auc_score(~right, distance) * right.sum() * (~right).sum()
            values.append(distance)
            correct.append(right)
        row = power["Output", "MD_H", layer]
        assert row["auc"]["value"] == pytest.approx(wins / pairs, abs=1e-6)
        expected = odds_ratio(values, correct)
        assert row["note"] == (f"odds ratio: {expected.note}" if expected.note else "")
        if not expected.note:
            assert row["odds_ratio"]["value"] == pytest.approx(expected.value, rel=1e-4)


def test_a_report_with_other_choices_needs_no_model_and_can_be_taken_back(suite: Path, tmp_path: Path) -> None:
    out, other = tmp_path / "run", tmp_path / "other"
    assert measure(suite, out, "--layers", "3", "1", "2") == 0
    assert measure(suite, other, "--layers", "1", "--shrinkage", "ridge", "--ridge", "0.1") == 0
    before = (out / "results.json").read_bytes()
    model = Fragile()
    register_mock("fragile", lambda: model)
    words = ["report", str(out), "--layers", "1", "--shrinkage", "ridge", "--ridge", "0.1"]
    assert main([*words, "--metrics", "MD_H", "KNN_H", "MD_E", "--odds", "vb"]) == 0
    changed, expected = rows(out), rows(other)
    assert set(changed) == {("Output", "MD_H", 1), ("Output", "KNN_H", 1), ("Input", "MD_E", None)}
    for key, row in changed.items():
        assert row["auc"]["value"] == pytest.approx(expected[key]["auc"]["value"], abs=1e-6)
    assert results(out)["settings"]["odds"] == "vb"
    assert results(out)["settings"]["shrinkage"] == "ridge"
    assert results(out)["settings"]["layers"] == "1"
    assert main(["report", str(out)]) == 0
    assert (out / "results.json").read_bytes() == before
    assert model.asked == 0


def test_several_measurements_are_shown_side_by_side(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    second = tmp_path / "second.yaml"
    second.write_text(SUITE.replace("name: adding", "name: adding_again"))
    assert measure(suite, tmp_path / "a") == 0
    assert measure(second, tmp_path / "b") == 0
    capsys.readouterr()
    assert main(["report", str(tmp_path / "a"), str(tmp_path / "b"), "--metrics", "LD_min"]) == 0
    table = capsys.readouterr().out.split("Page:")[-1]
    assert "adding: AUC" in table
    assert "second: AUC" in table
    assert table.count("LD_min") == 1


def test_worked_solutions_as_references(suite: Path, tmp_path: Path) -> None:
    out, model = tmp_path / "run", Fragile()
    assert measure(suite, out, "--reference", "trace", model=model) == 0
    assert model.asked == 120  # for the measured variations alone
    references = SampleStore(out / "samples.jsonl").by_arm("reference")
    assert len(references) == 40
    for sample in references:
        assert sample.is_correct
        a, b = Fragile.numbers(sample.question)
        assert f"{a} + {b} = {a + b}" in sample.response
    assert results(out)["settings"]["reference"] == "trace"
    assert rows(out)["Output", "MD_H", 2]["auc"]["value"] > 0.95
    measured = {s.variation for s in SampleStore(out / "samples.jsonl").by_arm("measure") if s.item == "stamps"}
    assert not measured & {s.variation for s in references if s.item == "stamps"}


def test_another_model_s_replies_as_references(suite: Path, tmp_path: Path) -> None:
    lender, out, moved = tmp_path / "lender", tmp_path / "run", tmp_path / "moved"
    assert measure(suite, lender, "--seed", "5") == 0
    assert measure(suite, out, "--reference", str(lender)) == 0
    lent = {s.response for s in KeptRun(lender).reference_samples("stamps")}
    borrowed = [s for s in SampleStore(out / "samples.jsonl").by_arm("reference") if s.item == "stamps"]
    assert {s.response for s in borrowed} == lent
    assert len(borrowed) == 20
    before = (out / "results.json").read_bytes()
    # What counts is whose replies they are, not where they lie.
    lender.rename(moved)
    model = Fragile()
    assert measure(suite, out, "--reference", str(moved), model=model) == 0
    assert model.asked == 0
    assert (out / "results.json").read_bytes() == before
    assert str(lender) not in before.decode()


class Closed(Fragile):
    """Gives texts alone, as a model behind a server does."""

    capabilities = Capabilities(hidden_states=False, statistics=False, embeddings=False)
    num_layers = 0

    def respond(self, prompts, sampling, features=FeatureRequest(), on_reply=None) -> list[Response]:
        assert features == FeatureRequest()
        replies = super().respond(prompts, sampling, features, on_reply)
        return [Response(reply.text, reply.token_ids) for reply in replies]

    def score(self, prompts: list[Prompt], continuations: list[str], features=FeatureRequest()) -> list[Response]:
        raise AssertionError("it cannot")


@pytest.mark.parametrize("reference", ["self", "trace"])
def test_a_model_that_gives_texts_alone_is_measured_by_their_distances(
    suite: Path, tmp_path: Path, reference: str
) -> None:
    out = tmp_path / "run"
    assert measure(suite, out, "--reference", reference, model=Closed()) == 0
    assert {metric for _, metric, _ in rows(out)} == {"LD_min", "LD_max", "LD_mean", "LD_median"}


class Silent(Fragile):
    """Says nothing at all to every third problem."""

    def respond(self, prompts, sampling, features=FeatureRequest(), on_reply=None) -> list[Response]:
        replies = super().respond(prompts, sampling, features, on_reply)
        for place, prompt in enumerate(prompts):
            if sum(self.numbers(prompt.problem)) % 3 == 0:
                nothing = np.full((len(features.layers), 6), np.nan, np.float32)
                replies[place] = Response("", (), "stop", 20, nothing, type(replies[place].statistics)(*[np.nan] * 3))
        return replies


def test_empty_replies_are_left_out_and_counted_or_hardest(suite: Path, tmp_path: Path) -> None:
    dropped, hard = tmp_path / "drop", tmp_path / "hard"
    assert measure(suite, dropped, model=Silent()) == 0
    assert measure(suite, hard, "--nan", "hard", model=Silent()) == 0
    out, kept = rows(dropped), rows(hard)
    empty = sum(not s.response for s in SampleStore(dropped / "samples.jsonl").by_arm("measure"))
    assert empty > 20
    for key, row in out.items():
        assert row["missing"] == kept[key]["missing"] == (empty if key[0] == "Output" else 0)
    # Empty replies are wrong, so ranking them as hardest helps every metric of the output.
    assert kept["Output", "LD_median", None]["auc"]["value"] > out["Output", "LD_median", None]["auc"]["value"]
    assert kept["Input", "MD_E", None]["auc"]["value"] == out["Input", "MD_E", None]["auc"]["value"]
    assert kept["Output", "LD_median", None]["odds_ratio"] == out["Output", "LD_median", None]["odds_ratio"]


@pytest.mark.parametrize("limit", [1, 10_000], ids=["always wrong", "always right"])
def test_answers_of_one_kind_give_stated_results(suite: Path, tmp_path: Path, limit: int) -> None:
    out = tmp_path / "run"
    assert measure(suite, out, "--reference", "trace", model=Fragile(limit=limit)) == 0
    found = results(out)
    assert found["accuracy"]["value"] == (limit > 1)
    for row in found["metrics"]:
        assert row["auc"] == {"value": None, "low": None, "high": None, "n": 0}
        assert row["odds_ratio"]["value"] is None
        assert "both kinds" in row["note"]


def test_templates_without_references_say_so(suite: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert measure(suite, out, "--reference-attempts", "6") == 0
    notes = {row["id"]: row["note"] for row in results(out)["templates"]}
    assert all("MD_E, MD_H: " in note and "distinct references" in note for note in notes.values())
    assert {metric for _, metric, _ in rows(out)} >= {"LD_min", "KNN_H"}
    assert "MD_H" not in {metric for _, metric, _ in rows(out)}


def test_a_model_without_a_right_answer_says_so(suite: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert measure(suite, out, model=Fragile(limit=1)) == 0
    found = results(out)
    assert found["accuracy"]["value"] == 0
    assert all(
        row["references"] == 0 and "LD_min" in row["note"] and "MD_H" in row["note"] for row in found["templates"]
    )
    # What compares with no reference is still given, if only to say that no answer was right.
    assert {row["metric"] for row in found["metrics"]} == {"Perplexity", "Entropy", "Self-Certainty"}


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--layers", "9"], "blocks 1 to 3"),
        (["--layers", "0"], "blocks 1 to 3"),
        (["--reference", "traces"], "self, trace or the directory"),
        (["--ridge", "0"], "--ridge"),
        (["--odds", "ml"], "agh"),
        (["--nan", "keep"], "drop"),
        (["--variations", "0"], "--variations"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else "",
)
def test_bad_input_is_one_line_and_leaves_nothing(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], named: str
) -> None:
    out = tmp_path / "run"
    assert measure(suite, out, *words) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert named in message
    assert not out.exists()


def test_references_of_another_suite_are_refused(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(SUITE.replace("red and", "green and"))
    assert measure(other, tmp_path / "lender") == 0
    capsys.readouterr()
    assert measure(suite, tmp_path / "run", "--reference", str(tmp_path / "lender")) == 2
    assert "another suite" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_report_refuses_what_it_cannot_do(suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    assert measure(suite, out) == 0
    before = (out / "results.json").read_bytes()
    for words, named in (
        (["--layers", "3"], "recorded 2"),
        (["--metrics", "MD_G"], "did you mean MD_H"),
        (["--shrinkage", "none at all"], "ledoit-wolf"),
        (["--ridge", "-1"], "--ridge"),
    ):
        capsys.readouterr()
        assert main(["report", str(out), *words]) == 2
        message = capsys.readouterr().err
        assert message.count("\n") == 1
        assert named in message
        assert (out / "results.json").read_bytes() == before


OWN_METRIC = """
import numpy as np

from robust_jax.cli import main
from robust_jax.difficulty import Metric, register


class Digits(Metric):
    name = label = "digits"
    span = "output"
    source = "none"
    needs = frozenset({"text"})

    def compute(self, observations, distances):
        return np.array([sum(map(str.isdigit, text)) for text in observations.text], float)


register(Digits())
raise SystemExit(main())
"""


def test_a_metric_of_one_s_own_joins_the_table_of_a_finished_run(suite: Path, tmp_path: Path) -> None:
    out, script = tmp_path / "run", tmp_path / "digits.py"
    assert measure(suite, out) == 0
    script.write_text(OWN_METRIC)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    words = [sys.executable, str(script), "report", str(out), "--metrics", "digits", "MD_H"]
    shown = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout
    assert "digits" in shown
    values = [sum(map(str.isdigit, s.response)) for s in SampleStore(out / "samples.jsonl").by_arm("measure")]
    shape = rows(out)["Output", "digits", None]["distribution"]
    assert sum(shape["right"]) + sum(shape["wrong"]) == len(values)
    assert shape["edges"][0] >= min(values) and shape["edges"][-1] <= max(values)
