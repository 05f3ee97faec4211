"""What a command would ask, without asking it."""

from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape

from robust_jax.lpds.options import LpdsOptions
from robust_jax.lpds.session import chosen_shots, chosen_suite
from robust_jax.models import model_defaults
from robust_jax.problems import build_prompt
from robust_jax.randomness import rng

CHARACTERS_A_TOKEN = 4
"""A usual figure for English text, for an estimate without a tokenizer."""


def print_plan(options: LpdsOptions, generations: Mapping[str, int], console: Console) -> None:
    """Print a prompt of every template, at most how many replies each part takes, and an estimate of their tokens.

    Args:
        generations: replies a template at most, by what they are for.
    """
    suite = chosen_suite(options)
    shots = chosen_shots(options, model_defaults(options.model), suite)
    characters = 0
    for template in suite.templates:
        variation = template.fill(template.random(rng(options.seed, "dry run", template.id)))
        prompt = build_prompt(suite, variation.text, shots=shots, form=options.prompt_form)
        characters += len(prompt.raw or "") + len(variation.trace)
        console.rule(escape(template.id))
        console.print(prompt.raw, markup=False, highlight=False)
        console.print(f"(right answer: {variation.answer})", highlight=False)
    console.rule()
    count = len(suite.templates)
    total = count * sum(generations.values())
    for purpose, replies in generations.items():
        console.print(f"{purpose}: at most {count} × {replies:,} = {count * replies:,} replies", highlight=False)
    tokens = characters / count / CHARACTERS_A_TOKEN * total
    console.print(
        f"In all at most {total:,} replies and about {tokens:,.0f} tokens, prompts included.", highlight=False
    )
