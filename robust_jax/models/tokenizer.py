"""Text to token ids and back, and how a prompt becomes the text a model was trained on."""

import os
import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from robust_jax.errors import InputError
from robust_jax.types import Message, Prompt

# Without torch, transformers warns that models will not be available: here it only ever tokenises.
os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")

CHAT_DATE = date(2024, 7, 26)
"""Some chat templates tell the model today's date; they get this one, so that a reply is the same tomorrow."""

DATE_CALL = re.compile(r"""strftime_now\(\s*(["'])(?P<form>[^"'\\]*)\1\s*\)""")
DATE_QUESTION = re.compile(r"strftime_now\s+is\s+(not\s+)?defined")


def load_tokenizer(directory: Path) -> Any:
    """The `transformers` tokenizer of a checkpoint directory.

    Raises:
        InputError: it has none that can be loaded; one that brings its own code is never run.
    """
    from transformers import AutoTokenizer  # Takes over a second to import.

    try:
        return AutoTokenizer.from_pretrained(str(directory), local_files_only=True, trust_remote_code=False)
    except Exception as error:  # A damaged file may end in any.
        reason = (str(error).splitlines() or [""])[0].rstrip(":")
        message = f"{directory} has no tokenizer that can be loaded: {type(error).__name__}: {reason}"
        raise InputError(message) from None


class TextTokenizer:
    """A model's tokenizer with its chat template, if it has one."""

    def __init__(self, tokenizer: Any):
        """Wrap a `transformers` tokenizer.

        Raises:
            InputError: its chat template is none, or asks for the date in a way that cannot be pinned.
        """
        self._tokenizer = tokenizer
        self._template = None if tokenizer.chat_template is None else pinned(chat_template(tokenizer))

    @property
    def largest_id(self) -> int:
        """The largest id that text can lead to; special tokens, such as one for padding, may have larger ones."""
        special = set(self._tokenizer.all_special_ids)
        return max((token for token in self._tokenizer.get_vocab().values() if token not in special), default=0)

    @property
    def has_chat_template(self) -> bool:
        return self._template is not None

    def prompt_text(self, prompt: Prompt) -> str:
        """What the model reads: the chat template's text, or the prompt's raw form for a model without one.

        Raises:
            InputError: the model has no chat template and the prompt no raw form, or the template refuses the prompt.
        """
        if self.is_chat(prompt):
            messages = [message._asdict() for message in prompt.messages]
            try:
                text: str = self._tokenizer.apply_chat_template(
                    messages, chat_template=self._template, tokenize=False, add_generation_prompt=True
                )
            except Exception as error:  # What a checkpoint's author wrote may raise any.
                raise InputError(f"the model's chat template refuses the prompt: {error}") from None
            return text
        if prompt.raw is None:
            raise InputError("this model has no chat template; ask it with plain-text prompts")
        return prompt.raw

    def encode_prompts(self, prompts: Sequence[Prompt]) -> list[list[int]]:
        """Token ids of whole prompts, with at most one BOS to begin with: a chat template writes its own."""
        ids: list[list[int]] = [[] for _ in prompts]
        for is_chat in (True, False):
            places = [place for place, prompt in enumerate(prompts) if self.is_chat(prompt) == is_chat]
            texts = [self.prompt_text(prompts[place]) for place in places]
            for place, encoded in zip(places, self.encode(texts, special_tokens=not is_chat), strict=True):
                begins_twice = encoded[:2] == [self._tokenizer.bos_token_id] * 2
                ids[place] = encoded[1:] if begins_twice else encoded
        return ids

    def encode(self, texts: Sequence[str], *, special_tokens: bool = False) -> list[list[int]]:
        """Token ids of bare texts; `special_tokens` adds what the tokenizer puts round a text, such as BOS."""
        if not texts:
            return []
        ids: list[list[int]] = self._tokenizer(list(texts), add_special_tokens=special_tokens)["input_ids"]
        return ids

    def last_characters(self, text: str, *, special_tokens: bool = False) -> list[int]:
        """Where in a bare text the last character of each of its tokens stands; −1 for what is put round the text."""
        encoded = self._tokenizer(text, add_special_tokens=special_tokens, return_offsets_mapping=True)
        return [end - 1 for _, end in encoded["offset_mapping"]]

    def prompt_last_characters(self, prompt: Prompt) -> list[int]:
        """The same for the tokens of a whole prompt, in `prompt_text`."""
        (ids,) = self.encode_prompts([prompt])
        places = self.last_characters(self.prompt_text(prompt), special_tokens=not self.is_chat(prompt))
        return places[len(places) - len(ids) :]  # Without a second BOS.

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text

    def written(self, ids: Sequence[int]) -> str:
        """The text of tokens, special ones included."""
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return text

    def stop_token(self, prompt: Prompt, candidates: Sequence[int]) -> int:
        """Which of a model's stop tokens ends its reply to such a prompt.

        A chat template says so itself, by what it puts behind a reply; plain text ends in the tokenizer's EOS.

        Raises:
            InputError: the model has no stop token, or the template puts none behind a reply.
        """
        if self.is_chat(prompt):
            reply = Message("assistant", "42")
            messages = [message._asdict() for message in (*prompt.messages, reply)]
            text: str = self._tokenizer.apply_chat_template(messages, chat_template=self._template, tokenize=False)
            behind = self.encode([text.rpartition(reply.content)[2]])[0]
            written = [token for token in behind if token in candidates]
            if not written:
                raise InputError("the model's chat template ends a reply with none of the model's stop tokens")
            return written[0]
        if not candidates:
            raise InputError("the model's configuration names no stop token (eos_token_id)")
        eos = self._tokenizer.eos_token_id
        return eos if eos in candidates else candidates[0]

    def save(self, directory: Path) -> None:
        """Write the tokenizer's files, as `load_tokenizer` and `transformers` read them."""
        self._tokenizer.save_pretrained(str(directory))

    def is_chat(self, prompt: Prompt) -> bool:
        """Whether the prompt is put in the chat template's form."""
        return self.has_chat_template and bool(prompt.messages)


def chat_template(tokenizer: Any) -> str:
    """The chat template of a tokenizer that has one.

    Raises:
        InputError: it is no text, or there are several and none is the default.
    """
    try:
        template = tokenizer.get_chat_template()
    except ValueError as error:
        raise InputError(f"the model has no default chat template: {str(error).splitlines()[0]}") from None
    if not isinstance(template, str):
        raise InputError("the model's chat template is no text")
    return template


def pinned(template: str) -> str:
    """A chat template with today's date, wherever it is asked for, replaced by `CHAT_DATE`.

    Raises:
        InputError: the date is asked for in a way that this does not see through.
    """
    fixed = DATE_CALL.sub(lambda call: repr(CHAT_DATE.strftime(call["form"])), template)
    if "strftime_now" in DATE_QUESTION.sub("", fixed):
        raise InputError("the model's chat template computes with today's date, which is not supported")
    return fixed
