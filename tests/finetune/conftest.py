"""A finished search of the built-in model, made once, and the sets that come of it."""

from pathlib import Path

import pytest

from robust_jax.finetune.data import make_data
from robust_jax.finetune.options import DataOptions
from robust_jax.lpds.options import SearchOptions
from robust_jax.lpds.search import run_search


@pytest.fixture(scope="session")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("search") / "run"
    options = SearchOptions(
        out=out, limit=3, reference_count=20, reference_attempts=100, iterations=3, width=4, branching=6
    )
    run_search(options)
    return out


@pytest.fixture(scope="session")
def data(searched: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("data") / "sets"
    make_data(DataOptions(search=searched, out=out, evaluated=4, evaluated_wrong=4))
    return out
