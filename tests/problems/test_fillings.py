"""Fillings that are rare among too many combinations to go through: drawn evenly, counted, and never missed."""

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from robust_jax.errors import InputError
from robust_jax.problems import fillings, list_suites
from robust_jax.problems import template as template_module
from robust_jax.problems.domains import Grid
from robust_jax.problems.expressions import parse
from robust_jax.problems.fillings import Component
from robust_jax.problems.loaded import Loaded
from robust_jax.problems.template import MAX_CHECKING_WORK, MAX_WRITING_WORK, SymbolicTemplate, affordable
from robust_jax.randomness import rng
from robust_jax.types import Pair, Point, Size, Slot, Suite, Template, Value


def component(domains: dict[str, tuple[Value, ...] | Grid], constraints: list[str]) -> Component:
    return Component(
        where="t",
        slots=tuple(Slot(name, domain) for name, domain in domains.items()),
        indices=tuple(range(len(domains))),
        constraints=tuple(parse(source, domains, where="t", wanted="boolean") for source in constraints),
    )


HUNDRED = Grid.between(1, 100)
PARTS = tuple(Pair(f"1/{n}", Fraction(1, n)) for n in range(2, 14))


def test_rare_fillings_are_drawn_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many combinations to list, few of them valid: three slots are listed, the fourth is drawn."""
    monkeypatch.setattr(fillings, "FIRST_TRIES", 16)
    monkeypatch.setattr(fillings, "_BLOCKS", (16,))
    monkeypatch.setattr(fillings, "_LARGE_BLOCK", 64)
    domains: dict[str, tuple[Value, ...] | Grid] = {"a": HUNDRED, "b": HUNDRED, "c": HUNDRED, "d": Grid.between(1, 12)}
    rare = component(domains, ["a * b == 96", "c == a + b + 1", "d < 7 or c > 60"])
    valid = {
        (a, 96 // a, a + 96 // a + 1, d)
        for a, d in itertools.product(range(1, 97), range(1, 13))
        if 96 % a == 0 and a + 96 // a < 100 and (d < 7 or a + 96 // a + 1 > 60)
    }
    generator = np.random.default_rng(0)
    counts = Counter(rare.draw(generator) for _ in range(12 * len(valid)))
    assert counts.keys() == valid
    assert chisquare([*counts.values()]).pvalue > 1e-4
    assert rare.size == Size(len(valid), exact=True)


def test_a_draw_depends_on_the_generator_alone() -> None:
    domains: dict[str, tuple[Value, ...] | Grid] = {"n": HUNDRED, "m": HUNDRED, "k": HUNDRED, "p": PARTS}
    constraints = ["is_int(p * n / 7)", "is_int((n * m + k) / 97)", "k < m"]
    used, seeds = component(domains, constraints), range(12)
    first = [used.draw(np.random.default_rng(seed)) for seed in seeds]
    assert used.size.count >= len(set(first))
    assert first == [component(domains, constraints).draw(np.random.default_rng(seed)) for seed in seeds]
    assert all(used.is_valid(filling) for filling in first)


def test_a_bound_is_never_too_small() -> None:
    domains: dict[str, tuple[Value, ...] | Grid] = {"n": HUNDRED, "m": HUNDRED, "k": HUNDRED}
    wide = component(domains, ["n < m", "is_int((m + k) / 3)"])
    count = sum((99 - m) * 0 + (m - 1) for m in range(1, 101) for k in range(1, 101) if (m + k) % 3 == 0)
    assert wide.size.count >= count
    assert not wide.size.exact or wide.size.count == count


def test_what_nothing_satisfies_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fillings, "DRAWING_WORK", 30_000.0)
    domains: dict[str, tuple[Value, ...] | Grid] = {"n": HUNDRED, "m": HUNDRED, "k": HUNDRED, "j": HUNDRED}
    with pytest.raises(InputError, match=r"fails most is 'n \* m == 10007'"):
        component(domains, ["n * m == 10007", "k < j", "m < j"]).draw(np.random.default_rng(0))


@pytest.mark.parametrize("suite", [*list_suites(), "symbolic", "p1", "p2"])
def test_good_templates_need_less_than_a_third_of_the_work(
    suite: str, apple: Callable[[str], Loaded], bundled: Callable[[str], Suite], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that no template of theirs is near to being refused: with a third, every draw is still the same."""

    def draws(template: Template) -> list[Point]:
        return [template.random(rng(seed, "draws", template.id)) for seed in range(2)]

    templates = bundled(suite).templates if suite in list_suites() else apple(suite).suite.templates
    drawn = [draws(template) for template in templates]
    monkeypatch.setattr(template_module, "MAX_CHECKING_WORK", MAX_CHECKING_WORK / 3)
    monkeypatch.setattr(template_module, "MAX_WRITING_WORK", MAX_WRITING_WORK / 3)
    for name in ("DRAWING_WORK", "LISTING_WORK", "_LESSER_WORK"):
        monkeypatch.setattr(fillings, name, getattr(fillings, name) / 3)
    for template, points in zip(templates, drawn, strict=True):
        assert isinstance(template, SymbolicTemplate)
        assert draws(affordable(replace(template))) == points, template.id
