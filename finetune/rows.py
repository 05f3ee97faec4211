"""From problems to token sequences: which tokens are read, and which the model learns to write."""

from collections.abc import Sequence
from typing import NamedTuple

from robust_jax.errors import InputError
from robust_jax.finetune.problem import Problem
from robust_jax.models.config import DecoderConfig
from robust_jax.models.tokenizer import TextTokenizer
from robust_jax.problems import PromptForm, build_prompt
from robust_jax.types import Suite


class Row(NamedTuple):
    """One training sequence: a prompt exactly as the model is evaluated with, and the reply that is wanted."""

    prompt: tuple[int, ...]
    reply: tuple[int, ...]
    """The worked solution and the stop token, all of which the model learns to write."""

    @property
    def tokens(self) -> tuple[int, ...]:
        return self.prompt + self.reply

    @property
    def length(self) -> int:
        """Of `tokens`, without putting them together."""
        return len(self.prompt) + len(self.reply)


def make_rows(
    problems: Sequence[Problem],
    suite: Suite,
    shots: int,
    form: PromptForm,
    tokenizer: TextTokenizer,
    config: DecoderConfig,
) -> list[Row]:
    """The training sequences of some problems, in order.

    Prompt and reply are turned into tokens apart: a model that is asked reads the tokens of the prompt alone, whatever
    the reply would have merged with. What counts as reply is therefore known by construction, and needs neither a
    template that marks it nor a padding token that differs from the stop token.

    Raises:
        InputError: the model has no stop token, or a sequence does not fit into its context.
    """
    prompts = [build_prompt(suite, problem.question, shots=shots, form=form) for problem in problems]
    if not prompts:
        return []
    stop = tokenizer.stop_token(prompts[0], config.eos_token_ids)
    # A plain prompt ends in "Answer:", behind which a reply begins with a space.
    gap = "" if tokenizer.is_chat(prompts[0]) else " "
    replies = tokenizer.encode([gap + problem.trace for problem in problems])
    rows = [
        Row(tuple(prompt), (*reply, stop))
        for prompt, reply in zip(tokenizer.encode_prompts(prompts), replies, strict=True)
    ]
    longest = max(range(len(rows)), key=lambda place: rows[place].length)
    if (length := rows[longest].length) > config.max_positions:
        raise InputError(
            f"template {problems[longest].template}: prompt and solution take {length} tokens, and the model's context "
            f"is {config.max_positions}: show fewer --shots"
        )
    return rows
