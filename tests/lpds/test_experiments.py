"""Every command of the index of experiments is one that can be given: it is dry-run, or at least read."""

import re
import runpy
import sys
from pathlib import Path

import pytest

from robust_jax.cli import main
from robust_jax.finetune.options import SweepOptions
from robust_jax.lpds.options import ReportOptions
from robust_jax.runs import parse

ROOT = Path(__file__).parents[2]
INDEX = (ROOT / "experiments" / "README.md").read_text(encoding="utf-8").split("\n## ")[1]


def commands() -> list[str]:
    """What the last but one column of the index's rows says, each command once."""
    rows = [line.split(" | ") for line in INDEX.splitlines() if line.startswith("| ")]
    found = [command for row in rows[1:] for command in re.findall(r"`((?:robust-jax|python) [^`]+)`", row[-2])]
    return list(dict.fromkeys(found))


def test_the_index_names_every_table_and_figure_of_the_paper() -> None:
    named: set[str] = set()
    for kind, numbers in re.findall(r"(Table|Figure)s? ((?:\d+(?:–\d+)?(?:, | and )?)+)", INDEX):
        for first, last in re.findall(r"(\d+)(?:–(\d+))?", numbers):
            named |= {f"{kind} {number}" for number in range(int(first), int(last or first) + 1)}
    tables = {f"Table {number}" for number in range(1, 14)}
    figures = [1, 7, 10, 13, 14, 18, 19, 22, *range(27, 38), *range(40, 50), 53, 57, 60, 63, *range(67, 72), 75]
    assert tables | {f"Figure {number}" for number in [*figures, *range(77, 81)]} <= named


@pytest.mark.parametrize("command", commands())
def test_a_command_of_the_index_can_be_given(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    words = command.split()
    if words[1] == "experiments/finetuning.py":  # several commands, of which each needs what the one before it made
        options = runpy.run_path(words[1])["Options"]
        assert parse(options, words[2:]).seeds
    elif words[1:3] == ["finetune", "sweep"]:
        assert parse(SweepOptions, words[3:]).train
    elif words[0] == "python":
        out = words.index("--out") + 1 if "--out" in words else len(words)
        words[out:] = [str(tmp_path / "out")]
        monkeypatch.setattr(sys, "argv", [*words[1:], "--dry-run"])
        with pytest.raises(SystemExit) as end:
            runpy.run_path(words[1], run_name="__main__")
        assert not end.value.code
        assert "In all at most" in capsys.readouterr().out
    elif words[1] == "report":
        assert parse(ReportOptions, words[2:]).runs
    else:
        few = [] if "--limit" in words or "--config" in words else ["--limit", "2"]  # all take a while
        assert main([*words[1:], *few, "--dry-run"]) == 0
        assert "In all at most" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()
