"""Puts questions to a model, grades the replies, and keeps both, so that nothing finished is ever asked twice."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Float

from robust_jax.randomness import derived_seed
from robust_jax.runs import Key, RunDirectory, orderly_interrupt
from robust_jax.types import FeatureRequest, Model, Prompt, Response, Sample, Sampling, StreamingModel

HIDDEN, EMBEDDING, OUTPUT_STATISTICS, INPUT_STATISTICS = "hidden", "embedding", "output_statistics", "input_statistics"
"""Names of the kept features: [C, l, D], [C, D], [C, 3] and [C, 3]."""

NOTHING = Prompt(messages=(), raw="")
"""Puts a bare text behind a BOS alone: how the input span is scored."""


@runtime_checkable
class Question(Protocol):
    """One attempt that is to be made."""

    @property
    def key(self) -> Key: ...


Q = TypeVar("Q", bound=Question)
Q_contra = TypeVar("Q_contra", bound=Question, contravariant=True)


@runtime_checkable
class Exam(Protocol[Q_contra]):
    """What is asked about: how a question is put, and what a reply to it is worth."""

    def prompt(self, question: Q_contra) -> Prompt:
        """What the model is asked."""

    def sample(self, question: Q_contra, response: Response) -> Sample:
        """The graded attempt."""


class Answers(NamedTuple):
    """Graded attempts with their features, row by row."""

    samples: list[Sample]
    features: dict[str, Float[np.ndarray, "C ..."]]


@dataclass(frozen=True)
class Examiner(Generic[Q]):
    """Puts the questions of one exam to one model and keeps what it answers in a run directory."""

    model: Model
    exam: Exam[Q]
    run: RunDirectory
    sampling: Sampling
    seed: int
    layers: tuple[int, ...] = ()
    """Blocks whose mean hidden states are kept."""
    statistics: bool = True
    """Whether token statistics of the replies are kept."""
    input_statistics: bool = False
    """Whether token statistics of the problems are kept; costs a forward pass over every problem."""
    embeddings: bool = True
    """Whether mean input embeddings of the problems are kept, where there are any."""
    embedder: Model | None = None
    """Whose embeddings they are; None takes the model's own."""

    def ask(
        self,
        block: str,
        questions: Sequence[Q],
        on_reply: Callable[[int], None] | None = None,
        given: Sequence[str] | None = None,
    ) -> Answers:
        """Graded replies to all questions, in order, from the run directory if the whole block is kept there.

        A block is answered whole or not at all: batches, and so the last bits of every float, are then the same
        however often a run is interrupted. A model whose replies do not hang on one another is asked for those that
        are missing or failed, and each reply is kept as it comes.

        Args:
            block: a name for this piece of work, the same whenever it is repeated.
            on_reply: told how many replies have come in, a step at a time.
            given: replies to all questions, to be kept with the features that the model has when it reads them as its
                own, instead of asking it.

        Raises:
            RunError: the disk or the model's server fails; every earlier block is kept.
        """
        if isinstance(self.model, StreamingModel) and given is None:
            return self._ask_each(self.model, block, questions, on_reply or (lambda count: None))
        keys = [question.key for question in questions]
        if not keys:
            return Answers([], {})
        if self.run.has_all(keys, features=self._keeps_features):
            samples = [sample for key in keys if (sample := self.run.samples.get(key)) is not None]
            if on_reply:
                on_reply(len(keys))
            return Answers(samples, dict(self.run.features.gather(keys)) if self._keeps_features else {})
        prompts = [self.exam.prompt(question) for question in questions]
        responses = self._respond(questions, prompts, on_reply) if given is None else self._read(prompts, given)
        samples = [self._sample(*pair) for pair in zip(questions, responses, strict=True)]
        features = self._features(prompts, responses)
        self.run.commit(block, samples, features)
        return Answers(samples, features)

    def _ask_each(
        self, model: StreamingModel, block: str, questions: Sequence[Q], on_reply: Callable[[int], None]
    ) -> Answers:
        kept = self.run.samples
        missing = [q for q in questions if (sample := kept.get(q.key)) is None or sample.status == "error"]
        on_reply(len(questions) - len(missing))
        prompts = [self.exam.prompt(question) for question in missing]
        with orderly_interrupt() as is_interrupted:
            for arrived in model.stream(prompts, self._samplings(missing), is_interrupted) if missing else ():
                self.run.commit(block, [self._sample(missing[index], response) for index, response in arrived], {})
                on_reply(len(arrived))
        answered = [question for question in questions if kept.get(question.key) is not None]
        samples = [sample for question in answered if (sample := kept.get(question.key)) is not None]
        return Answers(samples, self._embeddings_of(block, answered, samples))

    def _embeddings_of(self, block: str, questions: Sequence[Q], samples: Sequence[Sample]) -> dict[str, np.ndarray]:
        """Embeddings of answered problems, which take no reply: those of a model behind a server are its proxy's."""
        if not (self._keeps_embeddings and questions):
            return {}
        keys = [question.key for question in questions]
        if not self.run.features.has_all(keys):
            problems = [self.exam.prompt(question).problem for question in questions]
            self.run.commit(block, samples, {EMBEDDING: self._embedder.embed(problems).astype(np.float32)})
        return dict(self.run.features.gather(keys))

    def _sample(self, question: Q, response: Response) -> Sample:
        return replace(
            self.exam.sample(question, response),
            reasoning=response.reasoning,
            message=response.message,
            log_probability=response.log_probability,
        )

    @property
    def _keeps_features(self) -> bool:
        return bool(self.layers) or self.statistics or self._keeps_embeddings

    @property
    def _keeps_embeddings(self) -> bool:
        return self.embeddings and self._embedder.capabilities.embeddings

    @property
    def _embedder(self) -> Model:
        return self.embedder or self.model

    def _respond(
        self, questions: Sequence[Q], prompts: Sequence[Prompt], on_reply: Callable[[int], None] | None
    ) -> list[Response]:
        features = FeatureRequest(self.layers, self.statistics)
        report = (lambda index: on_reply(1)) if on_reply else None
        return self.model.respond(prompts, self._samplings(questions), features, report)

    def _samplings(self, questions: Sequence[Q]) -> list[Sampling]:
        """A seed belongs to an attempt, so that no reply depends on what is asked beside it."""
        return [
            replace(self.sampling, seed=derived_seed(self.seed, "sampling", *question.key)) for question in questions
        ]

    def _read(self, prompts: Sequence[Prompt], given: Sequence[str]) -> list[Response]:
        if not self.model.capabilities.hidden_states:  # whoever gives them can score texts
            return [Response(text) for text in given]
        return self.model.score(prompts, given, FeatureRequest(self.layers, self.statistics))

    def _features(self, prompts: Sequence[Prompt], responses: Sequence[Response]) -> dict[str, np.ndarray]:
        """A row a reply; NaN where there is none."""
        arrays: dict[str, np.ndarray] = {}
        problems = [prompt.problem for prompt in prompts]
        if self.layers:
            arrays[HIDDEN] = _stack([response.hidden for response in responses])
        if self._keeps_embeddings:
            arrays[EMBEDDING] = self._embedder.embed(problems).astype(np.float32)
        if self.statistics:
            arrays[OUTPUT_STATISTICS] = _statistics(responses)
        if self.input_statistics:
            scored = self.model.score([NOTHING] * len(problems), problems, FeatureRequest(statistics=True))
            arrays[INPUT_STATISTICS] = _statistics(scored)
        return arrays


def _statistics(responses: Sequence[Response]) -> Float[np.ndarray, "C 3"]:
    rows = [response.statistics or (np.nan,) * 3 for response in responses]
    return np.array(rows, np.float32).reshape(len(rows), 3)


def _stack(rows: Sequence[np.ndarray | None]) -> Float[np.ndarray, "C l D"]:
    shape = next((row.shape for row in rows if row is not None), (0, 0))
    return np.stack([np.full(shape, np.nan) if row is None else row for row in rows]).astype(np.float32)
