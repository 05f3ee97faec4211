"""Options: flag beats file beats default, and a refusal is one line that names what was meant."""

import dataclasses
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import pytest
import tyro
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_jax.errors import InputError
from robust_jax.runs import NEUTRAL, RunOptions, SuiteOptions, flag, parse
from tests.runs.making_samples import temporary_folder


@dataclass(frozen=True)
class MeasureOptions(SuiteOptions):
    """Measure how much an answer depends on the surface.

    More about it.
    """

    samples: int = 5000
    """Variations drawn per template."""
    layers: tuple[int, ...] = (1, 2)
    """Blocks whose states are recorded."""
    share: float | None = 0.25
    """Share of references."""
    quiet: bool = field(default=True, metadata=NEUTRAL)
    """Show no progress."""


@dataclass(frozen=True)
class ShowOptions:
    """Show one template."""

    suite: tyro.conf.Positional[str]
    """Where it is from."""
    templates: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="ID...")] = ()
    """Which ones."""
    count: int = 3
    """How many fillings."""
    places: tuple[Path, ...] = ()
    """Where to write."""
    order: Literal["size", "name"] = "name"
    """What to sort by."""


def refusal(options_type: type, *argv: str) -> str:
    with pytest.raises(InputError) as caught:
        parse(options_type, argv)
    message = str(caught.value)
    assert "\n" not in message
    assert not re.search("[╭│╰─]", message)
    return message


def test_every_option_has_a_default_and_help() -> None:
    assert parse(MeasureOptions, []) == MeasureOptions()
    assert parse(RunOptions, []) == RunOptions()
    assert RunOptions().model == "builtin:tiny"


def test_help_lists_every_option_with_its_default(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        parse(MeasureOptions, ["--help"], prog="robust-jax lpds measure")
    assert end.value.code == 0
    shown = " ".join(re.sub("[╭│╰╮╯─]", " ", capsys.readouterr().out).split())
    entries = re.split(r"(?<!,) (?=--[a-z-]+(?:, --no-[a-z-]+| [A-Z{\[]))", shown)[1:]
    by_flag = {entry.split()[0].strip(","): entry for entry in entries}
    assert shown.startswith("usage: robust-jax lpds measure [-h] [OPTIONS] Measure how much an answer depends")
    assert "More about it" not in shown
    assert set(by_flag) == {flag(f.name) for f in dataclasses.fields(MeasureOptions)} | {"--config"}
    for f in dataclasses.fields(MeasureOptions):
        default = " ".join(map(str, f.default)) if isinstance(f.default, tuple) else str(f.default)
        entry = by_flag[flag(f.name)]
        assert f"(default: {'none' if f.default is None else default})" in entry
        assert len(entry) > len(flag(f.name)) + len(default) + 30, f"{entry} has no help"
    assert "Blocks whose states are recorded." in by_flag["--layers"]
    assert "The one seed" in by_flag["--seed"]


def test_help_shows_the_defaults_of_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.yaml").write_text("samples: 77")
    with pytest.raises(SystemExit):
        parse(MeasureOptions, ["--config", str(tmp_path / "c.yaml"), "--help"])
    assert "(default: 77)" in capsys.readouterr().out


@settings(max_examples=25, deadline=None)
@given(
    in_file=st.fixed_dictionaries({}, optional={"samples": st.integers(0, 9), "max_tokens": st.integers(1, 9)}),
    in_flags=st.fixed_dictionaries({}, optional={"samples": st.integers(0, 9), "max_tokens": st.integers(1, 9)}),
    quiet_file=st.none() | st.booleans(),
    quiet_flag=st.none() | st.booleans(),
    hyphens=st.booleans(),
)
def test_flag_beats_file_beats_default(
    in_file: dict[str, int], in_flags: dict[str, int], quiet_file: bool | None, quiet_flag: bool | None, hyphens: bool
) -> None:
    lines = [f"{name.replace('_', '-') if hyphens else name}: {number}" for name, number in in_file.items()]
    lines += [] if quiet_file is None else [f"quiet: {str(quiet_file).lower()}"]
    file_text = "\n".join(lines)
    argv = [f"{flag(name)}={number}" for name, number in in_flags.items()]
    argv += [] if quiet_flag is None else ["--quiet" if quiet_flag else "--no-quiet"]
    quiet = next(value for value in (quiet_flag, quiet_file, True) if value is not None)
    expected = dataclasses.replace(MeasureOptions(), **(in_file | in_flags), quiet=quiet)
    with temporary_folder() as folder:
        path = folder / "c.yaml"
        path.write_text(file_text)
        assert parse(MeasureOptions, ["--config", str(path), *argv]) == expected
        assert parse(MeasureOptions, [*argv, f"--config={path}"]) == expected


def test_the_file_takes_every_kind_of_value(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        "layers: [3, 4]\nshare: null\nout: runs/a\nmodel: 'hf:a/b'\ntemperature: 1e-3\nmax_tokens: ~\ndtype: float32\n"
    )
    expected = MeasureOptions(layers=(3, 4), share=None, out=Path("runs/a"), model="hf:a/b", temperature=1e-3)
    assert parse(MeasureOptions, ["--config", str(path)]) == expected
    path.write_text("layers: 7\nshare: 0.5\n")
    assert parse(MeasureOptions, ["--config", str(path)]) == MeasureOptions(layers=(7,), share=0.5)
    path.write_text("# nothing\n")
    assert parse(MeasureOptions, ["--config", str(path)]) == MeasureOptions()


def test_spellings_of_flags() -> None:
    assert parse(MeasureOptions, ["--batch-size", "3"]) == parse(MeasureOptions, ["--batch_size=3"])
    assert parse(MeasureOptions, ["--share", "none", "--layers", "4", "5", "--seed", "-3"]) == MeasureOptions(
        share=None, layers=(4, 5), seed=-3
    )
    assert parse(MeasureOptions, ["--seed", "1", "--seed", "2"]).seed == 2


def test_positional_arguments(tmp_path: Path) -> None:
    assert parse(ShowOptions, ["s", "a", "b", "--count", "2"]) == ShowOptions("s", ("a", "b"), 2)
    assert parse(ShowOptions, ["--count=2", "s"]) == ShowOptions("s", (), 2)
    assert "SUITE" in refusal(ShowOptions)
    (tmp_path / "c.yaml").write_text("suite: from_file\nplaces: [x, y]\n")
    assert parse(ShowOptions, ["--config", str(tmp_path / "c.yaml")]) == ShowOptions(
        "from_file", places=(Path("x"), Path("y"))
    )
    assert parse(ShowOptions, ["s", "--config", str(tmp_path / "c.yaml")]).suite == "s"


def test_a_misspelt_option_names_the_one_that_was_meant(tmp_path: Path) -> None:
    for name in [f.name for f in dataclasses.fields(MeasureOptions)]:
        for place in range(1, len(name)):
            wrong = name[:place] + name[place + 1 :]
            assert f"(nearest: {flag(name)})" in refusal(MeasureOptions, flag(wrong), "3")
            (tmp_path / "c.yaml").write_text(f"seed: 3\n{wrong}: 3\n")
            message = refusal(MeasureOptions, "--config", str(tmp_path / "c.yaml"))
            assert f"unknown key {wrong!r} (nearest: {name})" in message
    assert refusal(ShowOptions, "--cuont=3").startswith("unknown option '--cuont' (nearest: --count)")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--shots", "x"], "--shots: 'x' is not a whole number"),
        (["--shots", "1.5"], "--shots: '1.5' is not a whole number"),
        (["--share", "much"], "--share: 'much' is not a number"),
        (["--layers", "1", "b"], "--layers: 'b' is not a whole number"),
        (["--dtype", "float16"], "--dtype: 'float16' is not one of float32, bfloat16 (nearest: bfloat16)"),
        (["--shots"], "'--shots'"),
        (["--shots", "--seed", "1"], "'--shots'"),
        (["stray"], "unexpected argument 'stray'"),
        (["--attempts", "0"], "--attempts must be at least 1, not 0"),
        (["--model="], "--model: nothing is given"),
        (["--limit=-1"], "--limit must be at least 1, not -1"),
        (["--shots", "-1"], "--shots must be at least 0"),
        (["--temperature", "nan"], "--temperature must be a finite number from 0, not nan"),
        (["--temperature=-1"], "--temperature must be"),
        (["--config"], "'--config'"),
        (["--config", "/nowhere/c.yaml"], "--config /nowhere/c.yaml: cannot be read (No such file or directory)"),
    ],
)
def test_bad_values_are_refused_in_one_line(argv: list[str], words: str) -> None:
    assert words in refusal(MeasureOptions, *argv)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"shots: x", "c.yaml: shots: 'x' is not a whole number"),
        (b"shots: true", "c.yaml: shots: 'true' is not a whole number"),
        (b"shots: [1, 2]", "c.yaml: shots: one value is taken, not 2"),
        (b"shots: {a: 1}", "c.yaml: shots takes plain values"),
        (b"layers: [[1]]", "c.yaml: layers takes plain values"),
        (b"quiet: perhaps", "c.yaml: quiet: 'perhaps' is neither true nor false"),
        (b"dtype: float23", "not one of float32, bfloat16 (nearest: float32)"),
        (b"attempts: 0", "--attempts must be at least 1"),
        (b"shots 3", "must hold lines"),
        (b"seed: 1\nshots: [3\nx: : y", "c.yaml: not valid YAML in line 3"),
        (b"shots: \xff", "c.yaml: cannot be read (not UTF-8)"),
        (b"shots: \x00", "c.yaml: not valid YAML"),
        (b"config: other.yaml", "unknown key 'config'"),
    ],
)
def test_bad_files_are_refused_in_one_line(content: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_bytes(content)
    assert words in refusal(MeasureOptions, "--config", str(tmp_path / "c.yaml"))


WORDS = st.sampled_from(
    ["--seed", "--seed=1", "--layers", "--quiet", "--no-quiet", "--model", "3", "-3", "x", "--", "-x", "--modl", "none"]
) | st.text(st.characters(codec="utf-8", exclude_categories=("Cc",)), max_size=6)


@settings(max_examples=40, deadline=None)
@given(argv=st.lists(WORDS, max_size=5), options_type=st.sampled_from([MeasureOptions, ShowOptions]))
def test_any_words_give_options_or_one_line(argv: list[str], options_type: type) -> None:
    try:
        options = parse(options_type, argv)
    except InputError as error:
        assert len(str(error).splitlines()) == 1
    except SystemExit as end:
        assert end.code == 0 and "-h" in argv
    else:
        assert type(options) is options_type
