"""Generation against the plainest possible loop, and a batch against its rows one by one."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_jax.models.config import DecoderConfig
from robust_jax.models.decoder import Decoder
from robust_jax.models.generation import Generator, bucket, shared_prefix
from robust_jax.models.sampling import next_tokens
from robust_jax.models.token_statistics import token_statistics
from robust_jax.types import FeatureRequest, Sampling

CONFIG = DecoderConfig(
    vocab_size=61,
    hidden_size=32,
    intermediate_size=48,
    num_layers=2,
    num_heads=4,
    num_kv_heads=2,
    head_dim=8,
    tie_embeddings=True,
    eos_token_ids=(7, 11, 13),
)
DECODER = Decoder(CONFIG, key=jax.random.key(3))
FEATURES = FeatureRequest(layers=(1, 2), statistics=True)


def prompts(count: int, common: int, seed: int = 0) -> list[list[int]]:
    generator = np.random.default_rng(seed)
    start = generator.integers(14, 61, common).tolist()
    return [start + generator.integers(14, 61, generator.integers(1, 25)).tolist() for _ in range(count)]


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


@pytest.mark.parametrize("common", [0, 20])
@pytest.mark.parametrize("batch", [4, 16])
def test_replies_and_features_equal_a_full_pass_a_token(common: int, batch: int) -> None:
    asked = prompts(13, common)
    for prompt, reply in zip(asked, Generator(DECODER, batch)(asked, Sampling(max_tokens=40), FEATURES), strict=True):
        tokens, hidden, statistics = plain_reply(prompt, 40)
        assert reply.token_ids == tokens
        assert reply.stopped == (len(tokens) < 40)
        np.testing.assert_allclose(reply.hidden_sum, hidden, atol=1e-4)
        np.testing.assert_allclose(reply.statistics_sum, statistics, atol=1e-4)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_batch_equals_its_rows_one_by_one(temperature: float) -> None:
    asked = prompts(9, 0, seed=5)
    sampling = Sampling(max_tokens=20, temperature=temperature, seed=4)
    together = Generator(DECODER, 8)(asked, sampling, FEATURES)
    for index, prompt in enumerate(asked[:1] if temperature else asked):
        # A draw belongs to a prompt's number, so only prompt 0 can be asked alone and draw the same.
        (alone,) = Generator(DECODER, 8)([prompt], sampling, FEATURES)
        assert alone.token_ids == together[index].token_ids
        np.testing.assert_allclose(alone.hidden_sum, together[index].hidden_sum, atol=1e-4)


def test_features_end_where_a_stop_text_begins() -> None:
    """A stop in the middle of a chunk: what was decoded after it must not be in the sums."""
    asked = prompts(6, 0, seed=8)
    whole = Generator(DECODER, 4)(asked, Sampling(max_tokens=30), FEATURES)

    def find_stop(ids: list[int]) -> int | None:
        return 5 if len(ids) > 5 else None

    cut = Generator(DECODER, 4)(asked, Sampling(max_tokens=30), FEATURES, find_stop)
    for prompt, before, after in zip(asked, whole, cut, strict=True):
        assert after.token_ids == before.token_ids[:5]
        _, hidden, statistics = plain_reply(prompt, 5)
        np.testing.assert_allclose(after.hidden_sum, hidden, atol=1e-4)
        np.testing.assert_allclose(after.statistics_sum, statistics, atol=1e-4)
    assert any(len(before.token_ids) > 5 for before in whole)


def test_every_reply_is_told_of_once() -> None:
    told: list[int] = []
    Generator(DECODER, 4)(prompts(11, 0), Sampling(max_tokens=9), FeatureRequest(), on_reply=told.append)
    assert sorted(told) == list(range(11))


def test_no_prompts_no_replies() -> None:
    assert Generator(DECODER, 4)([], Sampling(), FeatureRequest()) == []


def test_sampling_follows_the_distribution() -> None:
    logits = jnp.log(jnp.array([0.5, 0.25, 0.125, 0.125]))
    draws = next_tokens(
        jnp.tile(logits, (8000, 1)),
        jnp.arange(8000, dtype=jnp.uint32),
        jnp.zeros(8000, jnp.int32),
        Sampling(temperature=1.0),
    )
    shares = np.bincount(np.asarray(draws), minlength=4) / 8000
    expected = np.array([0.5, 0.25, 0.125, 0.125])
    chi_squared = 8000 * ((shares - expected) ** 2 / expected).sum()
    assert chi_squared < 16.3  # p = 0.001 at 3 degrees of freedom


@pytest.mark.parametrize(
    ("sampling", "allowed"),
    [
        (Sampling(temperature=1.0, top_k=2), {0, 1}),
        (Sampling(temperature=1.0, top_p=0.6), {0, 1}),
        (Sampling(temperature=1.0, top_p=0.1), {0}),
        (Sampling(temperature=0.0), {0}),
    ],
)
def test_truncated_sampling_draws_only_what_is_allowed(sampling: Sampling, allowed: set[int]) -> None:
    logits = jnp.tile(jnp.log(jnp.array([0.5, 0.3, 0.15, 0.05])), (500, 1))
    draws = next_tokens(logits, jnp.arange(500, dtype=jnp.uint32), jnp.zeros(500, jnp.int32), sampling)
    assert set(np.asarray(draws).tolist()) == allowed


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


def test_buckets_hold_their_sizes_and_are_few() -> None:
    sizes = {bucket(size) for size in range(1, 4097)}
    assert all(bucket(size) >= size for size in range(1, 4097))
    assert len(sizes) == 17


def test_the_shared_prefix_leaves_every_prompt_a_token() -> None:
    assert shared_prefix([[1, 2, 3], [1, 2, 4]]) == 2
    assert shared_prefix([[1, 2, 3], [1, 2, 3]]) == 2
    assert shared_prefix([[1, 2], [1, 2, 3]]) == 1
    assert shared_prefix([[1], [2]]) == 0
