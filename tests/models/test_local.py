"""A checkpoint directory as a model: prompts, stops, context, features, scoring and embeddings."""

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_jax.errors import InputError, RunError
from robust_jax.models import load_model
from robust_jax.models.checkpoint import save_decoder
from robust_jax.models.decoder import Decoder
from robust_jax.models.local import LocalModel
from robust_jax.models.scoring import Span, score_spans
from robust_jax.models.token_statistics import token_statistics
from robust_jax.types import FeatureRequest, Message, Prompt, Sampling
from tests.models.byte_model import BYTES, byte_tokenizer

FEATURES = FeatureRequest(layers=(1, 2), statistics=True)
CHAT = "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"


def model(directory: Path, *, bos: bool = True, chat_template: str | None = None) -> LocalModel:
    config = replace(BYTES, max_positions=96)
    save_decoder(Decoder(config, key=jax.random.key(0)), directory)
    byte_tokenizer(directory, bos=bos, chat_template=chat_template)
    loaded = load_model(str(directory), batch_size=8)
    assert isinstance(loaded, LocalModel)
    return loaded


def asked(*texts: str) -> list[Prompt]:
    return [Prompt((Message("user", text),), text, raw=text) for text in texts]


def test_features_of_a_reply_equal_those_of_scoring_it(tmp_path: Path) -> None:
    local = model(tmp_path)
    prompts = asked("one", "two and more", "")
    replies = local.respond(prompts, Sampling(max_tokens=12), FEATURES)
    # A random model writes bytes that are no text, so the reply's tokens are scored, not its text.
    contexts = local.tokenizer.encode_prompts(prompts)
    spans = [Span(context, reply.token_ids) for context, reply in zip(contexts, replies, strict=True)]
    for reply, scored in zip(replies, score_spans(local.generator, spans, FEATURES), strict=True):
        assert reply.hidden is not None
        np.testing.assert_allclose(reply.hidden, scored.hidden, atol=1e-4)
        np.testing.assert_allclose(reply.statistics, scored.statistics, atol=1e-4)


@pytest.mark.parametrize("shared", [0, 40], ids=["alone", "after-a-shared-prefix"])
def test_scores_are_those_of_a_plain_pass_over_the_whole_text(tmp_path: Path, shared: int) -> None:
    local = model(tmp_path)
    rng = np.random.default_rng(0)
    start = rng.integers(3, 250, shared).tolist()
    # Lengths that share a batch and lengths that do not, an empty span, and nine rows where eight make a batch.
    sizes = [(1, 1), (3, 20), (2, 0), (30, 5), (7, 7), (1, 16), (2, 17), (5, 33), (4, 2)]
    spans = [Span([*start, *rng.integers(3, 250, c).tolist()], rng.integers(3, 250, n).tolist()) for c, n in sizes]
    for span, scored in zip(spans, score_spans(local.generator, spans, FEATURES), strict=True):
        tokens = jnp.array([[*span.context, *span.tokens]])
        output = local.decoder(tokens, jnp.arange(tokens.shape[1])[None], layers=FEATURES.layers)
        begin = len(span.context)
        if not span.tokens:
            assert np.isnan(scored.hidden).all() and np.isnan(scored.statistics).all()
            continue
        np.testing.assert_allclose(scored.hidden, output.states[:, 0, begin:].mean(axis=1), atol=1e-4)
        expected = token_statistics(local.decoder.logits(output.hidden[0, begin - 1 : -1]), tokens[0, begin:])
        np.testing.assert_allclose(scored.statistics, expected.mean(axis=0), atol=1e-4)


def test_a_text_too_long_to_score_leaves_the_others_their_features(tmp_path: Path) -> None:
    local = model(tmp_path)
    fits, too_long = local.score(asked("abc", "abc"), ["yes", "no" * 60], FEATURES)
    assert fits.hidden is not None and np.isfinite(fits.hidden).all()
    assert too_long.finish_reason == "context" and "exceed the context of 96" in too_long.message
    assert too_long.hidden is not None and np.isnan(too_long.hidden).all()


def test_weights_that_are_no_numbers_are_said_not_answered_with(tmp_path: Path) -> None:
    local = model(tmp_path)
    local.decoder.norm.weight[...] = local.decoder.norm.weight[...].at[3].set(jnp.nan)
    with pytest.raises(RunError, match="not numbers"):
        local.respond(asked("abc"), Sampling(max_tokens=12), FEATURES)


def test_a_stop_text_ends_the_reply_and_is_no_part_of_it(tmp_path: Path) -> None:
    local = model(tmp_path)
    (whole,) = local.respond(asked("abc"), Sampling(max_tokens=30))
    stop = whole.text[3:5]
    (cut,) = local.respond(asked("abc"), Sampling(max_tokens=30, stop=(stop,)))
    assert cut.text == whole.text[: whole.text.index(stop)]
    assert cut.finish_reason == "stop"
    assert cut.token_ids == whole.token_ids[: len(cut.token_ids)]


def test_a_reply_that_fills_its_tokens_says_so(tmp_path: Path) -> None:
    (reply,) = model(tmp_path).respond(asked("abc"), Sampling(max_tokens=3))
    assert reply.finish_reason == ("length" if len(reply.token_ids) == 3 else "stop")
    assert len(reply.token_ids) <= 3


def test_a_prompt_beyond_the_context_is_skipped_not_cut(tmp_path: Path) -> None:
    local = model(tmp_path)
    fits, too_long = local.respond(asked("a" * 60, "a" * 200), Sampling(max_tokens=10), FEATURES)
    assert fits.finish_reason != "context"
    assert too_long.finish_reason == "context"
    assert "exceed the context of 96" in too_long.message
    assert too_long.hidden is not None and too_long.hidden.shape == (2, 32) and np.isnan(too_long.hidden).all()


def test_an_empty_prompt_without_a_bos_is_an_error_not_a_crash(tmp_path: Path) -> None:
    empty, other = model(tmp_path, bos=False).respond(asked("", "abc"), Sampling(max_tokens=4), FEATURES)
    assert empty.finish_reason == "error" and "empty" in empty.message
    assert other.finish_reason != "error"


def test_a_chat_template_brings_the_only_bos(tmp_path: Path) -> None:
    local = model(tmp_path, chat_template=CHAT)
    (ids,) = local.tokenizer.encode_prompts(asked("hi"))
    assert ids.count(0) == 1
    assert local.tokenizer.decode(ids) == "<user>hi<assistant>"


def test_plain_text_gets_one_bos_where_the_tokenizer_has_one(tmp_path: Path) -> None:
    (ids,) = model(tmp_path).tokenizer.encode_prompts(asked("hi"))
    assert ids[0] == 0 and ids.count(0) == 1


@pytest.mark.parametrize("bos", [True, False])
def test_the_input_span_is_the_problem_alone(tmp_path: Path, bos: bool) -> None:
    local = model(tmp_path, bos=bos)
    (scored,) = local.score([Prompt((), raw="")], ["Question"], FeatureRequest(statistics=True))
    # Without a BOS nothing predicts the first token.
    assert len(scored.token_ids) == (8 if bos else 7)
    assert scored.statistics is not None and np.isfinite(scored.statistics).all()


def test_an_embedding_is_the_mean_over_the_texts_own_tokens(tmp_path: Path) -> None:
    local = model(tmp_path)
    texts = ["one", "", "two and three"]
    found = local.embed(texts)
    table = np.asarray(local.decoder.embed_tokens[...])
    for text, row in zip(texts, found, strict=True):
        if text:
            np.testing.assert_allclose(row, table[local.tokenize(text)].mean(axis=0), rtol=1e-5, atol=1e-7)
        else:
            assert np.isnan(row).all()


def test_an_empty_reply_has_no_features(tmp_path: Path) -> None:
    local = model(tmp_path)
    (scored,) = local.score(asked("abc"), [""], FEATURES)
    assert scored.hidden is not None and np.isnan(scored.hidden).all()


@pytest.mark.parametrize(("spec", "hint"), [("builtin:tyni", "builtin:tiny"), ("nowhere", "known:")])
def test_an_unknown_model_is_named_with_the_nearest(spec: str, hint: str) -> None:
    with pytest.raises(InputError, match=hint):
        load_model(spec)


def test_a_directory_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"config\.json"):
        load_model(str(tmp_path))
