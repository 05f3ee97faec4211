"""A model that runs here: a decoder with its tokenizer, behind the `Model` protocol."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

import jax
import numpy as np
from jaxtyping import Bool, Float

from robust_jax.errors import InputError
from robust_jax.models.attention_mass import attention_mass
from robust_jax.models.cache import keep_compiled_programs
from robust_jax.models.checkpoint import load_decoder
from robust_jax.models.decoder import Decoder
from robust_jax.models.generation import Generator, Reply
from robust_jax.models.scoring import Span, score_spans
from robust_jax.models.sharding import Layout, MeshShape, fetch, on_mesh, whole
from robust_jax.models.sources import Checkpoint, source_digest
from robust_jax.types import (
    Capabilities,
    FeatureRequest,
    FinishReason,
    ModelDefaults,
    Prompt,
    Response,
    Sampling,
    TextSpan,
    TokenStatistics,
)

DEFAULT_BATCH_SIZE = 128


class LocalModel:
    """A checkpoint as a `Model`."""

    def __init__(
        self,
        name: str,
        checkpoint: Checkpoint,
        *,
        dtype: str = "float32",
        batch_size: int | None = None,
        mesh: MeshShape | None = None,
        on_progress: Callable[[int, int], None] | None = None,
        decoder: Decoder | None = None,
    ):
        """Load the checkpoint's weights.

        Args:
            decoder: takes the place of the checkpoint's weights; it lies over the devices as `mesh` says.
            batch_size: rows at once, rounded up to what splits evenly over the devices.
            mesh: how the devices are arranged; None puts all on the data axis.

        Raises:
            InputError: they are damaged or do not fit the checkpoint's configuration.
        """
        if dtype == "bfloat16" and jax.default_backend() == "cpu":
            raise InputError("bfloat16 is a format of accelerators: on a CPU leave --dtype at float32")
        keep_compiled_programs()
        self.name = name
        layout = Layout(checkpoint.config, mesh or MeshShape(data=jax.device_count()))
        # On one device plain arrays do: laying them on a mesh of one would compile programs anew for either kind.
        self.mesh = layout.mesh if layout.mesh.size > 1 else None
        self.decoder = decoder or load_decoder(
            checkpoint.config,
            checkpoint.tensors,
            dtype=dtype,
            sharding=layout.sharding if self.mesh else None,
            on_progress=on_progress,
        )
        self._path = checkpoint.path
        self.tokenizer = checkpoint.tokenizer
        self.generator = Generator(self.decoder, whole(batch_size or DEFAULT_BATCH_SIZE, layout.shape.data), self.mesh)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(hidden_states=True, statistics=True, embeddings=True)

    @cached_property
    def digest(self) -> str:
        """What tells the checkpoint from another."""
        return source_digest(self._path)

    @property
    def num_layers(self) -> int:
        return self.decoder.config.num_layers

    @property
    def defaults(self) -> ModelDefaults:
        return self.decoder.config.defaults

    def respond(
        self,
        prompts: Sequence[Prompt],
        sampling: Sampling | Sequence[Sampling],
        features: FeatureRequest = FeatureRequest(),
        on_reply: Callable[[int], None] | None = None,
    ) -> list[Response]:
        """A reply to every prompt, in order; one that does not fit into the context gets none and says so."""
        report = on_reply or (lambda index: None)
        samplings = [sampling] * len(prompts) if isinstance(sampling, Sampling) else list(sampling)
        encoded = self.tokenizer.encode_prompts(prompts)
        responses = [self._unanswered(len(ids), one, features) for ids, one in zip(encoded, samplings, strict=True)]
        fitting = [index for index, response in enumerate(responses) if not response.message]
        replies = self.generator(
            [encoded[index] for index in fitting],
            [samplings[index] for index in fitting],
            features,
            (lambda place, ids: self._find_stop(samplings[fitting[place]].stop, ids))
            if any(one.stop for one in samplings)
            else None,
            lambda place: report(fitting[place]),
        )
        for index, reply in zip(fitting, replies, strict=True):
            responses[index] = self._response(reply, len(encoded[index]), samplings[index], features)
        return responses

    def score(
        self, prompts: Sequence[Prompt], continuations: Sequence[str], features: FeatureRequest = FeatureRequest()
    ) -> list[Response]:
        """Features of given replies in one forward pass each, as if the model had written them; what does not fit into
        the context gets none and says so.
        """
        contexts, spans = self.tokenizer.encode_prompts(prompts), self.tokenizer.encode(continuations)
        for index, context in enumerate(contexts):
            if not context:
                # Without a BOS there is nothing to predict the first token from: it is left unscored.
                contexts[index], spans[index] = spans[index][:1], spans[index][1:]
        return self._scored([Span(*pair) for pair in zip(contexts, spans, strict=True)], continuations, features)

    def prompt_text(self, prompt: Prompt) -> str:
        """A prompt as the model reads it."""
        return self.tokenizer.prompt_text(prompt)

    def attention_mass(
        self, prompt: Prompt, reply: str, asking: Sequence[TextSpan], sets: Sequence[Sequence[TextSpan]]
    ) -> Float[np.ndarray, "L k"]:
        """Where the attention of some tokens goes; see `types.AttentiveModel`."""
        context, continuation = self.tokenizer.encode_prompts([prompt])[0], self.tokenize(reply)
        places = [self.tokenizer.prompt_last_characters(prompt), self.tokenizer.last_characters(reply)]
        in_reply = np.repeat([False, True], [len(context), len(continuation)])
        character = np.concatenate([*places, []]).astype(int)

        def within(spans: Sequence[TextSpan]) -> Bool[np.ndarray, " T"]:
            found = np.zeros(len(character), bool)
            for span in spans:
                found |= (in_reply == span.in_reply) & (character >= span.start) & (character < span.end)
            return found

        asking_tokens = np.flatnonzero(within(asking))
        if not asking_tokens.size or len(character) > self.decoder.config.max_positions:
            return np.full((self.num_layers, len(sets)), np.nan, np.float32)
        tokens = np.array([*context, *continuation], np.int32)
        with on_mesh(self.mesh):
            return attention_mass(self.decoder, tokens, asking_tokens, np.stack([within(spans) for spans in sets]))

    def tokenize(self, text: str) -> list[int]:
        return self.tokenizer.encode([text])[0]

    def tokenize_all(self, texts: Sequence[str]) -> list[list[int]]:
        return self.tokenizer.encode(texts)

    def embed(self, texts: Sequence[str]) -> Float[np.ndarray, "B D"]:
        """Mean input embedding of each text's own tokens (paper Section 4.1, E_i); NaN for an empty text."""
        encoded = self.tokenizer.encode(texts)
        result = np.full((len(texts), self.embedding_table.shape[1]), np.nan, np.float32)
        for start in range(0, len(texts), 4096):
            part = encoded[start : start + 4096]
            rows = [start + offset for offset, ids in enumerate(part) if ids]
            if not rows:
                continue
            lengths = np.array([len(encoded[row]) for row in rows])
            vectors = self.embedding_table[np.concatenate([encoded[row] for row in rows])]
            sums = np.add.reduceat(vectors, np.cumsum(lengths) - lengths, axis=0)
            result[rows] = sums / lengths[:, None]
        return result

    @cached_property
    def embedding_table(self) -> Float[np.ndarray, "V D"]:
        """The input embedding of every token, as fp32 on the host."""
        with on_mesh(self.mesh):
            return np.asarray(fetch(self.decoder.embed_tokens[...]), np.float32)

    def _unanswered(self, prompt_tokens: int, sampling: Sampling, features: FeatureRequest) -> Response:
        """What stands for a reply until there is one; its message says why there will be none, if so."""
        room, message = self.decoder.config.max_positions, ""
        reason: FinishReason = "context"
        if prompt_tokens + sampling.max_tokens > room:
            message = f"{prompt_tokens} prompt tokens and {sampling.max_tokens} new ones exceed the context of {room}"
        elif not prompt_tokens:
            reason, message = "error", "the prompt is empty, and this model's tokenizer begins it with no token"
        return replace(
            self._featureless("", features), finish_reason=reason, prompt_tokens=prompt_tokens, message=message
        )

    def _featureless(self, text: str, features: FeatureRequest) -> Response:
        """A reply all of whose features are NaN."""
        nothing = np.full((len(features.layers), self.decoder.config.hidden_size), np.nan, np.float32)
        return Response(
            text=text,
            hidden=nothing if features.layers else None,
            statistics=TokenStatistics(*[float("nan")] * 3) if features.statistics else None,
        )

    def _response(self, reply: Reply, prompt_tokens: int, sampling: Sampling, features: FeatureRequest) -> Response:
        count = len(reply.token_ids)
        text = self.tokenizer.decode(reply.token_ids)
        if reply.stopped:
            ends = [position for stop in sampling.stop if (position := text.find(stop)) >= 0]
            text = text[: min(ends)] if ends else text
        hidden = statistics = None
        if features.layers:
            assert reply.hidden_sum is not None
            hidden = (reply.hidden_sum / count if count else np.full_like(reply.hidden_sum, np.nan)).astype(np.float32)
        if features.statistics:
            means = reply.statistics_sum / count if count else np.full(3, np.nan)
            statistics = TokenStatistics(*means.tolist())
        return Response(
            text=text,
            token_ids=tuple(reply.token_ids),
            finish_reason="stop" if reply.stopped else "length",
            prompt_tokens=prompt_tokens,
            hidden=hidden,
            statistics=statistics,
        )

    def _scored(self, spans: Sequence[Span], texts: Sequence[str], features: FeatureRequest) -> list[Response]:
        room = self.decoder.config.max_positions
        responses = [
            replace(self._featureless(text, features), token_ids=tuple(span.tokens), prompt_tokens=len(span.context))
            for span, text in zip(spans, texts, strict=True)
        ]
        fitting = [index for index, span in enumerate(spans) if span.context and span.length <= room]
        for index, scored in zip(
            fitting, score_spans(self.generator, [spans[index] for index in fitting], features), strict=True
        ):
            responses[index] = replace(
                responses[index],
                hidden=scored.hidden if features.layers else None,
                statistics=TokenStatistics(*scored.statistics.tolist()) if features.statistics else None,
            )
        for index, span in enumerate(spans):
            if span.length > room:
                message = f"{span.length} tokens exceed the context of {room}"
                responses[index] = replace(responses[index], finish_reason="context", token_ids=(), message=message)
        return responses

    def _find_stop(self, stops: Sequence[str], token_ids: list[int]) -> int | None:
        """How many tokens begin before the first stop text; it may span tokens."""
        text = self.tokenizer.decode(token_ids)
        ends = [position for stop in stops if (position := text.find(stop)) >= 0]
        if not ends:
            return None
        # The fewest tokens whose text reaches the stop: a token that straddles its start belongs to the reply.
        low, high = 0, len(token_ids)
        while low < high:
            middle = (low + high) // 2
            if len(self.tokenizer.decode(token_ids[:middle])) >= min(ends):
                high = middle
            else:
                low = middle + 1
        return low
