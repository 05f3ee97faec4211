"""What the bundled suites promise: sizes, labels, examples, names, and that no example is a tested problem."""

import re
from itertools import product

import pytest

from robust_jax.problems import check_suite, list_suites, load_suite
from robust_jax.problems.template import SymbolicTemplate
from robust_jax.types import Suite

SUITES = {name: load_suite(name, check=False) for name in list_suites()}
NEW = ("engineering", "finance", "word_problems")


def templates(suite: Suite) -> list[SymbolicTemplate]:
    return [template for template in suite.templates if isinstance(template, SymbolicTemplate)]


@pytest.mark.parametrize("name", SUITES)
def test_counts_and_labels(name: str) -> None:
    suite = SUITES[name]
    assert len(suite.examples) == 5
    assert len(templates(suite)) == len(suite.templates) == (40 if name in NEW else 28)
    for template in templates(suite):
        assert template.base is not None, template.id
        assert template.steps in range(1, 7), template.id
    if name in NEW:
        labels = [template.difficulty for template in templates(suite)]
        assert all(labels.count(label) >= 10 for label in ("basic", "intermediate", "advanced"))
    if name == "word_problems":
        assert sum(template.steps == 1 for template in templates(suite)) >= 10


@pytest.mark.parametrize("name", SUITES)
def test_names_are_many_and_no_suite_shares_them_all(name: str) -> None:
    def names(suite: Suite) -> set[str]:
        slots = [slot for template in templates(suite) for slot in template.slots if slot.name in ("name", "friend")]
        return {str(word) for slot in slots for word in slot.domain}

    own = names(SUITES[name])
    assert len(own) >= 20
    assert len({word[0] for word in own}) >= 15
    for other in SUITES.keys() - {name}:
        assert len(own & names(SUITES[other])) <= len(own) // 2


@pytest.mark.parametrize(("name", "other"), [*product(SUITES, SUITES)])
def test_no_example_is_a_filling_of_a_template(name: str, other: str) -> None:
    """However its holes are filled, with values of its domains or not."""
    for template in templates(SUITES[name]):
        parts = [re.escape(piece) if isinstance(piece, str) else ".+?" for piece in template.question.pieces]
        question = re.compile("".join(parts), re.DOTALL)
        assert not any(question.fullmatch(example.question) for example in SUITES[other].examples), template.id


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", SUITES)
def test_fillings_are_many_and_every_equation_holds(name: str) -> None:
    for template in SUITES[name].templates:
        assert template.size.count >= 10_000, template.id
    assert check_suite(SUITES[name], fillings=200, seed=4) == []
