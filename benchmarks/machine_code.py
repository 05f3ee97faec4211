"""The Triton kernel compiled ahead of time to the machine code of a GPU, and what that code holds."""

import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from robust_jax.kernels.levenshtein_tables import LANES
from robust_jax.kernels.levenshtein_triton import distances_kernel

LOGIC = frozenset({"LOP3", "SHF", "IADD3", "IADD", "VIADD", "LEA", "IMNMX", "VIMNMX", "ISETP", "PLOP3", "SEL"})
"""Instructions of the integer pipeline, which takes half as many a cycle as can be issued."""
TYPES = {"matches": "*u32", "carry": "*u32", "carry_size": "i32", "WORDS": "constexpr", "LANES": "constexpr"}


@dataclass(frozen=True)
class MachineCode:
    """One compiled kernel."""

    step: Counter[str]
    """Instructions of the innermost loop, which advances a warp's references by one token, by their names."""
    everywhere: Counter[str]
    """Instructions of the whole kernel."""
    registers: int
    """Registers of a thread."""
    stack: int
    """Bytes of a thread that did not fit into registers."""

    @property
    def step_logic(self) -> int:
        """Instructions of a step that the integer pipeline has to take."""
        return sum(self.step[name] for name in LOGIC)


def compiled(compute_capability: int, words: int, folder: Path) -> MachineCode:
    """The kernel for a GPU and for strips of so many words; needs no GPU. Files go to the folder."""
    names = distances_kernel.arg_names
    signature = {name: TYPES.get(name, "*i32") for name in names}
    aligned = {(i,): [["tt.divisibility", 16]] for i, name in enumerate(names) if signature[name].startswith("*")}
    source = ASTSource(distances_kernel, signature, {"WORDS": words, "LANES": LANES}, aligned)
    with triton.knobs.cache.scope():
        triton.knobs.cache.dir = str(folder / "cache")
        options = {"num_warps": 1, "enable_fp_fusion": False}
        kernel = triton.compile(source, target=GPUTarget("cuda", compute_capability, 32), options=options)
    file = folder / f"kernel_{compute_capability}_{words}.cubin"
    file.write_bytes(kernel.asm["cubin"])
    usage = _output(triton.knobs.nvidia.cuobjdump.path, "-res-usage", file)
    [(registers, stack)] = re.findall(r"REG:(\d+) STACK:(\d+)", usage)
    names, loops = _instructions(_output(triton.knobs.nvidia.nvdisasm.path, "-c", file))
    start, end = min(loops, key=lambda loop: loop[1] - loop[0])
    return MachineCode(Counter(names[start:end]), Counter(names), int(registers), int(stack))


def _instructions(disassembly: str) -> tuple[list[str], list[tuple[int, int]]]:
    """Names of all instructions, without suffixes, and between which of them the loops lie."""
    names: list[str] = []
    labels: dict[str, int] = {}
    loops = []
    for line in disassembly.splitlines():
        if label := re.match(r"(\.L_x_\d+):", line):
            labels[label[1]] = len(names)
        elif instruction := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z0-9]+)([^;]*);", line):
            names.append(instruction[1])
            target = re.search(r"\.L_x_\d+", instruction[2])
            # A jump of an instruction to itself fills the end of a kernel.
            if instruction[1] == "BRA" and target and labels.get(target[0], len(names)) < len(names) - 1:
                loops.append((labels[target[0]], len(names)))
    return names, loops


def _output(tool: str, *arguments: str | Path) -> str:
    return subprocess.run([tool, *arguments], capture_output=True, text=True, check=True).stdout
