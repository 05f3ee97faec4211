"""GGUF files byte by byte: against the package's own reader, against formulas in float64, and damaged."""

import struct
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFReader, GGUFWriter
from gguf.quants import dequantize
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_jax.errors import InputError
from robust_jax.models.gguf_file import PLAIN, QUANTISED, GgufFile
from tests.models.gguf_writing import TOKENIZER, write_gguf

KINDS = (*PLAIN, *QUANTISED)
SHAPE = (6, 1024)


def random_bytes(kind: GGMLQuantizationType, seed: int = 0) -> np.ndarray:
    """Blocks of arbitrary bits, but for the scales: those are small, finite numbers."""
    generator = np.random.default_rng(seed)
    rows, columns = SHAPE
    if kind in PLAIN:
        return generator.normal(size=SHAPE).astype(PLAIN[kind]).view(np.uint8)
    block, size = GGML_QUANT_SIZES[kind]
    blocks = generator.integers(0, 256, (rows * columns // block, size), np.uint8)
    scales = generator.normal(size=(blocks.shape[0], 2)).astype(np.float16).view(np.uint8)
    if kind == GGMLQuantizationType.Q6_K:
        blocks[:, -2:] = scales[:, :2]
    elif kind in (GGMLQuantizationType.Q8_0, GGMLQuantizationType.Q4_0, GGMLQuantizationType.Q5_0):
        blocks[:, :2] = scales[:, :2]
    else:
        blocks[:, :4] = scales
    return blocks.reshape(rows, -1)


def write_raw(path: Path, kind: GGMLQuantizationType) -> None:
    writer = GGUFWriter(path, "llama")
    stored = random_bytes(kind)
    if kind in (GGMLQuantizationType.F32, GGMLQuantizationType.F16):
        stored = stored.view(PLAIN[kind])
    writer.add_tensor("vector", np.arange(10, dtype=np.float32))
    writer.add_tensor("matrix", stored, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_numbers_are_those_of_the_packages_own_reader(tmp_path: Path, kind: GGMLQuantizationType) -> None:
    write_raw(tmp_path / "m.gguf", kind)
    file = GgufFile(tmp_path / "m.gguf")
    reference = {tensor.name: tensor for tensor in GGUFReader(tmp_path / "m.gguf").tensors}
    assert file.tensors.keys() == reference.keys()
    assert file.tensors["matrix"].shape == SHAPE
    found = file.read("matrix")
    assert found.dtype == PLAIN.get(kind, np.float32)
    np.testing.assert_array_equal(found.astype(np.float32), dequantize(reference["matrix"].data, kind))
    np.testing.assert_array_equal(file.read("vector", slice(2, 7)), np.arange(2, 7))


def halves(block: np.ndarray) -> np.ndarray:
    return np.concatenate([block & 15, block >> 4])


def scale(block: np.ndarray, place: int) -> float:
    return float(block[place : place + 2].view(np.float16)[0])


def q8_0(block: np.ndarray) -> np.ndarray:
    return scale(block, 0) * block[2:].view(np.int8).astype(np.float64)


def q4_0(block: np.ndarray) -> np.ndarray:
    return scale(block, 0) * (halves(block[2:]).astype(np.float64) - 8)


def q4_1(block: np.ndarray) -> np.ndarray:
    return scale(block, 0) * halves(block[4:]).astype(np.float64) + scale(block, 2)


def fifth_bits(block: np.ndarray) -> np.ndarray:
    return np.unpackbits(block, bitorder="little").astype(np.int64) * 16


def q5_0(block: np.ndarray) -> np.ndarray:
    return scale(block, 0) * (halves(block[6:]) + fifth_bits(block[2:6]) - 16.0)


def q5_1(block: np.ndarray) -> np.ndarray:
    return scale(block, 0) * (halves(block[8:]) + fifth_bits(block[4:8])).astype(np.float64) + scale(block, 2)


def six_bit_pairs(packed: np.ndarray) -> list[tuple[int, int]]:
    """The eight (scale, minimum) pairs in the 12 bytes of Q4_K and Q5_K."""
    pairs = []
    for place in range(8):
        if place < 4:
            pairs.append((int(packed[place]) & 63, int(packed[place + 4]) & 63))
        else:
            low, high_scale, high_minimum = int(packed[place + 4]), int(packed[place - 4]), int(packed[place])
            pairs.append((low & 15 | high_scale >> 6 << 4, low >> 4 | high_minimum >> 6 << 4))
    return pairs


def q4_k(block: np.ndarray) -> np.ndarray:
    numbers = []
    for place, (step, minimum) in enumerate(six_bit_pairs(block[4:16])):
        packed = block[16 + 32 * (place // 2) : 48 + 32 * (place // 2)]
        bits = packed >> 4 if place % 2 else packed & 15
        numbers.append(scale(block, 0) * step * bits.astype(np.float64) - scale(block, 2) * minimum)
    return np.concatenate(numbers)


def q5_k(block: np.ndarray) -> np.ndarray:
    numbers = []
    for place, (step, minimum) in enumerate(six_bit_pairs(block[4:16])):
        packed = block[48 + 32 * (place // 2) : 80 + 32 * (place // 2)]
        bits = (packed >> 4 if place % 2 else packed & 15) + 16 * (block[16:48] >> place & 1)
        numbers.append(scale(block, 0) * step * bits.astype(np.float64) - scale(block, 2) * minimum)
    return np.concatenate(numbers)


def q6_k(block: np.ndarray) -> np.ndarray:
    low, high, steps = block[:128], block[128:192], block[192:208].view(np.int8)
    numbers = np.empty(256)
    for place in range(256):
        side, quarter, column = place // 128, place % 128 // 32, place % 32
        four = low[64 * side + 32 * (quarter % 2) + column] >> (4 * (quarter // 2)) & 15
        two = high[32 * side + column] >> (2 * quarter) & 3
        numbers[place] = scale(block, 208) * float(steps[place // 16]) * (int(four) + 16 * int(two) - 32)
    return numbers


FORMULAS: dict[GGMLQuantizationType, Callable[[np.ndarray], np.ndarray]] = {
    GGMLQuantizationType.Q8_0: q8_0,
    GGMLQuantizationType.Q4_0: q4_0,
    GGMLQuantizationType.Q4_1: q4_1,
    GGMLQuantizationType.Q5_0: q5_0,
    GGMLQuantizationType.Q5_1: q5_1,
    GGMLQuantizationType.Q4_K: q4_k,
    GGMLQuantizationType.Q5_K: q5_k,
    GGMLQuantizationType.Q6_K: q6_k,
}


@pytest.mark.parametrize("kind", QUANTISED, ids=lambda kind: kind.name)
def test_numbers_are_those_of_the_formula(tmp_path: Path, kind: GGMLQuantizationType) -> None:
    write_raw(tmp_path / "m.gguf", kind)
    blocks = random_bytes(kind).reshape(-1, GGML_QUANT_SIZES[kind][1])
    expected = np.concatenate([FORMULAS[kind](block) for block in blocks]).reshape(SHAPE)
    np.testing.assert_allclose(GgufFile(tmp_path / "m.gguf").read("matrix"), expected, rtol=1e-5, atol=1e-4)


@pytest.fixture(scope="module", params=[GGMLQuantizationType.F16, GGMLQuantizationType.Q4_1, GGMLQuantizationType.Q6_K])
def matrix_file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> GgufFile:
    path = tmp_path_factory.mktemp("gguf") / "m.gguf"
    write_raw(path, request.param)
    return GgufFile(path)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6), st.integers(0, 1023), st.integers(1, 1024))
@settings(max_examples=60, deadline=None)
def test_a_part_is_that_part_of_the_whole(matrix_file: GgufFile, rows: list[int], start: int, count: int) -> None:
    whole = matrix_file.read("matrix")
    columns = slice(start, min(start + count, 1024))
    np.testing.assert_array_equal(matrix_file.read("matrix", slice(1, 4), columns), whole[1:4, columns])
    chosen = np.array(rows, int)
    np.testing.assert_array_equal(matrix_file.read("matrix", chosen, columns), whole[chosen, columns])


METADATA = {
    "general.architecture": "llama",
    "llama.block_count": 3,
    "llama.rope.freq_base": 0.5,
    "some.flag": True,
    "some.numbers": [1, 2, 3],
    **TOKENIZER,
}


def test_metadata_is_that_of_the_packages_own_reader(tmp_path: Path) -> None:
    write_gguf(tmp_path / "m.gguf", METADATA, {"token_embd.weight": np.ones((44, 32))})
    file = GgufFile(tmp_path / "m.gguf")
    fields = GGUFReader(tmp_path / "m.gguf").fields
    reference = {key: field.contents() for key, field in fields.items() if not key.startswith("GGUF.")}
    assert file.metadata == reference
    assert METADATA.items() <= file.metadata.items()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("gguf") / "m.gguf"
    write_gguf(path, METADATA, {"token_embd.weight": np.ones((8, 32)), "output_norm.weight": np.ones(32)})
    return path.read_bytes()


def opened(tmp_path: Path, content: bytes) -> GgufFile:
    path = tmp_path / "damaged.gguf"
    path.write_bytes(content)
    return GgufFile(path)


@given(st.data())
@settings(deadline=None)
def test_a_cut_file_is_refused_wherever_it_ends(
    tmp_path_factory: pytest.TempPathFactory, whole: bytes, data: st.DataObject
) -> None:
    end = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(InputError, match=r"cut|cannot be read|not a GGUF file") as caught:
        opened(tmp_path_factory.getbasetemp(), whole[:end])
    assert "\n" not in str(caught.value)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_a_damaged_file_is_read_or_refused_but_never_crashes(
    tmp_path_factory: pytest.TempPathFactory, whole: bytes, data: st.DataObject
) -> None:
    content = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        file = opened(tmp_path_factory.getbasetemp(), bytes(content))
        for name in file.tensors:
            file.read(name)
    except InputError as error:
        assert "\n" not in str(error)


def test_an_unsupported_type_is_named(tmp_path: Path) -> None:
    writer = GGUFWriter(tmp_path / "m.gguf", "llama")
    size = GGML_QUANT_SIZES[GGMLQuantizationType.IQ4_NL][1]
    writer.add_tensor("blk.0.attn_q.weight", np.zeros((2, size), np.uint8), raw_dtype=GGMLQuantizationType.IQ4_NL)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(InputError, match=r"blk\.0\.attn_q\.weight is of type IQ4_NL.*supported: F32, .*Q6_K"):
        GgufFile(tmp_path / "m.gguf")


def test_another_version_is_named(tmp_path: Path, whole: bytes) -> None:
    with pytest.raises(InputError, match="GGUF version 1 is not supported"):
        opened(tmp_path, whole[:4] + struct.pack("<I", 1) + whole[8:])


def test_half_precision_stays_half_precision(tmp_path: Path) -> None:
    write_raw(tmp_path / "m.gguf", GGMLQuantizationType.BF16)
    assert GgufFile(tmp_path / "m.gguf").read("matrix", slice(0, 1)).dtype == ml_dtypes.bfloat16
