"""Reading and writing Hugging Face checkpoints: config.json and safetensors, never pickle.

Every device gets its part of a parameter straight from the file, so a host never holds more than its devices do and
one tensor besides.
"""

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from robust_jax.errors import InputError
from robust_jax.models.config import DecoderConfig
from robust_jax.models.decoder import Decoder
from robust_jax.models.families import tensor_table

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
STORED_DTYPES = ("F32", "F16", "BF16")
SLAB_BYTES = 2**24
"""How much of a parameter is read at a time."""

ParameterPath = tuple[str | int, ...]
"""Where a parameter stands in the decoder, such as ("layers", 0, "mlp", "up_proj", "weight")."""


@runtime_checkable
class TensorFile(Protocol):
    """Named tensors of a model on disk, under the names that Hugging Face checkpoints give them.

    `str()` of it names it in messages.
    """

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Every tensor's shape by its name."""

    def read(self, name: str, index: tuple[slice, ...]) -> np.ndarray:
        """A part of a tensor, without loading the rest of it, in float32, float16 or bfloat16.

        Args:
            index: a slice an axis, without steps.

        Raises:
            InputError: the file is damaged.
        """


class SafetensorsFiles:
    """The weights of a checkpoint directory: `model.safetensors`, or an index with its shards."""

    def __init__(self, directory: Path):
        """Read the names and shapes, but no tensor.

        Raises:
            InputError: there are no weights, a file is missing, damaged or of an unsupported type, or a shard lacks
                what the index promises.
        """
        self.directory = directory
        self.files = weight_files(directory)
        self._places: dict[str, Path] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        for path in self.files:
            with _open(path) as file:
                for name in sorted(file.keys()):
                    piece = file.get_slice(name)
                    if piece.get_dtype() not in STORED_DTYPES:
                        raise InputError(
                            f"{path}: {name} is stored as {piece.get_dtype()}; supported: {', '.join(STORED_DTYPES)}"
                        )
                    self._places[name], self._shapes[name] = path, tuple(piece.get_shape())
        promised = _index(directory)
        if lacking := sorted(name for name, path in promised.items() if self._places.get(name) != path):
            listed = ", ".join(f"{name} in {promised[name].name}" for name in lacking)
            raise InputError(f"{directory / INDEX} promises what is not there: {listed}; download the model again")

    def __str__(self) -> str:
        return str(self.directory)

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return self._shapes

    def read(self, name: str, index: tuple[slice, ...]) -> np.ndarray:
        # The file is opened anew: its mapped pages would count as the process's memory for as long as it is open.
        with _open(self._places[name]) as file:
            part: np.ndarray = file.get_slice(name)[index]
            return part


def weight_files(directory: Path) -> list[Path]:
    """The safetensors files of a checkpoint directory.

    Raises:
        InputError: there are none, or the index names some that are missing.
    """
    single = directory / WEIGHTS
    files = [single] if single.exists() else sorted(set(_index(directory).values()))
    if not files:
        raise InputError(f"{directory} is not a checkpoint: it has neither {WEIGHTS} nor {INDEX}")
    if missing := [path.name for path in files if not path.exists()]:
        raise InputError(
            f"{directory} lacks files that its index names: {', '.join(missing)}; download the model again"
        )
    return files


def load_decoder(
    config: DecoderConfig,
    tensors: TensorFile,
    *,
    dtype: str = "float32",
    sharding: Callable[[ParameterPath, tuple[int, ...]], jax.sharding.Sharding] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Decoder:
    """The decoder of a configuration with its weights from a file.

    Args:
        dtype: of the parameters, whatever the file stores.
        sharding: where a parameter of a given path and shape goes; without it, to the default device.
        on_progress: told after every parameter how many bytes of how many are loaded.

    Raises:
        InputError: a damaged file, or tensors that do not fit the configuration: all missing, unexpected and misshapen
            names are in the one message.
    """
    decoder = nnx.eval_shape(lambda: Decoder(config, key=jax.random.key(0)))
    parameters = _parameters(decoder)
    table = tensor_table(config.traits, config.num_layers, parameters)
    _check(config, tensors, {name: [parameters[part][1].shape for part in parts] for name, parts in table.items()})
    starts: dict[str, tuple[str, int]] = {}
    for name, parts in table.items():
        row = 0
        for part in parts:
            starts[part] = (name, row)
            row += parameters[part][1].shape[0]
    width = jnp.dtype(dtype).itemsize
    done, total = 0, width * sum(variable.size for _, variable in parameters.values())
    # Largest first: what a tensor needs on its way in is at its highest while little else is there.
    for part, (path, variable) in sorted(parameters.items(), key=lambda item: -item[1][1].size):
        placed = sharding(path, variable.shape) if sharding else None
        variable.set_value(_load(tensors, *starts[part], variable.shape, jnp.dtype(dtype), placed))
        done += width * variable.size
        if on_progress:
            on_progress(done, total)
    return decoder


DESCRIPTIONS = {".json", ".jinja", ".txt", ".model"}
"""Endings of the files that hold configurations, chat templates and tokenizers."""


def checkpoint_digest(directory: Path) -> str:
    """What tells this checkpoint from another: a digest of its configuration, its weights and its tokenizer's files."""

    def digest(path: Path) -> bytes:
        with path.open("rb") as file:
            return file_digest(file, "sha256").digest()

    with ThreadPoolExecutor() as pool:
        described = sorted(path for path in directory.iterdir() if path.suffix in DESCRIPTIONS and path.is_file())
        parts = list(pool.map(digest, [*described, *weight_files(directory)]))
    return sha256(b"".join(parts)).hexdigest()[:16]


def save_decoder(decoder: Decoder, directory: Path) -> None:
    """Write a checkpoint that `load_decoder` and `transformers` read (the tokenizer is written by its owner)."""
    directory.mkdir(parents=True, exist_ok=True)
    config, parameters = decoder.config, _parameters(decoder)
    tensors = {
        name: np.concatenate([np.asarray(parameters[part][1][...]) for part in parts])
        for name, parts in tensor_table(config.traits, config.num_layers, parameters).items()
    }
    save_file(tensors, directory / WEIGHTS, metadata={"format": "pt"})
    written = config.to_hf_config() | {"dtype": str(decoder.embed_tokens.dtype)}
    (directory / "config.json").write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")


def _parameters(decoder: Decoder) -> dict[str, tuple[ParameterPath, nnx.Param]]:
    """The decoder's parameters with their paths, by their dotted names."""
    flat = nnx.to_flat_state(nnx.state(decoder, nnx.Param))
    return {".".join(map(str, path)): (path, variable) for path, variable in flat}


def _check(config: DecoderConfig, tensors: TensorFile, wanted: Mapping[str, list[tuple[int, ...]]]) -> None:
    """Compare names and shapes; a tensor holds its parts one below the other."""
    found = tensors.shapes
    problems = [f"missing {name}" for name in sorted(wanted.keys() - found.keys())]
    problems += [
        f"unexpected {name}" for name in sorted(found.keys() - wanted.keys()) if not _is_redundant(name, config)
    ]
    for name in sorted(wanted.keys() & found.keys()):
        expected = (sum(shape[0] for shape in wanted[name]), *wanted[name][0][1:])
        if tuple(found[name]) != expected:
            problems.append(f"{name} has shape {tuple(found[name])}, expected {expected}")
    if config.tie_embeddings and HEAD in found and not _are_equal(tensors, HEAD, EMBEDDING):
        problems.append(f"{HEAD} is not the embedding that tie_word_embeddings says it is")
    if problems:
        raise InputError(f"the weights of {tensors} do not fit its configuration: {'; '.join(problems)}")


def _are_equal(tensors: TensorFile, one: str, other: str) -> bool:
    """Whether two tensors hold the same; one that is not there is found missing elsewhere."""
    shapes = tensors.shapes
    if shapes[one] != shapes.get(other):
        return other not in shapes
    if len(shapes[one]) != 2 or 0 in shapes[one]:
        return True  # Their shapes are found wrong elsewhere.
    rows, columns = shapes[one]
    step = max(1, SLAB_BYTES // (4 * columns))
    slabs = [(slice(start, min(start + step, rows)), slice(0, columns)) for start in range(0, rows, step)]
    return all(np.array_equal(tensors.read(one, slab), tensors.read(other, slab)) for slab in slabs)


def _is_redundant(name: str, config: DecoderConfig) -> bool:
    """Whether some exporters write this tensor although the configuration makes it superfluous."""
    return name.endswith("rotary_emb.inv_freq") or (config.tie_embeddings and name == HEAD)


def _load(
    tensors: TensorFile,
    name: str,
    first_row: int,
    shape: tuple[int, ...],
    dtype: np.dtype,
    sharding: jax.sharding.Sharding | None,
) -> jax.Array:
    """One parameter, which begins at `first_row` of a tensor, with each device's part read once."""
    read: dict[tuple[tuple[int, int], ...], np.ndarray] = {}

    def part(index: tuple[slice, ...] | None) -> np.ndarray:
        assert index is not None
        bounds = tuple(axis.indices(size)[:2] for axis, size in zip(index, shape, strict=True))
        if bounds not in read:
            read[bounds] = _read(tensors, name, first_row, bounds, dtype)
        return read[bounds]

    if sharding is None:
        return jnp.asarray(part((slice(None),) * len(shape)))
    return jax.make_array_from_callback(shape, sharding, part)


def _read(
    tensors: TensorFile, name: str, first_row: int, bounds: tuple[tuple[int, int], ...], dtype: np.dtype
) -> np.ndarray:
    """A part of a parameter, slab by slab, so that the stored and the converted form never both stand whole."""
    (top, bottom), *rest = bounds
    values = _aligned(tuple(stop - start for start, stop in bounds), dtype)
    step = max(1, SLAB_BYTES // max(1, values[:1].nbytes))
    for start in range(top, bottom, step):
        stop = min(start + step, bottom)
        index = (slice(first_row + start, first_row + stop), *(slice(*bound) for bound in rest))
        values[start - top : stop - top] = tensors.read(name, index)
    return values


def _aligned(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Uninitialised memory at a multiple of 64 bytes, which a CPU device takes as it is, without copying it."""
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.empty(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)


def _index(directory: Path) -> dict[str, Path]:
    """The shard of every tensor; nothing if all weights are in one file."""
    path = directory / INDEX
    if (directory / WEIGHTS).exists() or not path.exists():
        return {}
    try:
        shards: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))["weight_map"]
        # Only the last part of a name counts: an index reaches no file outside its directory.
        return {name: directory / Path(shard).name for name, shard in shards.items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path} is damaged; download it again") from None


def _open(path: Path) -> Any:
    try:
        return safe_open(path, framework="numpy")
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path} is damaged ({error}); download it again") from None
