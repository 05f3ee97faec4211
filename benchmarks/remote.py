"""The client of remote models against plain httpx: 1,000 requests to an instant server on loopback.

    python benchmarks/remote.py [--requests 1000] [--concurrency 32] [--rounds 5]

The server is a process of its own that answers every request at once with the same reply. Both clients parse the reply
and keep its text; rounds alternate, and the medians and their ratio are printed.
"""

import argparse
import asyncio
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

import httpx

from robust_jax.models.remote import RemoteModel
from robust_jax.types import Message, Prompt, Sampling, ServerSettings

REPLY = json.dumps(
    {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "instant",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "The answer is 42."}, "finish_reason": "stop"}
        ],
        "usage": {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17},
    }
).encode()
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(REPLY), REPLY)


class Instant(asyncio.Protocol):
    """Answers every request of a connection as soon as its body has come."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data
        while b"\r\n\r\n" in self.received:
            head, _, body = self.received.partition(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
            )
            if len(body) < length:
                return
            self.received = body[length:]
            self.transport.write(ANSWER)  # type: ignore[attr-defined]


def serve(report: Connection) -> None:
    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(Instant, "127.0.0.1", 0)
        report.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


def with_our_client(url: str, prompts: list[Prompt], concurrency: int) -> None:
    model = RemoteModel("openai:instant", ServerSettings(base_url=url, concurrency=concurrency))
    replies = model.respond(prompts, Sampling())
    assert all(reply.text == "The answer is 42." for reply in replies)


def with_plain_httpx(url: str, prompts: list[Prompt], concurrency: int) -> None:
    async def run() -> list[str]:
        waiting = iter(prompts)
        texts: list[str] = []

        async def work(client: httpx.AsyncClient) -> None:
            for prompt in waiting:
                messages = [{"role": message.role, "content": message.content} for message in prompt.messages]
                body = {"model": "instant", "messages": messages, "temperature": 0.0, "max_tokens": 512}
                response = await client.post(f"{url}/chat/completions", json=body)
                texts.append(response.json()["choices"][0]["message"]["content"])

        async with httpx.AsyncClient(timeout=60) as client:
            await asyncio.gather(*(work(client) for _ in range(concurrency)))
        return texts

    assert len(asyncio.run(run())) == len(prompts)


def seconds(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{ours.recv()}/v1"
    prompts = [Prompt((Message("user", f"Question {number}: what is it?"),)) for number in range(options.requests)]
    with_our_client(url, prompts[:50], options.concurrency)
    with_plain_httpx(url, prompts[:50], options.concurrency)
    client, plain = [], []
    for _ in range(options.rounds):
        client.append(seconds(lambda: with_our_client(url, prompts, options.concurrency)))
        plain.append(seconds(lambda: with_plain_httpx(url, prompts, options.concurrency)))
    server.terminate()
    first, second = statistics.median(client), statistics.median(plain)
    print(f"{options.requests} requests, {options.concurrency} at once, median of {options.rounds} rounds")
    print(f"client      {first:.2f} s, {options.requests / first:.0f} requests a second")
    print(f"plain httpx {second:.2f} s, {options.requests / second:.0f} requests a second")
    print(f"ratio       {first / second:.2f}")


if __name__ == "__main__":
    main()
