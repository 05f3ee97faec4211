"""Makes templates of the functions in a Python file or folder, which are run for it."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from robust_jax.problems.loaded import Loaded
from robust_jax.problems.python_functions.imports import Collection
from robust_jax.problems.python_functions.tape import Site
from robust_jax.problems.python_functions.template import BadFunction, Function, FunctionTemplate, Run
from robust_jax.randomness import derived_seed, rng
from robust_jax.types import Example, Grading, Slot, Suite

GRID_VALUES = 100
"""Most values of a grid that stands for a continuous draw, unless another number is asked for."""
MAX_STRUCTURES = 16
"""Templates that one function becomes, at most."""
EXAMPLES = 5
"""Templates that become worked examples instead, where there are at least twice as many."""
_PROBES = 60
"""Calls from which it is learnt which lines a function executes together."""
_GIVEN_UP = 10
"""Calls that fail before the first one that does not, after which the function is given up."""
_LEAST_PROBES = 2
"""Calls that have to execute the same lines for these to become a template."""
_REPLAYED = 3
"""Calls that are played again, to see whether they come out the same."""
_GRADING = Grading(absolute=Fraction(1, 10**6), relative=Fraction(1, 100))


def read_python_functions(root: Path, files: Sequence[Path], max_values: int = GRID_VALUES) -> Loaded:
    """The template functions of some files, one template for each set of lines that a function executes.

    A template function takes no arguments, draws from `random` or `numpy.random`, and returns a question with its
    solution. Its name begins with `template`, or one of its `return`s has a pair behind it.

    Args:
        root: the folder that files may import from besides their own.
        files: the files whose functions are wanted.
        max_values: most values of a grid that stands for a continuous draw.
    """
    collection = Collection(root)
    sources = frozenset(str(file.resolve()) for file in collection.root.rglob("*.py"))
    templates: list[FunctionTemplate] = []
    rejected: list[str] = []
    notes: list[str] = []
    for file in files:
        place = file.resolve().relative_to(collection.root)
        try:
            tree = ast.parse(file.read_bytes())
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
            rejected.append(f"{place}{line}: not valid Python")
            continue
        names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and _is_template(node)]
        if not names:
            continue
        try:
            module = collection.load(file)
        except (Exception, SystemExit) as error:
            rejected.append(f"{place}: cannot be imported: {type(error).__name__}: {_one_line(error)}")
            continue
        variables = _variables(tree, str(file.resolve()))
        for name in names:
            identity = "_".join([*place.with_suffix("").parts, name])
            function = Function(getattr(module, name), sources, max_values)
            try:
                made, remarks = _templates(function, identity, variables)
            except BadFunction as error:
                rejected.append(f"{place}, {name}: {_one_line(error)}")
                continue
            templates += made
            notes += [f"{place}, {name}: {remark}" for remark in remarks]
    return Loaded(_suite(root, templates), tuple(rejected), tuple(notes))


def _is_template(node: ast.FunctionDef) -> bool:
    arguments = node.args
    needed = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    if needed or None in arguments.kw_defaults or node.name.startswith("_"):
        return False
    pairs = (n for n in ast.walk(node) if isinstance(n, ast.Return) and isinstance(n.value, ast.Tuple))
    return node.name.startswith("template") or any(len(pair.value.elts) == 2 for pair in pairs)  # type: ignore[union-attr]


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


def _templates(
    function: Function, identity: str, variables: Mapping[tuple[str, int], Sequence[str]]
) -> tuple[list[FunctionTemplate], list[str]]:
    """The templates of one function, the most frequent set of lines first, with what is to be said about it.

    Raises:
        BadFunction: no call gives a question with a solution, or calls cannot be played again.
    """
    runs: list[Run] = []
    failures: Counter[str] = Counter()
    for probe in range(_PROBES):
        try:
            runs.append(function.record(derived_seed(0, "probe", identity, probe)))
        except BadFunction as error:
            failures[str(error)] += 1
        if not runs and failures.total() >= _GIVEN_UP:
            break
    if not runs:
        raise BadFunction(failures.most_common(1)[0][0])
    for run in runs[:_REPLAYED]:
        again = function.play(run.point)
        if (again.question, again.solution) != (run.question, run.solution):
            raise BadFunction("the same draws give another text: it depends on more than random and numpy.random")
    if not any(run.draws for run in runs):
        raise BadFunction("it draws nothing")
    groups = defaultdict(list)
    for run in runs:
        groups[run.structure].append(run)
    ranked = sorted(groups.values(), key=lambda group: (-len(group), sorted(group[0].structure)))
    kept = [group for group in ranked if len(group) >= _LEAST_PROBES][:MAX_STRUCTURES] or ranked[:1]
    remarks = []
    if len(kept) < len(ranked):
        remarks.append(f"{len(ranked) - len(kept)} rare ways through its lines are left out")
    if failures:
        reason, count = failures.most_common(1)[0]
        remarks.append(f"{failures.total()} of {_PROBES} calls fail, {count} because {reason}")
    templates = []
    for number, group in enumerate(kept, 1):
        longest = max(group, key=lambda run: len(run.draws))
        names = _names([draw.site for draw in longest.draws], variables)
        slots = [
            Slot(names[d.site], d.domain, function.places.get(d.site, 0)) for d in function.play(longest.point).draws
        ]
        suffix = f"_{number}" if len(kept) > 1 else ""
        templates.append(FunctionTemplate(identity + suffix, function, longest.structure, tuple(slots), names))
    return templates, remarks


def _variables(tree: ast.Module, file: str) -> dict[tuple[str, int], list[str]]:
    """The variables that are assigned to at each line."""
    variables = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            names = [part.id for part in parts if isinstance(part, ast.Name)]
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                variables[file, line] = names
    return variables


def _names(sites: Sequence[Site], variables: Mapping[tuple[str, int], Sequence[str]]) -> dict[Site, str]:
    """A name for every draw: the variable that it is assigned to, or its place."""
    names: dict[Site, str] = {}
    for place, site in enumerate(sites, 1):
        assigned = variables.get((site.file, site.line), ())
        name = assigned[min(site.occurrence, len(assigned)) - 1] if assigned else f"draw{place}"
        names[site] = name if name not in names.values() else f"{name}_{place}"
    return names


def _suite(root: Path, templates: Sequence[FunctionTemplate]) -> Suite:
    """The templates, but for some that are spread over the suite and become its worked examples."""
    count = EXAMPLES if len(templates) >= 2 * EXAMPLES else 0
    shown = [templates[len(templates) * place // count] for place in range(count)]
    examples = []
    for template in shown:
        variation = template.fill(template.random(rng(0, "worked example", template.id)))
        examples.append(Example(variation.text, variation.trace))
    return Suite(
        name=root.resolve().stem,
        templates=tuple(template for template in templates if template not in shown),
        examples=tuple(examples),
        grading=_GRADING,
        description="Templates that are Python functions.",
    )
