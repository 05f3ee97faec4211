"""The vocabulary of robust-jax: the few types that pass between its folders.

Axis letters, used in every einsum, shape annotation and docstring of the project:

    B batch            T query tokens       S key/cache slots     L layers
    D model width      N query heads        K key/value heads     H head width
    F feed-forward     V vocabulary         R references          C candidates
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Float

# --------------------------------------------------------------------------------------------------
# Problems


class Pair(NamedTuple):
    """A word that stands for a number: the text prints the word, expressions compute with the number."""

    word: str
    number: Number


Number = int | Fraction
"""An exact number. Whole numbers are plain `int`, because they are many times faster than `Fraction`."""

Value = str | Number | Pair
"""What fills one slot."""

Point = tuple[Value, ...]
"""One filling of a template: a value for every slot, in the template's slot order."""


@dataclass(frozen=True)
class Slot:
    """One variable of a template with the values it may take."""

    name: str
    """The name by which text and expressions refer to it."""
    domain: Sequence[Value]
    """Every allowed value, in a fixed order; long ranges are lazy sequences."""
    places: int = 0
    """Decimals that a number of this slot is printed with."""

    @property
    def is_numeric(self) -> bool:
        """Whether the slot holds plain numbers, as opposed to words or word-number pairs."""
        return isinstance(self.domain[0], (int, Fraction))


@dataclass(frozen=True)
class Variation:
    """One filling of a template, written out."""

    template: str
    """Id of the template."""
    key: str
    """Stable identity: two variations of a template are the same if and only if their keys are equal."""
    values: Mapping[str, Value]
    """The slots' values by name, in slot order."""
    text: str
    """The problem as it is put to a model."""
    answer: Number | str
    """The exact right answer: a number, or LaTeX where it is none."""
    trace: str
    """A worked solution that ends in `#### answer`."""


@dataclass(frozen=True)
class Size:
    """How many valid fillings a template has."""

    count: int
    exact: bool
    """False if `count` is only an upper bound."""


@runtime_checkable
class Template(Protocol):
    """A problem family: every valid filling of its slots is a problem with the same logic."""

    @property
    def id(self) -> str: ...

    @property
    def slots(self) -> tuple[Slot, ...]: ...

    @property
    def base(self) -> Point | None:
        """The filling that counts as the original problem; it may lie outside the slots' domains."""

    @property
    def size(self) -> Size: ...

    def is_valid(self, point: Point) -> bool:
        """Whether every value lies in its slot's domain and every constraint holds."""

    def random(self, rng: np.random.Generator) -> Point:
        """A valid filling, uniform over all valid ones as far as that is tractable."""

    def neighbours(self, point: Point, slot: int) -> Iterator[Point]:
        """Every valid filling that differs from `point` in slot number `slot` alone."""

    def key(self, point: Point) -> str:
        """The key of the variation at `point`, without writing the variation out."""

    def text(self, point: Point) -> str:
        """The problem text at `point`, without solving it."""

    def fill(self, point: Point) -> Variation:
        """The variation at `point`."""


@dataclass(frozen=True)
class Example:
    """A worked problem shown to the model before the one it is asked."""

    question: str
    solution: str
    """Ends in `#### answer`."""


@dataclass(frozen=True)
class Grading:
    """When an answer counts as right: |given − right| ≤ absolute + relative · |right|. Zero and zero is exact."""

    absolute: Fraction = Fraction(0)
    relative: Fraction = Fraction(0)


@dataclass(frozen=True)
class Suite:
    """A named, ordered set of templates with what belongs to asking and grading them."""

    name: str
    templates: tuple[Template, ...]
    examples: tuple[Example, ...] = ()
    grading: Grading = field(default_factory=Grading)
    description: str = ""
    digest: str = ""
    """Of the file it was read from: two suites of one name with different digests are not the same."""

    def template(self, template_id: str) -> Template:
        """The template of that id.

        Raises:
            KeyError: there is none.
        """
        for template in self.templates:
            if template.id == template_id:
                return template
        raise KeyError(template_id)


# --------------------------------------------------------------------------------------------------
# Asking and answering


class Message(NamedTuple):
    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Prompt:
    """What is put to a model. Text that many prompts share is found by the engine among token ids, not declared."""

    messages: tuple[Message, ...]
    problem: str = ""
    """The text of the tested problem alone, without instructions or examples: the *input* span of the metrics."""
    raw: str | None = None
    """The whole prompt as plain text, for a model without a chat template."""
    schema: Mapping[str, Any] | None = None
    """JSON schema of the reply, for a model that can be held to one; the text asks for the same form."""


Effort = Literal["low", "medium", "high"]


@dataclass(frozen=True)
class Sampling:
    """How a reply is drawn."""

    max_tokens: int = 512
    temperature: float = 0.0
    """0 is greedy."""
    top_p: float = 1.0
    top_k: int = 0
    """0 keeps the whole vocabulary."""
    seed: int = 0
    stop: tuple[str, ...] = ()
    """Texts that end the reply; they are not part of it."""
    effort: Effort | None = None
    """How long a reasoning model is to think; None leaves it to the model."""


@dataclass(frozen=True)
class FeatureRequest:
    """What to record while answering."""

    layers: tuple[int, ...] = ()
    """Blocks after which the residual stream is averaged over the reply (1 = after the first block)."""
    statistics: bool = False
    """Token statistics of the reply."""


class TokenStatistics(NamedTuple):
    """Averages over a span's tokens (paper C.3.1). NaN for a span without scored tokens."""

    log_probability: float
    """Mean log-probability of the tokens, nats; perplexity is exp(−this)."""
    entropy: float
    """Mean entropy of the next-token distribution, nats."""
    self_certainty: float
    """−1/(L·k) Σ_t Σ_{v in top k} log(k·P(v)), k = 50 or the vocabulary if that is smaller."""


FinishReason = Literal["stop", "length", "context", "filter", "error"]
"""stop: the model ended its reply; length: max_tokens reached; context: the prompt does not fit; filter: whoever runs
the model withheld its reply; error: no reply."""


@dataclass(frozen=True)
class Response:
    """A model's reply with the features that were asked for."""

    text: str
    token_ids: tuple[int, ...] = ()
    """Without the stop token."""
    finish_reason: FinishReason = "stop"
    prompt_tokens: int = 0
    hidden: Float[np.ndarray, "l D"] | None = None
    """Mean over the reply's tokens of the residual stream, a row a requested layer; NaN for an empty reply."""
    statistics: TokenStatistics | None = None
    message: str = ""
    """Why there is no reply, where finish_reason is context or error."""
    reasoning: str = ""
    """What the model thought before its reply, where that comes apart from it."""
    completion_tokens: int | None = None
    """Tokens of reasoning and reply as a server counted them; None where they are `token_ids`."""
    log_probability: float | None = None
    """Mean log-probability of the reply's tokens, nats, where a server gave it."""

    @property
    def num_tokens(self) -> int:
        """Tokens of the reply."""
        return len(self.token_ids) if self.completion_tokens is None else self.completion_tokens


Status = Literal["ok", "unparsed", "truncated", "refused", "error", "skipped"]
"""The first four count by their score; error and skipped leave the denominator and are counted."""


@dataclass(frozen=True)
class Sample:
    """One graded attempt: a line of samples.jsonl. (arm, item, variation, attempt) identifies it."""

    arm: str
    """Why it was asked: base, reference, measure, beam, random, before, after …"""
    item: str
    """Id of the template (or task, or problem)."""
    variation: str
    """Key of the variation."""
    attempt: int
    values: Mapping[str, str]
    """The slots' values as printed."""
    question: str
    gold: str
    """The exact right answer, such as 7/2."""
    response: str
    extracted: str | None
    """The exact answer read from the response, such as 7/2; None if there is none."""
    rule: str | None
    """The extraction rule that fired."""
    status: Status
    score: float
    """1 right, 0 wrong."""
    finish_reason: FinishReason
    prompt_tokens: int
    completion_tokens: int
    reasoning: str = ""
    """What the model thought before its reply, where that came apart from it."""
    message: str = ""
    """Why there is no reply, where there is none."""
    log_probability: float | None = None
    """Mean log-probability of the reply's tokens, nats, where a server gave it."""

    @property
    def is_correct(self) -> bool:
        return self.score > 0.5

    @property
    def counts(self) -> bool:
        """Whether the attempt belongs in the denominator of an accuracy."""
        return self.status not in ("error", "skipped")


@dataclass(frozen=True)
class ReferenceSet:
    """Correct replies of one template, with everything the distances need from them."""

    keys: tuple[str, ...]
    """The variations' keys, R of them, in the order they were added."""
    texts: tuple[str, ...]
    """The replies."""
    hidden: Float[np.ndarray, "R l D"]
    """Mean hidden states of the replies, one row a recorded layer."""
    embeddings: Float[np.ndarray, "R d"]
    """Mean input embeddings of the problems."""


class Capabilities(NamedTuple):
    """What a model can give besides text."""

    hidden_states: bool
    """Mean hidden states and scoring of given text."""
    statistics: bool
    """All token statistics of a reply."""
    embeddings: bool
    effort: bool = False
    """Whether it can be told how long to think."""
    log_probabilities: bool = False
    """The mean log-probability of a reply, where it cannot give all statistics."""
    structured_output: bool = False
    """Replies that follow a JSON schema."""
    tokenizer: bool = True
    """Token ids of a text."""


class ModelDefaults(NamedTuple):
    """How a model wants to be asked where the user does not say; None leaves it to the protocol."""

    shots: int | None = None
    """Worked examples before a problem."""
    max_tokens: int | None = None
    """Longest reply."""


@dataclass(frozen=True)
class ServerSettings:
    """How a model behind a server is reached, and within which limits it is asked."""

    base_url: str | None = field(default=None, metadata={"changes_results": False})
    """Address of an OpenAI-compatible server, such as http://localhost:8000/v1, for a model openai:NAME."""
    endpoint: Literal["chat", "completions"] = "chat"
    """chat: the server applies the model's chat template; completions: the model reads the prompt as plain text."""
    concurrency: int = field(default=16, metadata={"changes_results": False})
    """Requests on their way to a server at once."""
    retries: int = field(default=6, metadata={"changes_results": False})
    """How often a request that failed is repeated before its attempt counts as an error."""
    request_timeout: float = field(default=600.0, metadata={"changes_results": False})
    """Seconds that one request may take."""
    time_limit: float | None = field(default=None, metadata={"changes_results": False})
    """Seconds after which the command asks a server nothing more and ends; what came is kept. None sets no limit."""
    prices: Path | None = field(default=None, metadata={"changes_results": False})
    """YAML file with the prices of models in dollars a million tokens: `NAME: {input: 0.5, output: 2}`."""
    spending_cap: float | None = field(default=None, metadata={"changes_results": False})
    """Dollars by --prices after which the command asks a server nothing more; None sets no limit."""


@runtime_checkable
class Model(Protocol):
    """Whoever answers: a local decoder, a server, or a mock."""

    @property
    def name(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def digest(self) -> str:
        """What tells this model from another of the same name; empty if unknown."""

    @property
    def num_layers(self) -> int:
        """0 if unknown."""

    @property
    def defaults(self) -> ModelDefaults: ...

    def respond(
        self,
        prompts: Sequence[Prompt],
        sampling: Sampling | Sequence[Sampling],
        features: FeatureRequest = FeatureRequest(),
        on_reply: Callable[[int], None] | None = None,
    ) -> list[Response]:
        """A reply to every prompt, in order; `on_reply` is told a prompt's index once its reply is complete.

        `sampling` is for all prompts or one for each. A prompt that is given several times gets as many replies, drawn
        independently; a reply depends on its prompt, its sampling and which of the replies to it this is, alone.
        """

    def score(
        self, prompts: Sequence[Prompt], continuations: Sequence[str], features: FeatureRequest = FeatureRequest()
    ) -> list[Response]:
        """The features of given continuations, as if the model had written them.

        A prompt without messages and with an empty raw form puts nothing before the continuation but a BOS.
        """

    def tokenize(self, text: str) -> list[int]:
        """Token ids of a bare text, without special tokens."""

    def embed(self, texts: Sequence[str]) -> Float[np.ndarray, "B D"]:
        """Mean input embedding over each text's own tokens (paper Section 4.1, E_i)."""


@runtime_checkable
class StreamingModel(Protocol):
    """What a `Model` offers besides whose replies are independent and come one by one, such as one behind a server."""

    @property
    def usage(self) -> object:
        """What its replies have used up, tokens and money; its text is a line for the user."""

    def stream(
        self,
        prompts: Sequence[Prompt],
        sampling: Sequence[Sampling],
        should_stop: Callable[[], bool] = lambda: False,
    ) -> Iterator[list[tuple[int, Response]]]:
        """Replies as they come, each with its prompt's index; now and then none.

        Once `should_stop` says so, what is on its way is given up, what has come is given out, and the iterator ends.

        Raises:
            RunError: the server is of no use any more; every reply that came has been given out.
        """


class TextSpan(NamedTuple):
    """Characters [start, end) of a prompt as the model reads it, or of the reply to it."""

    in_reply: bool
    start: int
    end: int


@runtime_checkable
class AttentiveModel(Protocol):
    """What a `Model` offers besides that can tell where its attention goes."""

    def prompt_text(self, prompt: Prompt) -> str:
        """A prompt as the model reads it."""

    def attention_mass(
        self, prompt: Prompt, reply: str, asking: Sequence[TextSpan], sets: Sequence[Sequence[TextSpan]]
    ) -> Float[np.ndarray, "L k"]:
        """The mean attention mass that the tokens of some spans give to each of k sets of spans, in every layer.

        The mean is over those tokens and over heads. A token belongs to a span where its last character does. All NaN
        where no token asks, or where prompt and reply do not fit into the context.
        """


@runtime_checkable
class TokenEmbeddings(Protocol):
    """A model that also tells what its `embed` is the mean of, so that means can be put together from pieces."""

    def tokenize_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of bare texts, without special tokens."""

    @property
    def embedding_table(self) -> Float[np.ndarray, "V D"]:
        """The input embedding of every token."""


P = TypeVar("P", bound=Hashable)


@runtime_checkable
class Space(Protocol[P]):
    """What a search walks through."""

    def random(self, rng: np.random.Generator) -> P: ...

    def neighbours(self, point: P) -> Iterator[P]:
        """Every valid point one change away, each once, in a fixed order."""

    def key(self, point: P) -> str:
        """Stable identity of a point."""

    def cheap(self, points: Sequence[P]) -> Float[np.ndarray, " C"]:
        """The cheap difficulty estimate of every point; higher is harder."""

    def ask(self, point: P) -> Any:
        """What a model is asked at that point."""
