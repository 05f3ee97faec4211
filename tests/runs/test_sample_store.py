"""samples.jsonl keeps every committed sample, whatever it holds and whenever the process dies."""

import dataclasses
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_jax.errors import InputError
from robust_jax.runs import SampleStore, sample_key
from robust_jax.types import Sample
from tests.runs.making_samples import ANY_SAMPLE, block, sample, temporary_folder


def joined(text: str) -> str:
    """The text with a high and a low surrogate side by side read as the one character they stand for."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def as_kept(kept: Sample) -> Sample:
    texts = {f.name: getattr(kept, f.name) for f in dataclasses.fields(kept)}
    changed = {name: joined(text) for name, text in texts.items() if isinstance(text, str)}
    return dataclasses.replace(kept, **changed, values={joined(k): joined(v) for k, v in kept.values.items()})


@settings(max_examples=40, deadline=None)
@given(blocks=st.lists(st.lists(ANY_SAMPLE, max_size=4), max_size=4))
def test_what_is_appended_is_what_is_read(blocks: list[list[Sample]]) -> None:
    with temporary_folder() as folder:
        path = folder / "samples.jsonl"
        store = SampleStore(path)
        expected: dict[tuple, Sample] = {}
        for block in blocks:
            store.append(block)
            expected |= {sample_key(s): as_kept(s) for s in block}
        for seen in (store, SampleStore(path)):
            assert list(seen) == list(expected.values())
            assert len(seen) == len(expected)
            assert all(seen.get(key) == kept for key, kept in expected.items())
            assert seen.by_arm("a") == [kept for kept in expected.values() if kept.arm == "a"]
        if path.exists():
            path.read_text(encoding="utf-8")


def test_a_lone_surrogate_and_readable_letters(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    SampleStore(path).append([sample(1, response="half \ud835 a pair, 5 € \u2028 next")])
    assert "5 €" in path.read_text(encoding="utf-8")
    (kept,) = SampleStore(path)
    assert kept.response == "half \ud835 a pair, 5 € \u2028 next"


def test_a_file_cut_off_at_any_byte_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    samples = [sample(n, response="é\n") for n in range(2)]
    SampleStore(path).append(samples)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        store = SampleStore(path)
        assert list(store) == samples[: whole[:length].count(b"\n")]
        assert path.read_bytes() == whole[:length], "reading must not write"
        store.append(samples)
        assert path.read_bytes() == whole


def test_a_long_cut_off_line_is_cut_away_by_a_short_block(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    SampleStore(path).append([sample(1), sample(2, response="long" * 1000)])
    path.write_bytes(path.read_bytes()[:-1])
    SampleStore(path).append([sample(3)])
    assert list(SampleStore(path)) == [sample(1), sample(3)]
    assert path.read_bytes().count(b"\n") == 2
    assert path.read_bytes().endswith(b"\n")


def test_nothing_is_written_twice_and_the_later_of_two_differing_lines_holds(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    store = SampleStore(path)
    store.append([sample(1), sample(2)])
    size = path.stat().st_size
    store.append([sample(2), sample(1)])
    assert path.stat().st_size == size
    store.append([sample(1, response="another")])
    assert [s.response for s in SampleStore(path)] == ["another", sample(2).response]


def test_has_all(tmp_path: Path) -> None:
    store = SampleStore(tmp_path / "samples.jsonl")
    store.append([sample(1), sample(2)])
    assert store.has_all([sample_key(sample(1)), sample_key(sample(2))])
    assert not store.has_all([sample_key(sample(1)), sample_key(sample(3))])


@pytest.mark.parametrize(
    "line",
    [
        b"not json",
        b"",
        b"[1]",
        b"{}",
        b'{"arm": "a"}',
        b"\xff\xfe",
        b"[" * 100_000,
        None,
    ],
)
def test_a_damaged_line_in_the_middle_is_named(line: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    SampleStore(path).append([sample(n) for n in range(3)])
    lines = path.read_bytes().split(b"\n")
    lines[1] = lines[1].replace(b'"attempt": 0', b'"attempt": "0"') if line is None else line
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(InputError, match=r"samples\.jsonl, line 2: .*; delete that line") as refusal:
        SampleStore(path)
    assert "\n" not in str(refusal.value)


def test_an_unreadable_file_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "samples.jsonl").mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        SampleStore(tmp_path / "samples.jsonl")


APPENDING = """
import itertools, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from robust_jax.runs import SampleStore
from tests.runs.making_samples import block
store = SampleStore(Path(sys.argv[2]))
for number in itertools.count():
    store.append(block(number))
    print(number, flush=True)
"""


def test_a_killed_process_loses_no_finished_block(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    arguments = [sys.executable, "-c", APPENDING, str(Path(__file__).parents[2]), str(path)]
    for finished in (3, 8):
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            while int(process.stdout.readline()) < finished:
                pass
            process.send_signal(signal.SIGKILL)
        assert len(SampleStore(path)) >= 20 * (finished + 1)
    blocks = len(SampleStore(path)) // 20 + 2
    for kept in (path, tmp_path / "uninterrupted.jsonl"):
        store = SampleStore(kept)
        for number in range(blocks):
            store.append(block(number))
    assert path.read_bytes() == kept.read_bytes()
