"""`rrb transform`: what is written, and that a text hangs on nothing but its problem, perturbation and seed."""

import json
import sys
from pathlib import Path

import pytest

from robust_jax.cli import main
from robust_jax.rrb import tagging
from robust_jax.rrb.perturbations import THIRTEEN
from robust_jax.rrb.problem_set import BUNDLED, load_problems

SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "aime"
LINES = [
    {"id": "one", "problem": "The large man has 3 red balls. How many?", "answer": "3"},
    {"id": "two", "problem": "What is $\\frac{1}{2}$ of\n%comment\n10?", "answer": 5},
    {"id": "three", "question": "Find the sum.", "answer": "7 - it is\n#### 7"},
]
ORCHARD = Path(__file__).parent / "orchard.yaml"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "problems.jsonl"
    path.write_text("\n".join(map(json.dumps, LINES)) + "\n\n", encoding="utf-8")
    return path


def transformed(tmp_path: Path, *words: str) -> dict[tuple[str, str], dict[str, str]]:
    out = tmp_path / "out.jsonl"
    assert main(["rrb", "transform", "--out", str(out), *words]) == 0
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert all(row.keys() == {"id", "perturbation", "text", "rule"} for row in rows)
    return {(row["id"], row["perturbation"]): row for row in rows}


def test_all_of_a_file(tmp_path: Path, data: Path) -> None:
    rows = transformed(tmp_path, "--data", str(data), "--perturbation", "all")
    assert list(rows) == [(line["id"], name) for line in LINES for name in THIRTEEN]
    assert rows["two", "word_reversal"]["text"] == r"10? of; $\frac{1}{2}$ is What"
    shown = rows["three", "interleaved_word"]["text"].split()
    assert " ".join(shown[1::2]) == LINES[0]["problem"]
    assert all((row["rule"] is None) == (name == "not_not") for (_, name), row in rows.items())


def test_texts_do_not_depend_on_limit_order_or_company(tmp_path: Path, data: Path) -> None:
    every = transformed(tmp_path, "--data", str(data), "--perturbation", "all")
    some = transformed(tmp_path, "--data", str(data), "--perturbation", "wrappers,interleaved_line", "--limit", "1")
    assert some == {key: every[key] for key in some} and len(some) == 2
    (_, first), *_ = transformed(tmp_path, "--perturbation", "wrappers,all", "--limit", "1")
    assert first == "wrappers"


def test_other_data(tmp_path: Path) -> None:
    assert len(transformed(tmp_path, "--perturbation", "rail_fence")) == len(load_problems(BUNDLED).problems)
    assert transformed(tmp_path, "--data", str(ORCHARD), "--perturbation", "snake_vertical", "--limit", "2")


@pytest.mark.skipif(not SHARED.exists(), reason="the AIME problems are not here")
def test_aime(tmp_path: Path) -> None:
    for year in ("2024", "2025"):
        file = str(SHARED / f"aime_{year}.jsonl")
        assert len(transformed(tmp_path, "--data", file)) == 30 * 13
        assert all(isinstance(problem.answer, int) for problem in load_problems(file).problems)


def test_standard_output(capsys: pytest.CaptureFixture[str], data: Path) -> None:
    assert main(["rrb", "transform", "--data", str(data), "--perturbation", "split_reversal", "--limit", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["text"] == "ehT egral nam sah 3 der .sllab woH ?ynam"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--data", "no_such_suite"], "there are no problems 'no_such_suite'"),
        (["--data", "missing.jsonl"], "cannot read the problems missing.jsonl"),
        (["--perturbation", "word_revers"], "nearest: word_reversal"),
        (["--perturbation", " , "], "no perturbation is named"),
        (["--limit", "0"], "--limit must be at least 1"),
        (["--rails", "0"], "--rails must be at least 1"),
        (["--out", "/dev/null/x"], "cannot be written"),
        (["--pertubation", "all"], "unknown option '--pertubation'"),
    ],
)
def test_bad_options(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rrb", "transform", *words]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "holds no problems"),
        ("{", "line 1: not valid JSON"),
        ("[" * 100_000, "line 1: not valid JSON"),
        ("[1]", "line 1: not an object"),
        ('{"problem": " ", "answer": 1}', "line 1: no text under `problem`"),
        ('{"problem": "x"}', "line 1: no number under `answer`"),
        ('{"problem": "x", "answer": true}', "line 1: no number under `answer`"),
        ('{"id": 1, "problem": "x", "answer": 1}\n{"id": "1", "problem": "y", "answer": 2}', "line 2: the id '1'"),
        ('{"problem": "only one", "answer": 1}', "holds one problem only"),
        ("\udcff", "is not UTF-8"),
    ],
)
def test_bad_files(content: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(content, encoding="utf-8", errors="surrogateescape")
    out = tmp_path / "out.jsonl"
    assert main(["rrb", "transform", "--data", str(path), "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1
    assert not out.exists()


def test_without_spacy(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    tagging._tagger.cache_clear()
    for package in tagging.PACKAGES:
        monkeypatch.setitem(sys.modules, package, None)
    assert main(["rrb", "transform", "--perturbation", "not_not"]) == 2
    assert "pip install 'robust-jax[rrb]'" in capsys.readouterr().err
    assert main(["rrb", "transform", "--perturbation", "rail_fence", "--limit", "1"]) == 0
    tagging._tagger.cache_clear()
