"""Batched generation that records features of the replies while they are written.

A batch of rows decodes in chunks of steps; between chunks the host looks at the rows, refills those that have finished
with waiting prompts, and once none wait gathers the unfinished rows into a smaller batch, so that one long reply never
holds a whole batch. The token prefix that all prompts share is read once and never copied to the rows, and replies to
equal prompts share the reading of the rest. Shapes come from a few sizes, so the number of compilations does not grow
with the work.
"""

import math
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int

from robust_jax.errors import RunError
from robust_jax.models.attention import Prefix
from robust_jax.models.decoder import Decoder
from robust_jax.models.decoding import (
    NewPrompts,
    Rows,
    decode_chunk,
    empty_rows,
    keep_states,
    read_prefix,
    read_prompts,
    take_rows,
)
from robust_jax.models.sampling import Draws, draw_kind, row_seed
from robust_jax.models.sharding import data_ways, fetch, on_mesh, whole
from robust_jax.shapes import half_octave, power_of_two
from robust_jax.types import FeatureRequest, Sampling

SLOT_MULTIPLE = 32
"""Caches come in multiples of so many slots: attention pays for every slot, filled or not."""
SMALLEST_STEP = 16
"""Numbers of tokens come in multiples of so many."""
SMALLEST_PREFIX = 16
"""A shorter shared prefix costs more in dispatch than it saves."""
SMALL_BATCH = 4
"""The smaller of the two sizes that batches come in is this many times smaller than the other."""

StopCheck = Callable[[int, list[int]], int | None]
"""Given a prompt's index and its reply's tokens so far: how many of them stand before a stop text, or None."""


@dataclass
class Reply:
    """What was generated for one prompt."""

    token_ids: list[int] = field(default_factory=list)
    """Without the stop token."""
    stopped: bool = False
    """False if it was cut by the token limit."""
    hidden_sum: Float[np.ndarray, "l D"] | None = None
    statistics_sum: Float[np.ndarray, "3"] = field(default_factory=lambda: np.zeros(3))


def shared_prefix_slots(length: int) -> int:
    """How many slots a shared prefix gets: the least of 2ⁿ · {4, 5, 6, 7}/4 that holds it, as all rows pay for each."""
    step = power_of_two(length, 8 * SMALLEST_STEP) // 8
    return step * math.ceil(length / step)


def shared_prefix(prompts: Sequence[Sequence[int]]) -> int:
    """How many leading tokens all prompts share, leaving each at least one of its own."""
    shortest, longest = min(map(list, prompts)), max(map(list, prompts))
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(shortest, longest, strict=False)))
    return min(common, min(len(prompt) for prompt in prompts) - 1)


def read_shared(decoder: Decoder, tokens: Sequence[int], longest: Int[Array, ""]) -> Prefix:
    """Read once the tokens that sequences of at most `longest` tokens begin with."""
    padded = np.zeros((1, shared_prefix_slots(len(tokens))), np.int32)
    padded[0, : len(tokens)] = tokens
    return Prefix(read_prefix(decoder, jnp.asarray(padded), longest), jnp.int32(len(tokens)))


@dataclass(frozen=True)
class Generator:
    """Generates with one decoder."""

    decoder: Decoder
    batch_size: int
    """Rows at once; a multiple of the devices on the mesh's data axis."""
    mesh: Mesh | None = None
    """What the decoder lies on, if it is split."""

    def batch_for(self, count: int) -> int:
        """How many rows serve `count` prompts: all, or a fraction of them where that is enough."""
        small = self.whole(self.batch_size // SMALL_BATCH)
        return small if count <= small else self.batch_size

    def whole(self, rows: int) -> int:
        """The least number of rows that holds so many, at least one, and splits evenly over the mesh."""
        return whole(rows, data_ways(self.mesh))

    def __call__(
        self,
        prompts: Sequence[Sequence[int]],
        samplings: Sequence[Sampling],
        features: FeatureRequest,
        find_stop: StopCheck | None = None,
        on_reply: Callable[[int], None] = lambda index: None,
    ) -> list[Reply]:
        """Reply to every prompt, in order.

        Args:
            prompts: token ids; each at least one token and, with its `max_tokens`, within the context. Equal prompts
                get replies that are drawn independently.
            samplings: how each reply is drawn.
            find_stop: looks for stop texts after every chunk.
            on_reply: told a prompt's index when its reply is complete.

        Raises:
            RunError: statistics are asked for and a logit is NaN.
        """
        if not prompts:
            return []
        longest = [len(prompt) + sampling.max_tokens for prompt, sampling in zip(prompts, samplings, strict=True)]
        # LongRoPE turns long sequences otherwise than short ones from their first token on: the two share no prefix.
        sides = [self.decoder.config.rope.is_long(length) for length in longest]
        replies = [Reply() for _ in prompts]
        for side in dict.fromkeys(sides):
            indices = [index for index, other in enumerate(sides) if other == side]
            with on_mesh(self.mesh):
                work = _Work(self, prompts, samplings, features, indices, replies)
                while work.is_unfinished:
                    work.shrink()
                    work.refill()
                    for index in work.decode(find_stop):
                        on_reply(index)
        return replies


class _Work:
    """A batch, whose replies its rows are writing, and the prompts that wait for a row."""

    def __init__(
        self,
        generator: Generator,
        prompts: Sequence[Sequence[int]],
        samplings: Sequence[Sampling],
        features: FeatureRequest,
        indices: Sequence[int],
        replies: list[Reply],
    ):
        """Of all the prompts, those at `indices` are answered, and `replies` filled in there."""
        self.generator, self.decoder, self.features, self.replies = generator, generator.decoder, features, replies
        longest = max(len(prompts[index]) + samplings[index].max_tokens for index in indices)
        self.longest = jnp.int32(longest)
        common = shared_prefix([prompts[index] for index in indices])
        common = common if common >= SMALLEST_PREFIX else 0
        self.prefix = read_shared(self.decoder, prompts[indices[0]][:common], self.longest) if common else None
        self.prompts = [tuple(prompt[common:]) for prompt in prompts]
        self.samplings, self.seeds = samplings, _row_seeds(prompts, samplings)
        self.kind = draw_kind([samplings[index] for index in indices])
        # Longest first, so that the last rows to finish are short ones; equal prompts together, to be read once.
        self.waiting = deque(sorted(indices, key=lambda index: (-len(self.prompts[index]), self.prompts[index])))

        # A power of two, so that calls with somewhat longer and shorter prompts run the same programs.
        own = power_of_two(len(self.prompts[self.waiting[0]]), SMALLEST_STEP)
        room = own + max(samplings[index].max_tokens for index in indices)
        slots = SLOT_MULTIPLE * math.ceil(room / SLOT_MULTIPLE)
        batch = generator.batch_for(len(indices))
        dtype = self.decoder.embed_tokens.dtype
        self.rows: Rows = empty_rows(self.decoder.config, batch, slots, len(features.layers), dtype)
        self.owner: list[int | None] = [None] * batch
        """Whose reply each row is writing."""

    @property
    def is_unfinished(self) -> bool:
        return bool(self.waiting) or any(index is not None for index in self.owner)

    @property
    def batch(self) -> int:
        return len(self.owner)

    @property
    def refill_size(self) -> int:
        """How many rows are refilled together."""
        return self.generator.whole(self.batch // 4)

    def shrink(self) -> None:
        """Gather the unfinished rows into a smaller batch if they fit into one and nothing waits."""
        writing = [row for row, index in enumerate(self.owner) if index is not None]
        smaller = self.generator.batch_for(len(writing))
        if self.waiting or smaller >= self.batch:
            return
        # Rows that have finished fill up the smaller batch and stay inactive.
        idle = [row for row, index in enumerate(self.owner) if index is None]
        order = [*writing, *idle][:smaller]
        self.rows = take_rows(self.rows, jnp.array(order, jnp.int32))
        self.owner = [self.owner[row] for row in order]

    def refill(self) -> None:
        """Give free rows to waiting prompts, as soon as enough of them are free to make it worth while."""
        free = [row for row, index in enumerate(self.owner) if index is None]
        while self.waiting and free and (len(free) >= self.refill_size or len(free) == self.batch):
            count = min(self.refill_size, len(free), len(self.waiting))
            places, free = free[:count], free[count:]
            chosen = [self.waiting.popleft() for _ in places]
            for row, index in zip(places, chosen, strict=True):
                self.owner[row] = index
            self.rows = read_prompts(
                self.decoder,
                self.rows,
                self.prefix,
                self.longest,
                self._new_prompts(chosen, places),
                statistics=self.features.statistics,
                kind=self.kind,
                eos=self.decoder.config.eos_token_ids,
            )

    def decode(self, find_stop: StopCheck | None) -> list[int]:
        """Decode a chunk; the indices of the replies that it completed."""
        enough = self.batch - self.refill_size if self.waiting else self.generator.batch_for(1)
        self.rows, chunk = decode_chunk(
            self.decoder,
            self.rows,
            self.prefix,
            self.longest,
            jnp.int32(enough if enough < self.batch else 0),
            features=self.features,
            kind=self.kind,
            eos=self.decoder.config.eos_token_ids,
        )
        tokens, is_kept, statistics, active, stopped = map(
            np.array,
            fetch((chunk.tokens, chunk.is_written, chunk.statistics, self.rows.active, self.rows.stopped)),
        )
        if self.features.statistics and np.isnan(statistics[is_kept]).any():
            raise RunError(
                "the model's logits are not numbers: its weights hold NaN or infinity, or overflow its --dtype"
            )
        halted = False
        for row, index in enumerate(self.owner):
            if index is None:
                continue
            reply = self.replies[index]
            before = len(reply.token_ids)
            reply.token_ids.extend(tokens[is_kept[:, row], row].tolist())
            reply.stopped = bool(stopped[row])
            end = find_stop(index, reply.token_ids) if find_stop else None
            if end is not None:
                del reply.token_ids[end:]
                reply.stopped = True
                is_kept[max(0, end - before) :, row] = False
                halted |= bool(active[row])
                active[row] = False
            reply.statistics_sum += statistics[is_kept[:, row], row].sum(axis=0, dtype=np.float64)
        if self.features.layers or halted:
            self.rows = keep_states(self.rows, chunk.states, jnp.asarray(is_kept), jnp.asarray(active))
        finished = {row: index for row, index in enumerate(self.owner) if index is not None and not active[row]}
        hidden_sums = fetch(self.rows.hidden_sum) if finished and self.features.layers else None
        for row, index in finished.items():
            if hidden_sums is not None:
                self.replies[index].hidden_sum = hidden_sums[row]
            self.owner[row] = None
        return list(finished.values())

    def _new_prompts(self, chosen: Sequence[int], places: Sequence[int]) -> NewPrompts:
        """The chosen prompts, each once, for the rows at `places`; padded to a fixed number of prompts and of rows."""
        distinct = {prompt: number for number, prompt in enumerate(dict.fromkeys(self.prompts[i] for i in chosen))}
        few = self.generator.whole(self.refill_size // SMALL_BATCH)
        # Only where replies share prompts is a smaller number of prompts worth a compilation of its own.
        count = few if len(distinct) <= min(few, len(chosen) // 2) else self.refill_size
        tokens = np.zeros((count, half_octave(max(map(len, distinct)), SMALLEST_STEP)), np.int32)
        lengths = np.ones(count, np.int32)
        for prompt, number in distinct.items():
            tokens[number, : len(prompt)] = prompt
            lengths[number] = len(prompt)
        padding = self.refill_size - len(chosen)
        samplings = [self.samplings[index] for index in chosen] + [Sampling()] * padding
        return NewPrompts(
            tokens=jnp.asarray(tokens),
            lengths=jnp.asarray(lengths),
            source=jnp.array([distinct[self.prompts[index]] for index in chosen] + [0] * padding, jnp.int32),
            place=jnp.array([*places, *[self.batch] * padding], jnp.int32),
            limit=jnp.array([sampling.max_tokens for sampling in samplings], jnp.int32),
            draws=Draws(
                seed=jnp.array([self.seeds[index] for index in chosen] + [0] * padding, jnp.uint32),
                temperature=jnp.array([sampling.temperature for sampling in samplings], jnp.float32),
                top_p=jnp.array([sampling.top_p for sampling in samplings], jnp.float32),
                top_k=jnp.array([sampling.top_k for sampling in samplings], jnp.int32),
            ),
        )


def _row_seeds(prompts: Sequence[Sequence[int]], samplings: Sequence[Sampling]) -> list[int]:
    asked: Counter[tuple[tuple[int, ...], Sampling]] = Counter()
    seeds = []
    for prompt, sampling in zip(prompts, samplings, strict=True):
        same = (tuple(prompt), sampling)
        seeds.append(row_seed(prompt, sampling.seed, asked[same]))
        asked[same] += 1
    return seeds
