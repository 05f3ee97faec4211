"""samples.jsonl: one graded attempt a line, appended a block at a time."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from robust_jax.errors import InputError
from robust_jax.runs.writing import json_text, keeping, sync_directory
from robust_jax.types import Sample

Key = tuple[str, str, str, int]
"""(arm, item, variation, attempt)."""

FIELDS: Mapping[str, Any] = get_type_hints(Sample)
DEFAULTS: Mapping[str, Any] = {f.name: f.default for f in fields(Sample) if f.default is not MISSING}
"""What a line leaves out where it is so."""


def sample_key(sample: Sample) -> Key:
    """What identifies a sample."""
    return (sample.arm, sample.item, sample.variation, sample.attempt)


def counts_by_status(samples: Iterable[Sample]) -> dict[str, dict[str, int]]:
    """How many attempts of each arm ended in each status."""
    counts: dict[str, dict[str, int]] = {}
    for sample in samples:
        of_arm = counts.setdefault(sample.arm, {})
        of_arm[sample.status] = of_arm.get(sample.status, 0) + 1
    return counts


class SampleStore:
    """The samples of a run, in memory and in a file; of two lines with one key the later one holds.

    Reading changes nothing on disk, so that a run can be looked at while it goes on. A last line that was cut off is
    not read, and is cut away before anything is appended.

    Raises:
        InputError: the file cannot be read, or a line other than a cut-off last one is no sample.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._samples: dict[Key, Sample] = {}
        self._end = 0
        if not path.exists():
            return
        try:
            with open(path, "rb") as file:
                for number, line in enumerate(file, start=1):
                    if line.endswith(b"\n"):
                        sample = self._read(number, line)
                        self._samples[sample_key(sample)] = sample
                        self._end += len(line)
        except OSError as error:
            raise InputError(f"{path} cannot be read ({error.strerror})") from None

    def _read(self, number: int, line: bytes) -> Sample:
        try:
            return _decode(line)
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"{self.path}, line {number}: {error}; delete that line and run the same command again "
                "to have it answered again"
            ) from None

    def __len__(self) -> int:
        return len(self._samples)

    def __iter__(self) -> Iterator[Sample]:
        return iter(self._samples.values())

    def get(self, key: Key) -> Sample | None:
        """The sample of that key, if there is one."""
        return self._samples.get(key)

    def has_all(self, keys: Iterable[Key]) -> bool:
        """Whether every key has a sample."""
        return all(key in self._samples for key in keys)

    def by_arm(self, arm: str) -> list[Sample]:
        """The samples of one arm, in the order in which their keys were first added."""
        return [sample for sample in self if sample.arm == arm]

    def append(self, samples: Sequence[Sample]) -> None:
        """Add a block of samples and see it onto the disk; what is there already, unchanged, is not written again.

        Raises:
            RunError: the disk fails; every earlier block is kept, and of this one nothing.
        """
        # What is kept in memory is what a later load would read: two surrogates side by side become one character.
        read_back = [_decode(_encode(sample)) for sample in samples]
        fresh = {sample_key(s): s for s in read_back if self._samples.get(sample_key(s)) != s}
        if not fresh:
            return
        block = b"".join(_encode(sample) for sample in fresh.values())
        with keeping(self.path.parent):
            is_new = not self.path.exists()
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o666)
            try:
                os.ftruncate(descriptor, self._end)
                self._write(descriptor, block)
            finally:
                os.close(descriptor)
            if is_new:
                sync_directory(self.path.parent)
        self._end += len(block)
        self._samples.update(fresh)

    def _write(self, descriptor: int, block: bytes) -> None:
        try:
            os.lseek(descriptor, self._end, os.SEEK_SET)
            written = 0
            while written < len(block):
                written += os.write(descriptor, block[written:])
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, self._end)
            raise


def _encode(sample: Sample) -> bytes:
    record = {name: getattr(sample, name) for name in FIELDS} | {"values": dict(sample.values)}
    record = {name: value for name, value in record.items() if name not in DEFAULTS or value != DEFAULTS[name]}
    return json_text(record).encode() + b"\n"


def _decode(line: bytes) -> Sample:
    """Raises ValueError, with the reason, where the line is no sample."""
    try:
        record = json.loads(line)
    except ValueError:
        raise ValueError("not valid JSON") from None
    if not isinstance(record, dict):
        raise ValueError("not a sample")
    record = {**DEFAULTS, **record}
    if differing := sorted(record.keys() ^ FIELDS.keys()):
        raise ValueError(f"a sample with {'an unknown' if differing[0] in record else 'no'} field {differing[0]!r}")
    for name, hint in FIELDS.items():
        if not _is_of_type(record[name], hint):
            raise ValueError(f"a sample with a wrong value of {name!r}")
    return Sample(**record)


def _is_of_type(value: object, hint: Any) -> bool:
    """Whether a value read from JSON fits a field of Sample."""
    if get_origin(hint) is Mapping:
        return isinstance(value, dict) and all(isinstance(word, str) for word in value.values())
    if isinstance(hint, UnionType):
        return any(_is_of_type(value, member) for member in get_args(hint))
    if get_args(hint):
        return value in get_args(hint)
    return isinstance(value, (int, float) if hint is float else hint) and not isinstance(value, bool)
