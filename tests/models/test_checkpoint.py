"""Checkpoints on disk: shards, types, faults that are named, and the memory that loading takes."""

import json
import subprocess
import sys
from pathlib import Path

import jax
import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from robust_jax.errors import InputError
from robust_jax.models.checkpoint import SafetensorsFiles, checkpoint_digest, load_decoder, save_decoder
from robust_jax.models.config import DecoderConfig, read_config
from robust_jax.models.decoder import Decoder

CONFIG = DecoderConfig(
    vocab_size=48, hidden_size=32, intermediate_size=40, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=8
)
DECODER = Decoder(CONFIG, key=jax.random.key(0))


def loaded(directory: Path, **options: object) -> Decoder:
    return load_decoder(read_config(directory), SafetensorsFiles(directory), **options)


def shard(directory: Path, count: int = 3) -> dict[str, str]:
    """Spread the weights over several files, as large checkpoints are, and return the index's map."""
    single = directory / "model.safetensors"
    tensors = load_file(single)
    single.unlink()
    files = [f"model-{number + 1:05d}-of-{count:05d}.safetensors" for number in range(count)]
    weight_map = {name: files[place % count] for place, name in enumerate(sorted(tensors))}
    for file in files:
        save_file({name: tensors[name] for name, owner in weight_map.items() if owner == file}, directory / file)
    write_index(directory, weight_map)
    return weight_map


def write_index(directory: Path, weight_map: dict[str, str]) -> None:
    (directory / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def assert_equal(found: Decoder, expected: Decoder) -> None:
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(one, other)


def test_shards_hold_what_one_file_holds(tmp_path: Path) -> None:
    save_decoder(DECODER, tmp_path)
    before = checkpoint_digest(tmp_path)
    assert_equal(loaded(tmp_path), DECODER)
    shard(tmp_path)
    assert_equal(loaded(tmp_path), DECODER)
    assert checkpoint_digest(tmp_path) != before  # It is of the files; two equal sets of files agree.
    assert checkpoint_digest(tmp_path) == checkpoint_digest(tmp_path)


@pytest.mark.parametrize("stored", [np.float32, np.float16, ml_dtypes.bfloat16], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("wanted", ["float32", "bfloat16"])
def test_every_stored_type_is_converted(tmp_path: Path, stored: type, wanted: str) -> None:
    save_decoder(DECODER, tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = {name: tensor.astype(stored) for name, tensor in load_file(path).items()}
    save_file(tensors, path)
    decoder = loaded(tmp_path, dtype=wanted)
    assert {str(leaf.dtype) for leaf in jax.tree.leaves(decoder)} == {wanted}
    expected = tensors["model.layers.1.mlp.up_proj.weight"].astype(wanted)
    np.testing.assert_array_equal(decoder.layers[1].mlp.up_proj.weight[...], expected)


def test_progress_ends_at_the_models_size(tmp_path: Path) -> None:
    save_decoder(DECODER, tmp_path)
    told: list[tuple[int, int]] = []
    decoder = loaded(tmp_path, on_progress=lambda done, total: told.append((done, total)))
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(decoder))
    assert told[-1] == (size, size)
    assert told == sorted(told) and len(told) == len(jax.tree.leaves(decoder))


def damage_index_missing_shard(directory: Path) -> None:
    shard(directory)
    (directory / "model-00002-of-00003.safetensors").unlink()


def damage_index_lies(directory: Path) -> None:
    write_index(directory, shard(directory) | {"model.norm.weight": "model-00001-of-00003.safetensors"})


def damage_index(directory: Path) -> None:
    shard(directory)
    (directory / "model.safetensors.index.json").write_text("{}")


def damage_shard(directory: Path) -> None:
    shard(directory)
    path = directory / "model-00003-of-00003.safetensors"
    path.write_bytes(path.read_bytes()[:-1])


def damage_length(directory: Path) -> None:
    path = directory / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def damage_header(directory: Path) -> None:
    path = directory / "model.safetensors"
    path.write_bytes(path.read_bytes()[:8] + b"!" + path.read_bytes()[9:])


def damage_nothing_left(directory: Path) -> None:
    (directory / "model.safetensors").write_bytes(b"")


def damage_no_weights(directory: Path) -> None:
    (directory / "model.safetensors").unlink()


def damage_type(directory: Path) -> None:
    path = directory / "model.safetensors"
    tensors = load_file(path)
    save_file(tensors | {"model.norm.weight": np.ones(32, np.int8)}, path)


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (damage_index_missing_shard, r"lacks files that its index names: model-00002-of-00003\.safetensors"),
        (damage_index_lies, r"promises what is not there: model\.norm\.weight in model-00001"),
        (damage_index, r"index\.json is damaged"),
        (damage_shard, r"model-00003-of-00003\.safetensors is damaged"),
        (damage_length, "damaged"),
        (damage_header, "damaged"),
        (damage_nothing_left, "damaged"),
        (damage_no_weights, r"neither model\.safetensors nor"),
        (damage_type, r"model\.norm\.weight is stored as I8; supported: F32, F16, BF16"),
    ],
)
def test_a_damaged_checkpoint_is_an_input_error_of_one_line(tmp_path: Path, damage: object, named: str) -> None:
    save_decoder(DECODER, tmp_path)
    damage(tmp_path)
    with pytest.raises(InputError, match=named) as caught:
        loaded(tmp_path)
    assert "\n" not in str(caught.value)


def test_all_faults_of_a_checkpoint_are_named_in_one_line(tmp_path: Path) -> None:
    save_decoder(DECODER, tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["stranger"] = tensors.pop("model.norm.weight")
    tensors["another"] = np.zeros(3, np.float32)
    tensors["lm_head.weight"] = tensors["lm_head.weight"][:-1]
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(InputError) as caught:
        loaded(tmp_path)
    message = str(caught.value)
    assert "\n" not in message
    for part in (
        "missing model.norm.weight",
        "unexpected stranger",
        "unexpected another",
        "lm_head.weight has shape (47, 32), expected (48, 32)",
    ):
        assert part in message


SHARDED = """
import sys
from pathlib import Path
import jax, numpy as np
from jax.sharding import NamedSharding, PartitionSpec
from robust_jax.models.checkpoint import SafetensorsFiles, load_decoder
from robust_jax.models.config import read_config

mesh = jax.make_mesh((2, 2), ("data", "model"))
seen = []

def sharding(path, shape):
    seen.append((path, shape))
    over_columns = path[-2:] == ("o_proj", "weight")
    spec = PartitionSpec(*((None, "model") if over_columns else ("model",))) if len(shape) == 2 else PartitionSpec()
    return NamedSharding(mesh, spec)

class Counting(SafetensorsFiles):
    total = 0
    def read(self, name, index):
        part = super().read(name, index)
        Counting.total += part.nbytes
        return part

directory = Path(sys.argv[1])
config = read_config(directory)
whole = load_decoder(config, SafetensorsFiles(directory))
split = load_decoder(config, Counting(directory), sharding=sharding)
size = 0
for one, other in zip(jax.tree.leaves(split), jax.tree.leaves(whole), strict=True):
    np.testing.assert_array_equal(one, other)
    assert one.ndim == 1 or one.addressable_shards[0].data.size == one.size // 2
    size += one.nbytes
assert Counting.total == size, "two replicas, but every byte is read once"
assert (("layers", 1, "mlp", "up_proj", "weight"), (40, 32)) in seen
print("fine")
"""


def test_every_device_gets_its_part_and_every_byte_is_read_once(tmp_path: Path) -> None:
    save_decoder(DECODER, tmp_path)
    run = subprocess.run(
        [sys.executable, "-c", SHARDED, str(tmp_path)],
        env={"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.stdout == "fine\n", run.stderr


MEMORY = """
import re, sys
from pathlib import Path
import jax
from robust_jax.models.checkpoint import SafetensorsFiles, load_decoder
from robust_jax.models.config import read_config

def megabytes(key):
    return int(re.search(key + r":\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1000

directory = Path(sys.argv[1])
jax.numpy.ones(3).block_until_ready()
before = megabytes("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
decoder = load_decoder(read_config(directory), SafetensorsFiles(directory), dtype=sys.argv[2])
jax.block_until_ready(jax.tree.leaves(decoder))
leaves = jax.tree.leaves(decoder)
print(megabytes("VmHWM") - before, sum(x.nbytes for x in leaves) / 1e6, max(x.nbytes for x in leaves) / 1e6)
"""


BF16, F32 = ml_dtypes.bfloat16, np.float32


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
@pytest.mark.parametrize(
    ("layers", "stored", "wanted"),
    [
        (1, BF16, "float32"),
        pytest.param(8, BF16, "float32", marks=pytest.mark.slow),
        pytest.param(8, F32, "float32", marks=pytest.mark.slow),
        pytest.param(8, F32, "bfloat16", marks=pytest.mark.slow),
        pytest.param(8, BF16, "bfloat16", marks=pytest.mark.slow),
    ],
)
def test_loading_holds_the_model_and_less_than_a_tensor_besides(
    tmp_path: Path, layers: int, stored: type, wanted: str
) -> None:
    config = DecoderConfig(
        vocab_size=20_000,
        hidden_size=1024,
        intermediate_size=4096,
        num_layers=layers,
        num_heads=16,
        num_kv_heads=4,
        head_dim=64,
        tie_embeddings=True,
    )
    save_decoder(Decoder(config, key=jax.random.key(0)), tmp_path)
    path = tmp_path / "model.safetensors"
    save_file({name: tensor.astype(stored) for name, tensor in load_file(path).items()}, path)
    run = subprocess.run(
        [sys.executable, "-c", MEMORY, str(tmp_path), wanted], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    peak, size, largest = map(float, run.stdout.split())
    print(f"peak {peak:.0f} MB, model {size:.0f} MB, largest tensor {largest:.0f} MB")
    assert peak <= size + largest
