"""Mahalanobis fits against dense float64 linear algebra, scikit-learn's shrinkage and brute-force leave-one-out."""

import numpy as np
import pytest
from sklearn import covariance

from robust_jax.difficulty import projection
from robust_jax.difficulty.mahalanobis import MahalanobisFit, TooFewReferences, score_together
from robust_jax.difficulty.shrinkage import MINIMUM_INTENSITY, Shrinkage, ledoit_wolf, oas
from robust_jax.errors import InputError

INVERTIBLE = ("ledoit-wolf", "oas", "ridge")


def sigma(fit: MahalanobisFit, references: np.ndarray) -> np.ndarray:
    """Σ with the fit's own coefficients, dense."""
    return fit.scale * np.cov(references.T, bias=True).reshape(fit.mean.size, -1) + fit.floor * np.eye(fit.mean.size)


def dense(fit: MahalanobisFit, references: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(x − m)ᵀ Σ⁻¹ (x − m) by a dense float64 solve, m and S from the given references."""
    references, x = references.astype(np.float64), x.astype(np.float64)
    z = x - references.mean(axis=0)
    if fit.shrinkage == "pinv":
        return np.einsum("CD,CD->C", z @ np.linalg.pinv(sigma(fit, references), rcond=1e-10, hermitian=True), z)
    return np.einsum("CD,CD->C", z, np.linalg.solve(sigma(fit, references), z.T).T)


def by_singular_values(fit: MahalanobisFit, references: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The same from a float64 SVD, for dimensions in which a dense covariance takes too long."""
    references = references.astype(np.float64)
    mean = references.mean(axis=0)
    _, singular, directions = np.linalg.svd(references - mean, full_matrices=False)
    z = x.astype(np.float64) - mean
    coordinates = z @ directions.T
    residual = z - coordinates @ directions
    variances = fit.scale * singular**2 / len(references) + fit.floor
    return coordinates**2 @ (1 / variances) + np.sum(residual**2, axis=1) / fit.floor


def hard_features(rng: np.random.Generator, count: int, dimension: int = 64) -> np.ndarray:
    """Features of many scales, with a duplicate, a collinear and two constant columns, far from the origin."""
    features = rng.normal(size=(count, dimension)) * np.geomspace(100, 1e-3, dimension) + 50
    features[:, 1] = features[:, 0]
    features[:, 2] = 2 * features[:, 3] - features[:, 4]
    features[:, 5], features[:, 6] = 7.0, 0.0
    return features.astype(np.float32)


@pytest.mark.parametrize(
    "scales",
    [
        np.ones(4096),
        np.concatenate([[1e4, 1e3], np.full(4094, 0.01)]),  # two dimensions dwarf the rest, as in residual streams
        np.geomspace(1, 1e-6, 4096),
    ],
    ids=["even", "outlying dimensions", "decaying"],
)
def test_wide_features(scales: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    offset = rng.normal(size=4096) * 20 * scales
    references = (rng.normal(size=(200, 4096)) * scales + offset).astype(np.float32)
    x = (rng.normal(size=(16, 4096)) * 1.3 * scales + offset).astype(np.float32)
    fit = MahalanobisFit.fit(references)
    np.testing.assert_allclose(fit.score(x), by_singular_values(fit, references, x), rtol=1e-5)
    np.testing.assert_allclose(
        fit.score(references[:9]), by_singular_values(fit, references, references[:9]), rtol=1e-5
    )


def test_features_far_from_the_origin() -> None:
    rng = np.random.default_rng(8)
    references = (rng.normal(size=(50, 64)) * 0.1 + 1e4).astype(np.float32)
    x = (rng.normal(size=(9, 64)) * 0.1 + 1e4).astype(np.float32)
    fit = MahalanobisFit.fit(references)
    np.testing.assert_allclose(fit.score(x), dense(fit, references, x), rtol=1e-5)


@pytest.mark.parametrize("shrinkage", INVERTIBLE)
def test_hard_features_of_every_number_of_references_up_to_twice_the_dimension(shrinkage: Shrinkage) -> None:
    for count in range(2, 129):
        rng = np.random.default_rng(count)
        references, x = hard_features(rng, count), hard_features(rng, 8)
        references[1] = references[0]
        if count < 6:
            with pytest.raises(TooFewReferences, match=f"{count - 1} distinct references, but at least 5"):
                MahalanobisFit.fit(references, shrinkage)
            continue
        fit = MahalanobisFit.fit(references, shrinkage)
        expected = by_singular_values(fit, references, x)
        np.testing.assert_allclose(fit.score(x), expected, rtol=1e-5, err_msg=str(count))


def test_many_fits_scored_together_give_what_each_gives_alone() -> None:
    rng = np.random.default_rng(9)
    counts, sizes = (40, 9, 200, 33, 41), (3, 1100, 0, 70, 5)
    fits = [MahalanobisFit.fit(rng.normal(size=(count, 48)) + count) for count in counts]
    x = [rng.normal(size=(size, 48)) + count for size, count in zip(sizes, counts, strict=True)]
    left_out = [None, None, None, rng.integers(-1, 33, size=70), np.array([-1, 40, 0, -1, 7])]
    together = score_together(fits, x, left_out)
    assert [len(scores) for scores in together] == list(sizes)
    for fit, rows, out, scores in zip(fits, x, left_out, together, strict=True):
        np.testing.assert_allclose(scores, fit.score(rows, out), rtol=1e-5)
    with pytest.raises(ValueError):
        score_together(fits, x[:-1])


@pytest.mark.parametrize("shrinkage", [*INVERTIBLE, "pinv"])
@pytest.mark.parametrize("count", [6, 40, 128])
def test_leave_one_out_is_that_of_a_fit_without_the_reference(shrinkage: Shrinkage, count: int) -> None:
    rng = np.random.default_rng(count)
    references = rng.normal(size=(count, 64)).astype(np.float32) * 3 + 1
    strangers = rng.normal(size=(count, 64)).astype(np.float32) * 3 + 1
    fit = MahalanobisFit.fit(references, shrinkage)
    places = np.arange(count)
    for place, of_reference, of_stranger in zip(
        places, fit.leave_one_out(), fit.score(strangers, left_out=places), strict=True
    ):
        rest = np.delete(references, place, axis=0)
        expected = dense(fit, rest, np.stack([references[place], strangers[place]]))
        np.testing.assert_allclose([of_reference, of_stranger], expected, rtol=2e-5)
    np.testing.assert_allclose(fit.score(references, left_out=places), fit.leave_one_out(), rtol=2e-5)


def test_nothing_is_left_out_where_the_number_is_negative() -> None:
    rng = np.random.default_rng(0)
    references = rng.normal(size=(9, 5))
    fit = MahalanobisFit.fit(references)
    mixed = fit.score(references, left_out=np.array([-1, 1, -1, 3, -1, -1, -1, -1, 8]))
    expected = np.where(np.isin(np.arange(9), [1, 3, 8]), fit.leave_one_out(), fit.score(references))
    np.testing.assert_allclose(mixed, expected, rtol=1e-5)


@pytest.mark.parametrize(("count", "dimension"), [(5, 3), (8, 50), (60, 50), (200, 50), (20, 1)])
def test_shrinkage_is_that_of_scikit_learn(count: int, dimension: int) -> None:
    rng = np.random.default_rng(count)
    references = rng.normal(size=(count, dimension)) * np.geomspace(10, 0.1, dimension) + 4
    centred = references - references.mean(axis=0)
    gram = centred @ centred.T
    assert ledoit_wolf(gram, dimension) == pytest.approx(covariance.ledoit_wolf(references)[1], abs=1e-13)
    if dimension > 1:  # scikit-learn leaves a single feature alone; there the intensity makes no difference
        assert oas(gram, dimension) == pytest.approx(covariance.oas(references)[1], abs=1e-13)


def test_scores_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(1)
    references, x = rng.normal(size=(30, 12)) * np.geomspace(3, 0.3, 12), rng.normal(size=(7, 12))
    for shrinkage, estimator in (("ledoit-wolf", covariance.LedoitWolf()), ("oas", covariance.OAS())):
        fit = MahalanobisFit.fit(references, shrinkage)
        assert not fit.is_floored
        assert 0.01 < fit.intensity < 0.9
        assert fit.intensity == pytest.approx(estimator.fit(references).shrinkage_)
        np.testing.assert_allclose(fit.score(x), estimator.mahalanobis(x), rtol=1e-5)


def test_a_small_intensity_is_floored_and_said_to_be() -> None:
    rng = np.random.default_rng(2)
    line = np.array([[1.0], [-1.0]] * 10) * np.ones((1, 20)) + rng.normal(size=(20, 20)) * 1e-6
    fit = MahalanobisFit.fit(line)
    centred = line - line.mean(axis=0)
    assert ledoit_wolf(centred @ centred.T, 20) < MINIMUM_INTENSITY
    assert fit.is_floored
    assert fit.intensity == MINIMUM_INTENSITY
    assert np.isfinite(fit.score(rng.normal(size=(4, 20)))).all()


def test_pseudo_inverse_gives_every_reference_the_same_distance() -> None:
    """Why it is there for comparison only: with fewer references than dimensions it says nothing."""
    rng = np.random.default_rng(3)
    references = rng.normal(size=(20, 64))
    fit = MahalanobisFit.fit(references, "pinv")
    np.testing.assert_allclose(fit.score(references), 19, rtol=1e-4)
    away = np.linalg.svd(references - references.mean(axis=0))[2][-1]  # a direction that no reference has
    np.testing.assert_allclose(fit.score(references.mean(axis=0)[None] + 100 * away), 0, atol=1e-3)


@pytest.mark.parametrize("shrinkage", [*INVERTIBLE, "pinv"])
@pytest.mark.parametrize("dimension", [3, 64, 700])
def test_extending_again_and_again_is_a_fit_to_all(shrinkage: Shrinkage, dimension: int) -> None:
    rng = np.random.default_rng(dimension)
    references = rng.normal(size=(400, dimension)) * np.geomspace(10, 0.1, dimension) + 20
    references[200:] += 5  # the later ones lie elsewhere
    grown = MahalanobisFit.fit(references[:200], shrinkage)
    for start in range(200, 400, 50):
        grown = grown.extend(references[start : start + 50])
    at_once = MahalanobisFit.fit(references, shrinkage)
    assert grown.intensity == pytest.approx(at_once.intensity, rel=1e-10)
    assert grown.mean_variance == pytest.approx(at_once.mean_variance, rel=1e-10)
    np.testing.assert_allclose(grown.mean, at_once.mean, rtol=1e-10)
    np.testing.assert_allclose(grown.eigenvalues, at_once.eigenvalues, rtol=1e-10)
    np.testing.assert_allclose(grown.leave_one_out(), at_once.leave_one_out(), rtol=1e-10)
    x = rng.normal(size=(9, dimension)) + 20
    np.testing.assert_allclose(grown.score(x), at_once.score(x), rtol=1e-5)


@pytest.mark.parametrize(
    "references",
    [
        np.ones((0, 4)),
        np.ones((1, 4)),
        np.eye(4),
        np.tile(np.arange(4.0), (200, 1)),
        np.tile(np.eye(4), (50, 1)),
        np.array([[0.0], [-0.0], [1.0], [2.0], [3.0]]),
        np.arange(10.0)[:, None] * np.full((1, 4), 1e-200),
        np.ones((10, 0)),
    ],
    ids=["none", "one", "four", "identical", "four again and again", "signed zero", "underflow", "no features"],
)
def test_too_few_distinct_references(references: np.ndarray) -> None:
    for shrinkage in (*INVERTIBLE, "pinv"):
        with pytest.raises(TooFewReferences, match="references"):
            MahalanobisFit.fit(references, shrinkage)


def test_references_must_be_finite() -> None:
    references = np.random.default_rng(0).normal(size=(9, 3))
    fit = MahalanobisFit.fit(references)
    with pytest.raises(InputError, match="NaN"):
        fit.extend(np.array([[0.0, np.nan, 0.0]]))


def test_rows_with_nan_score_nan_and_leave_the_others_alone() -> None:
    rng = np.random.default_rng(4)
    references, x = rng.normal(size=(20, 6)), rng.normal(size=(3, 6))
    fit = MahalanobisFit.fit(references)
    with_nan = np.insert(x, 1, np.nan, axis=0)
    scores = fit.score(with_nan, left_out=np.array([-1, 3, -1, -1]))
    assert np.isnan(scores[1])
    np.testing.assert_array_equal(np.delete(scores, 1), fit.score(x))
    assert fit.score(x[:0]).shape == (0,)


def test_leave_one_out_agrees_with_held_out_scores_where_in_sample_scores_do_not() -> None:
    rng = np.random.default_rng(5)
    references, fresh = rng.normal(size=(2, 200, 256)) * np.geomspace(1, 0.01, 256)
    fit = MahalanobisFit.fit(references)
    held_out = fit.score(fresh).mean()
    assert fit.leave_one_out().mean() == pytest.approx(held_out, rel=0.05)
    assert fit.score(references).mean() < 0.7 * held_out


def test_compilations_do_not_grow_with_the_work() -> None:
    rng = np.random.default_rng(6)
    references = rng.normal(size=(200, 24))
    compiled = projection._project._cache_size
    MahalanobisFit.fit(references[:150]).score(references[:100])
    before = compiled()
    fit = MahalanobisFit.fit(references[:140])
    for count in range(65, 128, 9):
        fit = fit.extend(rng.normal(size=(3, 24)))
        fit.score(rng.normal(size=(count, 24)))
    assert compiled() == before


def test_many_rows_are_scored_like_few() -> None:
    rng = np.random.default_rng(7)
    references, x = rng.normal(size=(20, 8)), rng.normal(size=(2500, 8))
    fit = MahalanobisFit.fit(references)
    np.testing.assert_allclose(fit.score(x)[-7:], fit.score(x[-7:]), rtol=1e-5)
