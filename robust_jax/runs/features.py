"""Recorded features of answered prompts: one safetensors file per item and block of work."""

import json
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np
import safetensors.numpy
from jaxtyping import Float32
from safetensors import SafetensorError, safe_open

from robust_jax.errors import InputError
from robust_jax.runs.samples import Key
from robust_jax.runs.writing import keeping, write_atomically

SUFFIX = ".safetensors"


class Place(NamedTuple):
    """Where the features of one key stand."""

    file: Path
    row: int


class FeatureStore:
    """Named arrays with a row for every answered key, under `features/<item>/<block>.safetensors`.

    A file is whole or absent. Its metadata hold the keys of its rows, its place in the order of writing, and checksums.
    A key that was written twice has the features written last.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._places: dict[str, dict[Key, Place]] = {}
        self._orders: dict[str, dict[Path, int]] = {}

    def write(
        self, item: str, block: str, keys: Sequence[Key], arrays: Mapping[str, Float32[np.ndarray, "C ..."]]
    ) -> None:
        """Write the features of one block; a block of the same name is replaced.

        Args:
            item: the item of every key.
            block: a name for this piece of work, the same whenever it is repeated.
            keys: what the rows belong to, C of them.
            arrays: such as hidden [C, l, D], embedding [C, D], output_statistics [C, 3], input_statistics [C, 3].

        Raises:
            RunError: the disk fails; what was written before is kept.
            InputError: an earlier file of the item is damaged.
            ValueError: a key is of another item, stands twice, or an array has another number of rows.
        """
        if len(set(keys)) != len(keys) or any(key[1] != item for key in keys):
            raise ValueError(f"features of {item}: keys must be of that item and differ")
        if any(len(array) != len(keys) for array in arrays.values()):
            raise ValueError(f"features of {item}: every array must have a row for each of the {len(keys)} keys")
        places = self._load(item)
        tensors = {name: np.ascontiguousarray(array, dtype=np.float32) for name, array in arrays.items()}
        file = self._folder(item) / (_file_name(block) + SUFFIX)
        orders = self._orders[item]
        # A last block that is repeated keeps its number, so that a resumed run leaves the files of an undisturbed one.
        order = 1 + max((orders[other] for other in orders if other != file), default=-1)
        with keeping(self.directory.parent):
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, _encode(order, keys, tensors))
        if file in orders:
            del self._places[item]  # Keys that only the old file had may stand in others, which are read again.
        else:
            _add(places, file, keys)
        orders[file] = order

    def has_all(self, keys: Iterable[Key]) -> bool:
        """Whether every key has features.

        Raises:
            InputError: a file is damaged.
        """
        return all(key in self._load(key[1]) for key in keys)

    def read(self, item: str) -> tuple[list[Key], dict[str, Float32[np.ndarray, "C ..."]]]:
        """All keys of an item in the order in which they were last written, and their features, a row a key.

        Raises:
            InputError: a file is damaged, or files of the item hold different features.
        """
        keys = list(self._load(item))
        return keys, self.gather(keys)

    def gather(self, keys: Sequence[Key]) -> dict[str, Float32[np.ndarray, "C ..."]]:
        """The features of given keys, of one or many items, a row a key; no arrays for no keys.

        Raises:
            KeyError: a key has no features.
            InputError: a file is damaged, or the files involved hold different features.
        """
        places = [self._load(key[1])[key] for key in keys]
        rows_by_file: dict[Path, list[int]] = {}
        for row, place in enumerate(places):
            rows_by_file.setdefault(place.file, []).append(row)
        gathered: dict[str, np.ndarray] = {}
        for file, rows in rows_by_file.items():
            tensors = _read_tensors(file)
            if not gathered:
                gathered = {name: np.empty((len(keys), *t.shape[1:]), np.float32) for name, t in tensors.items()}
            if {n: t.shape[1:] for n, t in tensors.items()} != {n: a.shape[1:] for n, a in gathered.items()}:
                raise InputError(f"{file} holds other features than {places[0].file}: keep one model's in a directory")
            for name, tensor in tensors.items():
                gathered[name][rows] = tensor[[places[row].row for row in rows]]
        return gathered

    def _folder(self, item: str) -> Path:
        return self.directory / _file_name(item)

    def _load(self, item: str) -> dict[Key, Place]:
        """Where the item's features stand; reads the heads of its files the first time."""
        if item not in self._places:
            heads = {file: _read_head(file) for file in self._folder(item).glob(f"*{SUFFIX}")}
            places: dict[Key, Place] = {}
            for file in sorted(heads, key=lambda file: heads[file].order):
                _add(places, file, heads[file].keys)
            self._orders[item] = {file: head.order for file, head in heads.items()}
            self._places[item] = places
        return self._places[item]


def _add(places: dict[Key, Place], file: Path, keys: Sequence[Key]) -> None:
    for row, key in enumerate(keys):
        places.pop(key, None)
        places[key] = Place(file, row)


def _file_name(name: str) -> str:
    """A file name for any text: itself where that is safe on every system, otherwise its letters and a digest.

    No two names share a file, not even on a disk that takes capitals for small letters.
    """
    if re.fullmatch("[a-z0-9_][a-z0-9_.-]{0,99}", name):
        return name
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return re.sub("[^a-z0-9_-]+", "-", name.lower())[:60] + "~" + digest


# --------------------------------------------------------------------------------------------------
# One file


class Head(NamedTuple):
    """What a file says about itself, in a single entry of its metadata, because the order of several is chance."""

    order: int
    """When it was written, among the files of its item."""
    rows: int
    """Checksum of its arrays."""
    keys: list[Key]
    """What the rows of its arrays belong to."""


def _encode(order: int, keys: Sequence[Key], tensors: dict[str, np.ndarray]) -> bytes:
    head = json.dumps(Head(order, _checksum(tensors), list(keys)))
    return safetensors.numpy.save(tensors, {"head": f"{zlib.crc32(head.encode())} {head}"})


def _read_head(file: Path) -> Head:
    """Raises InputError where the file is damaged."""
    try:
        with safe_open(file, framework="np") as opened:
            checksum, _, head = (opened.metadata() or {})["head"].partition(" ")
    except (OSError, SafetensorError, KeyError) as error:
        raise _damaged(file, error) from None
    if checksum != str(zlib.crc32(head.encode())):
        raise _damaged(file, "its head has changed")
    order, rows, keys = json.loads(head)
    return Head(order, rows, [(arm, item, variation, attempt) for arm, item, variation, attempt in keys])


def _read_tensors(file: Path) -> dict[str, np.ndarray]:
    """Raises InputError where the file is damaged."""
    head = _read_head(file)
    try:
        with safe_open(file, framework="np") as opened:
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, TypeError) as error:
        raise _damaged(file, error) from None
    if head.rows != _checksum(tensors):
        raise _damaged(file, "its rows have changed")
    return tensors


def _damaged(file: Path, reason: object) -> InputError:
    return InputError(
        f"{file} is damaged ({' '.join(str(reason).split())}): delete it and run the same command again "
        "to have its prompts answered again"
    )


def _checksum(tensors: Mapping[str, np.ndarray]) -> int:
    checksum = 0
    for name, tensor in sorted(tensors.items()):
        checksum = zlib.crc32(f"{name} {tensor.dtype} {tensor.shape}".encode(), checksum)
        checksum = zlib.crc32(tensor.tobytes(), checksum)
    return checksum
