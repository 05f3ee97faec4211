"""Suites by name or path: bundled ones, YAML of one's own, GSM-Symbolic files, Python functions, JSONL."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from importlib import resources
from pathlib import Path

from robust_jax.errors import InputError, nearest
from robust_jax.problems.checking import check_examples, check_template
from robust_jax.problems.gsm_symbolic import read_gsm_symbolic_files
from robust_jax.problems.jsonl import read_jsonl
from robust_jax.problems.loaded import Loaded
from robust_jax.problems.python_functions import GRID_VALUES, read_python_functions
from robust_jax.problems.reader import read_suite
from robust_jax.types import Suite

MAX_BYTES = 10_000_000
"""Size of a file, or of all files of a folder."""
MAX_FILES = 5_000
_FILLINGS_AT_LOAD = 5
_EXAMPLES = "grade_school"
"""The suite whose worked examples stand before problems of GSM-Symbolic, which has none of its own."""

_log = logging.getLogger(__name__)


def list_suites() -> tuple[str, ...]:
    """The names of the bundled suites."""
    return tuple(sorted(_bundled()))


def load_suite(spec: str, *, check: bool = True, run_python: bool = False, grid_values: int = GRID_VALUES) -> Suite:
    """The suite that a bundled name or a path stands for.

    A path is a YAML file in the template language, a GSM-Symbolic file or folder (JSON), a file or folder of Python
    functions, or a JSONL file of problems without slots. What of a folder is no template is left out with a warning in
    the log.

    Args:
        spec: the name or path.
        check: try every template on its base problem and a few random fillings, so that a wrong solution is never
            used. Without it a faulty suite is given out too, for all its faults to be found.
        run_python: whether Python files may be run, with all that their authors wrote in them.
        grid_values: most values of the grid that stands for a continuous draw of a Python function.

    Raises:
        InputError: there is no such suite, it cannot be read, or a template is faulty.
    """
    loaded = read_problems(spec, run_python=run_python, grid_values=grid_values)
    for reason in loaded.rejected:
        _log.warning("left out: %s", reason)
    suite = loaded.suite
    faults = check_examples(suite) if check else []
    for template in suite.templates if check else ():
        faults = faults or check_template(template, suite.grading, fillings=_FILLINGS_AT_LOAD)
    if faults:
        raise InputError(f"{Path(spec).name}: {faults[0]}")
    return suite


def read_problems(spec: str, *, run_python: bool = False, grid_values: int = GRID_VALUES) -> Loaded:
    """The suite of a name or path without any check of its templates, with what its files could not give.

    The arguments are those of `load_suite`.

    Raises:
        InputError: there is no such suite, or nothing of it can be read.
    """
    path = _bundled().get(spec) or Path(spec)
    kind, files = _files(path, spec)
    if kind == ".py" and not run_python:
        raise InputError(
            f"{path} holds Python functions: reading them runs their authors' code; say --run-python if it may"
        )
    contents = _read(files, path)
    digest = sha256()
    for file, content in contents.items():
        digest.update(content if len(contents) == 1 else f"{file.name} {len(content)}\n".encode() + content)
    first = next(iter(contents.values()))
    match kind:
        case ".yaml":
            loaded = Loaded(read_suite(first, path.name))
        case ".jsonl":
            loaded = Loaded(read_jsonl(first, path.name))
        case ".json":
            loaded = read_gsm_symbolic_files({file.name: content for file, content in contents.items()}, path.stem)
            loaded = replace(loaded, suite=replace(loaded.suite, examples=load_suite(_EXAMPLES, check=False).examples))
        case _:
            loaded = read_python_functions(path if path.is_dir() else path.parent, files, grid_values)
    if not loaded.suite.templates:
        reasons = loaded.rejected or ("there is no template function",)
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        raise InputError(f"{path.name} holds no usable template: {reasons[0]}{more}")
    return replace(loaded, suite=replace(loaded.suite, digest=digest.hexdigest()[:16]))


def _files(path: Path, spec: str) -> tuple[str, Sequence[Path]]:
    """The kind of a path's problems, as the ending of its files, and the files."""
    if path.is_dir():
        for kind, pattern in ((".json", "*.json"), (".py", "**/*.py")):
            files = sorted(file for file in path.glob(pattern) if not _is_hidden(file.relative_to(path)))
            if len(files) > MAX_FILES:
                raise InputError(f"{path} holds more than {MAX_FILES} files: give a folder with fewer")
            if files:
                return kind, files
        raise InputError(f"{path} holds neither GSM-Symbolic files (.json) nor Python functions (.py)")
    kind = {".yml": ".yaml"}.get(path.suffix.lower(), path.suffix.lower())
    if kind not in (".yaml", ".json", ".jsonl", ".py"):
        if path.exists():
            raise InputError(f"{path} is no suite: its name has to end in .yaml, .json, .jsonl or .py")
        raise InputError(f"there is no suite '{spec}': did you mean '{nearest(spec, list_suites())}'?")
    return kind, [path]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "__pycache__")) or part == "site-packages" for part in path.parts)


def _read(files: Sequence[Path], path: Path) -> dict[Path, bytes]:
    contents, left = {}, MAX_BYTES
    for place in files:
        try:
            with place.open("rb") as file:
                contents[place] = file.read(left + 1)
        except OSError as error:
            raise InputError(f"cannot read the suite {place}: {error.strerror}") from None
        left -= len(contents[place])
        if left < 0:
            raise InputError(f"the suite {path} is larger than {MAX_BYTES // 10**6} MB: split it")
    return contents


def _bundled() -> Mapping[str, Path]:
    folder = Path(str(resources.files("robust_jax.problems") / "suites"))
    return {path.stem: path for path in folder.glob("*.yaml")}
