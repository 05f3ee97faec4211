"""Odds ratios against brute-force likelihoods, other libraries and simulated truth; and where there is none."""

import sys

import numpy as np
import pytest
from scipy import optimize, special
from sklearn.linear_model import LogisticRegression

from robust_jax.analysis.mixed_model import fit_mixed_model
from robust_jax.analysis.odds_ratio import odds_ratio
from robust_jax.errors import InputError

Data = tuple[list[np.ndarray], list[np.ndarray]]


def simulated(
    seed: int, templates: int = 30, answers: int = 60, theta: tuple[float, float, float] = (-1.0, -0.7, 1.0)
) -> Data:
    """A metric and answers from the model itself."""
    draws = np.random.default_rng(seed)
    intercept, slope, spread = theta
    x = [draws.normal(size=answers) for _ in range(templates)]
    own = draws.normal(size=templates) * spread
    return x, [draws.random(answers) < special.expit(intercept + slope * z + u) for z, u in zip(x, own, strict=True)]


def by_brute_force(x: list[np.ndarray], y: list[np.ndarray]) -> tuple[np.ndarray, float]:
    """Parameters and log-likelihood from integrals on a fine grid of b, and a general optimiser."""
    b = np.linspace(-8, 8, 641)
    metric, right = np.stack(x)[:, :, None], np.stack(y)[:, :, None]

    def negative(theta: np.ndarray) -> float:
        eta = theta[0] + theta[1] * metric + theta[2] * b
        logs = (right * eta - np.logaddexp(0, eta)).sum(axis=1) - b**2 / 2
        integrals = special.logsumexp(logs, axis=1) + np.log((b[1] - b[0]) / np.sqrt(2 * np.pi))
        return -integrals.sum()

    found = optimize.minimize(negative, [0.0, 0.0, 1.0], method="L-BFGS-B", jac="3-point", tol=1e-10)
    return found.x * [1, 1, np.sign(found.x[2])], -found.fun


@pytest.mark.parametrize("spread", [0.4, 1.0, 4.0])
def test_the_fit_is_the_largest_likelihood(spread: float) -> None:
    x, y = simulated(3, templates=10, answers=25, theta=(0.5, 1.2, spread))
    model = fit_mixed_model(x, y)
    theta, log_likelihood = by_brute_force(x, y)
    assert model.converged
    assert model.log_likelihood == pytest.approx(log_likelihood, abs=1e-3)
    assert [model.intercept, model.slope, model.spread] == pytest.approx(theta, rel=2e-3)


def test_templates_of_all_sizes_and_large_spreads_converge() -> None:
    for seed, spread in enumerate((0.0, 0.2, 1.0, 3.0)):
        x, y = simulated(seed, templates=20, answers=400, theta=(-2.0, 0.8, spread))
        sizes = np.random.default_rng(seed).integers(1, 400, size=20)
        model = fit_mixed_model(
            [z[:size] for z, size in zip(x, sizes, strict=True)], [c[:size] for c, size in zip(y, sizes, strict=True)]
        )
        assert model.converged
        assert model.slope == pytest.approx(0.8, abs=4 * model.slope_error)


@pytest.mark.parametrize("templates", [1, 20])
def test_without_a_spread_it_is_a_logistic_regression(templates: int) -> None:
    """Alike templates have σ = 0 as their most likely spread, and one template tells nothing of it."""
    x, y = simulated(1, templates, answers=300, theta=(-1.0, 0.8, 0.0))
    model = fit_mixed_model(x, y)
    pooled = LogisticRegression(C=np.inf, tol=1e-10).fit(np.concatenate(x)[:, None], np.concatenate(y))
    assert model.converged
    assert model.spread == pytest.approx(0, abs=1e-6)
    assert model.slope == pytest.approx(pooled.coef_.item(), rel=1e-4)
    p = special.expit(model.intercept + model.slope * np.concatenate(x))
    design = np.column_stack([np.ones(p.size), np.concatenate(x)])
    covariance = np.linalg.inv(design.T @ (design * (p * (1 - p))[:, None]))
    assert model.slope_error == pytest.approx(np.sqrt(covariance[1, 1]), rel=1e-5)


def coverage(data_sets: int) -> float:
    held = 0
    for seed in range(data_sets):
        x, y = simulated(seed)
        found = odds_ratio([3 * z + 40 for z in x], y)
        truth = np.exp(-0.7 * np.concatenate(x).std())
        held += found.low <= truth <= found.high
    return held / data_sets


def test_the_interval_covers_the_truth() -> None:
    assert 0.88 <= coverage(100) <= 0.99


@pytest.mark.slow
def test_the_interval_covers_the_truth_as_often_as_it_claims() -> None:
    assert 0.91 <= coverage(1000) <= 0.98


def test_variational_bayes_is_near_it() -> None:
    x, y = simulated(0, templates=20, answers=100)
    exact, bayes = odds_ratio(x, y), odds_ratio(x, y, "vb")
    assert bayes.slope == pytest.approx(exact.slope, rel=0.03)
    assert bayes.slope_error == pytest.approx(exact.slope_error, rel=0.2)
    assert bayes == odds_ratio(x, y, "vb")


@pytest.mark.slow
def test_the_slope_is_that_of_statsmodels_on_the_paper_s_size() -> None:
    x, y = simulated(0, templates=100, answers=1000, theta=(-2.0, 0.8, 1.0))
    exact, bayes = odds_ratio(x, y), odds_ratio(x, y, "vb")
    assert bayes.note == exact.note == ""
    assert bayes.slope == pytest.approx(exact.slope, rel=0.02)


def test_variational_bayes_without_statsmodels_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "statsmodels.genmod.bayes_mixed_glm", None)
    with pytest.raises(InputError, match="pip install"):
        odds_ratio(*simulated(0, templates=5), "vb")


def test_units_make_no_difference() -> None:
    x, y = simulated(5)
    found, other = odds_ratio(x, y), odds_ratio([1e-9 * z + 5 for z in x], y)
    assert other.value == pytest.approx(found.value, rel=1e-5)
    assert (found.answers, found.templates, found.note) == (1800, 30, "")


def test_spreads_as_large_as_can_be_fitted() -> None:
    x, y = simulated(7, templates=20, answers=100, theta=(-1.0, 0.8, 8.0))
    found = odds_ratio(x, y)
    assert found.note == ""
    assert found.imbalanced > 5
    assert found.slope == pytest.approx(0.8, abs=4 * found.slope_error)


def test_what_is_left_out_is_counted() -> None:
    x, y = simulated(6, templates=10, answers=200)
    x = [*(np.append(z, [np.nan, np.inf]) for z in x), np.zeros(200), np.zeros(0), np.full(3, np.nan)]
    y = [*(np.append(c, [True, False]) for c in y), np.arange(200) > 0, np.zeros(0, bool), np.ones(3, bool)]
    found = odds_ratio(x, y)
    assert (found.answers, found.templates, found.imbalanced, found.missing) == (2000, 10, 1, 23)
    assert found.low < np.exp(-0.7) < found.high


half = np.arange(100) < 50


@pytest.mark.parametrize(
    ("x", "y", "note"),
    [
        ([], [], "both kinds"),
        ([np.zeros(0)], [np.zeros(0, bool)], "both kinds"),
        ([np.arange(100.0)], [np.ones(100, bool)], "both kinds"),
        ([np.arange(1000.0)] * 3, [np.arange(1000) < 995] * 3, "both kinds"),
        ([np.full(100, np.nan)] * 2, [half] * 2, "both kinds"),
        ([np.full(100, 7.25)] * 2, [half] * 2, "constant"),
        ([np.arange(100.0)] * 2, [half] * 2, "separates"),
        ([-np.arange(100.0)] * 2, [half] * 2, "separates"),
        ([np.minimum(np.arange(100.0), 50)] * 2, [np.arange(100) < 60] * 2, "separates"),
    ],
    ids=["nothing", "empty", "one class", "nearly one class", "nan", "constant", "rising", "falling", "ties"],
)
@pytest.mark.parametrize("estimator", ["agh", "vb"])
def test_where_there_is_no_odds_ratio_it_says_why(
    x: list[np.ndarray], y: list[np.ndarray], note: str, estimator: str
) -> None:
    found = odds_ratio(x, y, estimator)
    assert note in found.note
    assert np.isnan([found.value, found.low, found.high]).all()


def test_one_template_is_said_to_be_one() -> None:
    x, y = simulated(2, templates=1, answers=500)
    found = odds_ratio(x, y)
    assert "one template" in found.note
    assert found.low < np.exp(-0.7) < found.high


def test_a_metric_that_differs_between_templates_alone_has_an_odds_ratio() -> None:
    draws = np.random.default_rng(0)
    levels = draws.normal(size=60)
    y = [draws.random(50) < special.expit(-level) for level in levels]
    found = odds_ratio([np.full(50, level) for level in levels], y)
    assert found.note == ""
    assert found.low < np.exp(-levels.std()) < found.high
