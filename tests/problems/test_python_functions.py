"""Template functions in Python: what is drawn is recorded, played again to the byte, and changed one draw at a time."""

import json
import logging
import subprocess
import sys
from collections import OrderedDict
from dataclasses import replace
from fractions import Fraction
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest

from robust_jax.errors import InputError
from robust_jax.problems import check_template, load_suite, read_problems
from robust_jax.problems.loaded import Loaded
from robust_jax.problems.python_functions.imports import Collection
from robust_jax.problems.python_functions.reader import GRID_VALUES
from robust_jax.problems.python_functions.template import Function, FunctionTemplate
from robust_jax.types import Pair

FOLDER = Path(__file__).with_name("functions")
SEEDS = 25
FUNCTIONS = (
    *(f"shop.py:template_{name}" for name in ("randint", "randrange", "wide_range", "uniform_rounded")),
    *(f"shop.py:template_{name}" for name in ("uniform_printed", "uniform", "random", "choice", "choices", "sample")),
    *(f"shop.py:template_{name}" for name in ("shuffle", "gauss", "other_distributions")),
    *(f"finance/interest.py:template_{name}" for name in ("nested_calls", "branches", "loop", "rejection")),
    *(f"motion/arrays.py:{name}" for name in ("numpy_scalars", "numpy_arrays", "numpy_distributions")),
    *(f"motion/arrays.py:{name}" for name in ("numpy_without_replacement", "local_import", "own_generators")),
)


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    return read_problems(str(FOLDER), run_python=True)


@pytest.fixture(scope="module")
def templates(loaded: Loaded) -> dict[str, FunctionTemplate]:
    return {template.id: template for template in loaded.suite.templates}  # type: ignore[misc]


@pytest.fixture(scope="module")
def plain() -> dict[str, list[str]]:
    """What plain calls give, from a process that knows nothing of recordings."""
    script = str(Path(__file__).with_name("plain_calls.py"))
    words = [sys.executable, script, str(FOLDER), str(SEEDS), *FUNCTIONS]
    result: dict[str, list[str]] = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    return result


@pytest.fixture(scope="module")
def collection() -> Collection:
    return Collection(FOLDER)


def function(collection: Collection, spec: str) -> Function:
    file, name = spec.split(":")
    files = {str(path) for path in FOLDER.rglob("*.py")}
    return Function(getattr(collection.load(FOLDER / file), name), files, GRID_VALUES)


@pytest.mark.parametrize("spec", FUNCTIONS)
def test_recordings_are_plain_calls_and_play_back_to_the_byte(
    spec: str, collection: Collection, plain: dict[str, list[str]]
) -> None:
    recorded = function(collection, spec)
    for seed in range(SEEDS):
        run = recorded.record(seed)
        assert [run.question, run.solution] == [text.strip() for text in plain[f"{spec}:{seed}"]]
        again = recorded.play(run.point)
        assert (again.question, again.solution, again.point) == (run.question, run.solution, run.point)
        assert again.is_exact


def test_every_function_becomes_a_template_or_is_reported(
    loaded: Loaded, templates: dict[str, FunctionTemplate]
) -> None:
    missing = 0
    for spec in FUNCTIONS:
        name = spec.replace(".py:", "_").replace("/", "_")
        made = [identity for identity in templates if identity == name or identity[: len(name) + 1] == name + "_"]
        missing += not made
    assert missing <= len(loaded.suite.examples) == 5
    reasons = "\n".join(loaded.rejected)
    for words in (
        "broken.py: cannot be imported: ModuleNotFoundError",
        "template_raises: it raises ZeroDivisionError",
        "template_none: it gives NoneType",
        "template_without_number: its solution holds no number",
        "template_without_draw: it draws nothing",
    ):
        assert words in reasons
    assert len(loaded.rejected) == 5
    assert any("template_sometimes_raises" in note and "ZeroDivisionError" in note for note in loaded.notes)


def test_fillings_and_neighbours_are_valid(loaded: Loaded, templates: dict[str, FunctionTemplate]) -> None:
    rng = np.random.default_rng(1)
    for template in templates.values():
        point = template.random(rng)
        assert template.is_valid(point)
        variation = template.fill(point)
        assert (variation.key, variation.text) == (template.key(point), template.text(point))
        assert len(variation.values) == len(point)
        assert Fraction(variation.trace.rpartition("#### ")[2]) == variation.answer
        for place, slot in enumerate(template.slots):
            assert 1 <= len(slot.domain) <= GRID_VALUES
            neighbours = [*islice(template.neighbours(point, place), 8)]
            assert len({variation.text, *map(template.text, neighbours)}) == len(neighbours) + 1
            for other in neighbours:
                assert template.is_valid(other) and other != point
        assert check_template(template, loaded.suite.grading, fillings=3) == []


def test_neighbours_depend_on_the_point_alone(templates: dict[str, FunctionTemplate]) -> None:
    """Not on what was asked before, also where other draws have to change."""
    for name in ("template_loop", "template_sample", "template_shuffle"):
        [template] = named(templates, name)
        fresh = replace(template, _runs=OrderedDict())
        point = template.random(np.random.default_rng(3))
        for slot in range(3):
            assert [*template.neighbours(point, slot)] == [*fresh.neighbours(point, slot)]


def named(templates: dict[str, FunctionTemplate], name: str) -> list[FunctionTemplate]:
    return [template for identity, template in templates.items() if name in identity]


def test_branches_become_templates_of_their_own(templates: dict[str, FunctionTemplate]) -> None:
    one, other = named(templates, "template_branches")
    rng = np.random.default_rng(0)
    kinds = [{"20%" in template.text(template.random(rng)) for _ in range(20)} for template in (one, other)]
    assert sorted(map(list, kinds)) == [[False], [True]]


def test_a_drawn_length_changes_how_many_draws_follow(templates: dict[str, FunctionTemplate]) -> None:
    [template] = named(templates, "template_loop")
    assert len(template.slots) == 5 + 2
    point = template.random(np.random.default_rng(0))
    for other in template.neighbours(point, 0):
        assert len(other) == other[0] + 2 != len(point)
        kept = min(point[0], other[0])
        # The deposits that both have keep their values, and so does the bonus behind them.
        assert other[1 : 1 + kept] == point[1 : 1 + kept]
        assert other[-1] == point[-1]


def test_draws_without_replacement_stay_distinct(templates: dict[str, FunctionTemplate]) -> None:
    [template] = named(templates, "template_sample")
    point = template.random(np.random.default_rng(0))
    for slot in range(5):
        for other in template.neighbours(point, slot):
            assert other[0] != other[1] and len({*other[2:]}) == 3


def test_grids_follow_the_rounding(collection: Collection) -> None:
    def domain(name: str, slot: int) -> list[Fraction]:
        recorded = function(collection, f"shop.py:template_{name}")
        run = recorded.play(recorded.record(0).point)
        return [Fraction(value) for value in run.draws[slot].domain]  # type: ignore[arg-type]

    price = domain("uniform_rounded", 0)
    assert price[0] == Fraction("1.5") and price[-1] <= 90 and all((100 * p).denominator == 1 for p in price)
    assert domain("uniform_printed", 0) == [Fraction(tenths, 10) for tenths in range(5, 41)]
    wide = domain("wide_range", 0)
    assert wide[0] == 1 and 90 <= len(wide) <= GRID_VALUES and len({b - a for a, b in pairwise(wide)}) == 1
    heights = domain("gauss", 0)
    assert 140 < min(heights) < 160 and 180 < max(heights) < 200 and all((10 * h).denominator == 1 for h in heights)


def test_slots_are_named_by_their_variables(templates: dict[str, FunctionTemplate]) -> None:
    [template] = named(templates, "template_choice")
    assert template.slots[0].name == "name"
    assert any(isinstance(value, Pair) for value in template.slots[1].domain)


def test_python_runs_only_when_allowed(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    path = tmp_path / "functions.py"
    path.write_text(
        f"import random, pathlib\npathlib.Path({str(ran)!r}).touch()\ndef template_a():\n    return 'a', '1'\n"
    )
    for spec in (path, tmp_path):
        with pytest.raises(InputError, match="--run-python"):
            load_suite(str(spec))
        assert not ran.exists()
    with pytest.raises(InputError, match="it draws nothing"):
        load_suite(str(path), run_python=True)
    assert ran.exists()


def test_nothing_is_left_behind() -> None:
    before, path = set(sys.modules), list(sys.path)
    read_problems(str(FOLDER), run_python=True)
    assert not {name for name in set(sys.modules) - before if name in ("words", "tools", "shop", "interest", "arrays")}
    assert sys.path == path
    assert not [*FOLDER.rglob("__pycache__")]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("def template_a(:\n", "functions.py, line 1: not valid Python"),
        ("import random\ndef template_a():\n    while True:\n        random.random()\n", "it draws more than"),
        ("def template_a():\n    while True:\n        pass\n", "it executes more than"),
        (
            "import os, random\ndef template_a():\n    random.random()\n    return os.urandom(8).hex(), '1'\n",
            "another text",
        ),
        ("import sys\nsys.exit(3)\ndef template_a():\n    return 'a', '1'\n", "cannot be imported: SystemExit"),
        ("x = 1\n", "no template function"),
    ],
)
def test_what_is_no_template_is_reported(source: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "functions.py"
    path.write_text(source)
    with pytest.raises(InputError, match=reason) as caught:
        load_suite(str(path), run_python=True)
    assert "\n" not in str(caught.value)


def test_what_is_left_out_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "functions.py").write_text(
        "import random\ndef template_a():\n    n = random.randint(1, 9)\n    return f'{n}?', f'#### {n}'\n"
        "def template_raises():\n    return 1 / 0\n"
    )
    with caplog.at_level(logging.WARNING):
        suite = load_suite(str(tmp_path), run_python=True)
    assert [template.id for template in suite.templates] == ["functions_template_a"]
    assert "template_raises: it raises ZeroDivisionError" in caplog.text
