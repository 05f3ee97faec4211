"""A run directory in memory, where every file that must be safe on its disk is so at once, and results to draw."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.report.made_up_results import make_examples, make_measure_results, make_search_results
from tests.runs.making_samples import temporary_folder


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with temporary_folder() as folder:
        yield folder


@pytest.fixture
def search_results() -> dict[str, Any]:
    return make_search_results(100)


@pytest.fixture
def measure_results() -> dict[str, Any]:
    return make_measure_results(100)


@pytest.fixture
def examples() -> list[dict[str, Any]]:
    return make_examples(6, 12)
