"""The difficulty metrics of Table 1, by name. A new one is a subclass of `Metric` and a call of `register`."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Float64

from robust_jax.difficulty.observations import Need, Observations
from robust_jax.errors import InputError, nearest
from robust_jax.types import TokenStatistics

Span = Literal["input", "output"]

Representation = Literal["hidden", "embeddings"]
"""Which vectors are compared: mean hidden states of the replies, or mean input embeddings of the problems."""


@runtime_checkable
class Distances(Protocol):
    """The observations' distances from the references of their template.

    An observation whose key is that of a reference is compared with the other references alone (p_k ≠ p_i).
    Every method raises `TooFewReferences` where there is nothing to compare with.
    """

    def levenshtein(self) -> Float[np.ndarray, "C R"]:
        """Normalised distance from every reference; NaN where one does not count, and for an empty reply."""

    def mahalanobis(self, of: Representation) -> Float[np.ndarray, " C"]:
        """Squared Mahalanobis distance from the Gaussian of the references."""

    def nearest(self, of: Representation) -> Float[np.ndarray, " C"]:
        """Euclidean distance to the tenth nearest reference, or to the last where there are fewer."""


class Metric(ABC):
    """An estimate of how difficult a variation is for a model."""

    name: str
    """By which it is asked for."""
    label: str
    """Its name in Table 1, where it may stand once a span."""
    span: Span
    """Whether it looks at the problem or at the reply."""
    source: str
    """Equation or section of the paper."""
    sign: Literal[1, -1] = 1
    """−1 if a higher value means an easier variation: sign · value is what is ranked."""
    needs: frozenset[Need]
    """The columns of the observations that it reads."""

    @abstractmethod
    def compute(self, observations: Observations, distances: Distances) -> Float[np.ndarray, " C"]:
        """Raw values; NaN for an empty reply."""


class TokenStatistic(Metric):
    """A function of the means over the tokens of a span."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self.needs = frozenset({"input_statistics"} if span == "input" else {"output_statistics"})
        self.name = f"{span}_{self.label.lower()}".replace("-", "_")

    def means(
        self, observations: Observations, field: Literal["log_probability", "entropy", "self_certainty"]
    ) -> Float64[np.ndarray, " C"]:
        """One of the `TokenStatistics` of the span."""
        table = observations.input_statistics if self.span == "input" else observations.output_statistics
        assert table is not None  # one of the needs
        return table[:, TokenStatistics._fields.index(field)].astype(np.float64)


class Perplexity(TokenStatistic):
    """exp of the mean negative log-probability of the tokens."""

    label = "Perplexity"
    source = "Eq. 2"

    def compute(self, observations: Observations, distances: Distances) -> Float[np.ndarray, " C"]:
        with np.errstate(over="ignore"):  # a span that the model takes for impossible has an infinite perplexity
            return np.exp(-self.means(observations, "log_probability"))


class Entropy(TokenStatistic):
    """Mean entropy of the next-token distribution, in nats."""

    label = "Entropy"
    source = "Eq. 3"

    def compute(self, observations: Observations, distances: Distances) -> Float[np.ndarray, " C"]:
        return self.means(observations, "entropy")


class SelfCertainty(TokenStatistic):
    """How far the most probable next tokens are from uniform; high values are those of a confident model."""

    label = "Self-Certainty"
    source = "Eq. 4"
    sign = -1

    def compute(self, observations: Observations, distances: Distances) -> Float[np.ndarray, " C"]:
        return self.means(observations, "self_certainty")


class Levenshtein(Metric):
    """The normalised Levenshtein distances of a reply from all references, pooled to one number."""

    span = "output"
    needs = frozenset({"text"})

    def __init__(self, name: str, source: str, pool: Callable[..., Float[np.ndarray, " C"]]) -> None:
        """A pooling function takes a table and an axis, and passes NaN over: such references do not count."""
        self.name = self.label = name
        self.source = source
        self._pool = pool

    def compute(self, observations: Observations, distances: Distances) -> Float[np.ndarray, " C"]:
        table = distances.levenshtein()
        pooled = np.full(len(observations), np.nan)
        rows = ~np.isnan(table).all(axis=1)
        if rows.any():
            pooled[rows] = self._pool(table[rows], axis=1)
        return pooled


class Mahalanobis(Metric):
    """Squared Mahalanobis distance from the Gaussian of the references."""

    def __init__(self, of: Representation) -> None:
        self._of: Representation = of
        self.name = self.label = "MD_H" if of == "hidden" else "MD_E"
        self.source = "Eq. 1" if of == "hidden" else "Eq. 7"
        self.span = "output" if of == "hidden" else "input"
        self.needs = frozenset({of})

    def compute(self, observations: Observations, distances: Distances) -> Float[np.ndarray, " C"]:
        return distances.mahalanobis(self._of)


class NearestNeighbour(Metric):
    """Euclidean distance to the tenth nearest reference."""

    source = "Section 3.2"

    def __init__(self, of: Representation) -> None:
        self._of: Representation = of
        self.name = self.label = "KNN_H" if of == "hidden" else "KNN_E"
        self.span = "output" if of == "hidden" else "input"
        self.needs = frozenset({of})

    def compute(self, observations: Observations, distances: Distances) -> Float[np.ndarray, " C"]:
        return distances.nearest(self._of)


_METRICS: dict[str, Metric] = {}


def register(metric: Metric) -> None:
    """Make a metric available by its name.

    Raises:
        ValueError: the name is taken.
    """
    if metric.name in _METRICS:
        raise ValueError(f"there is a metric {metric.name} already")
    _METRICS[metric.name] = metric


def metric(name: str) -> Metric:
    """The metric of that name.

    Raises:
        InputError: there is none.
    """
    if name in _METRICS:
        return _METRICS[name]
    raise InputError(f"there is no metric {name!r}: did you mean {nearest(name, _METRICS)}?")


def metric_names() -> tuple[str, ...]:
    """The names of all metrics, in the order of the tables."""
    return tuple(_METRICS)


for _metric in (
    Perplexity("input"),
    Entropy("input"),
    SelfCertainty("input"),
    Mahalanobis("embeddings"),
    NearestNeighbour("embeddings"),
    Perplexity("output"),
    Entropy("output"),
    SelfCertainty("output"),
    Levenshtein("LD_min", "Eq. 5", np.nanmin),
    Levenshtein("LD_max", "Section C.3.1", np.nanmax),
    Levenshtein("LD_mean", "Eq. 6", np.nanmean),
    Levenshtein("LD_median", "Section C.3.1", np.nanmedian),
    Mahalanobis("hidden"),
    NearestNeighbour("hidden"),
):
    register(_metric)
