"""`builtin:tiny` is an ordinary checkpoint that transformers loads unchanged."""

import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerBase

from robust_jax.models import LocalModel, load_model
from robust_jax.models.sources import BUILTIN
from robust_jax.problems import build_prompt, load_suite
from robust_jax.randomness import rng
from robust_jax.types import FeatureRequest, Sampling

TINY = BUILTIN["tiny"]


@pytest.fixture(scope="module")
def tiny() -> LocalModel:
    model = load_model("builtin:tiny", batch_size=16)
    assert isinstance(model, LocalModel)
    return model


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(TINY)


def prompts(count: int) -> list:
    suite = load_suite("grade_school")
    templates = suite.templates[:: len(suite.templates) // count][:count]
    return [
        build_prompt(suite, template.text(template.random(rng(0, "builtin", template.id))), shots=0)
        for template in templates
    ]


def test_it_is_small() -> None:
    assert sum(path.stat().st_size for path in TINY.iterdir()) < 12e6
    assert sum(parameter.numel() for parameter in AutoModelForCausalLM.from_pretrained(TINY).parameters()) < 2.5e6


def test_replies_and_features_equal_those_of_transformers(tiny: LocalModel, tokenizer: PreTrainedTokenizerBase) -> None:
    reference = AutoModelForCausalLM.from_pretrained(TINY, dtype=torch.float32)
    layer = 2
    for prompt, reply in zip(
        prompts(6), tiny.respond(prompts(6), Sampling(max_tokens=80), FeatureRequest((layer,), True)), strict=True
    ):
        ids = tokenizer(prompt.raw, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            written = reference.generate(ids, max_new_tokens=80, do_sample=False)[0, ids.shape[1] :].tolist()
            written = written[:-1] if written[-1] == tokenizer.eos_token_id else written
            assert list(reply.token_ids) == written
            whole = torch.tensor([ids[0].tolist() + written])
            output = reference(whole, output_hidden_states=True)
        span = slice(ids.shape[1], whole.shape[1])
        np.testing.assert_allclose(reply.hidden[0], output.hidden_states[layer][0, span].mean(dim=0), atol=1e-4)
        logits = output.logits[0].double()
        positions = range(ids.shape[1] - 1, whole.shape[1] - 1)
        log_probabilities = torch.log_softmax(logits[list(positions)], dim=-1)
        chosen = log_probabilities[range(len(written)), written].mean()
        entropy = -(log_probabilities.exp() * log_probabilities).sum(dim=-1).mean()
        certainty = -(log_probabilities.topk(50).values + np.log(50)).mean()
        np.testing.assert_allclose(reply.statistics, [chosen, entropy, certainty], atol=1e-4)


def test_tokens_are_those_of_transformers_and_hold_at_most_one_digit(
    tiny: LocalModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    for prompt in prompts(10):
        assert tiny.tokenizer.encode_prompts([prompt])[0] == tokenizer(prompt.raw)["input_ids"]
    assert all(len(re.findall(r"\d", token)) <= 1 for token in tokenizer.get_vocab())


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_text_survives_the_tokenizer(text: str) -> None:
    tokenizer = AUTO
    assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False)) == text


AUTO = AutoTokenizer.from_pretrained(TINY) if TINY.exists() else None
