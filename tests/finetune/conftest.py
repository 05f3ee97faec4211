"""A finished search of the built-in model, made once, and the sets that come of it."""

from pathlib import Path

import pytest
import yaml

from robust_jax.finetune.data import make_data
from robust_jax.finetune.options import DataOptions
from robust_jax.lpds.options import SearchOptions
from robust_jax.lpds.search import run_search
from robust_jax.lpds.session import open_session
from robust_jax.runs.tracking import Untracked

GRADE_SCHOOL = Path(__file__).parents[2] / "robust_jax" / "problems" / "suites" / "grade_school.yaml"


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first three templates of what the built-in model has learnt."""
    file = tmp_path_factory.mktemp("suite") / "suite.yaml"
    whole = yaml.safe_load(GRADE_SCHOOL.read_text())
    file.write_text(yaml.safe_dump({**whole, "templates": whole["templates"][:3]}))
    return file


@pytest.fixture(scope="session")
def searched(suite: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("search") / "run"
    options = SearchOptions(
        out=out, suite=str(suite), reference_count=20, reference_attempts=100, iterations=3, width=4, branching=6
    )
    with open_session(options, "lpds search") as session:
        run_search(session, Untracked())
    return out


@pytest.fixture(scope="session")
def data(searched: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("data") / "sets"
    make_data(DataOptions(search=searched, out=out, evaluated=4, evaluated_wrong=4))
    return out
