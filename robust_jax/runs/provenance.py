"""What a run was made with: versions, revision of the source, device."""

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from robust_jax.runs.options import Plain

PACKAGES = ("robust-jax", "jax", "jaxlib", "flax", "numpy", "transformers", "tokenizers", "safetensors")


def provenance() -> dict[str, Plain]:
    """Versions of Python and the main packages, the git revision if the source is a git checkout, and the device."""
    return {"versions": _versions(), "git": _git_revision(), "device": _device()}


def _versions() -> dict[str, Plain]:
    versions: dict[str, Plain] = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    return versions


def _git_revision() -> str | None:
    """The checked-out commit, marked where tracked files differ from it."""
    source = Path(__file__).resolve()

    def git(*words: str) -> str | None:
        try:
            done = subprocess.run(["git", *words], cwd=source.parent, capture_output=True, text=True, timeout=30)
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    # An installed copy may lie inside somebody else's repository, whose revision says nothing about it.
    if git("ls-files", "--error-unmatch", source.name) is None:
        return None
    revision = git("rev-parse", "HEAD")
    return revision and revision + ("+changes" if git("status", "--porcelain", "--untracked-files=no") else "")


def _device() -> str:
    import jax  # Loaded here, because reading a stored run needs no device.

    try:
        devices = jax.devices()
    except RuntimeError as error:  # A run that only asks a server goes on without one.
        return f"none ({' '.join(str(error).split())})"
    return f"{len(devices)} x {devices[0].device_kind} ({devices[0].platform})"
