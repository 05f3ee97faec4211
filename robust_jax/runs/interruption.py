"""Ctrl-C at a moment when nothing is half done."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def orderly_interrupt() -> Iterator[Callable[[], bool]]:
    """Work that ends by itself soon after Ctrl-C: gives a function that says whether it was pressed.

    Pressed again, it interrupts at once. Outside the main thread, which alone hears of it, nothing changes.

    Raises:
        KeyboardInterrupt: it was pressed; after the work has ended.
    """
    pressed = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield pressed.is_set
        return

    def press(number: int, frame: FrameType | None) -> None:
        if pressed.is_set():
            raise KeyboardInterrupt
        pressed.set()

    before = signal.signal(signal.SIGINT, press)
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed.is_set():
        raise KeyboardInterrupt
