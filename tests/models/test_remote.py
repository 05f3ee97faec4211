"""A model behind a server: what is sent, what comes back, and that faults of the server lose and double nothing."""

import json
import logging
import queue
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from robust_jax.errors import InputError, RunError
from robust_jax.models import load_model, model_defaults
from robust_jax.models.remote import RemoteModel
from robust_jax.models.remote_requests import retry_after
from robust_jax.types import Message, Prompt, Response, Sampling, ServerSettings
from tests.models.faulty_server import FAULTS, FaultyServer, Request, asked, completion, random_faults, serving

GREEDY = Sampling()
PROMPT = Prompt((Message("system", "Be brief."), Message("user", "How many?")), raw="Question: How many?\nAnswer:")


def model_at(server: FaultyServer, **settings: object) -> RemoteModel:
    return RemoteModel("openai:m", ServerSettings(base_url=server.url, **settings))  # type: ignore[arg-type]


def prompts(count: int) -> list[Prompt]:
    return [Prompt((Message("user", f"number {number}"),)) for number in range(count)]


def one(server: FaultyServer, prompt: Prompt = PROMPT, sampling: Sampling = GREEDY, **settings: object) -> Response:
    (response,) = model_at(server, **settings).respond([prompt], sampling)
    return response


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("robust_jax.models.remote_pool.FIRST_PAUSE", 0.001)


# --------------------------------------------------------------------------------------------------
# One request


def test_what_is_sent() -> None:
    with serving(FaultyServer()) as server:
        sampling = Sampling(max_tokens=9, temperature=0.5, top_p=0.9, top_k=7, seed=3, stop=("END",))
        one(server, sampling=sampling)
        one(server, Prompt(PROMPT.messages, schema={"type": "object"}))
    first, second = server.requests
    assert first["model"] == "m"
    assert first["messages"] == [{"role": m.role, "content": m.content} for m in PROMPT.messages]
    sent = {name: first[name] for name in ("max_tokens", "temperature", "top_p", "top_k", "stop", "logprobs")}
    assert sent == {"max_tokens": 9, "temperature": 0.5, "top_p": 0.9, "top_k": 7, "stop": ["END"], "logprobs": True}
    assert "response_format" not in first and "reasoning_effort" not in first
    assert second["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert not {"top_p", "top_k", "stop"} & second.keys()


def test_the_completions_endpoint_reads_the_plain_form() -> None:
    body = {
        "choices": [{"index": 0, "text": " 42", "finish_reason": "length", "logprobs": {"token_logprobs": [-1, -3]}}]
    }
    with serving(FaultyServer(reply=lambda request: body)) as server:
        response = one(server, endpoint="completions")
    assert server.requests[0]["prompt"] == PROMPT.raw and "messages" not in server.requests[0]
    assert (response.text, response.finish_reason, response.log_probability) == (" 42", "length", -2.0)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (completion("42"), {"text": "42", "finish_reason": "stop", "prompt_tokens": 7, "num_tokens": 3}),
        (completion("4", "length"), {"text": "4", "finish_reason": "length"}),
        (completion(None, "content_filter"), {"text": "", "finish_reason": "filter"}),
        (completion("42", reasoning_content="hm"), {"text": "42", "reasoning": "hm"}),
        (completion(None, "length", reasoning="hm"), {"text": "", "reasoning": "hm", "finish_reason": "length"}),
        (completion(None, refusal="I cannot."), {"text": "I cannot."}),
        (completion([{"type": "text", "text": "4"}, {"type": "text", "text": "2"}]), {"text": "42"}),  # type: ignore[arg-type]
        (completion("\ud835 half"), {"text": "\ud835 half"}),
        ({**completion("42"), "usage": None}, {"text": "42", "prompt_tokens": 0, "num_tokens": 0}),
        ({**completion("42"), "usage": {"prompt_tokens": "x"}}, {"text": "42", "prompt_tokens": 0}),
    ],
)
def test_what_a_reply_says(body: Request, expected: dict[str, object]) -> None:
    with serving(FaultyServer(reply=lambda request: body)) as server:
        response = one(server, retries=0)
    assert {name: getattr(response, name) for name in expected} == expected


def test_log_probabilities_are_averaged() -> None:
    tokens = [{"token": "a", "logprob": -0.5, "bytes": None, "top_logprobs": []} for _ in range(2)]
    body = completion("aa")
    body["choices"][0]["logprobs"] = {"content": [*tokens, {**tokens[0], "logprob": -2.0}]}
    with serving(FaultyServer(reply=lambda request: body)) as server:
        assert one(server).log_probability == pytest.approx(-1.0)


def test_half_a_character_in_a_prompt_can_be_sent() -> None:
    with serving(FaultyServer()) as server:
        one(server, Prompt((Message("user", "a \ud835 b"),)))
    assert asked(server.requests[0]) == "a \ufffd b"


def test_the_key_comes_from_the_environment_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    with serving(FaultyServer()) as server:
        monkeypatch.setattr("openai.AsyncOpenAI.__init__", _noting(seen))
        one(server)
    assert seen == ["sk-test"]


def _noting(seen: list[str]) -> Callable[..., None]:
    import openai

    original = openai.AsyncOpenAI.__init__

    def init(self: object, **options: object) -> None:
        seen.append(str(options["api_key"]))
        original(self, **options)  # type: ignore[arg-type]

    return init


# --------------------------------------------------------------------------------------------------
# What a server cannot do is found out once and said


@pytest.mark.parametrize("status", [400, 422, 500])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("seed", "invalid request: Unrecognized request argument supplied: seed"),
        ("logprobs", "Invalid: this model gives no log probs: log_probs"),
        ("temperature", "Unsupported value: 'temperature' does not support 0.0 with this model"),
        ("stop", "stop is not supported"),
        ("top_k", "1 validation error: extra fields not permitted: top_k"),
        ("response_format", "response_format json_schema is not supported"),
        ("reasoning_effort", "1 validation error for body: unknown field reasoning_effort"),
    ],
)
def test_what_is_refused_is_left_out_and_said_once(
    name: str, message: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Some servers answer what they do not take with status 500."""

    def fault(request: Request, number: int) -> str:
        return f"{status} {message}" if name in request else ""

    prompt = Prompt(PROMPT.messages, schema={"type": "object"})
    sampling = Sampling(temperature=0.0, top_k=3, stop=("STOP",), effort="low")
    with serving(FaultyServer(reply=lambda r: completion("aSTOPb"), fault=fault)) as server:
        model = model_at(server, concurrency=1)
        with caplog.at_level(logging.WARNING):
            responses = model.respond([prompt] * 3, sampling)
    assert [r.finish_reason for r in responses] == ["stop"] * 3
    assert [r.text for r in responses] == ["a" if name == "stop" else "aSTOPb"] * 3
    assert sum(name in request for request in server.requests) == 1 and len(server.requests) == 4
    assert len(caplog.records) == 1


def test_another_name_for_the_longest_reply() -> None:
    message = "Unsupported parameter: 'max_tokens' is not supported, use 'max_completion_tokens' instead."
    fault: Callable[[Request, int], str] = lambda request, number: f"400 {message}" if "max_tokens" in request else ""  # noqa: E731
    with serving(FaultyServer(fault=fault)) as server:
        assert one(server, sampling=Sampling(max_tokens=5)).text == "Hello."
    assert server.requests[-1]["max_completion_tokens"] == 5


def test_a_server_without_system_messages_gets_them_in_the_question() -> None:
    def fault(request: Request, number: int) -> str:
        return "400 System role not supported" if request["messages"][0]["role"] == "system" else ""

    with serving(FaultyServer(fault=fault)) as server:
        assert one(server).text == "Hello."
    assert server.requests[-1]["messages"] == [{"role": "user", "content": "Be brief.\n\nHow many?"}]


def test_capabilities(caplog: pytest.LogCaptureFixture) -> None:
    def able(request: Request) -> Request:
        body = completion('{"word": "yes"}' if "response_format" in request else "Hello.")
        body["choices"][0]["logprobs"] = {
            "content": [{"token": "x", "logprob": -1.0, "bytes": None, "top_logprobs": []}]
        }
        return body

    with serving(FaultyServer(reply=able)) as server:
        model = model_at(server)
        assert (model.capabilities.log_probabilities, model.capabilities.structured_output) == (True, True)
        assert len(server.hellos) == 2 and not caplog.records
    with serving(FaultyServer()) as server:
        found = model_at(server).capabilities
        assert (found.log_probabilities, found.structured_output, found.hidden_states) == (False, False, False)
        said = " ".join(record.getMessage() for record in caplog.records)
        assert "no log probabilities" in said and "no structured output" in said


def test_a_breakdown_is_no_refusal() -> None:
    """A field that happens to stand in the message of status 500 is not given up."""
    fault: Callable[[Request, int], str] = lambda request, number: "500 temperature sensor, seed" if number < 2 else ""  # noqa: E731
    with serving(FaultyServer(fault=fault)) as server:
        assert one(server, retries=8).text == "Hello."
    assert {"temperature", "seed"} <= server.requests[-1].keys()


def test_a_server_that_breaks_down_over_a_schema_gives_no_structured_output() -> None:
    def fault(request: Request, number: int) -> str:
        return "500 no idea" if "response_format" in request else ""

    with serving(FaultyServer(fault=fault)) as server:
        assert not model_at(server, retries=1).capabilities.structured_output


# --------------------------------------------------------------------------------------------------
# Failures


@pytest.mark.parametrize("fault", FAULTS)
def test_a_passing_fault_is_got_over(fault: str) -> None:
    with serving(FaultyServer(fault=lambda request, number: fault if number < 2 else "")) as server:
        response = one(server, retries=8, request_timeout=2.0 if fault in ("hang", "slow") else 60.0)
    assert (response.text, response.finish_reason) == ("Hello.", "stop")
    assert len(server.requests) >= 3


@pytest.mark.parametrize("fault", FAULTS)
def test_a_lasting_fault_is_an_error_after_so_many_tries(fault: str) -> None:
    with serving(FaultyServer(fault=lambda request, number: fault)) as server:
        response = one(server, retries=2, request_timeout=0.5 if fault in ("hang", "slow") else 60.0)
    assert (response.text, response.finish_reason) == ("", "error")
    assert "3 requests failed" in response.message
    assert len(server.requests) == 3


def test_a_refused_prompt_is_an_error_at_once_and_one_too_long_is_skipped() -> None:
    with serving(FaultyServer(fault=lambda r, n: "400 this content is not allowed")) as server:
        assert one(server).finish_reason == "error" and len(server.requests) == 1
    with serving(FaultyServer(fault=lambda r, n: "400 This model's maximum context length is 9 tokens")) as server:
        assert one(server).finish_reason == "context" and len(server.requests) == 1


def test_retry_after_is_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr("robust_jax.models.remote_pool.asyncio.sleep", sleep)
    with serving(FaultyServer(fault=lambda request, number: "429" if number < 2 else "")) as server:
        assert one(server).text == "Hello."
    assert pauses == [0.05, 0.05]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after-ms": "250", "retry-after": "3"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-5"}, 0.0),
        ({}, None),
    ],
)
def test_spellings_of_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_a_dead_server_ends_the_command() -> None:
    with serving(FaultyServer(fault=lambda request, number: "500")) as server:
        model = model_at(server, retries=1, concurrency=4)
        with pytest.raises(RunError, match="attempts in a row"):
            model.respond(prompts(500), Sampling())
    assert len(server.requests) < 200


@pytest.mark.parametrize(("status", "message"), [("401", "refuses the key"), ("404", "does not know the model")])
def test_what_every_request_would_meet_ends_the_command(status: str, message: str) -> None:
    with serving(FaultyServer(fault=lambda request, number: status)) as server:
        with pytest.raises(RunError, match=message):
            model_at(server).respond(prompts(50), Sampling())
        with pytest.raises(InputError, match=message):
            _ = model_at(server).capabilities


def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    model = RemoteModel("openai:m", ServerSettings(base_url="http://127.0.0.1:9/v1"))
    with pytest.raises(InputError, match="gives no reply"):
        _ = model.capabilities


def test_time_limit_and_spending_cap(tmp_path: Path) -> None:
    table = tmp_path / "prices.yaml"
    table.write_text("m: {input: 1000, output: 2000}\n")
    # A reply costs 7 · 0.001 + 3 · 0.002 = 0.013 dollars.
    with serving(FaultyServer()) as server:
        model = model_at(server, concurrency=2, prices=table, spending_cap=0.1)
        came: list[tuple[int, Response]] = []
        with pytest.raises(RunError, match="raise --spending-cap"):
            for arrived in model.stream(prompts(100), [Sampling()] * 100):
                came += arrived
        assert len(came) == len(server.requests) == model.usage.replies < 100
        assert str(model.usage).startswith(f"{len(came)} replies, {7 * len(came)} tokens of prompts")
        assert model.usage.dollars == pytest.approx(0.013 * len(came)) and model.usage.dollars >= 0.1
    with serving(FaultyServer(fault=lambda r, n: "hang" if asked(r) != "number 0" else "")) as server:
        model, came = model_at(server, concurrency=2, time_limit=1.0), []
        with pytest.raises(RunError, match="time limit"):
            for arrived in model.stream(prompts(9), [Sampling()] * 9):
                came += arrived
        assert [index for index, _ in came] == [0]


def test_stopping_takes_what_has_come_and_no_more() -> None:
    with serving(FaultyServer(fault=lambda r, n: "hang" if int(asked(r).split()[1]) >= 5 else "")) as server:
        model = model_at(server, concurrency=3)
        came: list[int] = []
        stopped: list[float] = []

        def should_stop() -> bool:
            if len(came) >= 5:
                stopped.append(time.monotonic())
            return bool(stopped)

        for arrived in model.stream(prompts(100), [GREEDY] * 100, should_stop):
            came += [index for index, _ in arrived]
    assert sorted(came) == [0, 1, 2, 3, 4]
    assert len(server.requests) <= 8  # Three may have been on their way.


def test_a_burst_of_faults_loses_and_doubles_nothing() -> None:
    count = 200
    # Hanging takes time: it is tried by itself, above.
    quick_faults = tuple(fault for fault in FAULTS if fault not in ("hang", "slow", "429 with a date"))
    faults = random_faults(0.3, kinds=quick_faults)
    with serving(FaultyServer(reply=lambda r: completion(f"got {asked(r)}"), fault=faults)) as server:
        model = model_at(server, concurrency=32, retries=30, request_timeout=3.0)
        responses = model.respond(prompts(count), Sampling())
    assert [response.text for response in responses] == [f"got number {number}" for number in range(count)]
    assert server.most_at_once <= 32 * 2  # One that was given up here may not be over there.
    assert model.usage.replies == count


def test_a_thread_that_takes_its_time_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its last word and its end, its loop is closed already."""

    class Lingering(queue.SimpleQueue):  # type: ignore[type-arg]
        def put(self, item: object, *words: object) -> None:
            super().put(item)
            if item is None:
                time.sleep(0.3)

    monkeypatch.setattr("robust_jax.models.remote_pool.queue.SimpleQueue", Lingering)
    with serving(FaultyServer()) as server:
        assert [r.text for r in model_at(server).respond(prompts(3), GREEDY)] == ["Hello."] * 3


def test_attempts_have_seeds_of_their_own() -> None:
    with serving(FaultyServer()) as server:
        model_at(server).respond([PROMPT] * 5, Sampling(seed=1))
        model_at(server).respond([PROMPT] * 5, Sampling(seed=1))
    seeds = [request["seed"] for request in server.requests]
    assert len(set(seeds)) == 5 and sorted(seeds[:5]) == sorted(seeds[5:])


# --------------------------------------------------------------------------------------------------
# Names and options


@pytest.mark.parametrize(
    ("spec", "settings", "message"),
    [
        ("openai:", {}, "wants the name"),
        ("openai:m", {}, "say where its server is"),
        ("openai:m", {"base_url": "http://x", "spending_cap": 1.0}, "--spending-cap needs --prices"),
        ("openai:m", {"base_url": "http://x", "prices": Path("/nowhere")}, "cannot be read"),
    ],
)
def test_bad_settings(spec: str, settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_model(spec, server=ServerSettings(**settings))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "content", ["", "other: {input: 1, output: 1}", "m: 3", "m: {input: -1, output: 1}", "m: [", "\x00"]
)
def test_bad_prices(content: str, tmp_path: Path) -> None:
    path = tmp_path / "prices.yaml"
    path.write_text(content)
    with pytest.raises(InputError, match="--prices") as error:
        load_model("openai:m", server=ServerSettings(base_url="http://x", prices=path))
    assert "\n" not in str(error.value)


def test_what_a_server_cannot_be_asked() -> None:
    model = RemoteModel("openai:m", ServerSettings(base_url="http://x"))
    assert model_defaults("openai:m") == model.defaults and model.num_layers == 0
    for ask in (lambda: model.tokenize("a"), lambda: model.embed(["a"]), lambda: model.score([PROMPT], ["a"])):
        with pytest.raises(InputError, match="a model that runs here"):
            ask()


def test_json_of_requests_is_plain() -> None:
    """What is sent can be encoded whatever the prompt holds."""
    with serving(FaultyServer()) as server:
        one(server, Prompt((Message("user", 'a "quoted" \\ \u2028 👩‍👩‍👧 \x00'),)))
    assert asked(json.loads(json.dumps(server.requests[0]))) == 'a "quoted" \\ \u2028 👩‍👩‍👧 \x00'
