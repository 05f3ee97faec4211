"""What an RRB command needs before its first question: problems, model, run directory, and how to ask."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from robust_jax.errors import InputError
from robust_jax.evaluation import Examiner, load_shown
from robust_jax.rrb.exam import ProblemExam, ProblemQuestion
from robust_jax.rrb.mocks import register_mocks
from robust_jax.rrb.options import RrbOptions
from robust_jax.rrb.problem_set import ProblemSet
from robust_jax.runs import Progress, RunDirectory, open_run
from robust_jax.types import AttentiveModel, Model, Sample, Sampling, StreamingModel

BLOCK = 128
"""Questions that a model which runs here is asked, and whose replies are kept, together."""
DEFAULT_MAX_TOKENS = 1024
"""Longest reply where neither the user nor the model says."""


@dataclass(frozen=True)
class Session:
    """One RRB run, ready to ask."""

    model: Model
    examiner: Examiner[ProblemQuestion]
    run: RunDirectory

    def ask(self, title: str, questions: Sequence[ProblemQuestion]) -> list[Sample]:
        """The graded attempts, in order, while the progress is shown.

        Raises:
            RunError: the disk or the model's server fails; what came before is kept.
        """
        # A server's replies are kept one by one, and it should never have to wait for the end of a block.
        size = len(questions) if isinstance(self.model, StreamingModel) else BLOCK
        samples: list[Sample] = []
        with Progress(title, len(questions)) as progress:
            for number, start in enumerate(range(0, len(questions), max(1, size))):
                block = questions[start : start + size]
                samples += self.examiner.ask(f"{title}-{number:03d}", block, progress.advance).samples
        return samples


Options = TypeVar("Options", bound=RrbOptions)


@contextmanager
def open_session(
    problems: ProblemSet, options: Options, command: str, found: Mapping[str, Any], *, needs_attention: bool = False
) -> Iterator[Session]:
    """Load what a command needs and lock its run directory, in the order that leaves nothing behind on bad input.

    Args:
        problems: what is asked about.
        options: of the command.
        command: its words.
        found: what shapes the results besides options, problems and model.
        needs_attention: whether the model must be able to tell where its attention goes.

    Raises:
        InputError: an unknown model, one that cannot do what is needed, a server that gives no reply, or a run
            directory that holds something else.
    """
    register_mocks(problems)
    model = load_shown(options.model, options)
    if needs_attention and not isinstance(model, AttentiveModel):
        raise InputError(f"--attention: {model.name} cannot tell: use a model that runs here, in one process")
    _ = model.capabilities  # A server is tried before anything is written.
    max_tokens = options.max_tokens or model.defaults.max_tokens or DEFAULT_MAX_TOKENS
    resolved = replace(options, max_tokens=max_tokens)
    digests = {"data_digest": problems.digest, "model_digest": model.digest}
    with open_run(resolved, command, {**digests, **found}) as run:
        examiner = Examiner(
            model=model,
            exam=ProblemExam(problems.grading),
            run=run,
            sampling=Sampling(max_tokens=max_tokens, temperature=options.temperature),
            seed=options.seed,
            statistics=False,
            embeddings=False,
        )
        try:
            yield Session(model, examiner, run)
        finally:
            if isinstance(model, StreamingModel):
                print(f"{model.name}: {model.usage}", file=sys.stderr)
