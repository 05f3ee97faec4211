"""`systematicity run` on stand-ins: what it finds is what is so, whatever happens on the way."""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, variance
from typing import Any

import pytest

from robust_jax.cli import main
from robust_jax.runs import read_config
from robust_jax.systematicity.families import FAMILIES
from robust_jax.systematicity.mocks import LearnerModel, ideal, surface
from robust_jax.types import Capabilities
from tests.models.faulty_server import FaultyServer, Request, completion, serving
from tests.runs.making_samples import temporary_folder
from tests.systematicity.learners import Coin, read, run, samples_of, tasks_of, use

SMALL = ("--variations", "3", "--attempts", "3")
CHEAP = ("--families", "raven", "boolean", *SMALL)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with temporary_folder() as path:
        yield path


@pytest.fixture(scope="module")
def ideal_run(folder: Path) -> Path:
    run(folder / "ideal", *SMALL, "--tasks", "3")
    return folder / "ideal"


@pytest.fixture(scope="module")
def coin_run(folder: Path) -> Path:
    use(Coin())
    run(folder / "coin", *CHEAP, "--tasks", "8", model="mock:coin")
    return folder / "coin"


def test_whoever_finds_the_rule_is_perfectly_systematic(ideal_run: Path) -> None:
    found = read(ideal_run)
    assert [family["family"] for family in found["families"]] == ["grammar", "raven", "programs", "boolean"]
    for family in found["families"]:
        assert [kind["kind"] for kind in family["kinds"]] == list(
            FAMILIES[family["family"]].kinds(FAMILIES[family["family"]].parameters())
        )
        for metrics in (family["metrics"], *(kind["metrics"] for kind in family["kinds"])):
            assert [metrics[name]["value"] for name in ("any", "fraction", "all", "gap")] == [1, 1, 1, 0]
            assert metrics["any"]["n"] == 3 and metrics["undecided"] == 0


def test_every_variation_is_asked_once_and_kept_with_what_made_it(ideal_run: Path) -> None:
    lines = tasks_of(ideal_run)
    counts: dict[str, int] = defaultdict(int)
    for line in lines:
        counts[line["family"]] += 1
        assert set(line["prompt"]) == {"system", "user"} and line["schema"]["required"] == ["answers"]
    assert counts == {"grammar": 3 * (1 + 3 * 2), "raven": 3 * (1 + 2), "programs": 3 * 5, "boolean": 3 * 5}
    keys = {(line["arm"], line["item"], line["variation"], attempt) for line in lines for attempt in range(3)}
    samples = list(samples_of(ideal_run))
    assert {(s.arm, s.item, s.variation, s.attempt) for s in samples} == keys
    assert len(samples) == len(keys) and all(sample.gold == sample.extracted for sample in samples)
    moved = next(line for line in lines if line["variation"] == "reordering-1")
    assert sorted(moved["transformation"]["support_order"]) == list(
        range(len(moved["transformation"]["support_order"]))
    )
    assert moved["transformation"]["change"] is None


def test_whoever_copies_the_nearest_example_is_not_systematic_except_off_the_boundary(folder: Path) -> None:
    words = ("--families", "boolean", "--tasks", "8", "--variations", "4", "--attempts", "1")
    balanced = run(folder / "surface", *words, model="mock:surface")["families"][0]["metrics"]
    assert balanced["gap"]["value"] > 0 and balanced["all"]["value"] < 1
    rest = run(folder / "rest", *words, "--difficulty", "boolean.queries=rest", model="mock:surface")
    assert rest["families"][0]["metrics"]["all"]["value"] == 1
    assert rest["families"][0]["parameters"]["queries"] == "rest"


def scores_of(out: Path, family: str, kind: str) -> list[list[list[float]]]:
    """The scores of every attempt at every variation of every task, from the samples alone."""
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples_of(out):
        if sample.values["family"] == family and sample.arm in ("original", kind):
            scores[sample.item][sample.variation].append(sample.score)
    return [list(task.values()) for task in scores.values()]


def metrics_by_hand(tasks: list[list[list[float]]]) -> tuple[float, float, float]:
    """any, fraction and all."""
    passed = [[2 * sum(scores) > len(scores) for scores in task] for task in tasks]
    return mean(map(any, passed)), mean(map(mean, passed)), mean(map(all, passed))


def shares_by_hand(tasks: list[list[list[float]]]) -> tuple[float, float, float]:
    """The shares of total, within and between, where a task is neither always nor never solved."""
    shares = []
    for task in tasks:
        rates = [mean(scores) for scores in task]
        if 0 < mean(rates) < 1:
            # An unbiased variance of N scores, over N, is that of their mean.
            parts = variance(rates), mean(variance(scores) / len(scores) for scores in task)
            shares.append([part / (mean(rates) * (1 - mean(rates))) for part in (*parts, parts[0] - parts[1])])
    total, within, between = map(mean, zip(*shares, strict=True))
    return total, within, max(0.0, between)


def test_the_metrics_are_those_of_the_samples(coin_run: Path) -> None:
    for family in read(coin_run)["families"]:
        hands = [metrics_by_hand(scores_of(coin_run, family["family"], kind["kind"])) for kind in family["kinds"]]
        for kind, hand in zip(family["kinds"], hands, strict=True):
            assert [kind["metrics"][name]["value"] for name in ("any", "fraction", "all")] == pytest.approx(hand)
        overall = [family["metrics"][name]["value"] for name in ("any", "fraction", "all")]
        assert overall == pytest.approx([mean(column) for column in zip(*hands, strict=True)])
        assert 0 < family["metrics"]["gap"]["low"] <= family["metrics"]["gap"]["value"]


def test_the_variance_is_that_of_the_samples(coin_run: Path) -> None:
    for family in read(coin_run)["families"]:
        for kind in family["kinds"]:
            hand = shares_by_hand(scores_of(coin_run, family["family"], kind["kind"]))
            found = [kind["variance"][part]["value"] for part in ("total", "within", "between")]
            assert found == pytest.approx(hand) and found[1] > 0


def test_an_interrupted_run_goes_on_to_the_same_result(coin_run: Path, folder: Path) -> None:
    words = (*CHEAP, "--tasks", "8")
    use(Coin(dies_after=150))
    run(folder / "cut", *words, model="mock:coin", code=1)
    kept = len(list(samples_of(folder / "cut")))
    assert 0 < kept < len(list(samples_of(coin_run)))
    assert main(["report", str(folder / "cut")]) == 2  # it has not finished
    model = use(Coin())
    assert run(folder / "cut", *words, model="mock:coin") == read(coin_run)
    assert model.asked + kept == len(list(samples_of(coin_run)))  # type: ignore[attr-defined]
    assert (folder / "cut" / "samples.jsonl").read_bytes() == (coin_run / "samples.jsonl").read_bytes()


def test_other_options_do_not_go_on_in_the_same_place(coin_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    use(Coin())
    for words, named in ((("--tasks", "7"), "tasks"), (("--tasks", "8", "--temperature", "0"), "temperature")):
        run(coin_run, *CHEAP, *words, model="mock:coin", code=2)
        assert named in capsys.readouterr().err


def test_failed_attempts_never_count_as_wrong(folder: Path) -> None:
    use(Coin(rate=0.7, error_rate=0.3))
    found = run(folder / "errors", *CHEAP, "--tasks", "6", model="mock:coin")
    assert sum(arm.get("error", 0) for arm in found["counts"].values()) > 0
    for family in found["families"]:
        # Every attempt that counts is right: a task is solved in all forms, or it is undecided and left out.
        metrics = family["metrics"]
        assert metrics["undecided"] + metrics["any"]["n"] == 6
        assert metrics["undecided"] > 0
        assert metrics["any"]["n"] == 0 or metrics["all"]["value"] == 1
        assert all(kind["variance"]["incomplete"] > 0 for kind in family["kinds"])
    assert "the line is down" in (folder / "errors" / "report.html").read_text(encoding="utf-8")


def test_a_model_that_always_fails_leaves_nothing_to_say(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    use(Coin(rate=0.0, error_rate=1.0))
    found = run(folder / "dead", "--families", "raven", "--tasks", "2", "--attempts", "1", model="mock:coin")
    assert found["families"][0]["metrics"]["any"] == {"value": None, "low": None, "high": None, "n": 0}
    assert "too few answers" in capsys.readouterr().out


def test_one_variation_or_one_attempt_is_enough_for_the_metrics(folder: Path) -> None:
    found = run(folder / "one", "--families", "raven", "--tasks", "2", "--variations", "1", "--attempts", "1")
    (family,) = found["families"]
    assert [kind["kind"] for kind in family["kinds"]] == ["original"]
    assert family["metrics"]["all"]["value"] == 1


def test_a_report_needs_no_model_and_changes_nothing(ideal_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robust_jax.systematicity.run.load_shown", None)
    monkeypatch.setattr("robust_jax.systematicity.exam.generate_task", None)
    before = (ideal_run / "results.json").read_bytes(), (ideal_run / "report.html").read_bytes()
    assert main(["report", str(ideal_run)]) == 0
    assert ((ideal_run / "results.json").read_bytes(), (ideal_run / "report.html").read_bytes()) == before


def test_several_runs_stand_side_by_side(
    ideal_run: Path, coin_run: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = folder / "comparison"
    assert main(["report", str(ideal_run), str(coin_run), "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "mock:ideal" in shown and "mock:coin" in shown and "Systematicity of the runs" in shown
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Systematicity on raven" in page and "mock:coin" in page
    rows = (out / "figures" / "runs_raven.csv").read_text(encoding="utf-8").splitlines()
    assert [row.split(",")[0] for row in rows[1:]] == ["mock:ideal", "mock:coin"]


def test_a_damaged_run_is_refused_in_one_line(
    ideal_run: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("tasks.jsonl", "samples.jsonl"):
        copy = folder / f"damaged {name}"
        copy.mkdir()
        for path in ideal_run.iterdir():
            if path.is_file():
                (copy / path.name).write_bytes(path.read_bytes())
        content = (copy / name).read_bytes()
        (copy / name).write_bytes(content[: len(content) // 2])
        capsys.readouterr()
        assert main(["report", str(copy)]) == 2
        assert capsys.readouterr().err.strip().count("\n") == 0


def test_what_it_cost(folder: Path) -> None:
    prices = folder / "prices.yaml"
    prices.write_text('"mock:ideal": {input: 2, output: 10}\n')
    found = run(folder / "cost", "--families", "raven", "--tasks", "2", "--attempts", "2", "--prices", str(prices))
    tokens = found["families"][0]["tokens"]
    samples = list(samples_of(folder / "cost"))
    assert tokens["attempts"] == len(samples) == 2 * 5 * 2
    assert tokens["prompt"] == sum(s.prompt_tokens for s in samples) > 0
    assert tokens["completion"] == sum(s.completion_tokens for s in samples) > 0
    assert tokens["dollars"] == pytest.approx((2 * tokens["prompt"] + 10 * tokens["completion"]) / 1e6)
    prices.unlink()
    assert main(["report", str(folder / "cost")]) == 0
    assert read(folder / "cost") == found


def test_effort_reaches_a_model_that_can_be_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--families", "raven", "--tasks", "1", "--attempts", "1", "--effort", "high")
    run(folder / "effort", *words, code=2)
    assert "leave --effort out" in capsys.readouterr().err
    assert not (folder / "effort").exists()
    seen = []

    class Thinking(LearnerModel):
        capabilities = Capabilities(hidden_states=False, statistics=False, embeddings=False, effort=True)

        def respond(self, prompts, sampling, *arguments, **named):  # type: ignore[no-untyped-def]
            seen.extend((one.effort, one.temperature, one.max_tokens) for one in sampling)
            return super().respond(prompts, sampling, *arguments, **named)

    use(Thinking("mock:thinking", ideal))
    run(folder / "effort", *words, "--temperature", "0.5", "--max-tokens", "99", model="mock:thinking")
    assert set(seen) == {("high", 0.5, 99)}


def test_a_served_model_is_held_to_the_schema(folder: Path) -> None:
    """Whoever is behind the server copies examples; the protocol asks it as it asks any other model."""
    learner = LearnerModel("mock:surface", surface)

    def reply(request: Request) -> dict[str, Any]:
        if "response_format" in request and request["messages"][0]["content"] == "Be brief.":
            return completion('{"word": "yes"}')
        if request["messages"][0]["content"] == "Be brief.":
            return completion("Hello.")
        return completion(learner.reply(*(message["content"] for message in request["messages"])).text)

    words = ("--families", "boolean", "--tasks", "2", "--variations", "2", "--attempts", "2")
    with serving(FaultyServer(reply)) as server:
        served = run(folder / "served", *words, "--base-url", server.url, model="openai:copier")
        schemas = [request["response_format"]["json_schema"]["schema"] for request in server.requests]
    here = run(folder / "here", *words, model="mock:surface")
    assert [f["metrics"] for f in served["families"]] == [f["metrics"] for f in here["families"]]
    assert len(schemas) == 2 * 3 * 2
    known = {json.dumps(line["schema"], sort_keys=True) for line in tasks_of(folder / "served")}
    assert {json.dumps(schema, sort_keys=True) for schema in schemas} == known
    assert served["families"][0]["tokens"]["prompt"] == 7 * 12


def test_the_record_says_how_it_was_run(ideal_run: Path) -> None:
    config = read_config(ideal_run)
    assert config["fingerprint"]["command"] == "systematicity run"
    assert config["config"]["max_tokens"] == 2048 and config["config"]["price"] is None
    assert "out" not in config["config"]
