"""Cheap scores from pieces are those of tokenised texts, and a question that is not separable is noticed."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_jax.difficulty import References
from robust_jax.lpds.cheap_scoring import CheapScorer
from robust_jax.lpds.pieces import segments, separated
from robust_jax.models import load_model
from robust_jax.problems import load_suite
from robust_jax.problems.template import SymbolicTemplate
from robust_jax.problems.text import parse_text
from robust_jax.randomness import rng
from robust_jax.types import Model, Point, ReferenceSet, Slot, Template, TokenEmbeddings

TINY = load_model("builtin:tiny")

AWKWARD = """
name: awkward
description: Holes that touch letters, signs and one another.
grading: exact
templates:
  - id: touching
    question: "{name}'s {n}{unit} rope costs ${a}.{b}; ({n} of {m}) is {n + m}."
    solution: "#### {n + m}"
    slots:
      name: {choice: [Ava, Omar, Mei]}
      unit: {choice: [m, ft, inch]}
      n: {range: [2, 12]}
      m: {range: [2, 12]}
      a: {range: [1, 9]}
      b: {range: [10, 14]}
    constraints: [n > m]
    answer: n + m
  - id: undefined
    question: "Of {n} cakes each of {k} gets {n / k} cakes. How many?"
    solution: "#### {n / k}"
    slots:
      n: {range: [0, 60, 6]}
      k: {range: [0, 6]}
    constraints: ["k > 0", "divides(n, k)"]
    answer: n / k
"""


@pytest.fixture(scope="module")
def awkward(tmp_path_factory: pytest.TempPathFactory) -> list[Template]:
    path = tmp_path_factory.mktemp("suite") / "awkward.yaml"
    path.write_text(AWKWARD)
    return list(load_suite(str(path)).templates)


def random_points(template: Template, count: int, name: str) -> list[Point]:
    generator = rng(0, "test", name)
    return [template.random(generator) for _ in range(count)]


def fitted(template: Template, model: Model, count: int = 60) -> References:
    texts = [template.text(point) for point in random_points(template, count, "references")]
    embeddings = model.embed(texts)
    keys = tuple(map(str, range(count)))
    return References.fit(ReferenceSet(keys, tuple(texts), np.zeros((count, 0, 0), np.float32), embeddings))


def scores(template: Template, model: Model, points: Sequence[Point]) -> tuple[np.ndarray, np.ndarray]:
    """From pieces, and from tokenised texts."""
    references = fitted(template, model)
    by_pieces = CheapScorer(template, model).fitted(references)(points)
    embeddings = model.embed([template.text(point) for point in points])
    return by_pieces, references.mahalanobis("embeddings").score(embeddings)


@pytest.mark.parametrize("place", range(0, 28, 9))
def test_grade_school_is_separable_and_scores_are_the_same(place: int) -> None:
    template = load_suite("grade_school").templates[place]
    assert isinstance(TINY, TokenEmbeddings)
    question = separated(template, TINY)
    assert question is not None
    points = random_points(template, 200, "scored")
    points += list(itertools.islice(itertools.chain(*(template.neighbours(points[0], s) for s in range(3))), 200))
    chosen = question.choices(points).T
    sums = sum(term.sums[numbers] for term, numbers in zip(question.terms, chosen, strict=True))
    counts = sum(term.counts[numbers] for term, numbers in zip(question.terms, chosen, strict=True))
    texts = [template.text(point) for point in points]
    assert counts.tolist() == [len(ids) for ids in TINY.tokenize_all(texts)]
    np.testing.assert_allclose(sums / counts[:, None], TINY.embed(texts), atol=1e-6)
    by_pieces, by_tokenising = scores(template, TINY, points)
    np.testing.assert_allclose(by_pieces, by_tokenising, rtol=2e-4)


@pytest.mark.parametrize("place", [0, 1])
def test_awkward_holes_are_grown_and_merged(awkward: list[Template], place: int) -> None:
    template = awkward[place]
    assert isinstance(TINY, TokenEmbeddings)
    assert separated(template, TINY) is not None
    points = random_points(template, 200, "scored")
    by_pieces, by_tokenising = scores(template, TINY, points)
    np.testing.assert_allclose(by_pieces, by_tokenising, rtol=2e-4)


class AcrossSpaces:
    """A tokenizer with a token that reaches over a space, so that pieces are not tokenised as the whole is."""

    def __init__(self, bridge: str) -> None:
        self.bridge = bridge
        self.embedding_table = np.random.default_rng(0).standard_normal((300, 8)).astype(np.float32)

    def tokenize_all(self, texts: Sequence[str]) -> list[list[int]]:
        return [[299 if c == "\0" else ord(c) % 256 for c in t.replace(self.bridge, "\0")] for t in texts]


@pytest.mark.parametrize("bridge", ["s 1", "Omar's 7m", "; (12 of"])
def test_a_token_over_an_edge_is_noticed_wherever_it_is(awkward: list[Template], bridge: str) -> None:
    assert separated(awkward[0], AcrossSpaces("never")) is not None
    assert separated(awkward[0], AcrossSpaces(bridge)) is None


def test_too_many_values_are_not_written_out(tmp_path: Path) -> None:
    source = AWKWARD.replace("range: [2, 12]", "range: [2, 2000000]").replace("{n + m}.", "{m}.")
    (tmp_path / "wide.yaml").write_text(source)
    template = load_suite(str(tmp_path / "wide.yaml")).templates[0]
    assert separated(template, AcrossSpaces("never")) is None


def test_a_value_outside_its_domain_is_tokenised() -> None:
    template = load_suite("grade_school").templates[0]
    inside = template.random(rng(0, "x"))
    outside = (*inside[:2], 4321, inside[3])
    by_pieces, by_tokenising = scores(template, TINY, [inside, outside])
    np.testing.assert_allclose(by_pieces, by_tokenising, rtol=2e-4)


words = st.text(alphabet="ab,$ .-\n", max_size=6)


@settings(max_examples=200, deadline=None)
@given(st.lists(words, min_size=1, max_size=5), st.data())
def test_segments_are_the_question_and_end_at_single_spaces(literals: list[str], data: st.DataObject) -> None:
    names = ["x", "y", "z"]
    holes = [data.draw(st.sampled_from(names)) for _ in literals[1:]]
    source = literals[0] + "".join(f"{{{hole}}}{literal}" for hole, literal in zip(holes, literals[1:], strict=True))
    question = parse_text(source, [Slot(name, (1,)) for name in names], where="test")
    found = list(segments(question))
    shown = ["".join(part if isinstance(part, str) else "5" for part in segment) for segment in found]
    assert "".join(shown) == question.render(dict.fromkeys(names, 5))
    for before, after in itertools.pairwise(shown):
        assert after.startswith(" ") and (after + ".")[1] not in " \n"
        assert not before or before[-1] not in " \n"


def test_the_whole_search_is_the_same_either_way() -> None:
    template = load_suite("grade_school").templates[3]
    assert isinstance(template, SymbolicTemplate)
    references = fitted(template, TINY)
    points = random_points(template, 300, "scored")
    quick = CheapScorer(template, TINY).fitted(references)(points)
    slow = CheapScorer(template, WithoutTokens(TINY)).fitted(references)
    np.testing.assert_allclose(quick, slow(points), rtol=2e-4)
    assert slow(points[:5]).tolist() == slow(points)[:5].tolist()


class WithoutTokens:
    """A model that tells nothing of its tokens."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.name, self.capabilities, self.digest = "plain", model.capabilities, ""
        self.num_layers, self.defaults = model.num_layers, model.defaults
        self.respond, self.score, self.tokenize, self.embed = model.respond, model.score, model.tokenize, model.embed
