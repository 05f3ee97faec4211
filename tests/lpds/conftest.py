"""Drawing takes most of the time of a small run, and the figures have tests of their own."""

import pytest


@pytest.fixture
def is_drawn() -> bool:
    """Asked for by a test whose reports are to have their figures."""
    return True


@pytest.fixture(autouse=True)
def no_drawing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "is_drawn" not in request.fixturenames:
        monkeypatch.setattr("robust_jax.report.figures", lambda results: [])
