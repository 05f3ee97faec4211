"""Accuracy of `builtin:tiny` inside the ranges it was trained on and on the suite's full ranges, template by template.

python experiments/tiny/evaluate.py --variations 200
"""

from dataclasses import dataclass

import numpy as np
import tyro
from train import narrow

from robust_jax.models import load_model
from robust_jax.problems import build_prompt, grade, load_suite
from robust_jax.randomness import rng
from robust_jax.types import Model, Sampling, Suite


@dataclass(frozen=True)
class Options:
    """Evaluate the built-in model."""

    model: str = "builtin:tiny"
    """What is evaluated."""
    suite: str = "grade_school"
    """On what."""
    share: float = 0.6
    """Lower share of every numeric slot's values that the model was trained on."""
    variations: int = 200
    """Variations a template."""
    seed: int = 1
    """Of the variations; training used 0."""


def accuracies(model: Model, suite: Suite, options: Options, purpose: str) -> tuple[np.ndarray, int]:
    """Accuracy a template, and the longest reply in tokens."""
    variations = []
    for template in suite.templates:
        generator = rng(options.seed, purpose, template.id)
        variations += [template.fill(template.random(generator)) for _ in range(options.variations)]
    prompts = [build_prompt(suite, variation.text, shots=0) for variation in variations]
    replies = model.respond(prompts, Sampling(max_tokens=model.defaults.max_tokens or 80))
    scores = [
        grade(reply, variation.answer, suite.grading).score
        for reply, variation in zip(replies, variations, strict=True)
    ]
    longest = max(len(reply.token_ids) for reply in replies)
    return np.array(scores).reshape(len(suite.templates), options.variations).mean(axis=1), longest


def main(options: Options) -> None:
    full = load_suite(options.suite)
    model = load_model(options.model)
    inside, _ = accuracies(model, narrow(full, options.share), options, "inside")
    everywhere, longest = accuracies(model, full, options, "everywhere")
    for template, narrow_share, full_share in zip(full.templates, inside, everywhere, strict=True):
        print(f"| {template.id} | {narrow_share:.1%} | {full_share:.1%} |")
    print(f"| mean | {inside.mean():.1%} | {everywhere.mean():.1%} |")
    mixed = np.mean((everywhere > 0.01) & (everywhere < 0.99))
    print(f"templates with both right and wrong replies: {mixed:.0%}; longest reply: {longest} tokens")


if __name__ == "__main__":
    main(tyro.cli(Options))
