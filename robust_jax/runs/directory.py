"""The run directory: made once, resumed by the same options alone, written by one process at a time."""

import fcntl
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any

import numpy as np
import yaml
from jaxtyping import Float32

from robust_jax.errors import InputError
from robust_jax.runs.features import FeatureStore
from robust_jax.runs.options import Plain, RunOptions, fingerprint, plain
from robust_jax.runs.provenance import provenance
from robust_jax.runs.samples import Key, SampleStore, sample_key
from robust_jax.runs.writing import SAMPLES_FILE, keeping, write_atomically
from robust_jax.types import Sample

CONFIG_FILE = "config.yaml"
LOCK_FILE = ".lock"
FEATURES_FOLDER = "features"
RESULTS_FILE = "results.json"
UNFINISHED = {LOCK_FILE, f".{CONFIG_FILE}.unfinished"}
"""What a run that died while its directory was being made may leave."""


class DirectoryBusy(InputError):
    """Another process is writing the run directory."""


class RunDirectory:
    """A directory that keeps what a run has done; it stays locked until `close` or the end of the process.

    A new or empty directory becomes a run directory. One that holds a run is resumed if the fingerprints agree.

    Args:
        path: where; folders on the way are made.
        fingerprint: the options that change results, by name.
        config: the resolved configuration, for the record.

    Raises:
        InputError: the directory holds something else, or a run of other options; it cannot be written; another
            process is writing it. Nothing is changed in it.
        RunError: the disk fails.
    """

    def __init__(self, path: Path, fingerprint: Mapping[str, Any], config: Mapping[str, Any]) -> None:
        self.path = path
        wanted = _as_stored(fingerprint)
        _holds_run(path, wanted)
        self._lock: int | None = _lock(path)
        try:
            # Looked at again, because another process may have made the run before the lock was ours.
            if not _holds_run(path, wanted):
                _write_config(path, wanted, config)
            self.samples = SampleStore(path / SAMPLES_FILE)
            self.features = FeatureStore(path / FEATURES_FOLDER)
        except BaseException:
            self.close()
            raise

    def has_all(self, keys: Iterable[Key], features: bool) -> bool:
        """Whether every key has been answered, and its features kept if those are asked for.

        Raises:
            InputError: a file of features is damaged.
        """
        keys = list(keys)
        return self.samples.has_all(keys) and (not features or self.features.has_all(keys))

    def commit(
        self, block: str, samples: Sequence[Sample], features: Mapping[str, Float32[np.ndarray, "C ..."]]
    ) -> None:
        """Keep one finished block of work: its features, if any, and then its samples, whose lines are the commit mark.

        Args:
            block: a name for this piece of work, the same whenever it is repeated.
            samples: C of them, of one or many items.
            features: arrays with a row a sample.

        Raises:
            RunError: the disk fails; every earlier block is kept.
        """
        rows_by_item: dict[str, list[int]] = {}
        for row, sample in enumerate(samples):
            rows_by_item.setdefault(sample.item, []).append(row)
        if features:
            for item, rows in rows_by_item.items():
                keys = [sample_key(samples[row]) for row in rows]
                self.features.write(item, block, keys, {name: array[rows] for name, array in features.items()})
        self.samples.append(samples)

    def close(self) -> None:
        """Let other processes write the directory."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> "RunDirectory":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_run(
    options: RunOptions, command: str, found: Mapping[str, Any], noted: Mapping[str, Any] = MappingProxyType({})
) -> RunDirectory:
    """The run directory of a command whose options are resolved, made or resumed.

    Args:
        options: with everything chosen that had been left to the model or the protocol.
        command: its words, such as `lpds search`.
        found: what shapes the results besides, such as the digests of model and problems, by name.
        noted: what is recorded besides and shapes nothing.

    Raises:
        InputError: no directory is named, or see `RunDirectory`.
        RunError: the disk fails.
    """
    if options.out is None:
        raise InputError("give the run a directory: --out DIR")
    # The directory must be free to move, so it does not know its place.
    record = {f.name: getattr(options, f.name) for f in fields(options) if f.name != "out"}
    settings = {"command": command, **fingerprint(options), **found}
    return RunDirectory(options.out, settings, {"command": command, **record, **noted})


def read_config(path: Path) -> dict[str, Any]:
    """What a run directory records about its run: config, fingerprint, versions, git, device.

    Raises:
        InputError: `path` is no run directory, or its record is damaged.
    """
    file = path / CONFIG_FILE
    try:
        record = yaml.safe_load(file.read_bytes())
    except OSError:
        raise InputError(f"{path} is no run directory: it has no readable {CONFIG_FILE}") from None
    except (yaml.YAMLError, ValueError, RecursionError):
        record = None
    if not (isinstance(record, dict) and isinstance(record.get("fingerprint"), dict)):
        raise InputError(f"{file} records no run: choose another directory")
    return record


def _holds_run(path: Path, fingerprint: dict[str, Plain]) -> bool:
    """Whether the directory holds a run of these options; False where a run can be made.

    Raises:
        InputError: it can neither be resumed nor made there.
    """
    try:
        names = {name.name for name in path.iterdir()}
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unwritable(path, error) from None
    if names <= UNFINISHED:
        return False
    if CONFIG_FILE not in names:
        raise InputError(f"{path} is not empty and holds no run: choose another --out")
    stored = read_config(path)["fingerprint"]
    changed = [
        f"{name} was {_shown(stored, name)}, now {_shown(fingerprint, name)}"
        for name in sorted(stored.keys() | fingerprint.keys())
        if _shown(stored, name) != _shown(fingerprint, name)
    ]
    if changed:
        raise InputError(
            f"{path} holds a run of other options ({'; '.join(changed)}): repeat those, or choose another --out"
        )
    return True


def _shown(options: Mapping[str, Plain], name: str) -> str:
    return repr(options[name]) if name in options else "absent"


def _as_stored(fingerprint: Mapping[str, Any]) -> dict[str, Plain]:
    """The fingerprint as reading it back gives it, so that the two compare."""
    stored: dict[str, Plain] = yaml.safe_load(yaml.safe_dump(plain(fingerprint)))
    return stored


def _write_config(path: Path, fingerprint: dict[str, Plain], config: Mapping[str, Any]) -> None:
    record = {"config": plain(config), "fingerprint": fingerprint} | provenance()
    with keeping(path):
        write_atomically(path / CONFIG_FILE, yaml.safe_dump(record, sort_keys=False, width=120).encode())


def _lock(path: Path) -> int:
    """An open descriptor that holds the directory's lock; the system lets go of it when the process ends."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise DirectoryBusy(f"another process is writing {path}: wait for it, or choose another --out") from None
        raise InputError(f"{path} cannot be locked ({error.strerror}): choose an --out on another disk") from None
    return descriptor


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(f"{path} cannot be written ({error.strerror}): choose another --out")
