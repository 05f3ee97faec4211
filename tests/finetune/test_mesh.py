"""Training on eight devices is training on one; every device holds its part of weights and optimizer from the start."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.finetune import train_over_devices

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("rank", [0, pytest.param(3, marks=pytest.mark.slow)], ids=["all weights", "adapters"])
def test_eight_devices_learn_what_one_learns(tmp_path: Path, rank: int) -> None:
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    environment = {**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, train_over_devices.__file__, str(tmp_path / "told.json"), str(rank)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads((tmp_path / "told.json").read_text())
    for mesh in ("data=8", "data=2,model=4"):
        np.testing.assert_allclose(told[mesh]["losses"], told["alone"]["losses"], rtol=1e-5)
        # Three steps of AdamW at 1e-2 move a weight by up to 3e-2.
        assert told[mesh]["apart"] < 1e-4
    assert set(told["data=8"]["shards"].values()) == {1.0}
    split = told["data=2,model=4"]
    matrices = {name: share for name, share in split["shards"].items() if "proj" in name}
    if rank:
        # Each adapter shares one axis with its matrix: the other half of it is whole everywhere.
        assert {name for name, share in matrices.items() if share == 1.0} == {
            name for name in matrices if name.endswith("down") != any(x in name for x in ("o_proj", "down_proj"))
        }
    else:
        assert max(matrices.values()) <= 0.5
    weights = sorted(split["shards"].values())
    assert sorted(split["moments"]) == sorted([*weights, *weights]), "both moments are split as their weights are"
