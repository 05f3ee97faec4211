"""JSONL of problems without slots: what is read, what is refused by line, and how it is asked and graded."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from robust_jax.errors import InputError
from robust_jax.problems import check_suite, grade, load_suite
from robust_jax.types import Number, Response, Size, Template

SHARED = Path(__file__).parents[3] / "shared/data"


def write(path: Path, *rows: object) -> str:
    file = path / "problems.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows) + "\n")
    return str(file)


def test_problems_become_templates_with_one_filling(tmp_path: Path) -> None:
    solution = "3 + 4 = 7\n#### 7"
    rows = ({"question": "3 + 4?\u2028Well?", "answer": solution}, {"id": "b", "problem": "x", "answer": "1/2"})
    suite = load_suite(write(tmp_path, *rows))
    assert (suite.name, [template.id for template in suite.templates]) == ("problems", ["1", "b"])
    first, second = suite.templates
    assert isinstance(first, Template)
    assert first.size == Size(1, exact=True)
    assert first.base == first.random(np.random.default_rng(0)) == ()
    assert first.is_valid(()) and not [*first.neighbours((), 0)]
    variation = first.fill(())
    assert (variation.text, variation.answer, variation.trace) == ("3 + 4?\u2028Well?", 7, solution)
    assert variation.key == first.key(()) != ""
    assert second.fill(()).trace == "#### 1/2"
    assert check_suite(suite) == []


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        (7, 7),
        (2.5, Fraction(5, 2)),
        ("033", 33),
        ("$1,200.50", Fraction(2401, 2)),
        ("so 3 * 4 = 12\n#### 12", 12),
        ("\\frac{3}{4}", Fraction(3, 4)),
        ("2\\sqrt{3}", "2\\sqrt{3}"),
        ("thus\n#### (1, 2)", "(1, 2)"),
    ],
)
def test_answers(written: object, answer: Number | str, tmp_path: Path) -> None:
    [template] = load_suite(write(tmp_path, {"question": "?", "answer": written})).templates
    variation = template.fill(())
    assert variation.answer == answer
    assert variation.trace.splitlines()[-1].startswith("#### ")


def test_latex_answers_are_graded_as_mathematics(tmp_path: Path) -> None:
    suite = load_suite(write(tmp_path, {"question": "?", "answer": "2\\sqrt{3}"}))
    gold = suite.templates[0].fill(()).answer
    assert grade(Response("It is \\boxed{\\sqrt{12}}."), gold, suite.grading).score == 1
    assert grade(Response("It is \\boxed{\\sqrt{13}}."), gold, suite.grading).score == 0


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[1]", "an object"),
        ('{"answer": 1}', "no text under 'question'"),
        ('{"question": " ", "answer": 1}', "no text under 'question'"),
        ('{"question": "?"}', "under 'answer'"),
        ('{"question": "?", "answer": true}', "under 'answer'"),
        ('{"question": "?", "answer": ""}', "under 'answer'"),
        ('{"question": "?", "answer": 1, "id": "1"}', "stands twice"),
    ],
)
def test_a_faulty_line_is_named(line: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "problems.jsonl"
    path.write_text('{"question": "?", "answer": 1}\n\n' + line)
    with pytest.raises(InputError, match=f"line 3: .*{reason}") as caught:
        load_suite(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfe"])
def test_files_without_problems(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "problems.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"problems\.jsonl"):
        load_suite(str(path))


@pytest.mark.skipif(not SHARED.exists(), reason="the data sets are not here")
@pytest.mark.parametrize(
    ("file", "count"), [("gsm8k/test.jsonl", 1319), ("aime/aime_2024.jsonl", 30), ("aime/aime_2025.jsonl", 30)]
)
def test_published_sets(file: str, count: int) -> None:
    suite = load_suite(str(SHARED / file))
    assert len(suite.templates) == count
    assert all(isinstance(template.fill(()).answer, int) for template in suite.templates)
