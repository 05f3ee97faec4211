"""From a search's run directory to sets on disk: what was asked comes back whole, and what is unusable is refused."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from robust_jax.errors import InputError
from robust_jax.finetune.data import EVALUATED, VALIDATION, make_data, read_data
from robust_jax.finetune.options import DataOptions
from robust_jax.finetune.problem import Problem, read_problems, write_problems
from robust_jax.finetune.searched import read_searched
from robust_jax.finetune.splits import TRAIN_SETS
from robust_jax.problems import check_trace, load_suite
from robust_jax.runs import SAMPLES_FILE, FeatureStore, SampleStore, write_finished


def test_what_was_explored_comes_back_with_its_worked_solution(searched: Path, suite: Path) -> None:
    found = read_searched(searched)
    samples = {(s.item, s.variation): s for s in SampleStore(searched / SAMPLES_FILE).by_arm("beam")}
    asked = load_suite(str(suite))
    rows = [row for rows in found.explored.values() for row in rows]
    bases = {template.key(template.base) for template in asked.templates if template.base}
    assert {row.identity for row in rows} == {key for key in samples if key[1] not in bases}
    for row in rows:
        sample = samples[row.identity]
        assert (row.question, row.answer, row.was_correct) == (sample.question, sample.gold, sample.is_correct)
        assert row.values == sample.values
        assert row.trace.splitlines()[-1] == f"#### {row.answer}"
        assert not check_trace(row.trace, row.variation.answer, asked.grading)
    assert len(found.base) == 3


def test_sets_are_written_whole_and_read_back(data: Path, searched: Path, tmp_path: Path) -> None:
    found = read_data(data)
    results = json.loads((data / "results.json").read_text())
    for name in (*TRAIN_SETS, VALIDATION, *EVALUATED):
        problems = found.problems(name)
        assert len(problems) == results["sets"][name]["problems"] > 0
    drawn = [line.split(",") for line in (data / "figures" / "difficulty.csv").read_text().splitlines()[1:]]
    for bucket in ("low", "mid", "high"):
        assert sum(int(row[3]) for row in drawn if row[0] == bucket) == results["sets"][f"q_{bucket}"]["problems"]
    assert results["pool"] == 3 * results["sets"]["q_mid"]["problems"]
    again = tmp_path / "again"
    make_data(DataOptions(search=searched, out=again, evaluated=4, evaluated_wrong=4))
    assert found.digest == read_data(again).digest, "the same seed gives the same files"
    make_data(DataOptions(search=searched, out=tmp_path / "other", evaluated=4, evaluated_wrong=4, seed=1))
    assert found.digest != read_data(tmp_path / "other").digest
    with pytest.raises(InputError, match="other options"):
        make_data(DataOptions(search=searched, out=again, seed=1))


def test_a_problem_survives_its_file(tmp_path: Path) -> None:
    odd = Problem("t", 'a|b\n"', {"name": "Zoë \ud835"}, "½?", "1/2 = 0.5\n#### 0.5", "1/2", None, True)
    write_problems(tmp_path / "some.jsonl", [odd, replace(odd, difficulty=1.5)])
    assert read_problems(tmp_path / "some.jsonl") == [odd, replace(odd, difficulty=1.5)]


def finish_again(run: Path) -> None:
    """As if the search had written what is there now."""
    write_finished(run, SampleStore(run / SAMPLES_FILE), FeatureStore(run / "features"), ("search.jsonl",))


def lose_features(run: Path) -> None:
    shutil.rmtree(run / "features")


def lose_difficulties(run: Path) -> None:
    lines = [json.loads(line) for line in (run / "search.jsonl").read_text().splitlines()]
    (run / "search.jsonl").write_text("".join(json.dumps({**line, "difficulty": None}) + "\n" for line in lines))
    finish_again(run)


def lose_search(run: Path) -> None:
    (run / "search.jsonl").unlink()


def cut_search(run: Path) -> None:
    (run / "search.jsonl").write_text((run / "search.jsonl").read_text()[:-20])


def lose_samples(run: Path) -> None:
    (run / SAMPLES_FILE).write_text("")


def change_suite(run: Path) -> None:
    config = yaml.safe_load((run / "config.yaml").read_text())
    config["fingerprint"]["suite_digest"] = "0" * 16
    (run / "config.yaml").write_text(yaml.safe_dump(config))
    finish_again(run)


def stop_early(run: Path) -> None:
    (run / "finished.json").unlink()


def be_another_run(run: Path) -> None:
    (run / "config.yaml").write_text("fingerprint: {command: lpds measure}\n")


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lose_features, "has lost answers or features"),
        (lose_difficulties, "nothing in .* has a difficulty"),
        (lose_search, "search.jsonl is not what the run wrote"),
        (cut_search, "search.jsonl is not what the run wrote"),
        (lose_samples, "has lost answers"),
        (stop_early, "holds no finished run"),
        (change_suite, "has changed since"),
        (be_another_run, "holds a run of 'lpds measure'"),
    ],
)
def test_an_unusable_search_is_refused_and_nothing_is_written(
    searched: Path, tmp_path: Path, damage: Callable[[Path], None], complaint: str
) -> None:
    shutil.copytree(searched, tmp_path / "run")
    damage(tmp_path / "run")
    with pytest.raises(InputError, match=complaint) as caught:
        make_data(DataOptions(search=tmp_path / "run", out=tmp_path / "data"))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("line", ["{", "{}", '{"template": 3}', "[]", "1"])
def test_a_damaged_line_is_named(data: Path, tmp_path: Path, line: str) -> None:
    shutil.copytree(data, tmp_path / "sets")
    file = tmp_path / "sets" / "test.jsonl"
    file.write_text(file.read_text() + line + "\n")
    lines = len(file.read_text().splitlines())
    with pytest.raises(InputError, match=rf"test.jsonl, line {lines} is damaged"):
        read_problems(file)


def test_incomplete_sets_are_refused(data: Path, tmp_path: Path) -> None:
    shutil.copytree(data, tmp_path / "sets")
    (tmp_path / "sets" / "results.json").unlink()
    with pytest.raises(InputError, match="holds no results yet"):
        read_data(tmp_path / "sets")
    with pytest.raises(InputError, match="is no run directory"):
        read_data(tmp_path / "nowhere")


def edit_config(sets: Path, change: Callable[[dict[str, object]], object]) -> None:
    config = yaml.safe_load((sets / "config.yaml").read_text())
    change(config["fingerprint"])
    (sets / "config.yaml").write_text(yaml.safe_dump(config))


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda sets: (sets / "test_low.jsonl").unlink(), r"test_low.jsonl cannot be read .* again"),
        (lambda sets: (sets / "validation.jsonl").write_text(""), "is not as `robust-jax finetune data` left it"),
        (lambda sets: (sets / "results.json").write_text("{}"), "is not as `robust-jax finetune data` left it"),
        (lambda sets: edit_config(sets, lambda asked: asked.update(shots="x")), "is not as `robust-jax finetune data`"),
        (lambda sets: edit_config(sets, lambda asked: asked.pop("shots")), "is not as `robust-jax finetune data`"),
    ],
)
def test_edited_sets_are_refused(data: Path, tmp_path: Path, damage: Callable[[Path], None], complaint: str) -> None:
    shutil.copytree(data, tmp_path / "sets")
    read_data(tmp_path / "sets")
    damage(tmp_path / "sets")
    with pytest.raises(InputError, match=complaint):
        read_data(tmp_path / "sets")
