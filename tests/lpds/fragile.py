"""A stand-in model that adds two numbers and fails where both are large, so that a search has something to find.

Run as a script it is the command line with that model known as `mock:fragile`; FRAGILE_DELAY slows every reply down,
so that the process can be killed in the middle of its work, and FRAGILE_KILL=n kills it at its n-th batch.
"""

import os
import re
import signal
import sys
import time
from collections.abc import Callable, Sequence

import numpy as np

from robust_jax.models import register_mock
from robust_jax.types import (
    Capabilities,
    FeatureRequest,
    ModelDefaults,
    Prompt,
    Response,
    Sampling,
    TokenStatistics,
)

WIDTH = 6

SUITE = """
name: adding
description: Sums of two numbers.
grading: exact
templates:
  - id: marbles
    question: "{name} has {a} marbles and finds {b} more. How many marbles does {name} have?"
    solution: |-
      {name} has {a} + {b} = {a + b} marbles.
      #### {a + b}
    slots:
      name: {choice: [Ava, Omar, Mei, Diego]}
      a: {range: [2, 60]}
      b: {range: [2, 60]}
    answer: a + b
    base: {name: Ava, a: 3, b: 4}
  - id: stamps
    question: "There are {a} red and {b} blue stamps. How many stamps are there?"
    solution: |-
      There are {a} + {b} = {a + b} stamps.
      #### {a + b}
    slots:
      a: {range: [2, 60]}
      b: {range: [2, 60]}
    answer: a + b
    base: {a: 5, b: 6}
"""


class Fragile:
    """Right where the product of the two numbers is below a limit; its hidden states drift away beyond it."""

    name = "mock:fragile"
    digest = ""
    capabilities = Capabilities(hidden_states=True, statistics=True, embeddings=True)
    num_layers = 3
    defaults = ModelDefaults(shots=0, max_tokens=50)

    def __init__(self, limit: int = 1800, delay: float = 0.0, kill_at: int = 0) -> None:
        self.limit = limit
        self.delay = delay
        self.kill_at = kill_at
        self.asked = 0
        self.batches = 0

    def respond(
        self,
        prompts: Sequence[Prompt],
        sampling: Sampling | Sequence[Sampling],
        features: FeatureRequest = FeatureRequest(),
        on_reply: Callable[[int], None] | None = None,
    ) -> list[Response]:
        replies = []
        self.batches += 1
        if self.batches == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        for index, prompt in enumerate(prompts):
            time.sleep(self.delay)
            self.asked += 1
            a, b = self.numbers(prompt.problem)
            wrong = a * b > self.limit
            total = a + b + (10 if wrong else 0)
            hidden = self.hidden(a, b, features, drift=4 * a * b / self.limit if wrong else 0)
            text = f" There are {a} + {b} = {total}.\n#### {total}"
            statistics = TokenStatistics(-0.1 - 0.001 * a, 0.2, 1.0 + 0.001 * b)
            replies.append(Response(text, tuple(range(9)), "stop", 20, hidden, statistics))
            if on_reply:
                on_reply(index)
        return replies

    def score(
        self, prompts: Sequence[Prompt], continuations: Sequence[str], features: FeatureRequest = FeatureRequest()
    ) -> list[Response]:
        return [
            Response(
                text,
                hidden=self.hidden(*self.numbers(prompt.problem), features) if prompt.problem else None,
                statistics=TokenStatistics(-1.0, 0.5, 0.1),
            )
            for prompt, text in zip(prompts, continuations, strict=True)
        ]

    def tokenize(self, text: str) -> list[int]:
        return list(text.encode())

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        rows = []
        for text in texts:
            a, b = self.numbers(text)
            rows.append([a / 60, b / 60, a * b / 3600, len(text) / 100, a % 10, b % 10])
        return np.array(rows, np.float32)

    @staticmethod
    def hidden(a: int, b: int, features: FeatureRequest, drift: float = 0.0) -> np.ndarray:
        """One row a layer; each layer's drift is half of the next one's."""
        rows = [
            np.random.default_rng([a, b, layer]).normal(drift * 2.0 ** (layer - 2), size=WIDTH)
            for layer in features.layers
        ]
        return np.array(rows, np.float32).reshape(len(rows), WIDTH)

    @staticmethod
    def numbers(text: str) -> tuple[int, int]:
        a, b = map(int, re.findall(r"\d+", text))
        return a, b


if __name__ == "__main__":
    from robust_jax.cli import main

    settings = os.environ.get
    stand_in = Fragile(delay=float(settings("FRAGILE_DELAY", "0")), kill_at=int(settings("FRAGILE_KILL", "0")))
    register_mock("fragile", lambda: stand_in)
    sys.exit(main())
