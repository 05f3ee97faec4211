"""Suites from YAML: what loads, what is refused and how it says so, and the checks that keep wrong solutions out."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_jax.errors import InputError
from robust_jax.problems import check_suite, check_template, list_suites, load_suite
from robust_jax.problems.checking import check_examples
from robust_jax.problems.reader import read_suite
from robust_jax.problems.template import SymbolicTemplate
from robust_jax.types import Grading, Pair, Suite, Template

TINY = """\
name: tiny
description: Two problems.
grading: exact
lists:
  names: [Ava, Omar, Noor, No, "Yes"]
examples:
  - question: What is 3 + 4?
    solution: |-
      3 + 4 = 7
      #### 7
templates:
  - id: apples_then_eaten
    title: Apples
    steps: 2
    difficulty: basic
    question: >-
      {name} has {n} apples and buys {m} more. {name} then eats {k}.
      How many apples are left?
    solution: |-
      {name} has {n} + {m} = {n + m} apples.
      After eating {k} there are {n + m} - {k} = {n + m - k} left.
      #### {n + m - k}
    slots:
      name: {list: names}
      n: {range: [2, 20]}
      m: {range: [2, 20, 2]}
      k: {range: [2, 20]}
    constraints:
      - n + m > k
      - divides(n, k)
    answer: n + m - k
    base: {name: Zoe, n: 12, m: 5, k: 4}
  - id: pens_bought
    question: "{a} and {b} buy {part} of {n} {thing} at ${price} each. How much do they pay?"
    solution: |-
      They buy {part[1]} * {n} = {part * n} {thing}.
      They pay {part * n} * ${price} = ${part * n * price:.2f}.
      #### {part * n * price:.2f}
    slots:
      "a, b": {list: names}
      part: {pairs: [[half, 1/2], [a quarter, 0.25]]}
      n: {range: [4, 40, 4]}
      thing: {choice: [pens, books]}
      price: {grid: [0.5, 9.5, 0.25], places: 2}
    answer: part * n * price
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    return path


def load(text: str, tmp_path: Path) -> Suite:
    path = tmp_path / "suite.yaml"
    path.write_text(text)
    return load_suite(str(path))


def test_a_suite_loads(tiny: Path) -> None:
    suite = load_suite(str(tiny))
    assert (suite.name, suite.description, suite.grading) == ("tiny", "Two problems.", Grading())
    assert [template.id for template in suite.templates] == ["apples_then_eaten", "pens_bought"]
    assert suite.examples[0].solution == "3 + 4 = 7\n#### 7"
    apples, pens = suite.templates
    assert isinstance(apples, Template) and isinstance(apples, SymbolicTemplate)
    assert (apples.title, apples.steps, apples.difficulty) == ("Apples", 2, "basic")
    assert apples.base == ("Zoe", 12, 5, 4)
    assert pens.base is None
    variation = apples.fill(("Ava", 12, 6, 4))
    assert variation.text == "Ava has 12 apples and buys 6 more. Ava then eats 4. How many apples are left?"
    assert variation.answer == 14
    assert variation.trace.endswith("After eating 4 there are 18 - 4 = 14 left.\n#### 14")
    half = Pair("half", Fraction(1, 2))
    variation = pens.fill(("Ava", "No", half, 12, "pens", Fraction(11, 4)))
    assert variation.text == "Ava and No buy half of 12 pens at $2.75 each. How much do they pay?"
    assert variation.answer == Fraction(33, 2)
    assert variation.trace.endswith("They pay 6 * $2.75 = $16.50.\n#### 16.50")
    assert variation.key == "Ava|No|half|12|pens|2.75"


def test_the_answer_of_the_trace_is_the_answer_expression(tiny: Path) -> None:
    rng = np.random.default_rng(0)
    for template in load_suite(str(tiny)).templates:
        for _ in range(30):
            point = template.random(rng)
            variation = template.fill(point)
            assert template.is_valid(point)
            assert Fraction(variation.trace.rpartition("#### ")[2]) == variation.answer


def test_a_right_suite_has_no_faults(tiny: Path) -> None:
    assert check_suite(load_suite(str(tiny)), fillings=20) == []


@pytest.mark.parametrize("name", list_suites())
def test_bundled_suites_load_by_name_and_have_no_faults(name: str, bundled: Callable[[str], Suite]) -> None:
    suite = bundled(name)
    assert suite.name == name
    assert [fault for t in suite.templates for fault in check_template(t, suite.grading, fillings=1)] == []
    assert check_examples(suite) == []


def test_yaml_words_stay_words(tiny: Path) -> None:
    assert load_suite(str(tiny)).templates[0].slots[0].domain == ("Ava", "Omar", "Noor", "No", "Yes")


def test_numbers_are_exact(tmp_path: Path) -> None:
    text = TINY.replace("{grid: [0.5, 9.5, 0.25], places: 2}", "{choice: [0.10, 2, 3/4], places: 2}")
    with pytest.raises(InputError, match="has to be text"):
        load(text, tmp_path)  # 3/4 is a word, and words do not mix with numbers
    suite = load(text.replace("3/4", "0.75"), tmp_path)
    assert suite.templates[1].slots[-1].domain == (Fraction(1, 10), 2, Fraction(3, 4))


def test_relative_grading(tmp_path: Path) -> None:
    suite = load(TINY.replace("grading: exact", "grading: {absolute: 0.000001, relative: 1/100}"), tmp_path)
    assert suite.grading == Grading(Fraction(1, 10**6), Fraction(1, 100))


def test_an_unknown_suite_names_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'grade_school'"):
        load_suite("gradeschool")
    with pytest.raises(InputError, match=r"cannot read .*missing\.yaml"):
        load_suite("missing.yaml")


PENS_ANSWER = "answer: part * n * price"
PENS_BASE = f"{PENS_ANSWER}\n    base: {{a: A, b: B, part: PART, n: 6, thing: pens, price: 1}}"

# Each change of the right suite, beside what the message has to say.
REFUSED = [
    ("grading: exact", "grading: lenient", "grading"),
    ("grading: exact", "grading: {absolute: -1}", "negative"),
    ("grading: exact", "gradng: exact", "unknown key 'gradng': did you mean 'grading'"),
    ("    title: Apples", "    titel: Apples", "template apples_then_eaten: unknown key 'titel': did you mean 'title'"),
    ("    title: Apples", "    title: Apples\n    title: Pears", "line 14.*stands twice.*title"),
    ("id: pens_bought", "id: apples_then_eaten", "line 33.*stands twice"),
    ("id: pens_bought", "id: Pens", "line 33.*'id'"),
    ("steps: 2", "steps: two", "steps"),
    ("steps: 2", "steps: true", "steps"),
    ("difficulty: basic", "difficulty: easy", "difficulty"),
    ("name: {list: names}", "name: {list: nmes}", "no list 'nmes': did you mean 'names'"),
    ("name: {list: names}", "name: {list: [names]}", "no list"),
    ("name: {list: names}", "name: names", "mapping"),
    ("name: {list: names}", "name: {lists: names}", "unknown key 'lists': did you mean 'list'"),
    ("name: {list: names}", "name: {list: names, choice: [a]}", "exactly one"),
    ("name: {list: names}", "name: {list: names, places: 2}", "places is for numbers"),
    ("name: {list: names}", "name: {choice: []}", "empty"),
    ("name: {list: names}", "name: {choice: [Ava, Ava]}", "stands twice"),
    ("name: {list: names}", "name: {choice: [Ava, 3]}", "quotes"),
    ("name: {list: names}", "name: {choice: [Ava, true]}", "quotes"),
    ("name: {list: names}", "name: {choice: [Ava, ' Bo ']}", "spaces"),
    ("name: {list: names}", "name: {list: names}\n      'n, q': {list: names}", "'n' stands twice"),
    ("name: {list: names}", "name: {list: names}\n      pi: {list: names}", "cannot be a slot's name"),
    ("name: {list: names}", "name: {list: names}\n      a-b: {list: names}", "cannot be a slot's name"),
    ("name: {list: names}", "name: {list: names}\n      if: {list: names}", "cannot be a slot's name"),
    ('"a, b": {list: names}', '"a, b": {choice: [Ava]}', "pairwise distinct"),
    ("k: {range: [2, 20]}", "k: {range: [20, 2]}", "slot 'k': the end lies before the start"),
    ("k: {range: [2, 20]}", "k: {range: [2, 20, 0]}", "positive"),
    ("k: {range: [2, 20]}", "k: {range: [2.5, 20]}", "whole"),
    ("k: {range: [2, 20]}", "k: {range: [2]}", "start, stop"),
    ("k: {range: [2, 20]}", "k: {range: 20}", "list"),
    ("k: {range: [2, 20]}", "k: {range: [a, b]}", "not a number"),
    ("places: 2", "places: 1", "more than 1 decimals"),
    ("places: 2", "places: -1", "places"),
    ("[a quarter, 0.25]", "[a quarter]", "pair"),
    ("[a quarter, 0.25]", "[half, 0.25]", "stands twice"),
    ("[a quarter, 0.25]", "[a quarter, 1/0]", "not a number"),
    ("- n + m > k", "- n + m > q", "template apples_then_eaten, constraint: 'n \\+ m > q': there is no slot 'q'"),
    ("- n + m > k", "- n + m", "neither true nor false"),
    ("- n + m > k", "- 1 < 2", "mentions no slot"),
    ("- n + m > k", "- n + m > 500", "fails most is 'n \\+ m > 500'"),
    ("answer: n + m - k", "answer: n + m - j", "template apples_then_eaten, answer"),
    ("answer: n + m - k", "answer: n > m", "not a number"),
    ("answer: n + m - k", "answer: __import__('os')", "not part of the language"),
    ("answer: n + m - k", "answer: n + m", "line 3: the solution ends in 13, not in the answer 17"),
    ("answer: n + m - k", "answer: name", "'name' is not a number"),
    ("= {n + m} apples", "= {n + m + 1} apples", "line 1: .*12 \\+ 5 = 17 does not agree with 18"),
    ("#### {n + m - k}", "{n + m - k}", "has to end"),
    ("{name} then eats {k}", "{name} then eats {k!r}", "template apples_then_eaten, question"),
    ("{name} then eats {k}", "{name} then eats {k", "brace"),
    ("base: {name: Zoe, n: 12, m: 5, k: 4}", "base: {name: Zoe, n: 12, m: 5}", "no value for slot 'k'"),
    ("base: {name: Zoe, n: 12, m: 5, k: 4}", "base: {name: Zoe, n: 12, m: 5, k: 4, j: 1}", "unknown key 'j'"),
    ("base: {name: Zoe, n: 12, m: 5, k: 4}", "base: {name: 7, n: 12, m: 5, k: 4}", "quotes"),
    ("base: {name: Zoe, n: 12, m: 5, k: 4}", "base: {name: Zoe, n: twelve, m: 5, k: 4}", "not a number"),
    (PENS_ANSWER, PENS_BASE.replace("PART", "third"), "none of the pairs"),
    (PENS_ANSWER, PENS_BASE.replace("PART", "[half, 1/3]"), "stands for 1/2"),
    (PENS_ANSWER, PENS_BASE.replace("PART", "[two thirds, 2/3]"), "add a format"),
    (PENS_ANSWER, PENS_BASE.replace("PART", "[three quarters, 3/4]"), None),
    ("3 + 4 = 7", "3 + 4 = 8", "example 1: line 1"),
    ("#### 7", "7", "example 1: line 2"),
    ("name: tiny", "name: 5", "name has to be text"),
    ("name: tiny", "name: &x tiny", None),
    ("name: tiny", "name: *x", "line 1"),
    ("description: Two problems.", "description: [&x a, *x]", "line 2.*aliases"),
    ("description: Two problems.", "description: " + "[" * 50 + "]" * 50, "nested"),
    ("description: Two problems.", "description: !!python/object/apply:os.getcwd []", "not valid YAML"),
    ("description: Two problems.", "description: [", "line .*not valid YAML"),
    ("description: Two problems.", "description: 2020-01-01", None),
    ("description: Two problems.", "? [a, b]\n: c", "line 2"),
]


@pytest.mark.parametrize(("old", "new", "message"), REFUSED)
def test_refused(old: str, new: str, message: str | None, tmp_path: Path) -> None:
    assert old in TINY
    text = TINY.replace(old, new, 1)
    if message is None:
        load(text, tmp_path)
        return
    with pytest.raises(InputError, match=message) as caught:
        load(text, tmp_path)
    assert str(caught.value).startswith("suite.yaml")
    assert "\n" not in str(caught.value)


NO_SUITES = (b"", b"[]", b"a: b", b"\xff\xfe", b"name: x\ntemplates: []", b"\0", b"templates: 3", b"- " * 5000)


@pytest.mark.parametrize("content", NO_SUITES)
def test_files_that_are_no_suite(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "suite.yml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"suite\.yml"):
        load_suite(str(path))


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "suite.yaml"
    path.write_bytes(b"#" * 10_000_001)
    with pytest.raises(InputError, match="larger than 10 MB"):
        load_suite(str(path))


def test_check_suite_names_every_fault() -> None:
    text = TINY.replace("= {n + m} apples", "= {n + m + 1} apples").replace("answer: n + m - k", "answer: n + m")
    text = text.replace("n: {range: [4, 40, 4]}", "n: {range: [4, 40, 4]}\n      spare: {range: [1, 9]}")
    text = text.replace('"a, b": {list: names}', '"a, b": {choice: [Ava, Omar]}')
    text = text.replace("{range: [4, 40, 4]}", "{range: [4, 4]}").replace("{range: [1, 9]}", "{range: [1, 1]}")
    text = text.replace("{grid: [0.5, 9.5, 0.25], places: 2}", "{grid: [0.5, 0.5, 0.25], places: 2}")
    found = check_suite(read_suite(text.encode(), "suite.yaml"), fillings=20)
    assert len(found) == 4
    for fault, words in zip(found, ["line 1", "line 3", "slot 'spare'", "only 8 valid fillings"], strict=True):
        assert words in fault
    assert all("apples_then_eaten" in fault for fault in found[:2])
    assert all("pens_bought" in fault for fault in found[2:])


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Quadratic work on so many keys would take minutes.
        ("Two problems.", "{" + ", ".join(f"k{number}: 1" for number in range(100_000)) + "}"),
        ("name: tiny", "x" * 1_000_000 + ": tiny"),
    ],
)
def test_long_files_take_no_more_than_their_length(old: str, new: str) -> None:
    with pytest.raises(InputError) as caught:
        read_suite(TINY.replace(old, new, 1).encode(), "suite.yaml")
    assert len(str(caught.value)) < 1000


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_spoilt_file_is_a_suite_or_an_input_error(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(TINY) - 1))
    length = data.draw(st.integers(0, 12))
    inserted = data.draw(st.text(alphabet="{}[]:-'\"&*!|>#, \n\t09ab.%=", max_size=4))
    try:
        suite = read_suite((TINY[:start] + inserted + TINY[start + length :]).encode(), "suite.yaml")
        for template in suite.templates:
            check_template(template, suite.grading, fillings=1)
    except InputError as error:
        assert "\n" not in str(error)
