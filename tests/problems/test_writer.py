"""Suites written out and read again: the same templates, and the same fillings for the same seed."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from robust_jax.errors import InputError
from robust_jax.problems import list_suites, load_suite, restricted
from robust_jax.problems.template import SymbolicTemplate
from robust_jax.problems.writer import suite_to_yaml
from robust_jax.types import Pair, Suite

ODD = """
name: "Yes"
description: Words and numbers that YAML would rather read otherwise.
grading: {absolute: 1/3, relative: 0.01}
lists:
  names: ["No", "12:30", "1e3", "007", "null", "Zoë: #1", "- x", "{a}"]
templates:
  - id: odd
    title: "~"
    steps: 2
    difficulty: basic
    question: |-
      {{literal}} braces, {a} and {b}
        at ${price} for {part} of {n:,} ({n * part:.2f})?
    solution: |-
      {n} * {part[1]:.4f} is the number.
      #### {n * part:.2f}
    slots:
      "a, b": {list: names}
      price: {grid: [0.50, 9, 1/4], places: 2}
      part: {pairs: [["off", 1/3], ["2/3", 2/3]]}
      n: {range: [-3, 3000, 3]}
      k: {choice: [0.10, 2, 30], places: 2}
    constraints: ["n > k", "a != 'No' or b == '007'"]
    answer: "n * part"
    base: {a: "y", b: "12:30", price: 1.5, part: [half, 1/2], n: 12, k: 2}
"""


def assert_same(suite: Suite, again: Suite) -> None:
    assert (again.name, again.description, again.grading) == (suite.name, suite.description, suite.grading)
    assert again.examples == suite.examples
    for template, copy in zip(suite.templates, again.templates, strict=True):
        assert isinstance(template, SymbolicTemplate) and isinstance(copy, SymbolicTemplate)
        for field in ("id", "title", "steps", "difficulty", "base", "distinct", "constraints", "answer"):
            assert getattr(copy, field) == getattr(template, field)
        for slot, other in zip(template.slots, copy.slots, strict=True):
            assert (other.name, other.places, [*other.domain]) == (slot.name, slot.places, [*slot.domain])
        one, two = np.random.default_rng(7), np.random.default_rng(7)
        for _ in range(5):
            assert copy.fill(copy.random(two)) == template.fill(template.random(one))


@pytest.mark.parametrize("name", list_suites())
def test_bundled_suites_come_back_the_same(name: str, tmp_path: Path) -> None:
    suite, path = load_suite(name, check=False), tmp_path / "written.yaml"
    path.write_text(suite_to_yaml(suite))
    assert_same(suite, load_suite(str(path), check=False))


def test_odd_words_and_numbers_come_back_the_same(tmp_path: Path) -> None:
    path, written = tmp_path / "odd.yaml", tmp_path / "written.yaml"
    path.write_text(ODD)
    suite = load_suite(str(path), check=False)
    written.write_text(suite_to_yaml(suite))
    assert_same(suite, load_suite(str(written), check=False))
    [template] = suite.templates
    assert isinstance(template, SymbolicTemplate)
    assert template.slots[3].domain == (Pair("off", Fraction(1, 3)), Pair("2/3", Fraction(2, 3)))


def test_what_the_language_cannot_say_is_refused(tmp_path: Path) -> None:
    (tmp_path / "odd.yaml").write_text(ODD)
    suite = load_suite(str(tmp_path / "odd.yaml"), check=False)
    [template] = suite.templates
    assert isinstance(template, SymbolicTemplate)
    for changed, message in (
        (restricted(template, {"a": ["No", "x"]}), "not over the same values"),
        (restricted(template, {"k": [Fraction(1, 3)]}), "no short decimal"),
        (replace(template, checks_equations=False), "only suites of the template language"),
    ):
        with pytest.raises(InputError, match=message):
            suite_to_yaml(replace(suite, templates=(changed,)))
