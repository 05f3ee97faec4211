"""SmolLM2-135M-Instruct from its wheel against transformers in fp32: slow, and only after `models fetch smollm2`."""

import time

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from robust_jax.errors import InputError
from robust_jax.models import LocalModel, load_model
from robust_jax.models.wheels import wheel_model
from robust_jax.problems import load_suite
from robust_jax.randomness import rng
from robust_jax.types import Message, Prompt, Sampling

NEW_TOKENS = 64
TIE = 1e-4
"""Two logits that lie no farther apart may come in either order."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


def prompts() -> list[Prompt]:
    """Twenty problems of the bundled suite."""
    suite = load_suite("grade_school")
    texts = [template.text(template.random(rng(0, "smollm2", template.id))) for template in suite.templates[:20]]
    return [Prompt((Message("user", text),), text) for text in texts]


@pytest.fixture(scope="module")
def model() -> LocalModel:
    try:
        wheel_model("smollm2")
    except InputError as error:
        pytest.skip(str(error))
    start = time.perf_counter()
    loaded = load_model("pip:smollm2", batch_size=32)
    print(f"\nloaded in {time.perf_counter() - start:.1f} s")
    assert isinstance(loaded, LocalModel)
    return loaded


def test_greedy_texts_are_those_of_transformers(model: LocalModel) -> None:
    path = wheel_model("smollm2")
    reference = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32).eval()
    asked = prompts()
    replies = model.respond(asked, Sampling(max_tokens=NEW_TOKENS))
    differing = 0
    for ids, reply in zip(model.tokenizer.encode_prompts(asked), replies, strict=True):
        with torch.no_grad():
            whole = reference.generate(torch.tensor([ids]), max_new_tokens=NEW_TOKENS, do_sample=False)[0]
        written = whole[len(ids) :].tolist()
        if reply.text == model.tokenizer.decode(written):
            continue
        differing += 1
        place = next(n for n, pair in enumerate(zip(reply.token_ids, written, strict=False)) if pair[0] != pair[1])
        with torch.no_grad():
            logits = reference(whole[None, : len(ids) + place]).logits[0, -1]
        chosen, other = logits[written[place]], logits[reply.token_ids[place]]
        print(f"{reply.text!r} differs from token {place} on: logits {chosen:.6f} and {other:.6f}")
        assert chosen - other < TIE
    print(f"{len(asked) - differing} of {len(asked)} texts are the same")
    assert differing <= 1


def test_logits_are_those_of_transformers(model: LocalModel) -> None:
    path = wheel_model("smollm2")
    reference = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32).eval()
    (ids,) = model.tokenizer.encode_prompts(prompts()[:1])
    output = model.decoder(jnp.asarray([ids]), jnp.arange(len(ids))[None])
    with torch.no_grad():
        expected = reference(torch.tensor([ids])).logits.numpy()
    np.testing.assert_allclose(model.decoder.logits(output.hidden), expected, atol=2e-3)
