"""Generation against the plainest possible loop, and a batch against its rows one by one."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robust_jax.models import generation
from robust_jax.models.decoder import Decoder
from robust_jax.models.generation import Generator, Reply, shared_prefix, shared_prefix_slots
from robust_jax.models.rope import LongRope, Rope
from robust_jax.models.sampling import Draws, draw_kind, next_tokens
from robust_jax.models.token_statistics import token_statistics
from robust_jax.types import FeatureRequest, Sampling
from tests.models.byte_model import BYTES

CONFIG = replace(BYTES, vocab_size=61, tie_embeddings=True, eos_token_ids=(7, 11, 13))
DECODER = Decoder(CONFIG, key=jax.random.key(3))
FEATURES = FeatureRequest(layers=(1, 2), statistics=True)


# Token limits from 17 to 48 and up to 16 tokens of a prompt's own share one cache size, so few shapes are compiled.


def prompts(count: int, common: int, seed: int = 0) -> list[list[int]]:
    generator = np.random.default_rng(seed)
    start = generator.integers(14, 61, common).tolist()
    return [start + generator.integers(14, 61, generator.integers(1, 17)).tolist() for _ in range(count)]


@jax.jit
def forward(tokens: jax.Array) -> tuple[jax.Array, jax.Array]:
    output = DECODER(tokens, jnp.arange(tokens.shape[1])[None], layers=FEATURES.layers)
    return DECODER.logits(output.hidden)[0], output.states[:, 0]


def plain_reply(prompt: Sequence[int], limit: int) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Greedy tokens by a full forward pass a token, then their features from one more pass."""
    ids, room = list(prompt), 128
    while len(ids) - len(prompt) < limit:
        logits, _ = forward(jnp.asarray([ids + [0] * (room - len(ids))]))
        token = int(jnp.argmax(logits[len(ids) - 1]))
        if token in CONFIG.eos_token_ids:
            break
        ids.append(token)
    logits, states = forward(jnp.asarray([ids + [0] * (room - len(ids))]))
    span = slice(len(prompt), len(ids))
    before = logits[len(prompt) - 1 : len(ids) - 1]
    statistics = token_statistics(before, jnp.asarray(ids[span], jnp.int32))
    return ids[span], np.asarray(states[:, span].sum(axis=1)), np.asarray(statistics.sum(axis=0))


def generate(
    asked: Sequence[Sequence[int]], batch: int, sampling: Sampling, features: FeatureRequest = FEATURES, **given: Any
) -> list[Reply]:
    return Generator(DECODER, batch)(asked, [sampling] * len(asked), features, **given)


@pytest.mark.parametrize("common", [0, 20])
@pytest.mark.parametrize("batch", [8, 32])
def test_replies_and_features_equal_a_full_pass_a_token(common: int, batch: int) -> None:
    """With 8 rows they are refilled many times; with 32 the batch shrinks as they finish."""
    asked = prompts(30, common)
    for prompt, reply in zip(asked, generate(asked, batch, Sampling(max_tokens=40)), strict=True):
        tokens, hidden, statistics = plain_reply(prompt, 40)
        assert reply.token_ids == tokens
        assert reply.stopped == (len(tokens) < 40)
        np.testing.assert_allclose(reply.hidden_sum, hidden, atol=1e-4)
        np.testing.assert_allclose(reply.statistics_sum, statistics, atol=1e-4)


MANNERS = [
    Sampling(max_tokens=20),
    Sampling(max_tokens=18, temperature=1.0, seed=4),
    Sampling(max_tokens=20, temperature=0.7, top_p=0.8, seed=4),
    Sampling(max_tokens=25, temperature=1.3, top_k=5, seed=9),
]


def test_a_reply_does_not_depend_on_what_is_asked_beside_it() -> None:
    """Rows of every manner in one batch, in two orders and batch sizes, and each one alone."""
    asked = [(prompt, manner) for prompt in prompts(6, 0, seed=5) for manner in MANNERS]
    orders = [range(len(asked)), np.random.default_rng(1).permutation(len(asked)).tolist()]
    replies: list[list[Reply]] = []
    for batch, order in zip((8, 32), orders, strict=True):
        given = [asked[place] for place in order]
        found = Generator(DECODER, batch)([p for p, _ in given], [m for _, m in given], FEATURES)
        replies.append([found[list(order).index(place)] for place in range(len(asked))])
    for place in range(0, len(asked), 5):
        alone = generate([asked[place][0]], 8, asked[place][1])[0]
        for together in (replies[0][place], replies[1][place]):
            assert together.token_ids == alone.token_ids
            np.testing.assert_allclose(together.hidden_sum, alone.hidden_sum, atol=1e-4)
            np.testing.assert_allclose(together.statistics_sum, alone.statistics_sum, atol=1e-3)
    for first, second in zip(*replies, strict=True):
        assert first.token_ids == second.token_ids


def test_equal_prompts_get_replies_of_their_own_that_a_seed_repeats() -> None:
    asked = [prompt for prompt in prompts(3, 0, seed=2) for _ in range(7)]

    def drawn(count: int, seed: int) -> list[list[int]]:
        sampling = Sampling(max_tokens=20, temperature=1.0, top_k=40, seed=seed)
        return [reply.token_ids for reply in generate(asked[:count], 8, sampling)]

    first = drawn(21, seed=1)
    assert len({tuple(ids) for ids in first[:7]}) > 3
    assert first == drawn(21, seed=1)
    assert first != drawn(21, seed=2)
    assert first[:3] == drawn(3, seed=1), "the first replies are the same however many follow"


def test_equal_prompts_are_read_once() -> None:
    one, other = prompts(2, 0, seed=6)
    asked, nothing = [one, other] * 64, FeatureRequest()
    work = generation._Work(Generator(DECODER, 128), asked, [Sampling()] * 128, nothing, range(128), [])
    new = work._new_prompts(range(32), range(32))
    assert new.tokens.shape[0] == 8, "two prompts, padded to eight, where 32 rows are refilled"
    for index, source in enumerate(new.source):
        assert new.tokens[source, : new.lengths[source]].tolist() == asked[index]
    assert new.place.tolist() == list(range(32))


def test_features_end_where_a_stop_text_begins() -> None:
    """A stop in the middle of a chunk: what was decoded after it must not be in the sums."""
    asked = prompts(6, 0, seed=8)
    whole = generate(asked, 4, Sampling(max_tokens=30))

    def find_stop(index: int, ids: list[int]) -> int | None:
        return 5 + index if len(ids) > 5 + index else None

    cut = generate(asked, 4, Sampling(max_tokens=30), find_stop=find_stop)
    for index, (prompt, before, after) in enumerate(zip(asked, whole, cut, strict=True)):
        assert after.token_ids == before.token_ids[: 5 + index]
        _, hidden, statistics = plain_reply(prompt, 5 + index)
        np.testing.assert_allclose(after.hidden_sum, hidden, atol=1e-4)
        np.testing.assert_allclose(after.statistics_sum, statistics, atol=1e-4)
    assert any(len(before.token_ids) > 5 for before in whole)


def test_long_and_short_sequences_under_longrope_are_each_turned_in_their_own_way() -> None:
    """Prompts on both sides of the original context in one call, against a full pass a token that knows the side."""
    rope = Rope(10_000.0, scaling=LongRope((1.0, 1.5, 2.0, 3.0), (1.0, 4.0, 9.0, 20.0), 40, attention_factor=1.2))
    decoder = Decoder(replace(CONFIG, rope=rope), key=jax.random.key(5))
    asked = [prompt for prompt in prompts(9, 18, seed=3)]
    limits = [18 if len(prompt) % 2 else 30 for prompt in asked]
    assert {len(prompt) + limit > 40 for prompt, limit in zip(asked, limits, strict=True)} == {True, False}
    replies = Generator(decoder, 8)(asked, [Sampling(max_tokens=limit) for limit in limits], FeatureRequest((2,)))

    @jax.jit
    def whole_pass(tokens: jax.Array, lengths: jax.Array) -> tuple[jax.Array, jax.Array]:
        output = decoder(tokens, jnp.arange(tokens.shape[1])[None], layers=(2,), lengths=lengths)
        return jnp.argmax(decoder.logits(output.hidden)[0], axis=-1), output.states[0, 0]

    for prompt, limit, reply in zip(asked, limits, replies, strict=True):
        ids = [*prompt, *reply.token_ids]
        likeliest, states = whole_pass(jnp.asarray([ids + [0] * (72 - len(ids))]), jnp.array([len(prompt) + limit]))
        assert likeliest[len(prompt) - 1 : len(ids) - 1].tolist() == reply.token_ids
        np.testing.assert_allclose(reply.hidden_sum[0], states[len(prompt) : len(ids)].sum(axis=0), atol=1e-4)


def test_every_reply_is_told_of_once() -> None:
    told: list[int] = []
    generate(prompts(11, 0), 4, Sampling(max_tokens=9), FeatureRequest(), on_reply=told.append)
    assert sorted(told) == list(range(11))


def test_no_prompts_no_replies() -> None:
    assert Generator(DECODER, 4)([], [], FeatureRequest()) == []


def draw(logits: list[float], sampling: Sampling, count: int) -> np.ndarray:
    """Tokens drawn from one distribution under as many seeds."""
    rows = Draws(
        seed=jnp.arange(count, dtype=jnp.uint32),
        temperature=jnp.full(count, sampling.temperature),
        top_p=jnp.full(count, sampling.top_p),
        top_k=jnp.full(count, sampling.top_k),
    )
    drawn = next_tokens(
        jnp.tile(jnp.array(logits), (count, 1)), rows, jnp.zeros(count, jnp.int32), draw_kind([sampling])
    )
    return np.asarray(drawn)


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        (Sampling(temperature=1.0), [0.5, 0.3, 0.15, 0.05]),
        (Sampling(temperature=0.5), [0.25, 0.09, 0.0225, 0.0025]),
        (Sampling(temperature=1.0, top_k=2), [5, 3, 0, 0]),
        (Sampling(temperature=1.0, top_p=0.6), [5, 3, 0, 0]),
        # Of the whole distribution the third token begins at 0.8; of the top three it begins at 0.84.
        (Sampling(temperature=1.0, top_p=0.82), [0.5, 0.3, 0.15, 0]),
        (Sampling(temperature=1.0, top_k=3, top_p=0.82), [5, 3, 0, 0]),
    ],
)
def test_draws_follow_the_distribution(sampling: Sampling, expected: list[float]) -> None:
    counts = np.bincount(draw(np.log([0.5, 0.3, 0.15, 0.05]).tolist(), sampling, 8000), minlength=4)
    wanted = 8000 * np.array(expected) / np.sum(expected)
    possible = wanted > 0
    assert not counts[~possible].any()
    chi_squared = ((counts - wanted)[possible] ** 2 / wanted[possible]).sum()
    assert chi_squared < 16.3  # p = 0.001 at 3 degrees of freedom


def test_the_likeliest_token_survives_any_truncation() -> None:
    logits = np.log([0.5, 0.3, 0.15, 0.05]).tolist()
    for sampling in (Sampling(temperature=1.0, top_p=0.0), Sampling(temperature=1.0, top_k=1), Sampling()):
        assert set(draw(logits, sampling, 200).tolist()) == {0}


def test_statistics_against_float64() -> None:
    generator = np.random.default_rng(0)
    logits = generator.normal(0, 3, (5, 200))
    tokens = generator.integers(0, 200, 5)
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    entropy = -(probabilities * np.log(probabilities)).sum(axis=-1)
    top = np.sort(probabilities, axis=-1)[:, -50:]
    expected = np.stack(
        [np.log(probabilities[np.arange(5), tokens]), entropy, -np.log(50 * top).mean(axis=-1)], axis=-1
    )
    found = token_statistics(jnp.asarray(logits, jnp.float32), jnp.asarray(tokens, jnp.int32))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@given(st.integers(1, 300), st.integers(1, 500))
def test_batches_come_in_two_sizes(batch_size: int, count: int) -> None:
    batch = Generator(DECODER, batch_size).batch_for(count)
    assert batch in (batch_size, max(1, batch_size // 4))
    assert batch >= min(count, batch_size)


@given(st.integers(1, 100_000))
def test_a_prefix_pays_for_few_empty_slots(length: int) -> None:
    slots = shared_prefix_slots(length)
    assert length <= slots <= max(length * 1.25, length + 15)


def test_the_shared_prefix_leaves_every_prompt_a_token() -> None:
    assert shared_prefix([[1, 2, 3], [1, 2, 4]]) == 2
    assert shared_prefix([[1, 2, 3], [1, 2, 3]]) == 2
    assert shared_prefix([[1, 2], [1, 2, 3]]) == 1
    assert shared_prefix([[1], [2]]) == 0
