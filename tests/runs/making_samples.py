"""Samples, and folders, for the tests of what a run keeps."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hypothesis import strategies as st

from robust_jax.types import Sample

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=8)
"""Lone surrogates included."""
NAMES = st.text("ab", max_size=2)

ANY_SAMPLE = st.builds(
    Sample,
    arm=NAMES,
    item=NAMES,
    variation=NAMES,
    attempt=st.integers(0, 2),
    values=st.dictionaries(ANY_TEXT, ANY_TEXT, max_size=2),
    question=ANY_TEXT,
    gold=ANY_TEXT,
    response=ANY_TEXT,
    extracted=st.none() | ANY_TEXT,
    rule=st.none() | ANY_TEXT,
    status=st.sampled_from(["ok", "unparsed", "truncated", "refused", "error", "skipped"]),
    score=st.sampled_from([0.0, 1.0]),
    finish_reason=st.sampled_from(["stop", "length", "context", "error"]),
    prompt_tokens=st.integers(0, 10**6),
    completion_tokens=st.integers(0, 10**6),
)


def sample(number: int, item: str = "apples", response: str = "It is 7.\n#### 7", arm: str = "measure") -> Sample:
    """One sample of its own key."""
    return Sample(
        arm=arm,
        item=item,
        variation=f"v{number}",
        attempt=0,
        values={"n": str(number)},
        question=f"What is {number}?",
        gold="7",
        response=response,
        extracted="7",
        rule="hashes",
        status="ok",
        score=1.0,
        finish_reason="stop",
        prompt_tokens=5,
        completion_tokens=3,
    )


def block(number: int) -> list[Sample]:
    """Twenty samples, of other keys for every number."""
    return [sample(20 * number + n, response="é" * 2000) for n in range(20)]


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """An empty folder, in memory where the system has such a place."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)
