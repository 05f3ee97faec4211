"""The memory that XLA's products of a step live in on a CPU."""

import ctypes

TRIM_THRESHOLD, MMAP_MAX, ARENA_MAX = -1, -4, -8
"""Parameters of glibc's mallopt."""


def keep_freed_memory() -> None:
    """Let the process keep the memory that a step has used for the next one, where the C library is glibc.

    It would hand hundreds of megabytes back to the system after every step and have them zeroed, page by page, in the
    next: a tenth of a step's time on a CPU. To be called before the first computation, since threads that allocate in
    arenas of their own keep doing so.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(ARENA_MAX, 1)
        mallopt(MMAP_MAX, 0)
        mallopt(TRIM_THRESHOLD, -1)
