"""Files that are whole or absent, and what is said when a disk fails."""

import contextlib
import errno
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from robust_jax.errors import RunError

SAMPLES_FILE = "samples.jsonl"
"""Name of the file whose complete lines are what a run has kept."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What a system says when a disk, a quota or a file's largest size is used up."""


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that, whatever happens, `path` holds either its old content or all of the new one.

    Raises:
        OSError: the disk fails; no trace of the new content is left.
    """
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with open(unfinished, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except OSError:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory survive a loss of power."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def keeping(run: Path) -> Iterator[None]:
    """Work that writes into a run directory: a failing disk becomes a RunError that says what was kept.

    Raises:
        RunError: a full, broken or vanished disk.
    """
    try:
        yield
    except OSError as error:
        remedy = "free space" if error.errno in FULL else "put that right"
        raise RunError(
            f"cannot write to {run} ({error.strerror}): {remedy}, then run the same command again: "
            f"{_kept_samples(run)} samples are kept in {run}"
        ) from error


def _kept_samples(run: Path) -> int:
    try:
        with open(run / SAMPLES_FILE, "rb") as file:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
    except OSError:
        return 0


def json_text(value: object, indent: int | None = None, sort_keys: bool = False) -> str:
    """JSON that encodes to UTF-8 whatever the texts hold: lone surrogates alone are escaped.

    Raises:
        ValueError: a number is NaN or infinite.
        TypeError: the value holds what JSON does not.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent, sort_keys=sort_keys)
    return re.sub("[\ud800-\udfff]", lambda surrogate: f"\\u{ord(surrogate[0]):04x}", text)
