"""`finetune sweep`: Bayesian optimisation of the validation accuracy over the paper's space (C.5.2), with Optuna.

Trials are kept in a journal that any number of processes append to. A trial is a run of `finetune run` in a folder
named by its hyper-parameters: one that was interrupted goes on from its last checkpoint, and none is trained twice.
"""

import fcntl
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from robust_jax.errors import InputError
from robust_jax.finetune.data import read_data
from robust_jax.finetune.options import SweepOptions, TrainOptions, hyper_parameters, train_options
from robust_jax.finetune.splits import TRAIN_SETS
from robust_jax.finetune.training import TrainingBrokeDown, train
from robust_jax.randomness import derived_seed
from robust_jax.report.tables import Cell, Column, Table
from robust_jax.report.wording import percent
from robust_jax.runs import fingerprint, json_text, keeping, write_atomically
from robust_jax.runs.directory import LOCK_FILE, DirectoryBusy

JOURNAL, SETTINGS = "journal.log", "sweep.json"
PATIENCE = 1.0
"""Seconds between two looks at a training that another process is at."""
SPACE = {"rate": "rates", "accumulation": "accumulations", "warm_up": "warm_ups", "weight_decay": "weight_decays"}
"""What is chosen, with the option that lists the choices."""


def sweep(options: SweepOptions) -> optuna.Study:
    """Train until enough trials are finished; the study.

    Raises:
        InputError: the sets or the model cannot be used, or the directory holds a sweep of other options.
        RunError: the disk fails; finished trials are kept.
    """
    assert options.out is not None and options.data is not None
    read_data(options.data, run_python=options.run_python)
    study = open_study(options)
    while (finished := len(study.get_trials(states=[TrialState.COMPLETE]))) < options.trials:
        _hand_on_what_was_interrupted(study, options.out)
        print(f"trial {finished + 1} of {options.trials}", flush=True)
        trial = study.ask()
        chosen = {name: trial.suggest_categorical(name, getattr(options, listed)) for name, listed in SPACE.items()}
        one = trial_options(options, chosen)
        try:
            validation = train(one, evaluates=False)["validation"]
        except DirectoryBusy:
            # Another process tries the same at this moment: its result will count.
            study.tell(trial, state=TrialState.FAIL)
            time.sleep(PATIENCE)
            continue
        except TrainingBrokeDown as error:
            # As it may at a high rate: that is a result, and as bad as can be.
            print(f"{one.label()}: {error}", flush=True)
            validation = [(0, 0.0)]
        study.tell(trial, max(share for _, share in validation), skip_if_finished=True)
    _evaluate_best(trial_options(options, best_trials(study)[0].params))
    return study


def _evaluate_best(options: TrainOptions) -> None:
    """Evaluate the chosen training, or wait until another process of the sweep has."""
    while True:
        try:
            train(options)
            return
        except DirectoryBusy:
            time.sleep(PATIENCE)


def open_study(options: SweepOptions) -> optuna.Study:
    """The study in a directory, made where there is none.

    Raises:
        InputError: the directory holds a sweep of other options.
    """
    assert options.out is not None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    shared = {
        name: value
        for name, value in fingerprint(options).items()
        if name not in ("trials", *hyper_parameters(options))
    }
    settings = (json_text(shared, indent=2, sort_keys=True) + "\n").encode()
    file = options.out / SETTINGS
    with keeping(options.out):
        options.out.mkdir(parents=True, exist_ok=True)
        if file.exists() and file.read_bytes() != settings:
            raise InputError(f"{options.out} holds a sweep of other options: see {file}, or choose another --out")
        write_atomically(file, settings)
        storage = JournalStorage(JournalFileBackend(str(options.out / JOURNAL)))
        study = optuna.create_study(
            storage=storage, study_name=options.train, direction="maximize", load_if_exists=True
        )
    # Processes that work at once begin at different numbers of trials, so that they suggest different things.
    study.sampler = optuna.samplers.TPESampler(
        seed=derived_seed(options.seed, "sweep", len(study.trials)), constant_liar=True
    )
    return study


def trial_options(options: SweepOptions, chosen: Mapping[str, Any]) -> TrainOptions:
    """The training of one choice; its folder is named by the choice."""
    assert options.out is not None
    shared: dict[str, Any] = train_options(options)
    return replace(TrainOptions(**shared), **chosen, out=options.out / trial_name(chosen))


def trial_name(chosen: Mapping[str, Any]) -> str:
    """A folder's name for one choice of hyper-parameters."""
    return "_".join(f"{name.replace('_', '-')}-{chosen[name]:g}" for name in SPACE)


def best_trials(study: optuna.Study) -> list[FrozenTrial]:
    """The finished trials of different choices, the best first, the earlier one of equals."""
    finished = study.get_trials(states=[TrialState.COMPLETE])
    ranked = sorted(finished, key=lambda trial: (-(trial.value or 0.0), trial.number))
    different: dict[str, FrozenTrial] = {}
    for trial in ranked:
        different.setdefault(trial_name(trial.params), trial)
    return list(different.values())


def best_table(study: optuna.Study, name: str) -> Table:
    """The best choices, the first one being the chosen one (Table 5)."""
    trials = best_trials(study)
    columns = (Column("Rank"), *map(Column, ("η", "k", "α_warmup", "λ")), Column("Validation accuracy"))
    rows = tuple(
        (
            Cell(str(rank), rank),
            *(Cell(f"{trial.params[option]:g}", trial.params[option]) for option in SPACE),
            Cell(percent(trial.value), trial.value),
        )
        for rank, trial in enumerate(trials[:10], 1)
    )
    return Table(f"Best of {len(trials)} choices tried for {TRAIN_SETS[name]}", columns, rows)


def _hand_on_what_was_interrupted(study: optuna.Study, out: Path) -> None:
    """Put the choices of trials whose process has died first in line again."""
    for trial in study.get_trials(states=[TrialState.RUNNING]):
        folder = out / trial_name(trial.params) if len(trial.params) == len(SPACE) else None
        if folder is not None and folder.exists() and not _is_at_work(folder):
            study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)
            study.enqueue_trial(trial.params)


def _is_at_work(folder: Path) -> bool:
    """Whether a process is writing a run directory."""
    if not (folder / LOCK_FILE).exists():
        return False
    with open(folder / LOCK_FILE, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
