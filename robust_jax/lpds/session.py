"""What an LPDS command needs before its first question: suite, model, run directory, and how to ask."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from robust_jax.difficulty import metric, metric_names, usable
from robust_jax.errors import InputError
from robust_jax.evaluation import Examiner, TemplateExam, TemplateQuestion, load_shown
from robust_jax.lpds.options import LpdsOptions
from robust_jax.lpds.reference_source import ReferenceSource, reference_source
from robust_jax.problems import STOP, load_suite
from robust_jax.runs import RunDirectory, open_run
from robust_jax.types import Capabilities, Model, ModelDefaults, Sampling, StreamingModel, Suite

DEFAULT_SHOTS = 5
DEFAULT_MAX_TOKENS = 512


Options = TypeVar("Options", bound=LpdsOptions)


@dataclass(frozen=True)
class Session(Generic[Options]):
    """One LPDS run, ready to ask."""

    options: Options
    """With everything chosen that depends on the model."""
    suite: Suite
    model: Model
    embedder: Model
    """Whose input embeddings are taken: the model, or its proxy."""
    examiner: Examiner[TemplateQuestion]
    run: RunDirectory
    source: ReferenceSource
    """Where the references come from."""


def chosen_suite(options: LpdsOptions) -> Suite:
    """The suite, cut to the first templates that were asked for."""
    suite = load_suite(options.suite, run_python=options.run_python, grid_values=options.grid_values)
    return replace(suite, templates=suite.templates[: options.limit])


def chosen_shots(options: LpdsOptions, defaults: ModelDefaults, suite: Suite) -> int:
    """How many worked examples are shown: as asked for, as the model wants it, or five where the suite has them.

    Raises:
        InputError: the suite has fewer.
    """
    shots = _first_given(options.shots, defaults.shots, min(DEFAULT_SHOTS, len(suite.examples)))
    if shots > len(suite.examples):
        raise InputError(f"--shots {shots}: suite {suite.name} has {len(suite.examples)} examples; give that or fewer")
    return shots


@contextmanager
def open_session(options: Options, command: str) -> Iterator[Session[Options]]:
    """Load what a command needs and lock its run directory, in the order that leaves nothing behind on bad input.

    Raises:
        InputError: an unknown suite or model, a model that cannot give what a metric needs, references that cannot be
            had, a Levenshtein implementation that does not run here, or a run directory that holds something else.
    """
    if options.out is None:
        raise InputError("give the run a directory: --out DIR")
    suite = chosen_suite(options)
    source = reference_source(options, suite)
    # The proxy first: other processes keep the model that was loaded last, and embeddings are this process' own affair.
    proxy = None if options.proxy is None else load_shown(options.proxy, options)
    model = load_shown(options.model, options)
    embedder = proxy or model
    options = replace(options, **options.choices_for(model.capabilities))
    for name in options.needed_metrics:
        _check_capability(name, model, embedder)
    usable(options.levenshtein)  # or it is refused before the first question
    layers = _chosen_layers(options.layers, model)
    shots = chosen_shots(options, model.defaults, suite)
    max_tokens = _first_given(options.max_tokens, model.defaults.max_tokens, DEFAULT_MAX_TOKENS)
    resolved = replace(options, layers=layers, shots=shots, max_tokens=max_tokens)
    found = {
        "reference": source.identity,
        "suite_digest": suite.digest,
        "model_digest": model.digest,
        "proxy_digest": proxy.digest if proxy else "",
    }
    with open_run(resolved, command, found) as run:
        examiner = Examiner(
            model=model,
            exam=TemplateExam(suite, shots, options.extract, options.prompt_form),
            run=run,
            sampling=Sampling(max_tokens=max_tokens, temperature=options.temperature, stop=STOP),
            seed=options.seed,
            layers=layers,
            statistics=model.capabilities.statistics,
            embedder=embedder,
        )
        try:
            yield Session(resolved, suite, model, embedder, examiner, run, source)
        finally:
            if isinstance(model, StreamingModel):
                print(f"{model.name}: {model.usage}", file=sys.stderr)


def _first_given(*choices: int | None) -> int:
    return next(choice for choice in choices if choice is not None)


def _chosen_layers(layers: tuple[int, ...], model: Model) -> tuple[int, ...]:
    """The blocks whose states are kept: those asked for, each once, or the paper's (Appendix C.3.2)."""
    for layer in layers:
        if not 1 <= layer <= model.num_layers:
            known = f"has blocks 1 to {model.num_layers}" if model.num_layers else "gives no hidden states"
            raise InputError(f"--layers {layer}: {model.name} {known}")
    if layers or not model.num_layers:
        return tuple(dict.fromkeys(layers))
    # Two thirds of the depth, rounded, are the paper's choice for all of its models but one, the largest Llama.
    is_llama_70b = model.num_layers == 80 and "llama" in model.name.lower()
    return (52 if is_llama_70b else round(2 * model.num_layers / 3),)


def _check_capability(name: str, model: Model, embedder: Model) -> None:
    has: Capabilities = model.capabilities
    able = {
        "text": True,
        "hidden": has.hidden_states,
        "embeddings": embedder.capabilities.embeddings,
        "output_statistics": has.statistics,
        "input_statistics": has.hidden_states and has.statistics,
    }
    lacking = sorted(need for need in metric(name).needs if not able[need])
    if lacking == ["embeddings"]:
        raise InputError(
            f"{embedder.name} has no embeddings, which {name} needs: name a local model that lends its own, such as "
            "--proxy builtin:tiny"
        )
    if lacking:
        working = [other for other in metric_names() if all(able[need] for need in metric(other).needs)]
        raise InputError(f"{model.name} cannot give what {name} needs; with it {', '.join(working)} would work")
