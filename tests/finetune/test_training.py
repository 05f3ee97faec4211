"""A whole training: it learns, resumes exactly after a kill, keeps what is good, and refuses what cannot work."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from robust_jax.cli import main
from robust_jax.errors import InputError, RunError
from robust_jax.finetune import training
from robust_jax.finetune.checkpoints import Checkpoints
from robust_jax.finetune.data import seal
from robust_jax.finetune.evaluation import evaluate
from robust_jax.finetune.log import LOG_FILE
from robust_jax.finetune.options import EvaluateOptions, TrainOptions
from robust_jax.finetune.placement import Placement
from robust_jax.finetune.problem import read_problems, write_problems
from robust_jax.finetune.training import TrainingBrokeDown, train
from robust_jax.models.sources import open_checkpoint
from robust_jax.runs import RESULTS_FILE, read_results, write_results

ROOT = Path(__file__).parents[2]


def options(data: Path, out: Path, **changes: object) -> TrainOptions:
    usual = {"train": "q_mid", "steps": 6, "batch": 4, "rate": 1e-3, "evaluate_every": 3, "save_every": 2}
    return TrainOptions(**{"data": data, "out": out, **usual, **changes})  # type: ignore[arg-type]


def weights(chosen: TrainOptions, step: int) -> list[np.ndarray]:
    """The trained weights and the optimizer of a checkpoint."""
    checkpoint = open_checkpoint(chosen.model)
    place = Placement.of(checkpoint, None)
    parts = place.parts(checkpoint, chosen)
    optimizer = training.adamw(training.learning_rate(chosen.rate, chosen.steps))
    assert chosen.out is not None
    with Checkpoints(chosen.out) as checkpoints:
        restored = checkpoints.restore(step, place.train_state(parts.trained, optimizer))
    return [np.asarray(leaf) for leaf in jax.tree.leaves(restored)]


def without_speed(results: Path) -> dict[str, object]:
    return {k: v for k, v in json.loads((results / "results.json").read_text()).items() if k != "tokens_per_second"}


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> TrainOptions:
    chosen = options(data, tmp_path_factory.mktemp("whole") / "run")
    train(chosen)
    return chosen


def test_results_hold_what_was_told_and_what_came_of_it(whole: TrainOptions) -> None:
    assert whole.out is not None
    results = json.loads((whole.out / "results.json").read_text())
    assert [step for step, _ in results["loss"]] == list(range(1, 7))
    assert results["loss"][-1][1] < results["loss"][0][1]
    assert results["rate"][0][1] == pytest.approx(1e-3 / 2), "one of six steps is warm-up"
    assert [step for step, _ in results["validation"]] == [3, 6]
    assert results["used_step"] in (3, 6)
    assert set(results["sets"]) == {"test", "test_low", "test_mid", "test_high", "base"}
    assert results["tokens_per_second"] > 0
    for found in results["sets"].values():
        assert found["change"] is not None and 0 <= found["accuracy"]["value"] <= 1
    lines = [json.loads(line) for line in (whole.out / LOG_FILE).read_text().splitlines()]
    assert [line["step"] for line in lines if "validation" in line] == [3, 6]
    with Checkpoints(whole.out) as checkpoints:
        assert checkpoints.last == 6
        best = max(results["validation"], key=lambda told: (told[1], told[0]))[0]
        assert checkpoints.best == best == results["used_step"]
        kept = {int(folder.name) for folder in (whole.out / "checkpoints").iterdir() if folder.name.isdigit()}
        assert kept == {6, best}, "the last and the best"


def test_it_is_reported_without_a_model(whole: TrainOptions, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(whole.out)]) == 0
    assert "Q_mid" in capsys.readouterr().out


def test_the_same_command_again_changes_nothing(whole: TrainOptions) -> None:
    assert whole.out is not None
    before, samples = without_speed(whole.out), (whole.out / "samples.jsonl").read_bytes()
    train(whole)
    assert without_speed(whole.out) == before
    assert (whole.out / "samples.jsonl").read_bytes() == samples


def test_a_damaged_log_is_told(whole: TrainOptions, tmp_path: Path) -> None:
    assert whole.out is not None
    shutil.copytree(whole.out, tmp_path / "run")
    (tmp_path / "run" / LOG_FILE).write_text('{"step": 1, "lo')
    with pytest.raises(InputError, match=r"training\.jsonl is damaged"):
        train(replace(whole, out=tmp_path / "run"))


def test_before_training_the_searched_model_is_as_the_search_found_it(data: Path, tmp_path: Path) -> None:
    results = evaluate(EvaluateOptions(data=data, out=tmp_path / "before"))
    assert results["train"] == "before"
    for name, found in results["sets"].items():
        if name != "base":
            assert found["change"]["value"] == 0, "asked again, the model gives the same answers"
    assert {results["sets"][f"test_{third}"]["accuracy"]["value"] for third in ("low", "mid", "high")} == {0.0}


KILLED = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.finetune.test_training import options
from robust_jax.finetune.training import train
train(options(Path({data!r}), Path({out!r})))
"""


def kill_after_step(data: Path, out: Path, step: int) -> None:
    """Start the training in a process and kill it, without a word, once the checkpoint of a step is complete."""
    command = KILLED.format(root=str(ROOT), data=str(data), out=str(out))
    process = subprocess.Popen([sys.executable, "-c", command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 240
    while not (out / "checkpoints" / str(step)).exists():
        assert process.poll() is None, "it ended before that checkpoint"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize("step", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_killed_and_resumed_it_ends_with_the_same_weights(
    data: Path, whole: TrainOptions, tmp_path: Path, step: int
) -> None:
    killed = options(data, tmp_path / "killed")
    assert killed.out is not None and whole.out is not None
    kill_after_step(data, killed.out, step)
    assert not (killed.out / "results.json").exists()
    train(killed)
    for ours, theirs in zip(weights(killed, 6), weights(whole, 6), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert without_speed(killed.out) == without_speed(whole.out)


def test_a_loss_that_is_no_number_stops_the_run_and_leaves_the_last_good_checkpoint(data: Path, tmp_path: Path) -> None:
    hopeless = options(data, tmp_path / "run", rate=1e18, clip=1e18, save_every=1, evaluate_every=50, steps=50)
    with pytest.raises(
        TrainingBrokeDown, match=r"broke down at step \d+: its loss is .*kept in .*lower --rate"
    ) as caught:
        train(hopeless)
    assert "\n" not in str(caught.value)
    with Checkpoints(tmp_path / "run") as checkpoints:
        assert f"checkpoint of step {checkpoints.last} is kept" in str(caught.value)
        assert checkpoints.last < 50
    assert not (tmp_path / "run" / "results.json").exists()


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"train": "q_hard"}, "the training sets are"),
        ({"rate": 0.0}, "--rate"),
        ({"rate": 1e300}, "--rate must be a number above 0 that float32 holds"),
        ({"warm_up": 1.5}, "--warm-up"),
        ({"batch": 0}, "--batch must be at least 1"),
        ({"lora_rank": 2, "lora_targets": ()}, "--lora-targets"),
        ({"batch": 10**11}, "30,000,000,000,000 rows: take at most 33,554,432"),
        ({"limit": 3}, "leave out --limit"),
        ({"coordinator": "auto"}, "--coordinator"),
        ({"out": None}, "--out"),
        ({"data": None}, "--data"),
        ({"track": "none", "shots": -1}, "--shots"),
    ],
)
def test_a_wrong_option_is_refused(tmp_path: Path, changes: dict[str, object], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        TrainOptions(**{"data": tmp_path, "out": tmp_path, **changes})  # type: ignore[arg-type]


def seal_again(sets: Path) -> None:
    """As if these sets had been made like this."""
    write_results(sets / RESULTS_FILE, {**read_results(sets / RESULTS_FILE), "seal": seal(sets)})


def test_sets_that_do_not_fit_the_model_are_refused_before_anything_is_written(data: Path, tmp_path: Path) -> None:
    shutil.copytree(data, tmp_path / "sets")
    file = tmp_path / "sets" / "train" / "q_mid.jsonl"
    with pytest.raises(InputError, match=r"--max-tokens 500: behind the shortest prompt .* has room for"):
        train(options(tmp_path / "sets", tmp_path / "run", max_tokens=500))
    write_problems(file, [replace(problem, question=30 * problem.question) for problem in read_problems(file)])
    seal_again(tmp_path / "sets")
    with pytest.raises(InputError, match=r"prompt and solution take \d+ tokens, and the model's context is 512"):
        train(options(tmp_path / "sets", tmp_path / "run"))
    file.write_text("")
    seal_again(tmp_path / "sets")
    with pytest.raises(InputError, match=r"q_mid .* is empty"):
        train(options(tmp_path / "sets", tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_a_run_directory_goes_on_with_its_own_options_alone(data: Path, whole: TrainOptions) -> None:
    with pytest.raises(InputError, match=r"rate was 0\.001, now 0\.002"):
        train(replace(whole, rate=2e-3))


FULL = """
import resource, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.finetune.test_training import options
from robust_jax.errors import RunError
from robust_jax.finetune.training import train
chosen = options(Path({data!r}), Path({out!r}), steps=3, evaluate_every=3)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, 1_500_000))
try:
    train(chosen)
except RunError as error:
    print(error)
"""


def test_a_full_disk_is_told_and_the_run_goes_on_after_it(data: Path, tmp_path: Path) -> None:
    command = FULL.format(root=str(ROOT), data=str(data), out=str(tmp_path / "run"))
    told = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, timeout=300)
    assert "free space" in told.stdout and told.stdout.count("\n") == 1, told.stdout + told.stderr
    train(options(data, tmp_path / "run", steps=3, evaluate_every=3))
    assert (tmp_path / "run" / "results.json").exists()


def test_adapters_are_trained_alone(data: Path, tmp_path: Path) -> None:
    chosen = options(data, tmp_path / "run", lora_rank=2, steps=3, evaluate_every=3, rate=1e-2)
    train(chosen)
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert results["loss"][-1][1] < results["loss"][0][1]
    kept = sum(leaf.size for leaf in weights(chosen, 3))
    assert kept < 3 * 2 * 200_000, "neither checkpoint nor optimizer holds what is not trained"


def test_errors_are_of_the_kinds_that_the_command_line_knows() -> None:
    assert issubclass(TrainingBrokeDown, RunError)
