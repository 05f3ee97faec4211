"""A finished run as it lies on disk, and finished.json, the last word of a run, by which a loss is noticed."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from robust_jax.errors import InputError
from robust_jax.runs.directory import CONFIG_FILE, FEATURES_FOLDER, read_config
from robust_jax.runs.features import FeatureStore
from robust_jax.runs.samples import SampleStore, sample_key
from robust_jax.runs.writing import SAMPLES_FILE, json_text, keeping, write_atomically

FINISHED_FILE = "finished.json"
FILES = "files"
"""Where the digests of files stand in it, beside the arms: of the run's record, its answers and its protocol's own."""


class FinishedRun:
    """A run directory, read only.

    Raises:
        InputError: it is no run directory, its run has not finished, or something of it is damaged or lost.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.options: dict[str, Any] = read_config(path)["fingerprint"]
        self.samples = SampleStore(path / SAMPLES_FILE)
        self.features = FeatureStore(path / FEATURES_FOLDER)
        check_finished(path, self.samples, self.features)

    @property
    def command(self) -> str:
        """The command that made it."""
        return str(self.options["command"])

    @property
    def settings(self) -> dict[str, str | int | float | bool | None]:
        """The options that shaped the results."""
        return {name: value for name, value in self.options.items() if not isinstance(value, (list, dict))}


def write_finished(directory: Path, samples: SampleStore, features: FeatureStore, files: Sequence[str] = ()) -> None:
    """Mark a run as finished: how many answers, and how many of them with features, every arm has of every item.

    Args:
        files: names of files of the protocol that must stay as they are, like the run's record and its answers.

    Raises:
        RunError: the disk fails.
    """
    with keeping(directory):
        digests = {name: _digest(directory / name) for name in (CONFIG_FILE, SAMPLES_FILE, *files)}
        content = {**_counts(samples, features), FILES: digests}
        write_atomically(directory / FINISHED_FILE, (json_text(content) + "\n").encode())


def check_finished(directory: Path, samples: SampleStore, features: FeatureStore) -> None:
    """Check that a run has finished and that nothing of it has been lost since.

    Raises:
        InputError: it has not, or something has; the message says what.
    """
    path = directory / FINISHED_FILE
    with intact(path):
        expected, found = json.loads(read_finished_file(path)), _counts(samples, features)
        digests = expected.pop(FILES, {})
        for arm in expected | found:
            of_arm = expected.get(arm, {})
            for item in of_arm | found.get(arm, {}):
                if found.get(arm, {}).get(item) != of_arm.get(item):
                    raise InputError(
                        f"{directory} has lost answers or features of {item} ({arm}): run its command again"
                    )
        for name, digest in digests.items():
            if _digest(directory / name) != digest:
                mending = "put the original back" if name in (CONFIG_FILE, SAMPLES_FILE) else "run its command again"
                raise InputError(f"{directory / name} is not what the run wrote: {mending}")


def _digest(path: Path) -> str | None:
    """None for a file that is not there."""
    try:
        return sha256(path.read_bytes()).hexdigest()[:16]
    except FileNotFoundError:
        return None


def _counts(samples: SampleStore, features: FeatureStore) -> dict[str, dict[str, list[int]]]:
    counts: dict[str, dict[str, list[int]]] = {}
    for sample in samples:
        of_item = counts.setdefault(sample.arm, {}).setdefault(sample.item, [0, 0])
        of_item[0] += 1
        of_item[1] += features.has_all([sample_key(sample)])
    return counts


@contextmanager
def intact(path: Path) -> Iterator[None]:
    """Work that reads a file of a finished run.

    Raises:
        InputError: what it holds is not what was written.
    """
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise InputError(f"{path} is damaged: run the command of {path.parent} again") from None


def read_finished_file(path: Path) -> str:
    """The text of a file that a run leaves when it has finished.

    Raises:
        InputError: there is none.
    """
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path.parent} holds no finished run: it has no {path.name}; run its command again") from None
