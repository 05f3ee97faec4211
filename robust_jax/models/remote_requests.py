"""One request to an OpenAI-compatible server: what is sent, what the reply says, and what a failure means."""

import logging
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import openai

from robust_jax.types import FinishReason, Message, Prompt, Response, Sampling, ServerSettings

_log = logging.getLogger(__name__)

_SURROGATE = re.compile("[\ud800-\udfff]")
_TOO_LONG = re.compile(
    r"context.{0,20}(?:length|size|window)|maximum context|too many (?:input )?tokens|prompt is too long", re.IGNORECASE
)
_FINISH_REASONS: Mapping[str, FinishReason] = {"length": "length", "max_tokens": "length", "content_filter": "filter"}
"""Where the server's word is not ours; any other word means that the model ended its reply."""
OPTIONAL: Mapping[str, str] = {
    "logprobs": "gives no log-probabilities",
    "response_format": "holds no reply to a JSON schema",
    "seed": "takes no seeds, so that drawn replies cannot be repeated",
    "stop": "takes no stop texts, so that replies are cut here",
    "top_k": "takes no top_k, so that replies are drawn from all tokens",
    "top_p": "takes no top_p, so that replies are drawn from all tokens",
    "temperature": "takes no temperature, so that replies are drawn at its own",
    "max_tokens": "calls the longest reply max_completion_tokens",
    "reasoning_effort": "cannot be told how long to think",
    "system": "takes no system message, so that it stands before the question",
}
"""What a request may do without, and what is said where a server refuses it."""
_INVALID = re.compile(r"validation error|(?:not |un)supported|invalid", re.IGNORECASE)
"""What tells a refusal from a breakdown where a server answers both with status 500."""
_SPELLINGS: Mapping[str, str] = {"system": r"system (?:role|message|prompt)", "logprobs": r"log_?prob\w*"}
"""How a refusal may name what it refuses, where that is not the field's own name."""


class Refusal(Exception):
    """A failure that no repetition mends; its text says why."""


class Unfit(Refusal):
    """The prompt does not fit into the model's context."""


class Fatal(Refusal):
    """A failure that every other request would meet too."""


class Passing(Exception):
    """A failure that may be over at the next try.

    Args:
        reason: what failed.
        wait: seconds that the server asks to wait, if it does.
    """

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


@dataclass
class Endpoint:
    """One model behind one server, with what has been found out about it."""

    name: str
    settings: ServerSettings
    refused: set[str] = field(default_factory=set)
    """Those of `OPTIONAL` that the server has refused."""

    async def ask(self, client: openai.AsyncOpenAI, prompt: Prompt, sampling: Sampling, **extra: object) -> Response:
        """The reply to one prompt, by one request and those that leave out what the server refuses.

        Args:
            client: the connection.
            prompt: what is asked.
            sampling: how the reply is drawn.
            extra: further fields of the request.

        Raises:
            Passing: the request failed, and may succeed if it is repeated.
            Refusal: it failed for good.
        """
        while True:
            fields = self._fields(prompt, sampling) | extra
            try:
                reply = await self._send(client, fields)
                break
            except openai.APIStatusError as error:
                if not self._leave_out(error, fields):
                    raise failure(error) from error
            except (openai.APIError, ValueError, TypeError, AttributeError, OSError) as error:
                # The client itself stumbles over a reply that is no JSON, or JSON of another shape.
                raise Passing(f"{type(error).__name__}: {one_line(str(error))}") from error
        return read_reply(reply, sampling, cut_at=sampling.stop if "stop" in self.refused else ())

    async def _send(self, client: openai.AsyncOpenAI, fields: Mapping[str, Any]) -> object:
        if self.settings.endpoint == "chat":
            return await client.chat.completions.create(model=self.name, **fields)
        return await client.completions.create(model=self.name, **fields)

    def _fields(self, prompt: Prompt, sampling: Sampling) -> dict[str, object]:
        """The fields of a request, without those that the server has refused."""
        fields: dict[str, object] = {"temperature": sampling.temperature, "seed": sampling.seed % 2**31}
        if self.settings.endpoint == "chat":
            fields |= {"messages": _messages(prompt, has_system="system" not in self.refused), "logprobs": True}
        else:
            fields |= {"prompt": _sendable(prompt.raw or ""), "logprobs": 0}
        if sampling.stop:
            fields["stop"] = [_sendable(text) for text in sampling.stop]
        if sampling.top_p < 1:
            fields["top_p"] = sampling.top_p
        if sampling.top_k and "top_k" not in self.refused:
            fields["extra_body"] = {"top_k": sampling.top_k}
        if prompt.schema is not None and self.settings.endpoint == "chat":
            schema = {"name": "reply", "strict": True, "schema": dict(prompt.schema)}
            fields["response_format"] = {"type": "json_schema", "json_schema": schema}
        if sampling.effort is not None:
            fields["reasoning_effort"] = sampling.effort
        longest = "max_completion_tokens" if "max_tokens" in self.refused else "max_tokens"
        allowed = {name: value for name, value in fields.items() if name not in self.refused}
        return {**allowed, longest: sampling.max_tokens}

    def _leave_out(self, error: openai.APIStatusError, fields: Mapping[str, object]) -> bool:
        """Whether the server refuses something that a request can do without; it is never sent again then."""
        said = f"{error.param or ''} {error.message} {error.body or ''}"
        if error.status_code not in (400, 422, 501) and not (error.status_code == 500 and _INVALID.search(said)):
            return False
        sent = {"top_k"} & set(fields.get("extra_body") or ()) | set(fields)  # type: ignore[call-overload]
        if any(message["role"] == "system" for message in fields.get("messages") or ()):  # type: ignore[attr-defined]
            sent.add("system")
        for name, consequence in OPTIONAL.items():
            if name in sent and re.search(rf"\b{_SPELLINGS.get(name, name)}\b", said, re.IGNORECASE):
                if name not in self.refused:
                    self.refused.add(name)
                    _log.warning("%s: the server %s", self.name, consequence)
                return True
        return False


def _messages(prompt: Prompt, has_system: bool) -> list[dict[str, str]]:
    messages = list(prompt.messages)
    if not has_system and len(messages) > 1 and messages[0].role == "system":
        system, first, *rest = messages
        messages = [Message(first.role, f"{system.content}\n\n{first.content}"), *rest]
    return [{"role": message.role, "content": _sendable(message.content)} for message in messages]


def _sendable(text: str) -> str:
    """The text as UTF-8 can hold it: half a character, which a reply may have held, has no encoding."""
    return _SURROGATE.sub("\ufffd", text)


# --------------------------------------------------------------------------------------------------
# Replies


def read_reply(reply: Any, sampling: Sampling, cut_at: tuple[str, ...] = ()) -> Response:
    """A server's reply, of either endpoint.

    Raises:
        Passing: it is not what the interface promises.
    """
    choices = getattr(reply, "choices", None)
    if not isinstance(choices, list) or not choices:
        raise Passing(f"the reply holds no choices: {one_line(str(reply))}")
    choice = choices[0]
    message = getattr(choice, "message", None)
    text = getattr(choice, "text", None) if message is None else _content(message)
    reasoning = getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None)
    if not isinstance(text, str):
        # A model that spends all its tokens on thinking has no content.
        if not isinstance(reasoning, str) and getattr(choice, "finish_reason", None) != "content_filter":
            raise Passing("the reply holds no text")
        text = ""
    ends = [position for stop in cut_at if (position := text.find(stop)) >= 0]
    usage = getattr(reply, "usage", None)
    return Response(
        text=text[: min(ends)] if ends else text,
        finish_reason="stop" if ends else _FINISH_REASONS.get(str(getattr(choice, "finish_reason", "")), "stop"),
        prompt_tokens=_count(getattr(usage, "prompt_tokens", None)) or 0,
        completion_tokens=_count(getattr(usage, "completion_tokens", None)) or 0,
        reasoning=reasoning if isinstance(reasoning, str) else "",
        log_probability=_log_probability(getattr(choice, "logprobs", None)),
    )


def _content(message: Any) -> object:
    """A message's text; where it has parts, those that are text; where the model refuses, what it says."""
    content = getattr(message, "content", None)
    if isinstance(content, list):
        parts = [part.get("text") if isinstance(part, dict) else getattr(part, "text", None) for part in content]
        content = "".join(part for part in parts if isinstance(part, str))
    return content if content or not getattr(message, "refusal", None) else message.refusal


def _count(number: object) -> int | None:
    return number if isinstance(number, int) and not isinstance(number, bool) and number >= 0 else None


def _log_probability(found: Any) -> float | None:
    """The mean over the reply's tokens."""
    if found is None:
        return None
    tokens = getattr(found, "content", None)
    values = [getattr(token, "logprob", None) for token in tokens] if isinstance(tokens, list) else None
    values = getattr(found, "token_logprobs", None) if values is None else values
    numbers = [value for value in values or () if isinstance(value, (int, float)) and math.isfinite(value)]
    return math.fsum(numbers) / len(numbers) if numbers else None


# --------------------------------------------------------------------------------------------------
# Failures


def failure(error: openai.APIStatusError) -> Exception:
    """What an error status means: Passing, Unfit, Fatal or Refusal."""
    reason = f"status {error.status_code}: {one_line(error.message)}"
    if error.status_code in (401, 403):
        return Fatal(f"the server refuses the key ({reason}): put the right one into OPENAI_API_KEY")
    if error.status_code == 404:
        return Fatal(f"the server does not know the model, or the address is wrong ({reason})")
    if error.status_code == 429 and error.code == "insufficient_quota":
        return Fatal(f"the account is used up ({reason})")
    if error.status_code in (408, 409, 425, 429) or error.status_code >= 500:
        return Passing(reason, retry_after(error.response.headers))
    if error.code == "context_length_exceeded" or _TOO_LONG.search(error.message):
        return Unfit(reason)
    return Refusal(reason)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds that a server asks to wait: `retry-after-ms`, or `retry-after` as seconds or as a date."""
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) * scale
        except (KeyError, ValueError):
            continue
        return max(0.0, seconds) if math.isfinite(seconds) else None
    try:
        moment = parsedate_to_datetime(headers["retry-after"])
    except (KeyError, ValueError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def one_line(text: str) -> str:
    """The beginning of a server's message, on one line."""
    words = " ".join(text.split())
    return words if len(words) <= 300 else words[:300] + " …"
