"""Many requests to one server at once, in a thread with an event loop of its own, each repeated while that may help."""

import asyncio
import os
import queue
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from types import TracebackType

import openai

from robust_jax.models.remote_requests import Endpoint, Fatal, Passing, Refusal, Unfit
from robust_jax.randomness import rng
from robust_jax.types import Prompt, Response, Sampling, ServerSettings

KEY = "OPENAI_API_KEY"
"""The variable of the environment that holds the key, for a server that wants one."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
"""Seconds before a request is repeated for the first time; each later pause is twice as long, up to the longest."""
SECONDS_TO_STOP = 1.0
"""How long connections are given to close."""

Arrival = tuple[int, Response]
"""A prompt's index, and its reply or why there is none."""


class RequestPool:
    """Asks a server for a reply to every prompt while it is open; used as a context, by one thread.

    Args:
        endpoint: the model.
        settings: the limits.
        prompts: what is asked.
        sampling: how each reply is drawn.
        retries: how often a failed request is repeated.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        settings: ServerSettings,
        prompts: Sequence[Prompt],
        sampling: Sequence[Sampling],
        retries: int,
    ) -> None:
        self._endpoint, self._settings, self._retries = endpoint, settings, retries
        self._requests = list(zip(prompts, sampling, strict=True))
        self._waiting: Iterator[int] = iter(range(len(self._requests)))
        self._arrived: queue.SimpleQueue[Arrival | None] = queue.SimpleQueue()
        """None once nothing more will come."""
        self._loop = asyncio.new_event_loop()
        self._work: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.is_over = False
        """Whether everything that came has been taken, and nothing more will come."""
        self.failures_in_a_row = 0
        """Attempts whose every request failed, since the last reply."""
        self.failure: BaseException | None = None
        """What ended the work before its time."""

    def __enter__(self) -> "RequestPool":
        self._work = self._loop.create_task(self._answer_all())
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give up what is on its way."""
        assert self._work is not None
        with suppress(RuntimeError):  # The loop is closed once everything has come, which may be at this moment.
            self._loop.call_soon_threadsafe(self._work.cancel)
        self._thread.join(SECONDS_TO_STOP)

    def take(self, seconds: float) -> list[Arrival]:
        """What has come since the last call; waits up to so many seconds for the first of it."""
        taken: list[Arrival] = []
        try:
            while not self.is_over:
                arrival = self._arrived.get(timeout=seconds) if seconds and not taken else self._arrived.get_nowait()
                if arrival is None:
                    self.is_over = True
                else:
                    taken.append(arrival)
        except queue.Empty:
            pass
        return taken

    def ask_no_more(self) -> None:
        """Let what is on its way come, and send nothing else."""
        self._waiting = iter(())

    def _run(self) -> None:
        assert self._work is not None
        try:
            self._loop.run_until_complete(self._work)
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            self.failure = error
        finally:
            self._loop.close()
            self._arrived.put(None)

    async def _answer_all(self) -> None:
        async with openai.AsyncOpenAI(
            base_url=self._settings.base_url,
            api_key=os.environ.get(KEY) or "none",
            timeout=self._settings.request_timeout,
            max_retries=0,
        ) as client:
            workers = [
                asyncio.create_task(self._answer_some(client))
                for _ in range(min(self._settings.concurrency, len(self._requests)))
            ]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()

    async def _answer_some(self, client: openai.AsyncOpenAI) -> None:
        while (index := next(self._waiting, None)) is not None:
            response = await self._answer(client, *self._requests[index])
            self._arrived.put((index, response))

    async def _answer(self, client: openai.AsyncOpenAI, prompt: Prompt, sampling: Sampling) -> Response:
        """The reply to one prompt, or why there is none.

        Raises:
            Fatal: all others would fail, too.
        """
        pauses = rng(sampling.seed, "pauses between requests")
        reason = ""
        for number in range(self._retries + 1):
            try:
                async with asyncio.timeout(self._settings.request_timeout):
                    response = await self._endpoint.ask(client, prompt, sampling)
                self.failures_in_a_row = 0
                return response
            except Fatal:
                raise
            except Unfit as error:
                return Response("", finish_reason="context", message=str(error))
            except Refusal as error:
                return Response("", finish_reason="error", message=str(error))
            except TimeoutError:
                reason, wait = f"no reply within {self._settings.request_timeout:g} s", None
            except Passing as error:
                reason, wait = str(error), error.wait
            if number < self._retries:
                # Those that failed together should not come back together.
                pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2**number) * pauses.uniform(0.5, 1.0)
                await asyncio.sleep(pause if wait is None else wait)
        self.failures_in_a_row += 1
        return Response("", finish_reason="error", message=f"{self._retries + 1} requests failed, the last: {reason}")
