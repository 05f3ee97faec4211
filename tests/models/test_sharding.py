"""A decoder split over a mesh against itself on one device: where its weights lie, what it computes, what it writes."""

import dataclasses
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from flax import nnx
from hypothesis import given
from hypothesis import strategies as st

from robust_jax.errors import InputError
from robust_jax.models.checkpoint import save_decoder
from robust_jax.models.config import DecoderConfig
from robust_jax.models.decoder import Decoder
from robust_jax.models.families import FAMILIES
from robust_jax.models.sharding import GROUP, KV, Layout, MeshShape
from tests.models import split_over_devices
from tests.models.byte_model import BYTES, byte_tokenizer

ROOT = Path(__file__).parents[2]
CONFIGS = Path(__file__).parent / "configs"


@pytest.mark.parametrize(
    ("text", "devices", "expected"),
    [
        ("data=2,model=4", 8, MeshShape(2, 4)),
        ("model=4, data=2", 8, MeshShape(2, 4)),
        ("model=8", 8, MeshShape(1, 8)),
        ("data=-1,model=2", 8, MeshShape(4, 2)),
        ("model=-1", 6, MeshShape(1, 6)),
        ("data=16,model=16", None, MeshShape(16, 16)),
        (None, 8, MeshShape(8, 1)),
    ],
)
def test_a_mesh_is_read(text: str | None, devices: int | None, expected: MeshShape) -> None:
    assert MeshShape.parse(text, devices) == expected


@pytest.mark.parametrize(
    "text",
    ["data=2,model=2", "data=-1,model=-1", "data=3,model=-1", "data=0,model=8", "tensor=8", "8", "", "data=2,data=4"],
)
def test_a_mesh_that_is_none_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InputError, match="--mesh") as caught:
        MeshShape.parse(text, 8)
    assert "\n" not in str(caught.value)


sizes = st.integers(1, 12)


@given(kv_heads=sizes, readers=sizes, mlp=st.integers(1, 64), vocabulary=st.integers(1, 300), model=sizes, data=sizes)
def test_every_weight_splits_evenly_and_query_heads_stay_with_their_keys(
    kv_heads: int, readers: int, mlp: int, vocabulary: int, model: int, data: int
) -> None:
    heads = kv_heads * readers
    config = DecoderConfig(vocabulary, 8, mlp, 1, heads, kv_heads, head_dim=2)
    layout = Layout(config, MeshShape(data, model))
    assert math.prod(layout.sizes.values()) == data * model

    def ways(axes: tuple[str, ...]) -> int:
        return math.prod(layout.sizes[axis] for axis in axes)

    rules = layout.rules
    counts = {"heads": heads, "kv_heads": kv_heads, "mlp": mlp, "vocabulary": vocabulary}
    assert all(count % ways(getattr(rules, axis)) == 0 for axis, count in counts.items())
    assert layout.replicated() == {a: ways(getattr(rules, a)) for a in counts if ways(getattr(rules, a)) < model}
    # The key/value head of every query head lies on the query head's device.
    for kv in range(layout.sizes[KV]):
        for group in range(layout.sizes[GROUP]):
            part = kv * layout.sizes[GROUP] + group if GROUP in rules.heads else kv
            width = heads // ways(rules.heads)
            read = {head // readers for head in range(part * width, (part + 1) * width)}
            mine = kv_heads // layout.sizes[KV]
            assert read <= set(range(kv * mine, (kv + 1) * mine))


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.json")), ids=lambda path: path.stem)
def test_every_matrix_of_every_family_has_a_rule(path: Path) -> None:
    config = dataclasses.replace(DecoderConfig.from_hf_config(json.loads(path.read_text())), num_layers=1)
    rules = Layout(config, MeshShape(1, 2)).rules
    decoder = nnx.eval_shape(lambda: Decoder(config, key=jax.random.key(0)))
    for where, weight in nnx.to_flat_state(nnx.state(decoder, nnx.Param)):
        spec = rules.spec(where, weight.shape)
        assert len(spec) == (len(weight.shape) if spec else 0)
        assert (len(weight.shape) == 1 and "norm" in str(where)) or any(spec)


def test_an_unknown_matrix_is_a_fault() -> None:
    rules = Layout(DecoderConfig(16, 8, 8, 1, 2, 2, 4), MeshShape()).rules
    with pytest.raises(KeyError):
        rules.spec(("layers", 0, "experts", "weight"), (4, 4))


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model with two key/value heads."""
    made = tmp_path_factory.mktemp("model")
    config = dataclasses.replace(BYTES, max_positions=96)
    save_decoder(Decoder(config, key=jax.random.key(0)), made)
    byte_tokenizer(made)
    return str(made)


@pytest.fixture(scope="module")
def on_eight_devices(directory: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `split_over_devices.py` found; the number of devices is fixed when JAX starts, so it has its own process."""
    out = tmp_path_factory.mktemp("split") / "found.json"
    environment = os.environ | {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8 --xla_backend_optimization_level=0",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": str(ROOT),
    }
    words = [sys.executable, split_over_devices.__file__, str(out), directory]
    done = subprocess.run(words, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def test_logits_states_and_cache_equal_those_of_one_device(on_eight_devices: dict[str, Any]) -> None:
    forward = on_eight_devices["forward"]
    assert {changes.get("family", "llama") for changes, _ in split_over_devices.CASES.values()} == FAMILIES.keys()
    assert len(forward) == len(split_over_devices.CASES)
    for name, found in forward.items():
        assert found["logits"] < 1e-4, name
        assert found["states"] < 1e-4, name


def test_loaded_weights_lie_as_the_rules_say(on_eight_devices: dict[str, Any]) -> None:
    expected: dict[str, dict[str, list[Any]]] = {
        # Two key/value heads over four devices: each is on two of them, with the query heads that read it.
        "llama data=2,model=4": {
            "embed_tokens": [["kv", "group"], None],
            "layers.0.self_attn.q_proj.weight": [["kv", "group"], None],
            "layers.0.self_attn.k_proj.weight": ["kv", None],
            "layers.0.self_attn.o_proj.weight": [None, ["kv", "group"]],
            "layers.0.mlp.gate_proj.weight": [["kv", "group"], None],
            "layers.0.mlp.down_proj.weight": [None, ["kv", "group"]],
            "layers.0.input_layernorm.weight": [],
        },
        "one key/value head data=4,model=2": {
            "layers.0.self_attn.k_proj.weight": ["kv", None],
            "layers.0.self_attn.q_proj.weight": [["kv", "group"], None],
        },
    }
    for name, specs in expected.items():
        placed = on_eight_devices["forward"][name]["specs"]
        assert {path: placed[path] for path in specs} == specs
    shards = on_eight_devices["forward"]["one key/value head data=4,model=2"]["shards"]
    assert shards["layers.0.self_attn.k_proj.weight"] == [8, 32]  # whole on both devices of the model axis
    assert shards["layers.0.self_attn.q_proj.weight"] == [16, 32]


def test_replies_and_features_equal_those_of_one_device(on_eight_devices: dict[str, Any], directory: str) -> None:
    expected = split_over_devices.replies(directory, "data=1")
    assert any(len(ids) > 10 for ids in expected["token_ids"])
    found = on_eight_devices["replies"]
    assert found["token_ids"] == [list(ids) for ids in expected["token_ids"]]
    for feature in ("hidden", "statistics", "embeddings"):
        np.testing.assert_allclose(np.array(found[feature]), np.array(expected[feature]), atol=1e-4)
    assert found["rows_in_place"] and all(found["rows_in_place"])
