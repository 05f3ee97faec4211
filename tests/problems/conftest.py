"""Suites that many tests look at, read once."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from robust_jax.problems import load_suite, read_problems
from robust_jax.problems.loaded import Loaded
from robust_jax.types import Suite

APPLE = Path(__file__).parents[3] / "shared/data/gsm_symbolic/templates"


@pytest.fixture(scope="session")
def apple() -> Callable[[str], Loaded]:
    """Apple's files by folder; skips where they are not at hand."""
    if not APPLE.exists():
        pytest.skip("GSM-Symbolic is not here")
    return cache(lambda folder: read_problems(str(APPLE / folder)))


@pytest.fixture(scope="session")
def bundled() -> Callable[[str], Suite]:
    """Bundled suites by name, not checked."""
    return cache(lambda name: load_suite(name, check=False))
