"""`finetune evaluate`: have a model solve the sets as it is, before training or after an export."""

from typing import Any

import jax

from robust_jax.finetune.data import EVALUATED, read_data
from robust_jax.finetune.evaluation import ask_all
from robust_jax.finetune.options import EvaluateOptions
from robust_jax.finetune.results import BEFORE, evaluated_results
from robust_jax.finetune.training import is_searched_model, open_run
from robust_jax.models import LocalModel
from robust_jax.models.sharding import MeshShape
from robust_jax.models.sources import open_checkpoint
from robust_jax.runs import RESULTS_FILE, fingerprint, write_results
from robust_jax.runs.tracking import tracking

COMMAND = "finetune evaluate"


def evaluate(options: EvaluateOptions) -> dict[str, Any]:
    """Evaluate a model; the results, which `results.json` of the run directory has too.

    Raises:
        InputError: the sets or the model cannot be used; nothing is written.
        RunError: the disk fails; finished blocks are kept.
    """
    assert options.data is not None and options.out is not None
    data = read_data(options.data)
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
