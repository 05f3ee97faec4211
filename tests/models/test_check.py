"""`models check`: parameters and bytes on each device, from a configuration alone."""

import json
import shutil
from pathlib import Path

import pytest

from robust_jax.cli import main
from robust_jax.models.check import estimate
from robust_jax.models.config import DecoderConfig
from robust_jax.models.sharding import Layout, MeshShape

CONFIGS = Path(__file__).parent / "configs"

PARAMETERS = {
    "llama-3.2-3b": 3_212_749_824,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-32b": 32_763_876_352,
    "qwen2.5-72b": 72_706_203_648,
    "phi-4": 14_659_507_200,
}
"""As the models' own pages and safetensors indices give them."""


def config(name: str) -> DecoderConfig:
    return DecoderConfig.from_hf_config(json.loads((CONFIGS / f"{name}.json").read_text()))


def directory(tmp_path: Path, name: str) -> str:
    shutil.copy(CONFIGS / f"{name}.json", tmp_path / "config.json")
    return str(tmp_path)


@pytest.mark.parametrize(("name", "parameters"), PARAMETERS.items())
def test_the_papers_models_are_counted_and_split(name: str, parameters: int) -> None:
    sizes = config(name)
    alone = estimate(sizes, Layout(sizes, MeshShape()), dtype="bfloat16", rows=8, context=1024)
    assert alone.parameters == parameters
    assert alone.weights == alone.device_weights == 2 * parameters
    assert alone.device_cache == 2 * 2 * sizes.num_layers * sizes.num_kv_heads * sizes.head_dim * 8 * 1024
    layout = Layout(sizes, MeshShape(data=4, model=2))
    parted = estimate(sizes, layout, dtype="bfloat16", rows=8, context=1024)
    norms = 2 * sizes.hidden_size * (2 * sizes.num_layers + 1)
    # All of the seven split evenly over two devices: what is on both are the norms.
    assert parted.device_weights == (alone.weights - norms) // 2 + norms
    assert parted.device_cache == alone.device_cache // 8


def test_fewer_key_value_heads_than_devices_are_copied() -> None:
    sizes = config("qwen2.5-7b")  # 28 heads over 4 key/value heads
    layout = Layout(sizes, MeshShape(model=8))
    # Seven heads read each key/value head: they do not split over the two devices that have it.
    assert layout.replicated() == {"heads": 4, "kv_heads": 4}
    found = estimate(sizes, layout, dtype="float32", rows=2, context=16)
    attention = 2 * 3584 * (3584 + 512) + 3584 + 2 * 512
    rest = 28 * 3 * 3584 * 18944 + 2 * 152064 * 3584
    norms = 3584 * (2 * 28 + 1)
    assert found.device_weights == 4 * (28 * attention // 4 + rest // 8 + norms)


def test_a_mesh_beyond_this_machine_is_told_from_a_configuration_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["models", "check", directory(tmp_path, "llama-3.1-70b"), "--dtype", "bfloat16", "--context", "4096"]
    assert main([*words, "--mesh", "data=2,model=8", "--memory", "80GiB"]) == 0
    told = capsys.readouterr().out
    assert "parameters: 70,553,706,496, 131.42 GiB in bfloat16" in told
    assert "devices: 16" in told
    assert "weights 16.43 GiB, keys and values of 128 rows of 4096 tokens 10.00 GiB, together 26.43 GiB" in told
    assert told.endswith(": fits\n")
    assert main([*words, "--mesh", "model=2", "--memory", "80GB"]) == 0
    assert capsys.readouterr().out.endswith(": does not fit\n")


def test_what_is_kept_in_copies_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "check", directory(tmp_path, "phi-4"), "--mesh", "model=4", "--memory", "16GiB"]) == 0
    told = capsys.readouterr().out
    assert "key/value heads: in 2 parts, with 2 copies along the model axis" in told


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--mesh", "data=2,modle=4"], "data=2,model=4"),
        (["--mesh", "data=2,model=-1"], "number of devices"),
        (["--mesh", "model=2", "--memory", "80 gigs"], "80GiB"),
        (["--mesh", "model=2", "--batch-size", "0"], "at least 1"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], named: str
) -> None:
    assert main(["models", "check", directory(tmp_path, "llama-3.1-8b"), *words]) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert named in message
