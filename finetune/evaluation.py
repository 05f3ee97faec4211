"""Having a model solve sets of problems, by the engine and the grading of everything else in this project.

`finetune evaluate` does it with a model as it is; `finetune run` with what it has trained.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from robust_jax.evaluation import Examiner, TemplateExam, TemplateQuestion
from robust_jax.finetune.accuracy import BEFORE, evaluated_results
from robust_jax.finetune.data import EVALUATED, Data, read_data
from robust_jax.finetune.options import EvaluateOptions, ModelRunOptions
from robust_jax.finetune.problem import Problem
from robust_jax.models import LocalModel
from robust_jax.models.sharding import MeshShape
from robust_jax.models.sources import Checkpoint, open_checkpoint
from robust_jax.problems import STOP
from robust_jax.runs import RESULTS_FILE, Progress, RunDirectory, fingerprint, plain, write_results
from robust_jax.runs.tracking import tracking
from robust_jax.types import Model, Sample, Sampling

COMMAND = "finetune evaluate"
BLOCK = 512
"""Problems that are asked, and kept, together."""


def evaluate(options: EvaluateOptions) -> dict[str, Any]:
    """Evaluate a model; the results, which `results.json` of the run directory has too.

    Raises:
        InputError: the sets or the model cannot be used; nothing is written.
        RunError: the disk fails; finished blocks are kept.
    """
    assert options.data is not None and options.out is not None
    data = read_data(options.data, run_python=options.run_python)
    checkpoint = open_checkpoint(options.model)
    shape = MeshShape.parse(options.mesh, jax.device_count())
    model = LocalModel(options.model, checkpoint, dtype=options.dtype, batch_size=options.batch_size, mesh=shape)
    with (
        open_run(options, COMMAND, data, checkpoint) as run,
        tracking(options.track, name=f"evaluate {options.model}", config=options, directory=run.path) as tracker,
    ):
        sets = {name: data.problems(name) for name in EVALUATED}
        answers = ask_all(model, data, options, run, sets)
        is_searched = is_searched_model(data, checkpoint, options)
        results = {
            "kind": COMMAND,
            "train": BEFORE if is_searched else options.model,
            "model": options.model,
            "suite": data.settings["suite"],
            "settings": {**fingerprint(options), "data_seed": data.settings["seed"]},
            "sets": evaluated_results(answers, sets, data, has_before=is_searched),
        }
        write_results(run.path / RESULTS_FILE, results)
        tracker.metrics({f"{name}_accuracy": found["accuracy"]["value"] for name, found in results["sets"].items()})
    return results


def open_run(options: ModelRunOptions, command: str, data: Data, checkpoint: Checkpoint) -> RunDirectory:
    """The run directory, which refuses to go on with other options, other sets or another model.

    Raises:
        InputError: it holds something else.
    """
    assert options.out is not None
    settings = {
        "command": command,
        **fingerprint(options),
        "shots": shots(data, options),
        "max_tokens": max_tokens(data, options),
        "data": data.digest,
        "model_digest": checkpoint.digest,
    }
    record = plain(options)
    assert isinstance(record, dict)
    config = {"command": command, **{name: value for name, value in record.items() if name != "out"}}
    return RunDirectory(options.out, settings, config)


def is_searched_model(data: Data, checkpoint: Checkpoint, options: ModelRunOptions) -> bool:
    """Whether the search asked this very model in this very way, so that its grades are those before training."""
    asked = data.settings
    return (
        asked["model_digest"] == checkpoint.digest
        and (asked["shots"], asked["max_tokens"]) == (shots(data, options), max_tokens(data, options))
        and options.temperature == 0
        and options.attempts == 1
    )


def ask_all(
    model: Model, data: Data, options: ModelRunOptions, run: RunDirectory, sets: Mapping[str, Sequence[Problem]]
) -> dict[str, list[Sample]]:
    """The model's graded replies to several sets, as `ask` gives them, with a display of how far they have come."""
    with Progress("evaluation", sum(map(len, sets.values())) * options.attempts) as progress:
        return {
            name: ask(model, data, options, run, name, problems, progress.advance) for name, problems in sets.items()
        }


def ask(
    model: Model,
    data: Data,
    options: ModelRunOptions,
    run: RunDirectory,
    arm: str,
    problems: Sequence[Problem],
    on_reply: Callable[[int], None] | None = None,
) -> list[Sample]:
    """The model's graded replies to a set; what the run directory keeps is not asked again.

    Args:
        arm: what their replies are kept under.
        on_reply: told how many replies have come in.

    Raises:
        RunError: the disk fails; finished blocks are kept.
    """
    examiner = Examiner(
        model=model,
        exam=TemplateExam(data.suite, shots(data, options), data.settings["extract"], data.form),
        run=run,
        sampling=Sampling(max_tokens=max_tokens(data, options), temperature=options.temperature, stop=STOP),
        seed=options.seed,
        statistics=False,
        embeddings=False,
    )
    questions = [
        TemplateQuestion(arm, problem.variation, attempt) for problem in problems for attempt in range(options.attempts)
    ]
    blocks = [questions[start : start + BLOCK] for start in range(0, len(questions), BLOCK)]
    return [
        sample
        for number, block in enumerate(blocks)
        for sample in examiner.ask(f"{arm}-{number:03d}", block, on_reply).samples
    ]


def shots(data: Data, options: ModelRunOptions) -> int:
    """Worked examples before each problem: as asked for, or as in the search."""
    return int(data.settings["shots"]) if options.shots is None else options.shots


def max_tokens(data: Data, options: ModelRunOptions) -> int:
    """Longest reply: as asked for, or as in the search."""
    return int(data.settings["max_tokens"]) if options.max_tokens is None else options.max_tokens
