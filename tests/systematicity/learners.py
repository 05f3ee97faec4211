"""Stand-ins for models whose success the tests know, and runs with them."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from robust_jax.cli import main
from robust_jax.models import register_mock
from robust_jax.randomness import rng
from robust_jax.runs import SAMPLES_FILE, SampleStore
from robust_jax.systematicity.mocks import LearnerModel, ideal
from robust_jax.types import FeatureRequest, Prompt, Response, Sampling


class Coin(LearnerModel):
    """Knows the answers and gives them by the toss of a coin that hangs on the attempt alone; errs now and then."""

    def __init__(self, rate: float = 0.6, error_rate: float = 0.0, dies_after: int | None = None) -> None:
        super().__init__("mock:coin", ideal)
        self.rate, self.error_rate, self.dies_after = rate, error_rate, dies_after
        self.asked = 0

    def respond(
        self,
        prompts: Sequence[Prompt],
        sampling: Sampling | Sequence[Sampling],
        features: FeatureRequest = FeatureRequest(),
        on_reply: Callable[[int], None] | None = None,
    ) -> list[Response]:
        assert not isinstance(sampling, Sampling)
        self.asked += len(prompts)
        if self.dies_after is not None and self.asked > self.dies_after:
            raise KeyboardInterrupt
        right = super().respond(prompts, sampling, features, on_reply)
        return [self._toss(response, one.seed) for response, one in zip(right, sampling, strict=True)]

    def _toss(self, right: Response, seed: int) -> Response:
        toss = rng(seed, "coin").random()
        if toss < self.error_rate:
            return Response("", finish_reason="error", message="the line is down")
        return right if toss < self.error_rate + self.rate else Response("No idea.", prompt_tokens=5)


def use(model: LearnerModel) -> LearnerModel:
    """Make a model known under its name."""
    register_mock(model.name.removeprefix("mock:"), lambda: model)
    return model


def run(out: Path, *words: str, model: str = "mock:ideal", code: int = 0) -> dict[str, Any]:
    """What `systematicity run` finds."""
    assert main(["systematicity", "run", "--model", model, "--out", str(out), *words]) == code
    return read(out) if code == 0 else {}


def read(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "results.json").read_text(encoding="utf-8"))
    return found


def tasks_of(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "tasks.jsonl").read_text(encoding="utf-8").splitlines()]


def samples_of(out: Path) -> SampleStore:
    return SampleStore(out / SAMPLES_FILE)
