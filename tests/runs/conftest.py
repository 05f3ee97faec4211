"""Everything here waits for the disk time and again: a disk in memory answers at once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runs.making_samples import temporary_folder


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with temporary_folder() as folder:
        yield folder
