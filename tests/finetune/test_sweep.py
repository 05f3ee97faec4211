"""The hyper-parameter sweep: resumed, in several processes at once, and the same space for W&B."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from optuna.trial import TrialState

from robust_jax.errors import InputError
from robust_jax.finetune import sweep as sweep_module
from robust_jax.finetune.options import SweepOptions
from robust_jax.finetune.sweep import SPACE, best_table, best_trials, open_study, sweep, trial_name
from robust_jax.finetune.training import TrainingBrokeDown

ROOT = Path(__file__).parents[2]


def options(data: Path, out: Path, **changes: Any) -> SweepOptions:
    return replace(SweepOptions(data=data, out=out, trials=12, steps=2, batch=2), **changes)


def merit(one: Any) -> float:
    """Highest at a rate of 1e-4 and a weight decay of 0.05."""
    return float(0.5 + 0.3 * (one.rate == 1e-4) + 0.1 * (one.weight_decay == 0.05) - 0.01 * one.accumulation)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Folders of the trainings that took place; none is a real one."""
    folders: list[Path] = []

    def train(one: Any, *, evaluates: bool = True) -> dict[str, Any]:
        folders.append(one.out)
        if one.rate == 1e-3:
            raise TrainingBrokeDown("training broke down at step 1")
        return {"validation": [(1, 0.1), (2, merit(one))]}

    monkeypatch.setattr(sweep_module, "train", train)
    return folders


def test_the_best_of_the_space_is_found_and_evaluated(data: Path, tmp_path: Path, trained: list[Path]) -> None:
    study = sweep(options(data, tmp_path / "sweep", trials=40))
    best = best_trials(study)[0]
    assert best.params["rate"] == 1e-4
    assert best.value == max(trial.value for trial in study.get_trials(states=[TrialState.COMPLETE]))
    assert trained[-1].name == trial_name(best.params)
    broken = [trial for trial in study.trials if trial.params["rate"] == 1e-3]
    assert broken and all(trial.value == 0.0 for trial in broken), "what breaks down is as bad as can be"
    rows = best_table(study, "q_high").rows
    values = [row[-1].key for row in rows]
    assert values == sorted(values, reverse=True) and len(
        {tuple(cell.text for cell in row[1:5]) for row in rows}
    ) == len(rows)


def test_it_goes_on_where_it_stopped(data: Path, tmp_path: Path, trained: list[Path]) -> None:
    out = tmp_path / "sweep"
    sweep(options(data, out, trials=3))
    sweep(options(data, out, trials=5))
    assert len(trained) == 3 + 1 + 2 + 1
    sweep(options(data, out, trials=5))
    assert len(trained) == 3 + 1 + 2 + 1 + 1, "the best is looked at again, and nothing is tried"
    with pytest.raises(InputError, match="sweep of other options"):
        sweep(options(data, out, steps=3))


def test_what_a_dead_process_was_trying_is_tried_again(data: Path, tmp_path: Path, trained: list[Path]) -> None:
    chosen = options(data, tmp_path / "sweep", trials=1)
    study = open_study(chosen)
    trial = study.ask()
    params = {name: trial.suggest_categorical(name, getattr(chosen, listed)) for name, listed in SPACE.items()}
    (tmp_path / "sweep" / trial_name(params)).mkdir()
    sweep(chosen)
    assert trained[0].name == trial_name(params)
    assert open_study(chosen).trials[0].state == TrialState.FAIL


@pytest.mark.slow
def test_two_processes_share_one_sweep(data: Path, tmp_path: Path) -> None:
    words = [
        "finetune",
        "sweep",
        "--data",
        data,
        "--out",
        tmp_path / "sweep",
        "--trials",
        4,
        "--steps",
        2,
        "--batch",
        2,
    ]
    words += [
        "--evaluate-every",
        2,
        "--rates",
        1e-3,
        1e-4,
        "--accumulations",
        1,
        2,
        "--warm-ups",
        0,
        "--weight-decays",
        0,
    ]
    command = [sys.executable, "-m", "robust_jax", *map(str, words)]
    processes = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    told = [process.communicate(timeout=500)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], told
    study = open_study(
        options(
            data,
            tmp_path / "sweep",
            evaluate_every=2,
            rates=(1e-3, 1e-4),
            accumulations=(1, 2),
            warm_ups=(0.0,),
            weight_decays=(0.0,),
        )
    )
    assert len(study.get_trials(states=[TrialState.COMPLETE])) >= 4
    assert (tmp_path / "sweep" / trial_name(best_trials(study)[0].params) / "results.json").exists()


@pytest.mark.parametrize(
    ("listed", "value", "complaint"),
    [
        ("rates", float("nan"), "--rates, nan: --rate must be"),
        ("accumulations", 0, "--accumulations, 0: --accumulation must be"),
        ("warm_ups", 3.0, "--warm-ups, 3: --warm-up must be"),
        ("weight_decays", -1.0, "--weight-decays, -1: --weight-decay must be"),
    ],
)
def test_a_choice_that_no_training_could_have_is_refused(listed: str, value: float, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        SweepOptions(data=ROOT, out=ROOT, **{listed: (value,)})  # type: ignore[arg-type]


def test_the_space_for_wandb_is_the_same() -> None:
    described = yaml.safe_load((ROOT / "experiments" / "sweeps" / "paper.yaml").read_text())
    defaults = SweepOptions(data=ROOT, out=ROOT)
    assert {name: tuple(row["values"]) for name, row in described["parameters"].items()} == {
        name: getattr(defaults, listed) for name, listed in SPACE.items()
    }
    assert described["run_cap"] == defaults.trials
    assert (ROOT / described["program"]).exists()


@pytest.mark.slow
def test_an_agent_of_wandb_can_run_a_trial(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WANDB_API_KEY", "WANDB_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WANDB_MODE", "offline")
    # As `wandb agent` writes them.
    words = ["--rate=0.001", "--accumulation=1", "--warm_up=0.03", "--weight_decay=0.1"]
    fixed = [f"--data={data}", f"--out={tmp_path}", "--train=q_low", "--steps=2", "--batch=2"]
    command = [sys.executable, str(ROOT / "experiments" / "sweeps" / "agent.py"), *fixed, *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (trial,) = tmp_path.glob("rate-0.001_accumulation-1_warm-up-0.03_weight-decay-0.1")
    assert list(trial.glob("wandb/offline-run-*")) and (trial / "checkpoints" / "2").exists()
    wrong = subprocess.run([*command, "--rate=-1"], env=environment, capture_output=True, text=True, timeout=300)
    assert wrong.returncode == 2 and wrong.stderr.startswith("agent.py: --rate must be")
