"""What a finished LPDS run leaves besides answers: search.jsonl and references.json."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from robust_jax.runs import intact, json_text, keeping, read_finished_file, write_atomically

SEARCH_FILE = "search.jsonl"
REFERENCES_FILE = "references.json"


class CandidateRecord(NamedTuple):
    """One scored candidate: a line of search.jsonl."""

    template: str
    key: str
    iteration: int
    parent: str | None
    origin: str
    cheap: float | None
    """f̃ when it was proposed; none for a start."""
    difficulty: float | None
    """f under the last fit; none where it is NaN."""
    fit: int
    """Number of the fit under which it was first scored, from 0."""
    in_beam: tuple[int, ...]
    """Iterations at whose end it was in the beam."""


class ReferenceRecord(NamedTuple):
    """Which replies the references of one template are."""

    initial: tuple[str, ...]
    """Keys of the initial references, from the arm `reference`; excluded from every accuracy."""
    added: tuple[str, ...] = ()
    """Keys that joined when the goalpost moved, from the arm `beam`."""
    left_out: str = ""
    """Why the template could not be searched; empty if it was, or if nothing was to be searched."""


def write_references(directory: Path, references: Mapping[str, ReferenceRecord]) -> None:
    """Write references.json.

    Raises:
        RunError: the disk fails.
    """
    content = {item: record._asdict() for item, record in references.items()}
    with keeping(directory):
        write_atomically(directory / REFERENCES_FILE, (json_text(content) + "\n").encode())


def read_references(directory: Path) -> dict[str, ReferenceRecord]:
    """The references of a finished run.

    Raises:
        InputError: the run has not finished, or the file is damaged.
    """
    path = directory / REFERENCES_FILE
    with intact(path):
        content = json.loads(read_finished_file(path))
        return {
            item: ReferenceRecord(tuple(row["initial"]), tuple(row["added"]), str(row.get("left_out", "")))
            for item, row in content.items()
        }


def write_candidates(directory: Path, candidates: Sequence[CandidateRecord]) -> None:
    """Write search.jsonl.

    Raises:
        RunError: the disk fails.
    """
    lines = [json_text(candidate._asdict()) + "\n" for candidate in candidates]
    with keeping(directory):
        write_atomically(directory / SEARCH_FILE, "".join(lines).encode())


def read_candidates(directory: Path) -> list[CandidateRecord]:
    """The scored candidates of a finished search.

    Raises:
        InputError: the run has not finished, or the file is damaged.
    """
    path = directory / SEARCH_FILE
    with intact(path):
        rows = [json.loads(line) for line in read_finished_file(path).splitlines()]
        return [CandidateRecord(**{**row, "in_beam": tuple(row["in_beam"])}) for row in rows]
