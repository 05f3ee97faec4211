"""Perplexity, entropy and self-certainty of both spans against a float64 computation from transformers' logits."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from robust_jax.difficulty import Observations, References
from robust_jax.models import load_model
from robust_jax.models.sources import BUILTIN
from robust_jax.types import FeatureRequest, Prompt, ReferenceSet, Sampling, TokenStatistics

PROBLEMS = (
    "Ava picks 9 apples and gives 4 away. How many are left?",
    "A train of 12 cars has 48 seats in each car. 113 people sit down. How many seats are empty?",
    "π ≈ 3.14159, ½ of it?",
)
TINY = BUILTIN["tiny"]
NO_REFERENCES = ReferenceSet((), (), np.zeros((0, 0, 0), np.float32), np.zeros((0, 0), np.float32))


def by_transformers(before: list[int], span: list[int]) -> tuple[float, float, float]:
    """Eq. 2 to 4 for tokens behind others, in float64."""
    model = AutoModelForCausalLM.from_pretrained(TINY, dtype=torch.float64)
    with torch.no_grad():
        logits = model(torch.tensor([before + span])).logits[0, len(before) - 1 : -1]
    logs = torch.log_softmax(logits, dim=-1)
    perplexity = torch.exp(-logs[range(len(span)), span].mean())
    entropy = -(logs.exp() * logs).sum(dim=-1).mean()
    certainty = -(50 * logs.topk(50).values.exp()).log().mean()
    return float(perplexity), float(entropy), float(certainty)


def statistics_table(rows: list[TokenStatistics | None]) -> np.ndarray:
    return np.array([row for row in rows if row is not None], np.float32)


@pytest.mark.parametrize("span", ["input", "output"])
def test_they_are_those_of_transformers(span: str) -> None:
    tiny, tokenizer = load_model("builtin:tiny"), AutoTokenizer.from_pretrained(str(TINY))
    keys = tuple(map(str, range(len(PROBLEMS))))
    request = FeatureRequest(statistics=True)
    if span == "input":
        # The problem alone behind a BOS; without one its first token is not scored.
        spans = [tokenizer(problem, add_special_tokens=False)["input_ids"] for problem in PROBLEMS]
        bos = [] if tokenizer.bos_token_id is None else [tokenizer.bos_token_id]
        expected = [by_transformers(bos or ids[:1], ids if bos else ids[1:]) for ids in spans]
        scored = tiny.score([Prompt((), raw="")] * len(PROBLEMS), PROBLEMS, request)
        seen = Observations(keys, input_statistics=statistics_table([each.statistics for each in scored]))
    else:
        prompts = [Prompt((), problem=problem, raw=f"Question: {problem}\nAnswer:") for problem in PROBLEMS]
        replies = tiny.respond(prompts, Sampling(max_tokens=40), request)
        before = [tokenizer(prompt.raw)["input_ids"] for prompt in prompts]
        assert all(reply.token_ids for reply in replies)
        expected = [by_transformers(ids, list(reply.token_ids)) for ids, reply in zip(before, replies, strict=True)]
        seen = Observations(keys, output_statistics=statistics_table([each.statistics for each in replies]))
    names = [f"{span}_{name}" for name in ("perplexity", "entropy", "self_certainty")]
    found = References.fit(NO_REFERENCES).score(names, seen)
    for column, name in enumerate(names):
        np.testing.assert_allclose(found[name], [row[column] for row in expected], rtol=1e-4, atol=1e-6, err_msg=name)
