"""Without a GPU: the Triton kernel compiles to machine code that is short enough, and JAX embeds it in its program."""

import os
import re
import subprocess
import sys
import zlib
from pathlib import Path

import jax
import numpy as np
import pytest

from robust_jax.kernels.levenshtein_tables import WORD_BITS, PatternTables
from tests.kernels.levenshtein_cases import sequences

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Triton is made for Linux only")

COMPUTE_CAPABILITIES = [80, 90, 100]
"""A100; H100, H200; B200."""


@pytest.mark.parametrize("compute_capability", COMPUTE_CAPABILITIES)
def test_instructions_per_cell(compute_capability: int, tmp_path: Path) -> None:
    from benchmarks.machine_code import compiled

    words = 7  # 200 tokens
    code = compiled(compute_capability, words, tmp_path)
    cells = words * WORD_BITS
    step = code.step
    assert step["LDG"] == words + 1  # the match words and the next token, and nothing that was spilt
    assert sum(step.values()) / cells < 0.55
    assert code.step_logic / cells < 0.36
    assert code.stack == 0
    assert not code.everywhere.keys() & {"LDL", "STL"}
    assert code.registers <= 64  # so that 32 warps fit on a multiprocessor


@pytest.mark.parametrize("words", [1, 8])
def test_other_sizes_stay_in_registers(words: int, tmp_path: Path) -> None:
    from benchmarks.machine_code import compiled

    code = compiled(90, words, tmp_path)
    assert code.stack == 0
    assert code.registers <= 64


@pytest.mark.parametrize("compute_capability", COMPUTE_CAPABILITIES)
def test_whole_call_lowers_for_a_gpu(compute_capability: int) -> None:
    from robust_jax.kernels.levenshtein_triton import call_kernel, widely_readable

    rng = np.random.default_rng(0)
    (group,) = PatternTables.of(sequences(rng, [300] * 40, 50), 50).groups
    arrays = group.matches, group.descriptions, group.lengths, np.zeros(1024, np.int32), np.zeros(9, np.int32)
    traced = call_kernel.trace(*arrays, group.words, group.chains, 640, compute_capability)
    with widely_readable(compute_capability):
        program = traced.lower(lowering_platforms=("cuda",)).as_text()
    embedded = b"".join(_embedded_kernels(program))
    assert f".target sm_{compute_capability}".encode() in embedded
    (version,) = re.findall(rb"\.version (\d+)\.(\d+)", embedded)
    assert tuple(map(int, version)) <= (8, 8)  # which CUDA 12.9 reads, and all later ones
    assert b"distances_kernel" in embedded
    assert "tensor<8x2x32xi32>" in program  # distances of 8 responses from 2 blocks


def test_export_for_a_gpu() -> None:
    from robust_jax.kernels.levenshtein_triton import call_kernel

    rng = np.random.default_rng(0)
    (group,) = PatternTables.of(sequences(rng, [20] * 3, 9), 9).groups
    arrays = group.matches, group.descriptions, group.lengths, np.zeros(1024, np.int32), np.zeros(9, np.int32)
    call = jax.jit(lambda *given: call_kernel(*given, group.words, group.chains, 64, 90))
    checks = [
        jax.export.DisabledSafetyCheck.custom_call(f"triton_kernel_call{suffix}")
        for suffix in ("", "_ffi")  # by its name in jax-triton 0.3 and 0.4
    ]
    exported = jax.export.export(call, platforms=["cuda"], disabled_checks=checks)(*arrays)
    assert exported.platforms == ("cuda",)
    assert [(out.shape, out.dtype) for out in exported.out_avals] == [((8, 1, 32), np.int32)]


def test_other_users_of_triton_keep_their_cache() -> None:
    script = "import os; from robust_jax.kernels.levenshtein_triton import _jax_triton; _jax_triton();"
    show = "print(os.environ.get('TRITON_CACHE_DIR'))"
    for before in ({"TRITON_CACHE_DIR": "elsewhere"}, {}):
        environment = {name: value for name, value in os.environ.items() if name != "TRITON_CACHE_DIR"} | before
        found = subprocess.run(
            [sys.executable, "-c", script + show], env=environment, capture_output=True, text=True, check=True
        )
        assert found.stdout.strip() == before.get("TRITON_CACHE_DIR", "None")


def _embedded_kernels(program: str) -> list[bytes]:
    """What jax-triton puts into a program: the kernels, compressed, in the escapes of MLIR."""
    found = re.findall(r'(?:backend_config|opaque) = "((?:[^"\\]|\\.)+)"', program)
    assert found
    return [zlib.decompress(_unescaped(text)) for text in found]


def _unescaped(text: str) -> bytes:
    def byte(escape: re.Match[bytes]) -> bytes:
        return escape[1] if len(escape[1]) == 1 else bytes([int(escape[1], 16)])

    return re.sub(rb"\\([0-9A-Fa-f]{2}|.)", byte, text.encode("latin-1"))
