"""`systematicity run`: every attempt at every variation, asked and kept (paper Section 5)."""

from dataclasses import replace

from robust_jax.errors import InputError
from robust_jax.evaluation import Examiner, load_shown
from robust_jax.models import model_defaults, read_price
from robust_jax.runs import Progress, open_run, write_finished
from robust_jax.systematicity.exam import VariationExam, asked_variations, questions
from robust_jax.systematicity.options import SystematicityOptions
from robust_jax.systematicity.record import TASKS_FILE, as_lines, digest, record, write_tasks
from robust_jax.types import Model, ModelDefaults, Sampling, StreamingModel

COMMAND = "systematicity run"
BLOCK = 128
"""Attempts that a model which runs here is asked, and whose replies are kept, together."""
DEFAULT_MAX_TOKENS = 2048
"""Room for a short chain of thought before the answers."""


def run_systematicity(options: SystematicityOptions) -> None:
    """Have a model answer every attempt at every variation; everything is kept.

    Raises:
        InputError: an unknown model, one that cannot do what is asked, a task with too few variations, or a run
            directory that holds something else.
        RunError: the disk fails, or the model does.
    """
    if options.out is None:
        raise InputError("give the run a directory: --out DIR")
    model_defaults(options.model)  # An unknown model is refused before the tasks are made.
    asked = list(asked_variations(options))
    tasks = as_lines(map(record, asked))
    model = _load(options)
    max_tokens = chosen_max_tokens(options, model.defaults)
    price = read_price(options.prices, model.name.removeprefix("openai:")) if options.prices else None
    found = {"tasks_digest": digest(tasks), "model_digest": model.digest}
    with open_run(
        replace(options, max_tokens=max_tokens), COMMAND, found, noted={"price": price and price._asdict()}
    ) as run:
        write_tasks(run.path / TASKS_FILE, tasks)
        examiner = Examiner(
            model=model,
            exam=VariationExam(),
            run=run,
            sampling=Sampling(max_tokens=max_tokens, temperature=options.temperature, effort=options.effort),
            seed=options.seed,
            statistics=False,
            embeddings=False,
        )
        wanted = questions(asked, options.attempts)
        # A server's replies are kept one by one, and it should never have to wait for the end of a block.
        size = len(wanted) if isinstance(model, StreamingModel) else BLOCK
        with Progress("attempts", len(wanted)) as progress:
            for start in range(0, len(wanted), size):
                examiner.ask(f"attempts-{start // size:05d}", wanted[start : start + size], progress.advance)
        write_finished(run.path, run.samples, run.features)


def chosen_max_tokens(options: SystematicityOptions, defaults: ModelDefaults) -> int:
    """The longest reply: as asked for, as the model wants it, or the protocol's own."""
    return options.max_tokens or defaults.max_tokens or DEFAULT_MAX_TOKENS


def _load(options: SystematicityOptions) -> Model:
    """The model; a server is tried before anything is written."""
    model = load_shown(options.model, options)
    if options.effort is not None and not model.capabilities.effort:
        raise InputError(f"{model.name} cannot be told how long to think: leave --effort out")
    return model
