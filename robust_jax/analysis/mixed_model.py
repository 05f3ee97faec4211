"""Logistic regression with a random intercept a template, by maximum likelihood (paper Appendix C.3.3).

    logit P(y_i = 1 | b_j) = β₀ + β₁ x_i + σ b_j,    b_j ~ N(0, 1)

The likelihood of template j is the integral of exp(h_j(b)) / √(2π) over b, with

    h_j(b) = Σ_i [y_i η_i − log(1 + exp η_i)] − b² / 2.

h_j is concave. Adaptive Gauss–Hermite quadrature puts K nodes around its maximum, as far apart as its curvature there
says, so that few nodes are exact to many digits however many answers a template has. The likelihood is even in σ:
where templates do not differ, its maximum is an ordinary stationary point at σ = 0.

Sums over answers are taken on the CPU in float64; the parameters are three, and their Newton steps plain numpy.
Letters beside those of `types`: J templates, n answers of one template, K nodes.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float64, Int

from robust_jax.shapes import power_of_two

NODES = 15
MAXIMUM_STEPS = 100
MAXIMUM_HALVINGS = 30
TOLERANCE = 1e-10
"""The fit has converged when a Newton step promises less than half of this in log-likelihood."""
NEAR = 1.0
"""Newton's steps are taken as they are when they promise less than half of this: the maximum is at hand."""
LONGEST_STEP = 2.0
"""In any parameter: a longer one may land where every probability is 0 or 1 and there is no slope to go back by."""


class MixedModel(NamedTuple):
    """The fitted model."""

    intercept: float
    """β₀."""
    slope: float
    """β₁."""
    spread: float
    """σ, the standard deviation of the templates' intercepts, not negative."""
    slope_error: float
    """Standard error of β₁ from the observed information."""
    log_likelihood: float
    converged: bool
    """Whether the gradient vanishes at a maximum. The rest must not be used otherwise."""


def fit_mixed_model(x: list[Float64[np.ndarray, " _"]], y: list[Bool[np.ndarray, " _"]]) -> MixedModel:
    """Fit to the answers of J templates.

    With a single template σ is 0, and the model an ordinary logistic regression: one intercept tells of no spread.

    Args:
        x: the metric of each answer, an array a template.
        y: whether each answer was right, likewise.
    """
    with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
        answers = _padded(x, y)
        # The pooled regression: a good start, and the answer where templates are alike.
        best, converged = _maximise(np.zeros(3), answers, has_spread=False)
        if has_spread := len(x) > 1:
            mixed, mixed_converged = _maximise(np.array([*best.theta[:2], 1.0]), answers, has_spread=True)
            # Where templates are alike, σ falls towards 0 and the likelihood towards that of the pooled regression.
            if best.value < mixed.value - TOLERANCE or best.hessian[2, 2] >= 0:
                best, converged = mixed, mixed_converged
    variance = _covariance(best, has_spread)[1, 1]
    return MixedModel(
        intercept=float(best.theta[0]),
        slope=float(best.theta[1]),
        spread=float(best.theta[2]),
        slope_error=float(np.sqrt(variance)) if variance > 0 else np.nan,
        log_likelihood=float(best.value),
        converged=converged and bool(variance > 0),
    )


# --------------------------------------------------------------------------------------------------
# Climbing the likelihood


class _Answers(NamedTuple):
    x: Float64[Array, "J n"]
    y: Float64[Array, "J n"]
    counts: Float64[Array, "J n"]
    """1 for an answer, 0 for padding."""


class _Nodes(NamedTuple):
    """Where the integrals are evaluated."""

    modes: Float64[Array, " J"]
    """Where each h_j is largest."""
    spacing: Float64[Array, " J"]


class _Point(NamedTuple):
    """The likelihood at some parameters."""

    theta: Float64[np.ndarray, " 3"]
    """(β₀, β₁, σ)."""
    value: float
    gradient: Float64[np.ndarray, " 3"]
    hessian: Float64[np.ndarray, "3 3"]


def _padded(x: list[Float64[np.ndarray, " _"]], y: list[Bool[np.ndarray, " _"]]) -> _Answers:
    """Shapes come from a few buckets, so that the metrics of a table share one compilation."""
    table = np.zeros((3, power_of_two(len(x)), power_of_two(max(map(len, x)))))
    for j, (values, correct) in enumerate(zip(x, y, strict=True)):
        table[:, j, : len(values)] = np.stack([values, correct, np.ones(len(values))])
    return _Answers(*map(jnp.asarray, table))


def _maximise(theta: Float64[np.ndarray, " 3"], answers: _Answers, has_spread: bool) -> tuple[_Point, bool]:
    """Damped Newton ascent from given parameters, and whether it has arrived at a maximum.

    Without a spread σ stays as it is: at 0, which makes it a pooled logistic regression.
    """
    # At σ = 0 the integrands are Gaussian, and two nodes are exact.
    count = NODES if has_spread else 2
    nodes = _adapted_nodes(theta, jnp.zeros(answers.x.shape[0]), answers)
    for _ in range(MAXIMUM_STEPS):
        point = _point(theta, nodes, answers, count)
        direction, gain, is_maximum = _direction(point, has_spread)
        if gain < TOLERANCE:
            return point, is_maximum
        share = min(1.0, LONGEST_STEP / np.abs(direction).max())
        if direction[2] < 0:
            # σ = 0 is a saddle where templates differ, and a step onto it would not leave it again.
            share = min(share, 0.8 * theta[2] / -direction[2])
        if gain > NEAR:
            evaluate = partial(_point, nodes=nodes, answers=answers, count=count)
            share = _shortened(share, direction, gain, point, evaluate)
        theta = theta + share * direction
        nodes = _adapted_nodes(theta, nodes.modes, answers)
    return point, False


def _direction(point: _Point, has_spread: bool) -> tuple[Float64[np.ndarray, " 3"], float, bool]:
    """The Newton step, turned uphill where the likelihood is not concave; twice its promised gain; and if it is."""
    free = 3 if has_spread else 2
    curvatures, axes = np.linalg.eigh(-point.hessian[:free, :free])
    size = np.abs(curvatures)
    direction = np.zeros(3)
    direction[:free] = axes @ (axes.T @ point.gradient[:free] / np.maximum(size, 1e-8 * size.max()))
    return direction, float(direction @ point.gradient), bool(curvatures[0] > 1e-12 * size.max())


def _shortened(
    share: float,
    direction: Float64[np.ndarray, " 3"],
    gain: float,
    point: _Point,
    evaluate: Callable[[Float64[np.ndarray, " 3"]], _Point],
) -> float:
    """The share of a step, halved until the likelihood rises by some of what the step promises.

    The nodes are held meanwhile: value and gradient agree only then.
    """
    for _ in range(MAXIMUM_HALVINGS):
        if evaluate(point.theta + share * direction).value >= point.value + 1e-4 * share * gain:
            break
        share /= 2
    return share


def _covariance(point: _Point, has_spread: bool) -> Float64[np.ndarray, "_ _"]:
    free = 3 if has_spread else 2
    return np.linalg.pinv(-point.hessian[:free, :free], hermitian=True)


# --------------------------------------------------------------------------------------------------
# The likelihood and its derivatives


def _point(theta: Float64[np.ndarray, " 3"], nodes: _Nodes, answers: _Answers, count: int) -> _Point:
    value, gradient, hessian = jax.device_get(_likelihood(theta, nodes, answers, count))
    return _Point(theta, float(value), gradient, hessian)


@partial(jax.jit, static_argnames="count")
def _likelihood(
    theta: Float64[Array, " 3"], nodes: _Nodes, answers: _Answers, count: int
) -> tuple[Float64[Array, ""], Float64[Array, " 3"], Float64[Array, "3 3"]]:
    """Log-likelihood, gradient and Hessian in (β₀, β₁, σ), from `count` nodes that are held where they are.

    With ω_jk the share of node k in the integral of template j, s the gradient of h_jk and I its negative second
    derivative, the gradient is Σ_jk ω s and the Hessian Σ_j [Σ_k ω (s sᵀ − I) − (Σ_k ω s)(Σ_k ω s)ᵀ].
    """
    places, weights = np.polynomial.hermite.hermgauss(count)
    b = nodes.modes[:, None] + nodes.spacing[:, None] * places
    logs, residual, residual_x, weight, weight_x, weight_xx = _sums(theta, b, answers)

    terms = np.log(weights) + places**2 + logs - b**2 / 2
    integrals = jax.nn.logsumexp(terms, axis=1) + jnp.log(nodes.spacing) - np.log(2 * np.pi) / 2
    share = jax.nn.softmax(terms, axis=1)
    s = jnp.stack([residual, residual_x, b * residual])
    rows = (
        (weight, weight_x, b * weight),
        (weight_x, weight_xx, b * weight_x),
        (b * weight, b * weight_x, b * b * weight),
    )
    information = jnp.stack([jnp.stack(row) for row in rows])
    mean = jnp.einsum("JK,aJK->aJ", share, s)
    spread_of_s = jnp.einsum("JK,aJK,bJK->ab", share, s, s) - mean @ mean.T
    return integrals.sum(), mean.sum(axis=1), spread_of_s - jnp.einsum("JK,abJK->ab", share, information)


class _Search(NamedTuple):
    """The search for every h_j's maximum, as far as it has come."""

    b: Float64[Array, " J"]
    low: Float64[Array, " J"]
    high: Float64[Array, " J"]
    curvature: Float64[Array, " J"]
    """−h_j'' where the latest step began."""
    step: Float64[Array, " J"]
    number: Int[Array, ""]
    """Steps so far."""


@jax.jit
def _adapted_nodes(theta: Float64[Array, " 3"], start: Float64[Array, " J"], answers: _Answers) -> _Nodes:
    """Around where each h_j is largest, as far apart as its curvature there says.

    h_j' falls everywhere. Newton's method may leap over its root again and again, so the root is kept in a bracket,
    and a step that would leave it goes to its middle instead.
    """
    sigma = theta[2]

    def slope(b: Float64[Array, " J"]) -> tuple[Float64[Array, " J"], Float64[Array, " J"]]:
        _, residual, _, weight, _, _ = _sums(theta, b[:, None], answers)
        return sigma * residual[:, 0] - b, 1 + sigma**2 * weight[:, 0]

    def is_under_way(search: _Search) -> Bool[Array, ""]:
        return (jnp.abs(search.step).max() > 1e-9) & (search.number < 60)

    def improve(search: _Search) -> _Search:
        first, curvature = slope(search.b)
        low = jnp.where(first > 0, search.b, search.low)
        high = jnp.where(first > 0, search.high, search.b)
        newton = search.b + first / curvature
        target = jnp.where((newton >= low) & (newton <= high), newton, (low + high) / 2)
        return _Search(target, low, high, curvature, target - search.b, search.number + 1)

    # |h'(b) + b| is at most |σ| n, so the root lies no farther out.
    bound = jnp.abs(sigma) * answers.counts.sum(axis=1) + 1
    begin = _Search(jnp.clip(start, -bound, bound), -bound, bound, bound, bound, jnp.array(0))
    found = jax.lax.while_loop(is_under_way, improve, begin)
    return _Nodes(found.b, jnp.sqrt(2 / found.curvature))


def _sums(
    theta: Float64[Array, " 3"], b: Float64[Array, "J K"], answers: _Answers
) -> tuple[Float64[Array, "J K"], ...]:
    """Sums over a template's answers at given b: log-likelihoods, y − p, (y − p) x, p (1 − p), p (1 − p) x and … x²."""
    x, y, counts = answers
    eta = theta[0] + theta[1] * x[:, None] + theta[2] * b[:, :, None]
    decay = jnp.exp(-jnp.abs(eta))
    larger = 1 / (1 + decay)
    p = larger * jnp.where(eta >= 0, 1.0, decay)
    log_smallest = jnp.log(larger) - jnp.maximum(eta, 0)

    def total(of_answers: Float64[Array, "J K n"], weights: Float64[Array, "J n"]) -> Float64[Array, "J K"]:
        return jnp.einsum("JKn,Jn->JK", of_answers, weights * counts)

    logs = total(y[:, None] * eta + log_smallest, jnp.ones_like(x))
    weight = decay * larger**2
    residual = y[:, None] - p
    return (
        logs,
        total(residual, jnp.ones_like(x)),
        total(residual, x),
        total(weight, jnp.ones_like(x)),
        total(weight, x),
        total(weight, x * x),
    )
