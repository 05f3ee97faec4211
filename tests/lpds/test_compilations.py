"""How much is compiled: it must not grow with the work, and nothing may be compiled twice."""

import json
import os
import subprocess
import sys
from pathlib import Path

COUNTING = """
import json, sys
import jax
from robust_jax.cli import main
from robust_jax.models import decoding, local

missed = []

def listen(event, **_):
    if event.endswith("cache_misses"):
        missed.append(event)

jax.monitoring.register_event_listener(listen)
try:
    main(sys.argv[1:])
except SystemExit as stop:
    assert not stop.code, stop.code
engine = [value for module in (decoding, local) for value in vars(module).values() if hasattr(value, "_cache_size")]
print(json.dumps([sum(function._cache_size() for function in set(engine)), len(missed)]))
"""


def search(out: Path, cache: Path) -> tuple[int, int]:
    """Executables of the engine, and programs that the persistent cache did not hold, of a search over 25 templates."""
    options = "--limit 25 --reference-count 6 --reference-attempts 12 --iterations 3 --width 2 --branching 2"
    command = [sys.executable, "-c", COUNTING, "lpds", "search", *options.split(), "--model", "builtin:tiny"]
    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(cache)}
    run = subprocess.run(
        [*command, "--suite", "grade_school", "--batch-size", "64", "--out", str(out)],
        env=environment, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    executables, missed = json.loads(run.stdout.splitlines()[-1])
    return executables, missed


def test_a_search_compiles_a_dozen_programs_and_a_second_one_none(tmp_path: Path) -> None:
    executables, missed = search(tmp_path / "first", tmp_path / "cache")
    assert 3 <= executables <= 12
    assert missed >= executables
    assert search(tmp_path / "second", tmp_path / "cache") == (executables, 0)
