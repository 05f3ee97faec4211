"""`lpds search --track wandb`: what an offline run directory of W&B then holds, and that results do not change."""

import json
import time
from pathlib import Path

import pytest

from robust_jax.cli import main
from robust_jax.models import register_mock
from tests.lpds.fragile import SUITE, Fragile

pytest.importorskip("wandb")


def test_configuration_progress_tables_and_figures_are_kept_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_drawn: bool
) -> None:
    for name in ("WANDB_API_KEY", "WANDB_BASE_URL", "WANDB_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WANDB_MODE", "offline")
    register_mock("fragile", Fragile)
    (tmp_path / "suite.yaml").write_text(SUITE)
    small = ["--reference-count", "20", "--iterations", "2", "--width", "2", "--branching", "4"]
    words = ["lpds", "search", "--model", "mock:fragile", "--suite", str(tmp_path / "suite.yaml"), *small]
    assert main([*words, "--out", str(tmp_path / "plain")]) == 0
    assert main([*words, "--out", str(tmp_path / "tracked"), "--track", "wandb"]) == 0
    first, second = (tmp_path / name / "results.json" for name in ("plain", "tracked"))
    assert first.read_bytes() == second.read_bytes()

    (run,) = (tmp_path / "tracked" / "wandb").glob("offline-run-*")
    (log,) = run.glob("*.wandb")
    told, deadline = log.read_bytes(), time.monotonic() + 60
    while b"final/beam" not in told and time.monotonic() < deadline:  # A process of W&B's own writes it.
        time.sleep(0.5)
        told = log.read_bytes()
    for name in (b"reference_count", b"search/explored", b"search/beam_accuracy", b"final/beam"):
        assert name in told
    tables = [json.loads(path.read_text()) for path in run.rglob("*.table.json")]
    templates = next(table for table in tables if "Error under search" in table["columns"])
    assert [row[0] for row in templates["data"]] == ["marbles", "stamps"]
    pictures = {path.name.partition("_")[0] for path in run.rglob("*.png")}
    assert len(list(run.rglob("*.png"))) == len(list((tmp_path / "tracked" / "figures").glob("*.png"))), pictures
