"""The bundled suites against solutions that were worked out from the questions alone."""

from fractions import Fraction
from pathlib import Path

import pytest
import yaml

from robust_jax.problems import list_suites, load_suite

SOLVED = sorted(Path(__file__).with_name("solved").glob("*.yaml"))


@pytest.mark.parametrize("path", SOLVED, ids=lambda path: path.stem)
def test_every_base_problem_has_the_numbers_that_two_readers_found(path: Path) -> None:
    suite = load_suite(path.stem, check=False)
    solved = {row["template"]: row for row in yaml.load(path.read_text(), Loader=yaml.BaseLoader)}
    assert solved.keys() == {template.id for template in suite.templates}
    for template in suite.templates:
        assert template.base is not None
        variation, row = template.fill(template.base), solved[template.id]
        assert " ".join(variation.text.split()) == " ".join(row["question"].split()), template.id
        assert Fraction(variation.answer) == Fraction(row["expected"]), template.id
        # The second reader gives one digit more, which rounds to the answer.
        slack = half_a_place(row["expected"]) + half_a_place(row["second"]) if "." in row["second"] else 0
        assert abs(variation.answer - Fraction(row["second"])) <= slack, template.id


def half_a_place(number: str) -> Fraction:
    """Half of the last printed place."""
    return Fraction(1, 2 * 10 ** len(number.partition(".")[2]))


def test_every_bundled_suite_is_solved() -> None:
    assert {path.stem for path in SOLVED} == set(list_suites())
