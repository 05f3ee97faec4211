"""Difficulty and its statistics against the usual way of computing them, as ratios.

    python benchmarks/difficulty.py [mahalanobis] [odds] [levenshtein] [measure] --rounds 3

The methods take turns within each round, so that what else the machine does falls on all of them; medians of wall time
are printed, and of processor time, which a busy machine disturbs less.

- mahalanobis: fit 200 references at D = 4096 and score 256 observations, against the D × D covariance with a ridge and
  its Cholesky factor; 50 more references, against a new fit; 28 fits scored together, against one by one;
- odds: the mixed model on 100 templates × 1,000 answers against statsmodels' variational Bayes;
- levenshtein: 256 responses × 200 references of about 200 tokens on the CPU, against rapidfuzz called directly;
- measure: the share of `lpds measure` that is spent outside `builtin:tiny`.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command line sets it, for both sides; read at import

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein
from scipy import linalg, special

from robust_jax.analysis.odds_ratio import odds_ratio
from robust_jax.difficulty import MahalanobisFit, normalised_distances, score_together
from robust_jax.lpds.commands import measure
from robust_jax.lpds.options import MeasureOptions
from robust_jax.models import load_model, register_mock
from robust_jax.types import Model


class Cost(NamedTuple):
    wall: float
    processor: float


def cost(work: Callable[[], Any]) -> Cost:
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return Cost(time.perf_counter() - wall, time.process_time() - processor)


def compare(title: str, rounds: int, ours: Callable[[], Any], others: Mapping[str, Callable[[], Any]]) -> None:
    """Print how many times as long the others take."""
    ours()  # compiles
    costs: dict[str, list[Cost]] = {name: [] for name in ("ours", *others)}
    for _ in range(rounds):
        for name, work in {"ours": ours, **others}.items():
            costs[name].append(cost(work))
    middle = {name: Cost(*map(median, zip(*found, strict=True))) for name, found in costs.items()}
    print(f"{title}: {middle['ours'].wall:.4f} s")
    for name in others:
        wall, processor = (other / own for other, own in zip(middle[name], middle["ours"], strict=True))
        print(f"  {name}: {middle[name].wall:.4f} s, {wall:.2f} times as long ({processor:.2f} in processor time)")


def mahalanobis(rounds: int) -> None:
    rng = np.random.default_rng(0)
    references, more, x = (rng.normal(size=(count, 4096)).astype(np.float32) for count in (200, 50, 256))

    def dense(dtype: type[np.floating]) -> np.ndarray:
        covariance = np.cov(references.T, bias=True, dtype=dtype)
        covariance[np.diag_indices(4096)] += 0.01 * np.trace(covariance) / 4096
        factor = linalg.cho_factor(covariance, lower=True, overwrite_a=True, check_finite=False)
        z = x - references.mean(axis=0, dtype=dtype)
        return np.einsum("CD,CD->C", z, linalg.cho_solve(factor, z.T, check_finite=False).T)

    def ours() -> np.ndarray:
        return MahalanobisFit.fit(references, "ridge").score(x)

    exact, single = dense(np.float64), dense(np.float32)
    for name, found in (("ours", ours()), ("the dense Cholesky in float32", single)):
        print(f"{name}, largest relative error against float64: {np.abs(found / exact - 1).max():.1e}")
    others = {f"dense Cholesky, {dtype.__name__}": partial(dense, dtype) for dtype in (np.float32, np.float64)}
    compare("Mahalanobis, fit and score", rounds, ours, others)

    fit = MahalanobisFit.fit(references)
    every = np.concatenate([references, more])
    compare("50 more references", rounds, lambda: fit.extend(more), {"a new fit": lambda: MahalanobisFit.fit(every)})

    fits = [MahalanobisFit.fit(rng.normal(size=(200, 512)).astype(np.float32)) for _ in range(28)]
    seen = [rng.normal(size=(64, 512)).astype(np.float32) for _ in fits]
    together: Callable[[], Any] = lambda: score_together(fits, seen)  # noqa: E731
    compare(
        "28 fits of 512 dimensions, 64 observations each, scored together",
        rounds,
        together,
        {"one by one": lambda: [one.score(rows) for one, rows in zip(fits, seen, strict=True)]},
    )


def odds(rounds: int) -> None:
    rng = np.random.default_rng(0)
    x = [rng.normal(size=1000) for _ in range(100)]
    y = [rng.random(1000) < special.expit(-2 + 0.8 * values + rng.normal()) for values in x]
    print(f"slopes: {odds_ratio(x, y).slope:.4f} and {odds_ratio(x, y, 'vb').slope:.4f}")
    compare("Odds ratio", rounds, lambda: odds_ratio(x, y), {"fit_vb": lambda: odds_ratio(x, y, "vb")})


def levenshtein(rounds: int) -> None:
    rng = np.random.default_rng(0)
    words = np.array([f"w{number}" for number in range(400)])
    shares = 1 / np.arange(1, 401)
    responses, references = (
        [rng.choice(words, rng.integers(150, 250), p=shares / shares.sum()).tolist() for _ in range(count)]
        for count in (256, 200)
    )
    ranks = {token: rank for rank, (token, _) in enumerate(Counter(t for r in references for t in r).most_common())}
    encoded = [
        [[ranks.get(token, len(ranks)) for token in text] for text in texts] for texts in (responses, references)
    ]

    def direct() -> np.ndarray:
        return process.cdist(*encoded, scorer=Levenshtein.distance, dtype=np.int32, workers=-1)

    def ours() -> np.ndarray:
        return normalised_distances(responses, references, "rapidfuzz")

    compare("Levenshtein", rounds, ours, {"rapidfuzz on token ids": direct})


class Watched:
    """A model that keeps account of the processor time spent in it."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.spent = 0.0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._model, name)
        if name not in ("respond", "score", "embed", "tokenize"):
            return found

        def watched(*arguments: Any, **options: Any) -> Any:
            before = time.process_time()
            try:
                return found(*arguments, **options)
            finally:
                self.spent += time.process_time() - before

        return watched


def share_outside(templates: int, variations: int) -> None:
    watched = Watched(load_model("builtin:tiny"))
    register_mock("watched", lambda: watched)
    with tempfile.TemporaryDirectory() as directory:
        options = MeasureOptions(
            model="mock:watched", limit=templates, variations=variations, out=Path(directory) / "run"
        )
        total = cost(lambda: measure(options)).processor
    print(f"lpds measure, {templates} templates × {variations} variations: {total:.1f} s of processor time")
    print(f"  outside the model: {100 * (1 - watched.spent / total):.1f}%")


def main() -> None:
    parser = argparse.ArgumentParser(description="Difficulty and its statistics, as ratios.")
    parts = ("mahalanobis", "odds", "levenshtein", "measure")
    parser.add_argument("parts", nargs="*", choices=(*parts, []), default=[])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--templates", type=int, default=28, help="of lpds measure")
    parser.add_argument("--variations", type=int, default=1000, help="of lpds measure")
    options = parser.parse_args()
    work = {
        "mahalanobis": lambda: mahalanobis(options.rounds),
        "odds": lambda: odds(options.rounds),
        "levenshtein": lambda: levenshtein(options.rounds),
        "measure": lambda: share_outside(options.templates, options.variations),
    }
    for part in options.parts or parts:
        work[part]()


if __name__ == "__main__":
    main()
