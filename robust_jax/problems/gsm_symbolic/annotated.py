"""The sections of a GSM-Symbolic file, as text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from robust_jax.errors import InputError

MAX_BYTES = 200_000
"""Size of one file."""

_MAX_LINES = 100
"""Lines of a section."""
_HEADER = re.compile(r"#\s*(init|conditions|answer)\s*[:=]\s*(.*)")
_HOLE = re.compile(r"\{([^{}]*)\}")
_CALCULATOR = re.compile(r"<<[^<>]*>>?")  # Some lack the second bracket at the end.


@dataclass(frozen=True)
class Line:
    """One line of a section."""

    number: int
    """Counted from 1 within `question_annotated`."""
    source: str


@dataclass
class Annotated:
    """A file in its own words."""

    question: str
    """With `{name,default}` holes."""
    solution: str
    """With `{expression}` holes, without the calculator's `<<…>>`; ends in a line `#### number`."""
    init: list[Line] = field(default_factory=list)
    conditions: list[Line] = field(default_factory=list)
    answer: Line | None = None


def read_annotated(content: bytes) -> Annotated:
    """The sections of one file.

    Raises:
        InputError: it is no such file; names the line of `question_annotated` where there is one.
    """
    if len(content) > MAX_BYTES:
        raise InputError(f"larger than {MAX_BYTES // 1000} kB")
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        line = f" in line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise InputError(f"not valid JSON{line}") from None
    texts = []
    for key in ("question_annotated", "answer_annotated"):
        text = data.get(key) if isinstance(data, dict) else None
        if not isinstance(text, str):
            raise InputError(f"the text '{key}' is missing")
        texts.append(text)
    annotated, solution = texts
    question, *_ = annotated.partition("#init")
    file = Annotated(question.strip(), _CALCULATOR.sub("", solution).strip())
    if not question.strip():
        raise InputError("line 1: there is no question before '#init:'")
    _read_sections(annotated, file)
    if file.answer is None:
        raise InputError("there is no '#answer:'")
    return file


def _read_sections(annotated: str, file: Annotated) -> None:
    section = ""
    for number, line in enumerate(annotated.split("\n"), 1):
        source = line.strip()
        header = _HEADER.match(source)
        if header:
            section = header[1]
            if section == "answer":
                file.answer = Line(number, header[2].strip())
            elif header[2]:
                raise InputError(f"line {number}: '#{section}:' stands alone in its line")
        elif source and section in ("init", "conditions"):
            if not source.startswith("-"):
                raise InputError(f"line {number}: a line of '#{section}:' begins with '- '")
            lines = file.init if section == "init" else file.conditions
            lines.append(Line(number, source.removeprefix("-").strip()))
            if len(lines) > _MAX_LINES:
                raise InputError(f"line {number}: '#{section}:' has more than {_MAX_LINES} lines")
        elif source and section == "answer":
            raise InputError(f"line {number}: '{source[:40]}' stands behind '#answer:'")


def pieces(text: str) -> Iterator[tuple[str, bool]]:
    """The literal parts and the insides of the holes of a text, each with whether it is a hole.

    Raises:
        InputError: a brace has no partner.
    """
    position = 0
    for hole in _HOLE.finditer(text):
        yield _literal(text[position : hole.start()]), False
        yield hole[1], True
        position = hole.end()
    yield _literal(text[position:]), False


def _literal(text: str) -> str:
    if "{" in text or "}" in text:
        raise InputError(f"the brace in '{' '.join(text.split())[:40]}' has no partner")
    return text
