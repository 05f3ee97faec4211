"""Text that says nothing of use, as long as it has to be."""

from typing import Protocol, runtime_checkable

from robust_jax.errors import InputError
from robust_jax.rrb.prompts import preceded_prompt, problem_prompt
from robust_jax.types import Model, Sample, Sampling

_SENTENCES = (
    "The path leads along the river and past a row of old trees.",
    "In the morning the light falls softly on the roofs of the village.",
    "A bird sits on the fence and looks across the quiet garden.",
    "The baker opens the shop, and the smell of fresh bread drifts down the street.",
    "Clouds move slowly over the hills while the wind stirs the tall grass.",
    "Somebody has left a blue umbrella by the door of the library.",
    "The cat stretches on the warm stones and goes back to sleep.",
    "Children walk home from school and talk about the coming holidays.",
    "A boat lies at the shore, and its paint has faded in the sun.",
    "The evening is calm, and lamps begin to shine behind the windows.",
)
_PASSAGE = " ".join(_SENTENCES) + " "
SHORT, LONG = 400, 8400
"""Characters of the two texts that a server is asked to count the tokens of."""


def neutral_text(characters: int) -> str:
    """So many characters of a passage that begins again whenever it ends."""
    return (_PASSAGE * (characters // len(_PASSAGE) + 1))[:characters]


@runtime_checkable
class Meter(Protocol):
    """Measures what stands before a problem by a model's tokens."""

    def tokens(self, before: str, behind_it: Sample, alone: Sample) -> float:
        """Tokens of a text, from a problem that was asked behind it and the same problem asked alone."""

    def neutral(self, tokens: float) -> str:
        """Neutral text of so many tokens, as exactly as whole characters allow."""


def meter(model: Model) -> Meter:
    """How to measure by a model's tokens.

    Raises:
        InputError: it is behind a server that does not say how many tokens a prompt has.
    """
    return UsageMeter(model) if not model.capabilities.tokenizer else TokenizerMeter(model)


class TokenizerMeter:
    """Counts with the model's own tokenizer."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def tokens(self, before: str, behind_it: Sample, alone: Sample) -> float:
        return float(len(self._model.tokenize(before)))

    def neutral(self, tokens: float) -> str:
        low, high = 0, 8
        while self._count(high) < tokens:
            low, high = high, 2 * high
        while low + 1 < high:
            middle = (low + high) // 2
            low, high = (middle, high) if self._count(middle) <= tokens else (low, middle)
        return neutral_text(min((low, high), key=lambda length: abs(self._count(length) - tokens)))

    def _count(self, characters: int) -> int:
        return len(self._model.tokenize(neutral_text(characters)))


class UsageMeter:
    """Goes by the prompt tokens that a server counts.

    Neutral text repeats itself, so that its tokens grow evenly with its characters: two short requests tell how fast,
    and a third how many tokens belong to neither text nor problem.
    """

    def __init__(self, model: Model) -> None:
        problem = "What is 1 + 1?"
        prompts = [preceded_prompt(neutral_text(length), problem) for length in (SHORT, LONG)]
        short, long, alone = model.respond([*prompts, problem_prompt(problem)], Sampling(max_tokens=1))
        self._tokens_a_character = (long.prompt_tokens - short.prompt_tokens) / (LONG - SHORT)
        if self._tokens_a_character <= 0:
            raise InputError(f"{model.name}: the server does not count prompt tokens: give --controls off")
        self._between = short.prompt_tokens - alone.prompt_tokens - SHORT * self._tokens_a_character

    def tokens(self, before: str, behind_it: Sample, alone: Sample) -> float:
        return float(behind_it.prompt_tokens - alone.prompt_tokens - self._between)

    def neutral(self, tokens: float) -> str:
        return neutral_text(max(0, round(tokens / self._tokens_a_character)))
