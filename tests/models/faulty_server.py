"""An OpenAI-compatible server on loopback that fails as told: for tests of what asks it."""

import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Request = dict[str, Any]
Fault = str
"""What goes wrong with a request: a name of `FAULTS`, or empty for nothing."""

FAULTS = (
    "429",
    "429 with a date",
    "500",
    "503",
    "drop",
    "cut off",
    "not JSON",
    "wrong type",
    "empty body",
    "no choices",
    "null message",
    "list",
    "hang",
    "slow",
)


@dataclass
class FaultyServer:
    """What the server was asked, and how it replies."""

    reply: Callable[[Request], dict[str, Any]] = lambda request: completion("Hello.")
    """The body of a good reply."""
    fault: Callable[[Request, int], Fault] = lambda request, number: ""
    """What goes wrong with a request that comes for the so manieth time, from 0."""
    hang: float = 30.0
    """Seconds that a hanging request hangs."""
    requests: list[Request] = field(default_factory=list)
    hellos: list[Request] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    """How often each request came, by its last message."""
    answered: Counter[str] = field(default_factory=Counter)
    """How often each got a good reply."""
    at_once: int = 0
    most_at_once: int = 0
    guard: threading.Lock = field(default_factory=threading.Lock)
    url: str = ""
    is_closing: threading.Event = field(default_factory=threading.Event)


def completion(text: str | None, finish: str = "stop", **message: Any) -> dict[str, Any]:
    """A good reply of the chat endpoint."""
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
        ],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }


def asked(request: Request) -> str:
    """What a request asks: its last message, or its prompt."""
    return request["messages"][-1]["content"] if "messages" in request else request["prompt"]


def random_faults(rate: float, seed: int = 0, kinds: tuple[Fault, ...] = FAULTS) -> Callable[[Request, int], Fault]:
    """Every request fails with that probability, in any of the ways; the same requests fail at every run."""

    def fault(request: Request, number: int) -> Fault:
        generator = random.Random(f"{seed} {asked(request)} {number}")
        return generator.choice(kinds) if generator.random() < rate else ""

    return fault


@contextmanager
def serving(server: FaultyServer) -> Iterator[FaultyServer]:
    """The server at work; `server.url` is its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            request = json.loads(body)
            with server.guard:
                # What is asked to find out what the server can do is no question of the test's.
                (server.hellos if asked(request) == "Say hello." else server.requests).append(request)
                number = server.seen[asked(request)]
                server.seen[asked(request)] += 1
                server.at_once += 1
                server.most_at_once = max(server.most_at_once, server.at_once)
            try:
                self.answer(request, server.fault(request, number))
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True
            finally:
                with server.guard:
                    server.at_once -= 1

        def answer(self, request: Request, fault: Fault) -> None:
            good = json.dumps(server.reply(request)).encode()
            if fault == "":
                with server.guard:
                    server.answered[asked(request)] += asked(request) != "Say hello."
                self.send(200, good)
            elif fault.startswith("429"):
                moment = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 1))
                wait = moment if fault == "429 with a date" else "0.05"
                self.send(429, b'{"error": {"message": "slow down", "code": "rate_limit"}}', {"Retry-After": wait})
            elif fault.split()[0].isdecimal():
                status, _, said = fault.partition(" ")
                self.send(int(status), json.dumps({"error": {"message": said or "broken"}}).encode())
            elif fault == "drop":
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
            elif fault == "cut off":
                self.send(200, good[: len(good) // 2], {"Content-Length": str(len(good))})
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
            elif fault == "not JSON":
                self.send(200, good[: len(good) // 2])
            elif fault == "wrong type":
                self.send(200, b"<html>Bad gateway</html>", {"Content-Type": "text/html"})
            elif fault == "empty body":
                self.send(200, b"")
            elif fault == "no choices":
                self.send(200, b'{"id": "1", "choices": []}')
            elif fault == "null message":
                self.send(200, b'{"id": "1", "choices": [{"index": 0, "message": null, "finish_reason": "stop"}]}')
            elif fault == "list":
                self.send(200, b"[1, 2]")
            elif fault == "hang":
                server.is_closing.wait(server.hang)
                self.close_connection = True
            else:
                assert fault == "slow"
                self.trickle(good)

        def send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
            given = {"Content-Type": "application/json", "Content-Length": str(len(body)), **(headers or {})}
            self.send_response(status)
            for name, value in given.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()

        def trickle(self, body: bytes) -> None:
            """A byte at a time, for longer than anybody waits: no single read ever times out."""
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            for place in range(len(body)):
                self.wfile.write(body[place : place + 1])
                self.wfile.flush()
                if server.is_closing.wait(server.hang / 100):
                    self.close_connection = True
                    return

        def log_message(self, *words: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

        def handle_error(self, *words: object) -> None:
            pass

    http = Server(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{http.server_port}/v1"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.is_closing.set()
        http.shutdown()
        http.server_close()
        thread.join()
