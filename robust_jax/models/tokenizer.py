"""Text to token ids and back, and how a prompt becomes the text a model was trained on."""

import os
from collections.abc import Sequence
from pathlib import Path

from robust_jax.errors import InputError
from robust_jax.types import Prompt

# Without torch, transformers warns that models will not be available: here it only ever tokenises.
os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")


class TextTokenizer:
    """A checkpoint's tokenizer with its chat template, if it has one."""

    def __init__(self, directory: Path):
        from transformers import AutoTokenizer  # Takes over a second to import.

        try:
            self._tokenizer = AutoTokenizer.from_pretrained(str(directory), local_files_only=True)
        except (OSError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"{directory} has no tokenizer that can be loaded: {reason}") from None

    @property
    def has_chat_template(self) -> bool:
        return self._tokenizer.chat_template is not None

    def prompt_text(self, prompt: Prompt) -> str:
        """What the model reads: the chat template's text, or the prompt's raw form for a model without one.

        Raises:
            InputError: the model has no chat template and the prompt no raw form.
        """
        if self.has_chat_template and prompt.messages:
            messages = [message._asdict() for message in prompt.messages]
            text: str = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
            return text
        if prompt.raw is None:
            raise InputError("this model has no chat template; ask it with plain-text prompts")
        return prompt.raw

    def encode_prompts(self, prompts: Sequence[Prompt]) -> list[list[int]]:
        """Token ids of whole prompts. A chat template writes its own BOS, so none is added to it."""
        texts = [self.prompt_text(prompt) for prompt in prompts]
        is_plain = not self.has_chat_template or not any(prompt.messages for prompt in prompts)
        return self.encode(texts, special_tokens=is_plain)

    def encode(self, texts: Sequence[str], *, special_tokens: bool = False) -> list[list[int]]:
        """Token ids of bare texts; `special_tokens` adds what the tokenizer puts round a text, such as BOS."""
        if not texts:
            return []
        ids: list[list[int]] = self._tokenizer(list(texts), add_special_tokens=special_tokens)["input_ids"]
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text
