"""References and the metrics against them: every metric by its definition, and what does not count is left out."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from robust_jax.difficulty.mahalanobis import MahalanobisFit, TooFewReferences
from robust_jax.difficulty.metrics import Distances, Metric, metric, metric_names, register
from robust_jax.difficulty.neighbours import knn_distance
from robust_jax.difficulty.observations import Observations
from robust_jax.difficulty.references import References, select_references
from robust_jax.errors import InputError
from robust_jax.types import ReferenceSet, TokenStatistics

NAMES = {
    *("LD_min", "LD_max", "LD_mean", "LD_median", "MD_H", "MD_E", "KNN_H", "KNN_E"),
    *("output_perplexity", "output_entropy", "output_self_certainty"),
    *("input_perplexity", "input_entropy", "input_self_certainty"),
}
AGAINST_REFERENCES = sorted(name for name in NAMES if name[:2] in ("LD", "MD", "KN"))
STATISTICS = sorted(NAMES - set(AGAINST_REFERENCES))
WORDS = ["the", "sum", "is", "4", "+", "5", "=", "9", "####"]


def replies(rng: np.random.Generator, count: int) -> tuple[str, ...]:
    return tuple(" ".join(rng.choice(WORDS, rng.integers(3, 12))) for _ in range(count))


def reference_set(count: int, seed: int = 0, prefix: str = "reference") -> ReferenceSet:
    rng = np.random.default_rng(seed)
    return ReferenceSet(
        keys=tuple(f"{prefix} {number}" for number in range(count)),
        texts=replies(rng, count),
        hidden=rng.normal(size=(count, 2, 8)).astype(np.float32),
        embeddings=rng.normal(size=(count, 8)).astype(np.float32),
    )


def observed(count: int, seed: int = 1) -> Observations:
    rng = np.random.default_rng(seed)
    return Observations(
        keys=tuple(f"new {number}" for number in range(count)),
        text=replies(rng, count),
        hidden=rng.normal(size=(count, 2, 8)).astype(np.float32),
        embeddings=rng.normal(size=(count, 8)).astype(np.float32),
        output_statistics=rng.normal(size=(count, 3)).astype(np.float32),
        input_statistics=rng.normal(size=(count, 3)).astype(np.float32),
    )


def as_observations(known: ReferenceSet) -> Observations:
    return Observations(keys=known.keys, text=known.texts, hidden=known.hidden, embeddings=known.embeddings)


def without(known: ReferenceSet, place: int) -> ReferenceSet:
    return ReferenceSet(
        keys=known.keys[:place] + known.keys[place + 1 :],
        texts=known.texts[:place] + known.texts[place + 1 :],
        hidden=np.delete(known.hidden, place, axis=0),
        embeddings=np.delete(known.embeddings, place, axis=0),
    )


def test_every_metric_is_its_definition() -> None:
    known, seen = reference_set(30), observed(6)
    assert seen.text is not None and seen.hidden is not None and seen.embeddings is not None
    found = References.fit(known, layer_index=1, shrinkage="oas").score(metric_names(), seen)
    table = np.array(
        [
            [Levenshtein.normalized_distance(text.split(), reference.split()) for reference in known.texts]
            for text in seen.text
        ]
    )
    expected = {
        "LD_min": table.min(axis=1),
        "LD_max": table.max(axis=1),
        "LD_mean": table.mean(axis=1),
        "LD_median": np.median(table, axis=1),
        "MD_H": MahalanobisFit.fit(known.hidden[:, 1], "oas").score(seen.hidden[:, 1]),
        "MD_E": MahalanobisFit.fit(known.embeddings, "oas").score(seen.embeddings),
        "KNN_H": knn_distance(seen.hidden[:, 1], known.hidden[:, 1]),
        "KNN_E": knn_distance(seen.embeddings, known.embeddings),
    }
    for span, columns in (("output", seen.output_statistics), ("input", seen.input_statistics)):
        assert columns is not None
        means = TokenStatistics(*columns.T)
        expected[f"{span}_perplexity"] = np.exp(-means.log_probability.astype(float))
        expected[f"{span}_entropy"] = means.entropy
        expected[f"{span}_self_certainty"] = means.self_certainty
    assert set(found) == set(expected) == NAMES
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-6, err_msg=name)


def test_all_layers_at_once_are_the_layers_one_by_one() -> None:
    known, seen = reference_set(30), observed(6)
    renamed = replace(seen, keys=(known.keys[3], *seen.keys[1:]))
    found = References.fit(known).score_layers(metric_names(), renamed)
    assert [set(layer) for layer in found] == [{"MD_H", "KNN_H"}] * 2
    for layer, values in enumerate(found):
        alone = References.fit(known, layer_index=layer).score(["MD_H", "KNN_H"], renamed)
        for name in values:
            np.testing.assert_allclose(values[name], alone[name], rtol=1e-6)


def test_a_reference_is_not_compared_with_itself() -> None:
    known = reference_set(30)
    seen = as_observations(known)
    names = [name for name in AGAINST_REFERENCES if not name.startswith("MD")]
    references = References.fit(known)
    found = references.score(names, seen)
    for place in range(len(known.keys)):
        alone = References.fit(without(known, place)).score(names, seen)
        for name in names:
            assert found[name][place] == pytest.approx(alone[name][place]), name
    for name, of in (("MD_H", "hidden"), ("MD_E", "embeddings")):
        expected = references.mahalanobis(of).leave_one_out()
        np.testing.assert_allclose(references.score([name], seen)[name], expected, rtol=1e-5)


def test_left_out_by_key_also_where_the_reply_is_another_one() -> None:
    known, seen = reference_set(12), observed(3)
    renamed = Observations(("new", known.keys[4], known.keys[0]), seen.text, seen.hidden, seen.embeddings)
    found = References.fit(known).score(AGAINST_REFERENCES, renamed)
    full = References.fit(known).score(AGAINST_REFERENCES, seen)
    for row, place in ((1, 4), (2, 0)):
        rest = References.fit(without(known, place)).score(AGAINST_REFERENCES, seen)
        for name in AGAINST_REFERENCES:
            assert found[name][0] == pytest.approx(full[name][0])
            if not name.startswith("MD"):  # whose shrinkage is held, see the tests of the fit
                assert found[name][row] == pytest.approx(rest[name][row])


def test_extending_is_fitting_to_all() -> None:
    first, second, seen = reference_set(20), reference_set(9, seed=5, prefix="later"), observed(5)
    references = References.fit(first, layer_index=1)
    references.score(AGAINST_REFERENCES, seen)
    grown = references.extended(second)
    whole = ReferenceSet(
        first.keys + second.keys,
        first.texts + second.texts,
        np.concatenate([first.hidden, second.hidden]),
        np.concatenate([first.embeddings, second.embeddings]),
    )
    expected = References.fit(whole, layer_index=1)
    for observations in (seen, as_observations(whole)):
        found = grown.score(AGAINST_REFERENCES, observations)
        for name, values in expected.score(AGAINST_REFERENCES, observations).items():
            np.testing.assert_allclose(found[name], values, rtol=1e-5, err_msg=name)
    assert len(grown) == 29 and len(references) == 20
    with pytest.raises(ValueError, match="same key"):
        grown.extended(second)


def test_empty_replies_are_nan_in_every_metric_of_the_output() -> None:
    seen = observed(4)
    assert seen.text is not None and seen.hidden is not None and seen.output_statistics is not None
    seen.hidden[2] = np.nan
    seen.output_statistics[2] = np.nan
    seen = replace(seen, text=(*seen.text[:2], "", seen.text[3]))
    for name, values in References.fit(reference_set(20)).score(metric_names(), seen).items():
        assert np.isnan(values).tolist() == [False, False, metric(name).span == "output", False], name


def test_a_reply_of_punctuation_alone_is_as_far_as_can_be() -> None:
    seen = Observations(keys=("new",), text=("...",))
    assert References.fit(reference_set(20)).score(["LD_min"], seen)["LD_min"].tolist() == [1]


@pytest.mark.parametrize("count", [0, 1, 4])
def test_too_few_references_are_reported(count: int) -> None:
    references = References.fit(reference_set(count))
    reasons = references.left_out(metric_names())
    assert set(reasons) == {"MD_H", "MD_E"} | (set(AGAINST_REFERENCES) if count == 0 else set())
    assert all("references" in reason and "\n" not in reason for reason in reasons.values())
    with pytest.raises(TooFewReferences):
        references.score(["MD_H"], observed(3))
    rest = [name for name in metric_names() if name not in reasons]
    assert all(np.isfinite(values).all() for values in references.score(rest, observed(3)).values())


def test_the_only_reference_has_no_other_to_be_compared_with() -> None:
    known = reference_set(1)
    for values in References.fit(known).score(["LD_min", "LD_median", "KNN_H"], as_observations(known)).values():
        assert np.isnan(values).all()


def test_references_without_hidden_states() -> None:
    known = reference_set(20)
    bare = ReferenceSet(known.keys, known.texts, np.zeros((20, 0, 0), np.float32), np.zeros((20, 0), np.float32))
    assert set(References.fit(bare).left_out(metric_names())) == {"MD_H", "MD_E", "KNN_H"}


def test_what_does_not_fit_is_said() -> None:
    references = References.fit(reference_set(20), layer_index=2)
    with pytest.raises(InputError, match="2 layers"):
        references.score(["MD_H"], observed(3))
    with pytest.raises(InputError, match=r"MD_E needs .*embeddings"):
        references.score(["MD_E"], Observations(keys=("new",), text=("4",)))
    with pytest.raises(InputError, match="width 8"):
        references.score(["MD_E"], Observations(keys=("new",), embeddings=np.zeros((1, 9))))
    with pytest.raises(ValueError, match="2 rows of embeddings for 1"):
        Observations(keys=("new",), embeddings=np.zeros((2, 9)))
    with pytest.raises(ValueError, match="same key"):
        References.fit(ReferenceSet(("a", "a"), ("", ""), np.zeros((2, 1, 3)), np.zeros((2, 3))))


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [("MD_G", "MD_H"), ("md_e", "MD_E"), ("ld-min", "LD_min"), ("perplexity", "(in|out)put_perplexity"), ("", ".+")],
)
def test_an_unknown_metric_names_the_nearest(asked: str, nearest: str) -> None:
    with pytest.raises(InputError, match=rf"did you mean {nearest}\?"):
        metric(asked)


def test_attributes_of_all_metrics() -> None:
    assert set(metric_names()) == NAMES
    for name in NAMES:
        assert metric(name).sign == (-1 if name.endswith("self_certainty") else 1)
        assert len(metric(name).needs) == 1
    assert len({(metric(name).span, metric(name).label) for name in NAMES}) == len(NAMES)


def test_a_metric_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    class Length(Metric):
        name = label = "length"
        span = "output"
        source = "none"
        needs = frozenset({"text"})

        def compute(self, observations: Observations, distances: Distances) -> np.ndarray:
            assert observations.text is not None
            return np.array([float(len(text)) for text in observations.text])

    monkeypatch.setattr("robust_jax.difficulty.metrics._METRICS", {})
    register(Length())
    seen = Observations(keys=("a", "b"), text=("four", ""))
    assert References.fit(reference_set(3)).score(["length"], seen)["length"].tolist() == [4, 0]
    with pytest.raises(ValueError, match="already"):
        register(Length())


@given(st.integers(0, 1000), st.integers(1, 300))
def test_selection(count: int, maximum: int) -> None:
    candidates = list(range(count))
    half, paper = select_references(candidates, maximum), select_references(candidates, maximum, "paper")
    assert half == candidates[: len(half)]
    assert paper == candidates[: len(paper)]
    assert len(paper) == min(count, maximum)
    assert len(half) == (maximum if count >= 2 * maximum else count // 2)
