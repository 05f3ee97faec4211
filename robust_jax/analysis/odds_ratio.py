"""What one standard deviation of a metric does to the odds of a right answer (paper Section 3.2, Appendix C.3.3)."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Float64

from robust_jax.analysis.mixed_model import fit_mixed_model
from robust_jax.errors import InputError

Estimator = Literal["agh", "vb"]
"""agh: maximum likelihood by adaptive Gauss–Hermite quadrature; vb: statsmodels' variational Bayes, the paper's
estimator, whose intervals are too short (its standard errors leave out what the templates share)."""

MOST_OF_ONE_KIND = 0.99
"""A template in which a larger share of the answers is right, or wrong, is left out: it is nearly separated."""


@dataclass(frozen=True)
class OddsRatio:
    """exp(β₁) of a logistic mixed model with a random intercept a template, on the z-scored metric."""

    value: float
    """NaN, like the interval, where `note` says that there is none."""
    low: float
    high: float
    """exp(β₁ ± 1.96 standard errors)."""
    slope: float = np.nan
    """β₁."""
    slope_error: float = np.nan
    spread: float = np.nan
    """σ, the standard deviation of the templates' intercepts."""
    answers: int = 0
    """How many answers it rests on."""
    templates: int = 0
    """How many templates it rests on."""
    imbalanced: int = 0
    """Templates that were left out because nearly all answers are of one kind."""
    missing: int = 0
    """Answers that were left out because the metric is NaN or infinite."""
    note: str = ""
    """Why there is no odds ratio, or what must be known of it."""


def odds_ratio(
    values: Sequence[Float[np.ndarray, " _"]], correct: Sequence[Bool[np.ndarray, " _"]], estimator: Estimator = "agh"
) -> OddsRatio:
    """Odds ratio of a metric; where the data give none, a result that says why.

    The metric is z-scored over all its finite values. Templates of which more than 99% of the answers are of one kind
    are left out.

    Args:
        values: the raw metric of every answer that counts, an array a template.
        correct: whether each of them was right, likewise.
        estimator: agh or vb.

    Raises:
        InputError: vb is asked for and statsmodels is not installed.
    """
    usable = [np.isfinite(metric) for metric in values]
    x = [metric[keep].astype(np.float64) for metric, keep in zip(values, usable, strict=True)]
    y = [right[keep] for right, keep in zip(correct, usable, strict=True)]
    missing = sum(int((~keep).sum()) for keep in usable)
    is_balanced = [_is_balanced(right) for right in y]
    kept_x = [metric for metric, keep in zip(x, is_balanced, strict=True) if keep]
    kept_y = [right for right, keep in zip(y, is_balanced, strict=True) if keep]
    counts = {
        "answers": sum(map(len, kept_x)),
        "templates": len(kept_x),
        "imbalanced": sum(len(right) > 0 for right in y) - len(kept_x),
        "missing": missing,
    }
    if (reason := _why_none(kept_x, kept_y)) is not None:
        return OddsRatio(np.nan, np.nan, np.nan, **counts, note=reason)
    pooled = np.concatenate(x)
    z = [(metric - pooled.mean()) / pooled.std() for metric in kept_x]
    slope, error, spread, converged = _agh(z, kept_y) if estimator == "agh" else _vb(z, kept_y)
    if not converged:
        return OddsRatio(np.nan, np.nan, np.nan, **counts, note="the fit did not converge")
    low, value, high = np.exp([slope - 1.96 * error, slope, slope + 1.96 * error]).tolist()
    note = "one template: an ordinary logistic regression" if len(z) == 1 else ""
    return OddsRatio(value, low, high, slope, error, spread, **counts, note=note)


def _is_balanced(correct: Bool[np.ndarray, " n"]) -> bool:
    return len(correct) > 0 and max(float(correct.mean()), float((~correct).mean())) <= MOST_OF_ONE_KIND


def _why_none(x: Sequence[Float64[np.ndarray, " _"]], y: Sequence[Bool[np.ndarray, " _"]]) -> str | None:
    """Why these answers give no odds ratio; None if they do."""
    if not x:
        return "no template has enough answers of both kinds"
    pooled = np.concatenate(x)
    if np.ptp(pooled) <= 1e-12 * np.abs(pooled).max():
        return "the metric is constant"
    if _separates(x, y) or _separates([-metric for metric in x], y):
        return "the metric separates right from wrong answers, which makes it 0 or infinite"
    return None


def _separates(x: Sequence[Float64[np.ndarray, " _"]], y: Sequence[Bool[np.ndarray, " _"]]) -> bool:
    """Whether in every template no right answer has a larger value than a wrong one, and in one they do differ."""
    never_larger = all(metric[right].max() <= metric[~right].min() for metric, right in zip(x, y, strict=True))
    return bool(never_larger and any(np.ptp(metric) > 0 for metric in x))


def _agh(z: list[Float64[np.ndarray, " _"]], y: list[Bool[np.ndarray, " _"]]) -> tuple[float, float, float, bool]:
    """Slope, its standard error, the spread of the intercepts, and whether the fit has converged."""
    model = fit_mixed_model(z, y)
    return model.slope, model.slope_error, model.spread, model.converged


def _vb(
    z: Sequence[Float64[np.ndarray, " _"]], y: Sequence[Bool[np.ndarray, " _"]]
) -> tuple[float, float, float, bool]:
    """The same by statsmodels, from a start that is not drawn."""
    try:
        from scipy import sparse
        from statsmodels.genmod.bayes_mixed_glm import BinomialBayesMixedGLM
    except ImportError:
        raise InputError("--odds vb needs statsmodels: pip install 'robust-jax[vb]', or use --odds agh") from None
    metric = np.concatenate(z)
    template = np.repeat(np.arange(len(z)), [len(part) for part in z])
    indicators = sparse.csr_matrix((np.ones(len(metric)), (np.arange(len(metric)), template)))
    model = BinomialBayesMixedGLM(
        np.concatenate(y).astype(float),
        np.column_stack([np.ones(len(metric)), metric]),
        indicators,
        np.zeros(len(z), int),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence, which is looked at below
        fitted = model.fit_vb(sd=np.full(3 + len(z), np.exp(-0.5)))
    spread = float(np.exp(fitted.vcp_mean[0]))
    return float(fitted.fe_mean[1]), float(fitted.fe_sd[1]), spread, bool(fitted.optim_retvals.success)
