"""`finetune run`: train on one set, keep the best and the last checkpoint, evaluate."""

import math
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from robust_jax.errors import InputError, RunError
from robust_jax.finetune.accuracy import accuracy, evaluated_results
from robust_jax.finetune.checkpoints import Checkpoints
from robust_jax.finetune.data import EVALUATED, VALIDATION, Data, read_data
from robust_jax.finetune.evaluation import ask, ask_all, is_searched_model, max_tokens, open_run, shots
from robust_jax.finetune.log import TrainingLog
from robust_jax.finetune.lora import without_adapters
from robust_jax.finetune.optimizer import adamw, learning_rate
from robust_jax.finetune.options import ModelRunOptions, TrainOptions
from robust_jax.finetune.packing import Batch, Costs, Schedule, Shape, common_shapes, step_batch
from robust_jax.finetune.placement import Placement
from robust_jax.finetune.rows import make_rows
from robust_jax.finetune.step import Parts, Report, compiled_step, put_together, take_apart
from robust_jax.models import LocalModel
from robust_jax.models.sharding import on_mesh
from robust_jax.models.sources import Checkpoint, open_checkpoint
from robust_jax.runs import RESULTS_FILE, Progress, RunDirectory, fingerprint, write_results
from robust_jax.runs.tracking import Tracker, tracking

COMMAND = "finetune run"


@dataclass(frozen=True)
class Lesson:
    """What a run learns from, step by step."""

    schedule: Schedule
    shapes: list[Shape]

    def batch(self, step: int) -> Batch:
        """The micro-batches of a step, which counts from 0, as host arrays."""
        rows = self.schedule.rows
        groups = [[rows[place] for place in places] for places in self.schedule.micro_batches(step)]
        return step_batch(groups, self.shapes)


class TrainingBrokeDown(RunError):
    """The loss or its gradient is no finite number; the last good checkpoint is kept."""


def train(options: TrainOptions, *, evaluates: bool = True) -> dict[str, Any]:
    """Train and evaluate; the results, which `results.json` of the run directory has too.

    Args:
        evaluates: whether the test sets are asked and `results.json` is written; validation is always part of training.

    Raises:
        InputError: the sets, the model or a number do not fit; nothing is written.
        TrainingBrokeDown: the loss is no number.
        RunError: the disk fails; finished checkpoints are kept.
    """
    assert options.data is not None and options.out is not None
    data = read_data(options.data, run_python=options.run_python)
    checkpoint = open_checkpoint(options.model)
    place = Placement.of(checkpoint, options.mesh)
    lesson = make_lesson(options, data, checkpoint, place.ways)
    rate = learning_rate(options.rate, options.steps, warm_up=options.warm_up, schedule=options.schedule)
    optimizer = adamw(rate, weight_decay=options.weight_decay, clip=options.clip)

    with ExitStack() as stack:
        stack.enter_context(on_mesh(place.mesh))
        parts = place.parts(checkpoint, options)
        state = place.train_state(parts.trained, optimizer)
        run = stack.enter_context(open_run(options, COMMAND, data, checkpoint))
        checkpoints = stack.enter_context(Checkpoints(run.path))
        tracker = stack.enter_context(tracking(options.track, name=options.label(), config=options, directory=run.path))
        done = checkpoints.last
        if done:
            state = checkpoints.restore(done, state)
        parts = parts._replace(trained=state.trained)
        step = compiled_step(
            parts.graph,
            optimizer,
            dtype=jnp.dtype(options.compute),
            remat=options.remat,
            shardings=place.shardings(state),
        )
        log = TrainingLog(run.path, done)
        watch = Watch(options, lesson, rate, log, tracker, checkpoints)
        with Progress(f"training on {options.train}", options.steps) as progress:
            progress.advance(done)
            for number in range(done + 1, options.steps + 1):
                state, report = step(state, parts.frozen, place.batch(lesson.batch(number - 1)))
                watch.look(number, report)
                progress.advance()
                validates = number % options.evaluate_every == 0 or number == options.steps
                if validates or number % options.save_every == 0:
                    watch.finish()
                    share = None
                    if validates:
                        share = _validate(number, parts._replace(trained=state.trained), data, checkpoint, options, run)
                        log.note(number, {"validation": share})
                        best = max(value for _, value in log.column("validation"))
                        tracker.metrics({"validation_accuracy": share, "best_validation_accuracy": best}, number)
                    log.write()
                    checkpoints.save(number, state, share)
        checkpoints.finish_writing()
        told = {name: log.column(name) for name in ("validation", "loss", "rate", "gradient_norm")}
        if not evaluates:
            return told
        used = checkpoints.best if options.use == "best" else checkpoints.last
        state = checkpoints.restore(used, state)
        sets = {name: data.problems(name) for name in EVALUATED}
        model = trained_model(parts._replace(trained=state.trained), checkpoint, options)
        answers = ask_all(model, data, options, run, sets)
        results = {
            "kind": COMMAND,
            "train": options.train,
            "model": options.model,
            "suite": data.settings["suite"],
            "settings": {**fingerprint(options), "data_seed": data.settings["seed"]},
            "used_step": used,
            "sets": evaluated_results(answers, sets, data, has_before=is_searched_model(data, checkpoint, options)),
            **told,
            "tokens_per_second": _median([value for _, value in log.column("tokens_per_second")]),
        }
        write_results(run.path / RESULTS_FILE, results)
        tracker.metrics({f"{name}_accuracy": found["accuracy"]["value"] for name, found in results["sets"].items()})
    return results


def make_lesson(options: TrainOptions, data: Data, checkpoint: Checkpoint, ways: int) -> Lesson:
    """The rows of a training set, their order, and the shapes of their micro-batches.

    Raises:
        InputError: there is nothing to train on, or a sequence does not fit into the model's context, or no reply does.
    """
    problems = data.problems(options.train)
    if not problems:
        raise InputError(f"the training set {options.train} in {data.path} is empty: split a longer search")
    rows = make_rows(problems, data.suite, shots(data, options), data.form, checkpoint.tokenizer, checkpoint.config)
    room = checkpoint.config.max_positions - min(len(row.prompt) for row in rows)
    if (most := max_tokens(data, options)) > room:
        raise InputError(f"--max-tokens {most}: behind the shortest prompt the model's context has room for {room}")
    schedule = Schedule(rows, options.batch, options.accumulation, options.seed)
    steps = [schedule.micro_batches(step) for step in range(options.steps)]
    return Lesson(schedule, common_shapes(rows, steps, Costs.of(checkpoint.config), ways))


def trained_model(parts: Parts, checkpoint: Checkpoint, options: ModelRunOptions) -> LocalModel:
    """The model as it is after some step, for the engine that answers problems."""
    return LocalModel(
        options.model,
        checkpoint,
        dtype=options.dtype,
        batch_size=options.batch_size,
        mesh=Placement.of(checkpoint, options.mesh).layout.shape,
        decoder=put_together(take_apart(without_adapters(put_together(parts))), jnp.dtype(options.dtype)),
    )


class Watch:
    """Looks at what the steps report, one step late, so that the device never waits for the host.

    Raises:
        TrainingBrokeDown: from `look` and `finish`, where a loss or a gradient is no finite number.
    """

    def __init__(
        self,
        options: TrainOptions,
        lesson: Lesson,
        rate: optax.Schedule,
        log: TrainingLog,
        tracker: Tracker,
        checkpoints: Checkpoints,
    ) -> None:
        self._options, self._rate, self._log = options, rate, log
        self._tracker, self._checkpoints = tracker, checkpoints
        self._tokens = (
            options.batch * options.accumulation * float(np.mean([row.length for row in lesson.schedule.rows]))
        )
        self._waiting: tuple[int, Report] | None = None
        self._since = 0.0

    def look(self, step: int, report: Report) -> None:
        """Take a step's report, and look at the one before."""
        before, self._waiting = self._waiting, (step, report)
        if before is None:
            self._since = time.monotonic()
        else:
            self._note(*before)

    def finish(self) -> None:
        """Look at the last report."""
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            self._note(*waiting)

    def _note(self, step: int, report: Report) -> None:
        loss, norm = (float(value) for value in jax.device_get(report))
        if not (math.isfinite(loss) and math.isfinite(norm)):
            kept = self._checkpoints.last
            good = f"the checkpoint of step {kept} is kept" if kept else "there is no checkpoint yet"
            raise TrainingBrokeDown(
                f"training on {self._options.train} broke down at step {step}: its loss is {loss:g} and its gradient's "
                f"norm {norm:g}; {good} in {self._options.out}; try a lower --rate in another --out"
            )
        now = time.monotonic()
        values = {
            "loss": loss,
            "rate": float(self._rate(step - 1)),
            "gradient_norm": norm,
            "tokens_per_second": self._tokens / (now - self._since),
        }
        self._since = now
        self._log.note(step, values)
        self._tracker.metrics(values, step)


def _validate(
    step: int, parts: Parts, data: Data, checkpoint: Checkpoint, options: TrainOptions, run: RunDirectory
) -> float:
    """Accuracy on the validation set after a step."""
    arm = f"{VALIDATION}-{step:06d}"
    model = trained_model(parts, checkpoint, options)
    return accuracy(ask(model, data, options, run, arm, data.problems(VALIDATION)))


def _median(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None
