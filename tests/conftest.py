"""Every array annotation of the project is checked at run time while the tests run."""

import os
from functools import lru_cache
from pathlib import Path

# Before numpy is imported: on a busy machine OpenBLAS threads wait for one another.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Tests compile the same programs again and again, some of them in processes of their own.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "compiled"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

from hypothesis import settings
from jaxtyping import install_import_hook

install_import_hook("robust_jax", "beartype.beartype")

# A bundled suite takes half a minute to read and check under run-time type checks: every process does it once.
from robust_jax.problems import suite  # noqa: E402

suite.read_suite = lru_cache(maxsize=8)(suite.read_suite)
_check_template, _checked = suite.check_template, {}


def _checked_once(template, grading, *, fillings):  # type: ignore[no-untyped-def]
    """Templates are never changed, so each is known by itself; it is kept, so that no other takes its place."""
    known = (id(template), grading, fillings)
    if known not in _checked:
        _checked[known] = template, _check_template(template, grading, fillings=fillings)
    return _checked[known][1]


suite.check_template = _checked_once

# The same examples in every run of CI: a new one is found at a developer's desk, not when a change is to land.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
