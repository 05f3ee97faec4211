"""The search beside its generations: cheap scores a second, templates together or apart, time outside the model.

python benchmarks/search.py scoring                     # candidates a second, against tokenising and embedding
python benchmarks/search.py together                    # 25 templates at once, or one after another, w = b = 4
python benchmarks/search.py together --width 16 --branching 16 --iterations 15 --templates 4
python benchmarks/search.py outside --model DIRECTORY   # share of a search's time that is not generation
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from robust_jax.difficulty import References
from robust_jax.lpds.cheap_scoring import CheapScorer
from robust_jax.lpds.options import SearchOptions
from robust_jax.lpds.search import run_search
from robust_jax.lpds.session import open_session
from robust_jax.models import load_model, register_mock
from robust_jax.problems import load_suite
from robust_jax.randomness import rng
from robust_jax.runs.tracking import Untracked
from robust_jax.types import Model, Point, ReferenceSet, Template

SUITE = Path(__file__).parents[1] / "robust_jax/problems/suites/grade_school.yaml"


def timed(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    work()
    return clock() - start


# --------------------------------------------------------------------------------------------------
# Cheap scores


class Widened:
    """The built-in model with an embedding table of another width, drawn at random."""

    def __init__(self, model: Any, width: int) -> None:
        self._model = model
        self.embedding_table = np.random.default_rng(0).standard_normal((1024, width)).astype(np.float32)
        model.embedding_table = self.embedding_table
        self.name, self.capabilities, self.digest = model.name, model.capabilities, ""
        self.num_layers, self.defaults = model.num_layers, model.defaults
        self.respond, self.score, self.tokenize = model.respond, model.score, model.tokenize
        self.tokenize_all, self.embed = model.tokenize_all, model.embed


def candidates(template: Template, count: int) -> list[Point]:
    """Neighbours of random fillings, as the search meets them."""
    generator, found = rng(0, "benchmark", template.id), dict[Point, None]()
    while len(found) < count:
        node = template.random(generator)
        for slot in range(len(template.slots)):
            found.update(dict.fromkeys(template.neighbours(node, slot)))
    return list(found)[:count]


def scoring(model: str, width: int | None, count: int, rounds: int) -> None:
    embedder: Model = load_model(model) if width is None else Widened(load_model(model), width)
    print(f"{model}, D = {embedder.embed(['a']).shape[1]}, {count:,} candidates a template, 200 references")
    print("candidates a second of one core's time")
    print("template | from pieces | the lookups alone | tokenised | ratio | largest difference")
    rates: list[tuple[float, float]] = []
    for template in load_suite("grade_school").templates[::4]:
        generator = rng(0, "references", template.id)
        texts = [template.text(template.random(generator)) for _ in range(200)]
        keys = tuple(map(str, range(200)))
        vectors = embedder.embed(texts)
        references = References.fit(ReferenceSet(keys, tuple(texts), np.zeros((200, 0, 0), np.float32), vectors))
        points = candidates(template, count)
        scorer = CheapScorer(template, embedder)
        assert scorer.question is not None, f"{template.id} is not separable"
        by_pieces, few = scorer.fitted(references), points[: count // 50]
        fit = references.mahalanobis("embeddings")

        def by_tokenising(template: Template = template, few: Sequence[Point] = few, fit: Any = fit) -> np.ndarray:
            return fit.score(embedder.embed([template.text(point) for point in few]))

        expected = by_tokenising()
        difference = float(np.max(np.abs(by_pieces(few) / expected - 1)))
        question = scorer.question
        clock = time.process_time  # of all threads, so that other work on the machine does not count
        times = [
            (
                timed(partial(by_pieces, points), clock) / count,
                timed(partial(question.choices, points), clock) / count,
                timed(by_tokenising, clock) / len(few),
            )
            for _ in range(rounds)
        ]
        pieces, conversion, tokenised = (statistics.median(column) for column in zip(*times, strict=True))
        rates.append((1 / pieces, 1 / tokenised))
        lookups = 1 / (pieces - conversion)
        row = (f"{1 / pieces:,.0f}", f"{lookups:,.0f}", f"{1 / tokenised:,.0f}", f"{tokenised / pieces:.0f}×")
        print(f"{template.id} | {' | '.join(row)} | {difference:.1e}")
    pieces, tokenised = (statistics.median(column) for column in zip(*rates, strict=True))
    print(f"median | {pieces:,.0f} | | {tokenised:,.0f} | {pieces / tokenised:.0f}× |")


# --------------------------------------------------------------------------------------------------
# Whole searches


class Timed:
    """A model that knows how long it has generated."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.seconds, self.replies = 0.0, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def respond(self, prompts: Any, *rest: Any) -> Any:
        start = time.perf_counter()
        replies = self._model.respond(prompts, *rest)
        self.seconds += time.perf_counter() - start
        self.replies += len(prompts)
        return replies


def suites(folder: Path, count: int) -> tuple[Path, list[Path]]:
    """A suite of the first templates, and one of each alone."""
    content = yaml.safe_load(SUITE.read_text())
    paths = []
    for name, templates in [
        ("all", content["templates"][:count]),
        *((template["id"], [template]) for template in content["templates"][:count]),
    ]:
        paths.append(folder / f"{name}.yaml")
        paths[-1].write_text(yaml.safe_dump({**content, "templates": templates}, sort_keys=False))
    return paths[0], paths[1:]


def search(model: Timed, suite: Path, out: Path, settings: dict[str, Any]) -> tuple[float, float]:
    """Seconds of a search, and those of them in which the model generated."""
    register_mock("timed", lambda: model)
    before = model.seconds
    options = SearchOptions(model="mock:timed", suite=str(suite), out=out, **settings)
    with open_session(options, "lpds search") as session:
        seconds = timed(lambda: run_search(session, Untracked()))
    return seconds, model.seconds - before


def together(model: str, templates: int, rounds: int, settings: dict[str, Any]) -> None:
    timed_model = Timed(load_model(model))
    times: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        every, single = suites(folder, templates)
        for number in range(rounds + 1):  # the first compiles
            one = search(timed_model, every, folder / f"{number}-all", settings)[0]
            many = sum(search(timed_model, path, folder / f"{number}-{path.stem}", settings)[0] for path in single)
            times.append((one, many))
            print(
                f"round {number}: together {one:.1f} s, one after another {many:.1f} s, {many / one:.2f}×", flush=True
            )
    one, many = (statistics.median(column) for column in zip(*times[1:], strict=True))
    print(f"{model}, {templates} templates, {settings}: {many / one:.2f}× (together {one:.1f} s)")


def outside(model: str, templates: int, settings: dict[str, Any]) -> None:
    timed_model = Timed(load_model(model))
    with tempfile.TemporaryDirectory() as scratch:
        every, _ = suites(Path(scratch), templates)
        seconds, generating = search(timed_model, every, Path(scratch) / "run", settings)
    share = 1 - generating / seconds
    print(f"{model}: {seconds:.1f} s, {timed_model.replies:,} replies, {100 * share:.1f} % outside generation")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["scoring", "together", "outside"])
    parser.add_argument("--model", default="builtin:tiny")
    parser.add_argument(
        "--embedding-width", type=int, help="scoring: a random table of this width; none takes the model's"
    )
    parser.add_argument("--candidates", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--templates", type=int, default=25)
    parser.add_argument("--iterations", type=int, default=6)
    parser.add_argument("--width", type=int, default=4)
    parser.add_argument("--branching", type=int, default=4)
    parser.add_argument("--reference-count", type=int, default=50)
    parser.add_argument("--reference", default="self")
    parser.add_argument("--max-tokens", type=int)
    given = parser.parse_args()
    names = ("iterations", "width", "branching", "reference_count", "reference", "max_tokens")
    settings = {name: getattr(given, name) for name in names}
    if given.what == "scoring":
        scoring(given.model, given.embedding_width, given.candidates, given.rounds)
    elif given.what == "together":
        together(given.model, given.templates, given.rounds, settings)
    else:
        outside(given.model, given.templates, settings)


if __name__ == "__main__":
    main()
