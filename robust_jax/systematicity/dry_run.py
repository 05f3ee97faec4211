"""What a run would ask, without asking it."""

from collections import Counter

from rich.console import Console
from rich.markup import escape

from robust_jax.models import model_defaults
from robust_jax.systematicity.exam import ORIGINAL, asked_variations
from robust_jax.systematicity.options import SystematicityOptions
from robust_jax.systematicity.replies import answers_text
from robust_jax.systematicity.run import chosen_max_tokens

CHARACTERS_A_TOKEN = 4
"""A usual figure for English text, for an estimate without a tokenizer."""


def print_plan(options: SystematicityOptions, console: Console) -> None:
    """Print the first prompt of every family with its right answers, the number of replies and a bound on tokens."""
    longest = chosen_max_tokens(options, model_defaults(options.model))
    variations: Counter[tuple[str, str]] = Counter()
    characters = 0
    for asked in asked_variations(options):
        task = asked.variation.task
        if not any(family == task.family for family, _ in variations):
            console.rule(escape(asked.item))
            for message in asked.prompt.messages:
                console.print(f"[{message.role}]", style="bold", markup=False, highlight=False)
                console.print(message.content, markup=False, highlight=False)
            console.print(f"(right answers: {answers_text(asked.family, task.answers)})", markup=False, highlight=False)
        variations[task.family, asked.arm] += 1
        characters += sum(len(message.content) for message in asked.prompt.messages)
    console.rule()
    for (family, arm), count in variations.items():
        what = "tasks as generated" if arm == ORIGINAL else f"variations by {arm}"
        console.print(f"{family}: {count:,} {what} × {options.attempts} attempts", markup=False, highlight=False)
    replies = variations.total() * options.attempts
    tokens = characters / CHARACTERS_A_TOKEN * options.attempts
    console.print(
        f"In all {replies:,} replies: about {tokens:,.0f} tokens of prompts, at most {replies * longest:,} of replies.",
        highlight=False,
    )
