"""Reading a GGUF file: its metadata, and rows of its tensors as numbers.

Blocks are dequantised by the `gguf` package. Its reader is not used: it makes several arrays of every string, which
takes twenty times as long for the 400,000 strings of a Llama 3 tokenizer, and it does not notice a file that was cut.
"""

import struct
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFValueType
from gguf.quants import dequantize
from jaxtyping import Int, Shaped, UInt8

from robust_jax.errors import InputError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32

SCALARS = {
    GGUFValueType.UINT8: "B",
    GGUFValueType.INT8: "b",
    GGUFValueType.UINT16: "H",
    GGUFValueType.INT16: "h",
    GGUFValueType.UINT32: "I",
    GGUFValueType.INT32: "i",
    GGUFValueType.FLOAT32: "f",
    GGUFValueType.BOOL: "?",
    GGUFValueType.UINT64: "Q",
    GGUFValueType.INT64: "q",
    GGUFValueType.FLOAT64: "d",
}

PLAIN = {
    GGMLQuantizationType.F32: np.dtype(np.float32),
    GGMLQuantizationType.F16: np.dtype(np.float16),
    GGMLQuantizationType.BF16: np.dtype(ml_dtypes.bfloat16),
}

QUANTISED = (
    GGMLQuantizationType.Q8_0,
    GGMLQuantizationType.Q4_0,
    GGMLQuantizationType.Q4_1,
    # What the mixtures named Q4_K and Q5_K fall back to where a row is no multiple of 256.
    GGMLQuantizationType.Q5_0,
    GGMLQuantizationType.Q5_1,
    GGMLQuantizationType.Q4_K,
    GGMLQuantizationType.Q5_K,
    GGMLQuantizationType.Q6_K,
)


class StoredTensor(NamedTuple):
    """Where one tensor lies in the file and how it is written."""

    shape: tuple[int, ...]
    """Slowest axis first; the last axis is divided into blocks."""
    kind: GGMLQuantizationType
    offset: int
    """From the start of the file, bytes."""

    @property
    def bytes_per_row(self) -> int:
        """Of the last axis."""
        block, size = GGML_QUANT_SIZES[self.kind]
        return self.shape[-1] // block * size

    @property
    def nbytes(self) -> int:
        return prod(self.shape[:-1]) * self.bytes_per_row


class GgufFile:
    """An open GGUF file. Its tensors stay on the disk until they are read."""

    metadata: dict[str, Any]
    """Every key of the header with its number, text, or list of either."""
    tensors: dict[str, StoredTensor]
    """By their GGUF names."""

    def __init__(self, path: Path):
        """Read the header.

        Raises:
            InputError: no such file, not GGUF, cut, damaged, or with tensors of an unsupported type.
        """
        self.path = path
        try:
            self.metadata, self.tensors = _read_header(_Cursor(memoryview(self._map().data)))
        except _DamagedError as error:
            raise InputError(f"{path}: {error}; download it again") from None
        except _UnsupportedError as error:
            raise InputError(f"{path}: {error}") from None

    def read(
        self, name: str, rows: slice | Int[np.ndarray, " rows"] = slice(None), columns: slice = slice(None)
    ) -> Shaped[np.ndarray, "..."]:
        """Some rows (first axis) and columns (last axis) of a tensor, at least one of each; only their blocks are read.

        Quantised tensors come as float32, the others as they are stored.
        """
        tensor = self.tensors[name]
        raw = self._map()[tensor.offset : tensor.offset + tensor.nbytes]
        raw = raw.reshape(*tensor.shape[:-1], tensor.bytes_per_row)
        block, size = GGML_QUANT_SIZES[tensor.kind]
        start, stop, _ = columns.indices(tensor.shape[-1])
        first, last = start // block, -(-stop // block)
        raw = raw[..., first * size : last * size]
        raw = np.ascontiguousarray(raw[rows] if raw.ndim > 1 else raw)
        dtype = PLAIN.get(tensor.kind)
        numbers = dequantize(raw, tensor.kind) if dtype is None else raw.view(dtype)
        numbers = numbers[..., start - first * block : stop - first * block]
        return numbers if raw.ndim > 1 else numbers[rows]

    def _map(self) -> UInt8[np.ndarray, " bytes"]:
        """The file, mapped anew: what was read would count as the process's memory for as long as a map is kept."""
        try:
            return np.memmap(self.path, mode="r", dtype=np.uint8)
        except (OSError, ValueError) as error:  # numpy's own complaint about an empty file is a ValueError.
            raise InputError(f"{self.path} cannot be read ({error}); name a GGUF file") from None


class _DamagedError(Exception):
    """The file is not what a writer left."""


class _UnsupportedError(Exception):
    """The file is whole, but not for us."""


class _Cursor:
    """Reads a buffer from its start; never beyond its end."""

    def __init__(self, buffer: memoryview):
        self.buffer = buffer
        self.place = 0

    def take(self, size: int) -> memoryview:
        end = self.place + size
        if end > len(self.buffer):
            raise _DamagedError("the file is cut or damaged: its header reaches beyond its end")
        part = self.buffer[self.place : end]
        self.place = end
        return part

    def numbers(self, form: str, count: int = 1) -> tuple[Any, ...]:
        return struct.unpack(f"<{count}{form}", self.take(count * struct.calcsize(f"<{form}")))

    def number(self, form: str) -> Any:
        return self.numbers(form)[0]

    def text(self) -> str:
        try:
            return str(self.take(self.number("Q")), "utf-8")
        except UnicodeDecodeError:
            raise _DamagedError("the file is damaged: a text in its header is not UTF-8") from None

    def value(self, kind: int) -> Any:
        if kind in SCALARS:
            return self.number(SCALARS[GGUFValueType(kind)])
        if kind == GGUFValueType.STRING:
            return self.text()
        if kind == GGUFValueType.ARRAY:
            element, count = self.number("I"), self.number("Q")
            if element in SCALARS:
                return list(self.numbers(SCALARS[GGUFValueType(element)], count))
            if element == GGUFValueType.STRING:
                return [self.text() for _ in range(count)]
            kind = element
        raise _DamagedError(f"the file is damaged: its header holds a value of unknown type {kind}")


def _read_header(cursor: _Cursor) -> tuple[dict[str, Any], dict[str, StoredTensor]]:
    if bytes(cursor.take(4)) != MAGIC:
        raise _DamagedError("this is not a GGUF file")
    version = cursor.number("I")
    if version not in VERSIONS:
        raise _UnsupportedError(f"GGUF version {version} is not supported; supported: 2 and 3, little-endian")
    tensor_count, key_count = cursor.numbers("Q", 2)
    metadata = {}
    for _ in range(key_count):
        key = cursor.text()
        metadata[key] = cursor.value(cursor.number("I"))
    found: dict[str, tuple[tuple[int, ...], int, int]] = {}
    for _ in range(tensor_count):
        name = cursor.text()
        axes = cursor.number("I")
        shape = tuple(reversed(cursor.numbers("Q", axes)))
        found[name] = (shape, cursor.number("I"), cursor.number("Q"))
    alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if not isinstance(alignment, int) or alignment < 1:
        raise _DamagedError(f"the file is damaged: its alignment is {alignment!r}")
    start = -(-cursor.place // alignment) * alignment
    tensors = {
        name: _stored(name, shape, kind, start + offset, len(cursor.buffer))
        for name, (shape, kind, offset) in found.items()
    }
    return metadata, tensors


def _stored(name: str, shape: tuple[int, ...], kind: int, offset: int, file_size: int) -> StoredTensor:
    supported = (*PLAIN, *QUANTISED)
    if kind not in supported:
        known = {member.value: member.name for member in GGMLQuantizationType}
        raise _UnsupportedError(
            f"{name} is of type {known.get(kind, kind)}, which is not supported; "
            f"supported: {', '.join(member.name for member in supported)}"
        )
    tensor = StoredTensor(shape, GGMLQuantizationType(kind), offset)
    block, _ = GGML_QUANT_SIZES[tensor.kind]
    if not 1 <= len(shape) <= 4 or shape[-1] % block:
        raise _DamagedError(f"the file is damaged: {name} has the shape {shape}")
    if offset + tensor.nbytes > file_size:
        raise _DamagedError(f"the file is cut: {name} reaches beyond its end")
    return tensor
