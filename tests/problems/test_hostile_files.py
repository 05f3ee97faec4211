"""Hostile files are refused with one line, without running anything and without much memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_jax.errors import InputError
from robust_jax.problems.gsm_symbolic import read_gsm_symbolic
from robust_jax.problems.jsonl import read_jsonl

ROOT = Path(__file__).parents[2]
MARK = Path("/tmp/hostile")
HARMLESS = {"long_number.yaml"}
"""Long, but within the language."""


@pytest.mark.timeout(300)
def test_every_file_is_refused_with_one_line_in_little_memory(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tests.problems.hostile_files", str(tmp_path)]
    output = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    result = json.loads(output)
    for name, (message, _) in result["refused"].items():
        assert bool(message) != (name in HARMLESS), name
        assert "\n" not in message and len(message) < 1_000, name
    assert result["megabytes"] < 200
    assert not MARK.exists()


APPLE = """{name,Ava} has {n,3} pens and {k,two} cups. {part,half}?

#init:
- name = sample(names)
- $n = range(2, 30)
- $k = numbers_within(2, 5)
- $part = sample(fraction_alnum)
- $ans = range(1, 99)

#conditions:
- is_int(n * part)
- ans == n * k + 1

#answer: ans"""
CHARACTERS = "{}()[]<>#$-=*/+.,:'\"\\ \n09ab_"


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_spoilt_file_is_a_template_or_refused_with_one_line(data: st.DataObject) -> None:
    text = APPLE
    for _ in range(data.draw(st.integers(1, 3))):
        start, length = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 9))
        text = text[:start] + data.draw(st.text(alphabet=CHARACTERS, max_size=4)) + text[start + length :]
    content = json.dumps({"question_annotated": text, "answer_annotated": "So {n} * {k} + 1.\n#### {ans}"})
    try:
        template, _ = read_gsm_symbolic(content.encode(), "pens")
        assert template.slots
    except InputError as error:
        assert str(error).startswith("template pens") and "\n" not in str(error)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=80) | st.text(alphabet='{}[]":,.0 9answerquestion\n\\u', max_size=80).map(str.encode))
def test_any_lines_are_problems_or_refused_with_one_line(content: bytes) -> None:
    try:
        assert read_jsonl(content, "x.jsonl").templates
    except InputError as error:
        assert str(error).startswith("x.jsonl") and "\n" not in str(error)
