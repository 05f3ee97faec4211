"""Pooling seeds and comparing training sets."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robust_jax.errors import InputError
from robust_jax.finetune.accuracy import change, difference, pooled, set_results, share_right
from robust_jax.finetune.data import EVALUATED
from robust_jax.finetune.options import TableOptions
from robust_jax.finetune.tables import make_tables


def kept(out: Path, train: str, seed: int, right: int, **changes: Any) -> Path:
    tally = {f"t{n}": (10, min(10, right + n % 2), 3) for n in range(8)}
    sets = {name: set_results(tally, seed, name) for name in EVALUATED}
    settings = {"seed": seed, "data_seed": seed}
    if train != "before":
        settings |= {"rate": 1e-4, "accumulation": 4, "warm_up": 0.03, "weight_decay": 0.1}
    kind = "finetune evaluate" if train == "before" else "finetune run"
    results = {"kind": kind, "train": train, "model": "m", "suite": "s", "settings": settings, "sets": sets, **changes}
    folder = out / f"{train}-{seed}-{len(changes)}"
    folder.mkdir(parents=True)
    (folder / "results.json").write_text(json.dumps(results))
    return folder


def test_seeds_are_pooled_and_rows_are_in_the_order_of_the_paper(tmp_path: Path) -> None:
    runs = [
        kept(tmp_path, "random", 0, 5),
        kept(tmp_path, "q_high", 0, 6),
        kept(tmp_path, "q_high", 1, 8),
        kept(tmp_path, "before", 0, 3),
    ]
    accuracies, changes, apart, hyper = make_tables(TableOptions(runs=tuple(runs), out=tmp_path / "table"))
    assert [row[0].text for row in accuracies.rows] == ["-", "Q_high (100%)", "Random sampling"]
    assert accuracies.rows[1][1].key == pytest.approx((6.5 + 8.5) / 20)
    assert [row[0].text for row in changes.rows] == ["Q_high (100%)", "Random sampling"]
    assert changes.rows[0][1].key == pytest.approx(0.75 - 0.3)
    assert [row[0].text for row in apart.rows] == ["Q_high (100%)"]
    assert apart.rows[0][1].key == pytest.approx(0.75 - 0.55)
    assert hyper.rows[0][1].text == "0.0001"
    written = (tmp_path / "table" / "tables.md").read_text()
    assert "2 seeds pooled" in written and "| Q_high (100%) | 75.0% (" in written


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [({"model": "other"}, "not of one model"), ({"kind": "lpds search"}, "has no place"), ({"more": 1}, "same seed")],
)
def test_runs_that_do_not_belong_together_are_refused(
    tmp_path: Path, changes: dict[str, object], complaint: str
) -> None:
    runs = (kept(tmp_path, "q_low", 0, 5), kept(tmp_path, "q_low", 0, 5, **changes))
    with pytest.raises(InputError, match=complaint):
        make_tables(TableOptions(runs=runs))


@pytest.mark.parametrize("changes", [{"sets": {}}, {"sets": 3}, {"settings": {"seed": 0}}, {"model": None}])
def test_damaged_results_are_told(tmp_path: Path, changes: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"results\.json is damaged"):
        make_tables(TableOptions(runs=(kept(tmp_path, "q_low", 0, 5, **changes),)))


def test_intervals_are_over_templates_and_weigh_answers() -> None:
    counted = {"a": (10, 10, 0), "b": (30, 0, 0), "c": (20, 10, 5)}
    interval = share_right(counted, 0, "test")
    assert (interval.value, interval.n) == (20 / 60, 3)
    assert interval.low < interval.value < interval.high
    changed = change(counted, 0, "test")
    assert changed is not None and changed.value == pytest.approx(15 / 60)
    assert change({"a": (1, 1, None)}, 0, "test") is None


def test_a_model_differs_from_itself_by_nothing() -> None:
    counted = {f"t{n}": (10, n, 0) for n in range(9)}
    same = difference(counted, counted, 0, "test")
    assert (same.value, same.low, same.high) == (0, 0, 0)
    joined = pooled([counted, counted])
    assert np.isclose(share_right(joined, 0, "x").value, share_right(counted, 0, "x").value)
    assert joined["t3"] == (20, 6, 0)
