"""Several processes as one program, on JAX's distributed runtime: how they join, talk, meet and end.

Process 0 leads and the others follow (`following`). It tells them what to do through the runtime's key-value store.
A process that dies or falls silent ends the others within the timeout: the runtime's heartbeats notice it.
"""

import atexit
import contextlib
import ctypes
import dataclasses
import itertools
import json
import os
import signal
import sys
import zlib
from collections.abc import Iterator
from typing import Any

import jax
from jax._src.distributed import global_state
from jax.errors import JaxRuntimeError

from robust_jax.errors import InputError, RunError

JOINING = 3
"""All processes must have joined after so many timeouts: machines do not start at the same moment."""
POLL_SECONDS = 2.0
"""A process that waits to be told something wakes that often, to see a Ctrl-C."""
AGAIN = "what was finished is kept: start the same command again on every machine"

Request = dict[str, Any]
"""What process 0 tells the others, as JSON holds it; `call` names what is to be done."""


@contextlib.contextmanager
def joined(coordinator: str, processes: int | None, process: int | None, timeout: int) -> Iterator[bool]:
    """Be one of the processes of a command; the value is whether this one leads. Comes before any use of a device.

    Args:
        coordinator: host:port at which process 0 is reached, or `auto`: what SLURM, Open MPI, GKE or a TPU pod says.
        processes: how many there are; None leaves it to those.
        process: which one this is, from 0; None likewise.
        timeout: seconds of silence after which a process counts as dead.

    Raises:
        InputError: nothing tells which processes there are.
        RunError: they do not come together, or one is lost on the way.
    """
    _join(coordinator, processes, process, timeout)
    leads = jax.process_index() == 0
    code = 1
    try:
        yield leads
        code = 0
    except InputError:
        code = 2
        raise
    except JaxRuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise RunError(f"process {jax.process_index()} cannot go on ({reason}); {AGAIN}") from error
    finally:
        if leads and not _together.working:
            tell({"call": "end", "code": code})
        elif code:
            # Others wait for this process in the middle of a computation, and will not come to a common farewell.
            atexit.register(_leave, code)


def is_joined() -> bool:
    """Whether this process is one of several."""
    return jax.distributed.is_initialized() and jax.process_count() > 1


def _join(coordinator: str, processes: int | None, process: int | None, timeout: int) -> None:
    _say_aborts_in_a_line(f"the processes of this command did not come together within {JOINING * timeout} s")
    try:
        jax.distributed.initialize(
            None if coordinator == "auto" else coordinator,
            processes,
            process,
            initialization_timeout=JOINING * timeout,
            heartbeat_timeout_seconds=timeout,
            shutdown_timeout_seconds=timeout,
        )
    except ValueError:
        raise InputError(
            f"--coordinator {coordinator}: no SLURM job, Open MPI, GKE or TPU pod is detected here; give "
            "--coordinator HOST:PORT --processes N --process K"
        ) from None
    except RuntimeError as error:
        raise RunError(f"cannot join the other processes ({str(error).partition(chr(10))[0]})") from error
    _say_aborts_in_a_line(f"another process has died or was silent for {timeout} s; {AGAIN}")


# --------------------------------------------------------------------------------------------------
# Talking and meeting


def tell(request: Request) -> int:
    """Tell the others what is to be done next (process 0); returns the request's number.

    Dataclasses are told as dictionaries, tuples as lists.
    """
    number = next(_together.numbers)
    content = json.dumps(request, default=dataclasses.asdict).encode()
    _client().key_value_set_bytes(_key(number), zlib.compress(content, level=1))
    return number


def hear(number: int) -> Request:
    """Request number `number`, counted from 0, as soon as process 0 has told it."""
    while True:
        try:
            content = _client().blocking_key_value_get_bytes(_key(number), round(1000 * POLL_SECONDS))
        except JaxRuntimeError as error:
            if "DEADLINE_EXCEEDED" not in str(error):
                raise
        else:
            request: Request = json.loads(zlib.decompress(content))
            return request


@contextlib.contextmanager
def together(number: int, patience: float) -> Iterator[None]:
    """The work of one request, in every process: all meet at its end, and the request is forgotten.

    Args:
        patience: seconds that the first to finish waits for the last; one that dies ends the others anyway.

    Raises:
        JaxRuntimeError: somebody did not come, or was lost in the middle of a computation.
    """
    _together.working = True
    yield
    _client().wait_at_barrier(f"robust-jax {number}", round(1000 * patience))
    # Not where an error passes through: the others are then still at work.
    _together.working = False
    if jax.process_index() == 0:
        _client().key_value_delete(_key(number))


@dataclasses.dataclass
class _Together:
    """Where this process stands with the others."""

    numbers: Iterator[int] = dataclasses.field(default_factory=itertools.count)
    """Of the requests that process 0 tells."""
    working: bool = False
    """Whether it is within the work of a request."""


_together = _Together()


def _client() -> Any:
    """The runtime's key-value store and barriers, which have no public name."""
    return global_state.client


def _key(number: int) -> str:
    return f"robust-jax/request/{number}"


# --------------------------------------------------------------------------------------------------
# Ending


_on_abort: Any = None
"""Kept here, because C may call it at any time."""


def _say_aborts_in_a_line(reason: str) -> None:
    """Have the runtime end this process with one line and exit code 1.

    Where it loses another process it prints a page about its own C++ stack, which `cli` silences through the log
    level, and calls abort() in a thread of its own, which no Python handler would live to see.
    """
    line = f"robust-jax: {reason}\n".encode()

    @ctypes.CFUNCTYPE(None, ctypes.c_int)
    def end(signal_number: int) -> None:
        os.write(2, line)
        os._exit(1)

    global _on_abort
    _on_abort = end
    ctypes.CDLL(None).signal(int(signal.SIGABRT), end)


def _leave(code: int) -> None:
    """End at once, without the runtime's common farewell."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
