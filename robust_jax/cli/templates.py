"""`robust-jax templates`: what is asked, without a model unless its prompts are wanted."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import tyro

from robust_jax.errors import InputError, nearest

if TYPE_CHECKING:
    from robust_jax.types import Suite, Variation


@dataclass(frozen=True)
class ListOptions:
    """List the bundled suites."""


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


def list_templates(options: ListOptions) -> None:
    from robust_jax.problems import list_suites, load_suite

    for name in list_suites():
        suite = load_suite(name, check=False)  # The project's tests check them.
        print(f"{name}: {len(suite.templates)} templates. {suite.description}")


def show_templates(options: ShowOptions) -> None:
    from robust_jax.problems import load_suite
    from robust_jax.randomness import rng

    suite = load_suite(options.suite, run_python=options.run_python, grid_values=options.grid_values)
    templates = [template for template in suite.templates if options.template in (None, template.id)]
    if not templates:
        near = nearest(str(options.template), [template.id for template in suite.templates])
        raise InputError(f"suite {suite.name} has no template {options.template!r}: did you mean {near!r}?")
    for template in templates:
        generator = rng(options.seed, "show", template.id)
        size = template.size
        variations = [template.fill(template.random(generator)) for _ in range(options.fillings)]
        shown = [_prompt(suite, v, options) if options.prompt else f"{v.text}\n\n{v.trace}" for v in variations]
        print(f"# {template.id} ({'' if size.exact else 'at most '}{_counted(size.count, 'filling')})")
        for text in shown:
            print(f"\n{text}\n")


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
        raise InputError(f"{suite.name}: {_counted(len(faults), 'fault')}, listed above; mend and check again")
    print(f"{suite.name}: {_counted(len(suite.templates), 'template')}, no faults")


def _counted(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
