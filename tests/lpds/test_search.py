"""`lpds search` from the command to the figures, on a model whose weakness is known."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import pytest

from robust_jax.cli import main
from robust_jax.lpds.record import read_candidates, read_references
from robust_jax.models import register_mock
from robust_jax.runs import SampleStore
from tests.lpds.fragile import SUITE, Fragile

SMALL = ["--reference-count", "20", "--iterations", "3", "--width", "3", "--branching", "5"]


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    path = tmp_path / "adding.yaml"
    path.write_text(SUITE)
    return path


def search(suite: Path, out: Path, *more: str, model: Fragile | None = None) -> int:
    stand_in = model or Fragile()
    register_mock("fragile", lambda: stand_in)
    words = ["lpds", "search", "--model", "mock:fragile", "--suite", str(suite), "--out", str(out)]
    return main([*words, *SMALL, *more])


def results(out: Path) -> dict:
    return json.loads((out / "results.json").read_text())


def test_search_finds_what_random_sampling_does_not(suite: Path, tmp_path: Path, is_drawn: bool) -> None:
    assert search(suite, tmp_path / "run", "--iterations", "8") == 0
    found = results(tmp_path / "run")
    assert found["accuracy"]["base"]["value"] == 1.0
    for template in found["templates"]:
        assert template["beam_error"] > template["random_error"] + 0.1
    assert found["auc"]["MD_H"]["value"] > 0.95
    assert found["search_curves"]["beam_accuracy"][-1] == 0.0
    difficulty = found["search_curves"]["max_difficulty"]
    assert difficulty[-1] > difficulty[0]
    assert (tmp_path / "run" / "report.html").exists()


def test_invariants_of_a_run(suite: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert search(suite, out, "--budget", "23") == 0
    candidates = read_candidates(out)
    references = read_references(out)
    samples = SampleStore(out / "samples.jsonl")
    for item in ("marbles", "stamps"):
        keys = [row.key for row in candidates if row.template == item]
        assert len(keys) == len(set(keys)) == 23
        assert not set(keys) & set(references[item].initial)
        beam = [sample for sample in samples.by_arm("beam") if sample.item == item]
        random = [sample for sample in samples.by_arm("random") if sample.item == item]
        assert [sample.variation for sample in beam] == keys
        assert len(random) == len({sample.variation for sample in random}) == 23
        assert not {sample.variation for sample in random} & set(references[item].initial)


def test_the_goalpost_moves(suite: Path, tmp_path: Path) -> None:
    settings = ["--iterations", "4", "--width", "6", "--branching", "10"]
    assert search(suite, tmp_path / "on", *settings) == 0
    assert search(suite, tmp_path / "off", *settings, "--goalpost", "off") == 0
    moved, fixed = read_references(tmp_path / "on"), read_references(tmp_path / "off")
    assert any(len(record.added) >= 50 for record in moved.values())
    assert all(not record.added for record in fixed.values())
    assert {row.fit for row in read_candidates(tmp_path / "on")} > {0}


def test_the_same_seed_gives_the_same_file_and_another_does_not(suite: Path, tmp_path: Path) -> None:
    for name, seed in [("a", "0"), ("b", "0"), ("c", "1")]:
        assert search(suite, tmp_path / name, "--seed", seed) == 0
    first, second, other = ((tmp_path / name / "results.json").read_bytes() for name in "abc")
    assert first == second
    assert first.replace(b'"seed": 0', b"") != other.replace(b'"seed": 1', b"")


def test_a_finished_run_is_reported_again_without_the_model(suite: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert search(suite, out) == 0
    before = (out / "results.json").read_bytes()
    (out / "results.json").unlink()
    (out / "report.html").unlink()
    model = Fragile()
    register_mock("fragile", lambda: model)
    assert main(["report", str(out)]) == 0
    assert (out / "results.json").read_bytes() == before
    assert (out / "report.html").exists()
    assert model.asked == 0


def test_resuming_a_finished_run_asks_nothing(suite: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert search(suite, out) == 0
    before, model = (out / "results.json").read_bytes(), Fragile()
    assert search(suite, out, model=model) == 0
    assert model.asked == 0
    assert (out / "results.json").read_bytes() == before


def test_another_option_in_a_used_directory_is_refused_by_name(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert search(suite, out) == 0
    capsys.readouterr()
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    assert search(suite, out, "--width", "4") == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "width was 3, now 4" in message
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()} == before


def test_an_edited_suite_is_not_mixed_with_the_old_one(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert search(suite, out) == 0
    suite.write_text(SUITE.replace("red and", "green and"))
    assert search(suite, out) == 2
    assert "suite_digest was" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("lost", "how"),
    [
        ("features", "gone"),
        ("random line", "gone"),
        ("random line", "cut"),
        ("search.jsonl", "cut"),
        ("references.json", "cut"),
        ("references.json", "edited"),
        ("finished.json", "gone"),
        ("finished.json", "emptied"),
    ],
)
def test_a_report_on_a_run_that_lost_something_is_refused_and_a_rerun_mends_it(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], lost: str, how: str
) -> None:
    out = tmp_path / "run"
    assert search(suite, out) == 0
    before = (out / "results.json").read_bytes()
    if lost == "random line":
        lines = (out / "samples.jsonl").read_text().splitlines(keepends=True)
        place = next(i for i, line in enumerate(lines) if '"arm":"random"' in line.replace(" ", ""))
        del lines[place : len(lines) if how == "cut" else place + 1]
        (out / "samples.jsonl").write_text("".join(lines))
    elif lost == "features":
        (file := next((out / "features" / "stamps").glob("random-*"))).unlink()
        assert file.suffix == ".safetensors"
    elif how == "gone":
        (out / lost).unlink()
    elif how == "emptied":
        (out / lost).write_text("{}")
    elif how == "edited":
        kept = json.loads((out / lost).read_text())
        next(iter(kept.values()))["initial"].pop()
        (out / lost).write_text(json.dumps(kept))
    else:
        (out / lost).write_bytes((out / lost).read_bytes()[:-20])
    capsys.readouterr()
    assert main(["report", str(out)]) == 2
    # What is being done may be told before; the refusal is the last line.
    refusal = capsys.readouterr().err.splitlines()[-1]
    assert refusal.startswith("robust-jax: ")
    assert "again" in refusal
    assert (out / "results.json").read_bytes() == before
    assert search(suite, out) == 0
    assert (out / "results.json").read_bytes() == before


@pytest.mark.parametrize(
    ("name", "pattern", "edited"),
    [
        ("config.yaml", r"shrinkage: \S+", "shrinkage: foo"),
        ("config.yaml", r"layers:\n\s*- 2", "layers: null"),
        ("config.yaml", r"seed: 0", "seed: x"),
        ("samples.jsonl", r'"score": ?0.0', '"score": 1.0'),
    ],
)
def test_a_report_on_an_edited_run_is_refused(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, pattern: str, edited: str
) -> None:
    out = tmp_path / "run"
    assert search(suite, out) == 0
    results, written = (out / "results.json").read_bytes(), (out / name).read_text()
    (out / name).write_text(re.sub(pattern, edited, written))
    assert (out / name).read_text() != written
    capsys.readouterr()
    assert main(["report", str(out)]) == 2
    assert capsys.readouterr().err == f"robust-jax: {out / name} is not what the run wrote: put the original back\n"
    assert (out / "results.json").read_bytes() == results
    (out / name).write_text(written)
    assert main(["report", str(out)]) == 0


def test_killed_at_any_moment_it_resumes_to_the_same_results(suite: Path, tmp_path: Path) -> None:
    assert search(suite, tmp_path / "whole") == 0
    expected = (tmp_path / "whole" / "results.json").read_bytes()
    out = tmp_path / "killed"
    script = Path(__file__).with_name("fragile.py")
    words = ["lpds", "search", "--model", "mock:fragile", "--suite", str(suite), "--out", str(out), *SMALL]
    environment = os.environ | {"FRAGILE_DELAY": "0.02", "PYTHONPATH": str(Path(__file__).parents[2])}
    samples, kept, kills = out / "samples.jsonl", 0, 0
    for growth in (1, 1, 60, 1):
        process = subprocess.Popen([sys.executable, str(script), *words], env=environment, stderr=subprocess.DEVNULL)
        while process.poll() is None and _lines(samples) < kept + growth:
            time.sleep(0.02)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait()
        kept = _lines(samples)
    assert kills >= 3
    assert search(suite, out) == 0
    assert (out / "results.json").read_bytes() == expected


@pytest.mark.slow
def test_killed_after_any_iteration_it_resumes_to_the_same_results(suite: Path, tmp_path: Path) -> None:
    whole = Fragile()
    assert search(suite, tmp_path / "whole", model=whole) == 0
    expected = {name: (tmp_path / "whole" / name).read_bytes() for name in ("results.json", "search.jsonl")}
    script = Path(__file__).with_name("fragile.py")
    # The batches are: references, base problems, then the start and three iterations, then random variations.
    for last in range(whole.batches - 3, whole.batches + 1):
        out = tmp_path / f"killed-{last}"
        words = ["lpds", "search", "--model", "mock:fragile", "--suite", str(suite), "--out", str(out), *SMALL]
        environment = os.environ | {"FRAGILE_KILL": str(last), "PYTHONPATH": str(Path(__file__).parents[2])}
        killed = subprocess.run([sys.executable, str(script), *words], env=environment, stderr=subprocess.DEVNULL)
        assert killed.returncode == -signal.SIGKILL
        resumed = Fragile()
        assert search(suite, out, model=resumed) == 0
        assert resumed.batches == whole.batches - last + 1  # nothing that was finished is asked again
        assert {name: (out / name).read_bytes() for name in expected} == expected


@pytest.mark.slow
def test_the_batch_size_changes_neither_variations_nor_texts(tmp_path: Path) -> None:
    settings = ["--limit", "2", "--reference-count", "10", "--iterations", "2", "--width", "2", "--branching", "4"]
    found = []
    for size in ("8", "48"):
        out = tmp_path / size
        words = ["lpds", "search", "--model", "builtin:tiny", "--batch-size", size, "--out", str(out), *settings]
        assert main(words) == 0
        samples = SampleStore(out / "samples.jsonl")
        found.append({(s.arm, s.item, s.variation): (s.response, s.status, s.score) for s in samples})
    assert found[0] == found[1]


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_a_model_that_is_never_right_ends_in_one_line(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert search(suite, tmp_path / "run", "--reference-attempts", "30", model=Fragile(limit=1)) == 1
    assert "no template has enough correct replies" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--model", "builtin:tony"], "builtin:tiny"),
        (["--suite", "grad_school"], "grade_school"),
        (["--widht", "3"], "--width"),
        (["--difficulty", "MD_G"], "MD_H"),
        (["--difficulty", "input_entropy"], "MD_H"),
        (["--layers", "9"], "blocks 1 to 3"),
        (["--attempts", "2"], "--attempts"),
        (["--explore", "1.5"], "between 0 and 1"),
        (["--shots", "3"], "--shots"),
        (["--shrinkage", "ledoit"], "ledoit-wolf"),
        (["--budget", "0"], "--budget"),
        (["--seed", "x"], "whole number"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else "",
)
def test_bad_input_is_one_line_and_leaves_nothing(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], named: str
) -> None:
    out = tmp_path / "run"
    assert search(suite, out, *words) == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert named in message
    assert not out.exists()


def test_levenshtein_implementations_give_the_same_run(suite: Path, tmp_path: Path) -> None:
    settings = ["--difficulty", "LD_min", "--iterations", "2", "--levenshtein"]
    for implementation in ("rapidfuzz", "xla"):
        assert search(suite, tmp_path / implementation, *settings, implementation) == 0
    assert search(suite, tmp_path / "xla", *settings, "auto") == 0  # the same run for its directory
    first, second = (tmp_path / name / "results.json" for name in ("rapidfuzz", "xla"))
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="about a machine without a GPU")
def test_triton_without_a_gpu_is_refused(suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert search(suite, tmp_path / "run", "--levenshtein", "triton") == 2
    assert "finds no NVIDIA GPU" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_an_unwritable_output_is_refused(suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert search(suite, tmp_path / "file" / "run") == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_dry_run_prints_the_prompts_and_touches_no_model(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Fragile()
    assert search(suite, tmp_path / "run", "--dry-run", model=model) == 0
    shown = capsys.readouterr().out
    assert "Question: There are" in shown
    assert "replies" in shown
    assert model.asked == 0
    assert not (tmp_path / "run").exists()


def test_a_dry_run_shows_the_prompt_that_the_model_would_get(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["lpds", "search", "--limit", "1", "--dry-run", "--out", str(tmp_path / "run")]
    assert main(words) == 0
    assert capsys.readouterr().out.count("Question:") == 1  # the built-in model is asked without examples
    assert main([*words, "--shots", "2"]) == 0
    assert capsys.readouterr().out.count("Question:") == 3
