"""Options from the command line and from a file, both read as text by one converter; a refusal is one line."""

import contextlib
import inspect
import io
import itertools
import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import field, fields, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import tyro
import yaml
from tyro.constructors import PrimitiveConstructorSpec

from robust_jax.errors import InputError, nearest
from robust_jax.runs.options import flag

Options = TypeVar("Options")

NONE_WORDS = ("none", "null", "~", "")
"""How an option that may be None is given as None."""
POSITIONAL = get_args(tyro.conf.Positional[str])[1]
"""The marker that makes an option positional."""
SCALARS: Mapping[type, tuple[str, str]] = {
    int: ("INT", "a whole number"),
    float: ("FLOAT", "a number"),
    str: ("TEXT", "a text"),
    Path: ("PATH", "a path"),
}
"""The types that are made from one word, with their names in the help and in a refusal."""


def parse(options_type: type[Options], argv: Sequence[str], prog: str = "robust-jax") -> Options:
    """Options of a dataclass type from command-line words; a flag beats `--config FILE.yaml` beats the default.

    A field may be bool, int, float, str, Path, a Literal, any of these or None, or a tuple of any number of them;
    `tyro.conf.Positional[...]` makes it positional. The docstring under a field is its help. `--help` prints the help
    and exits.

    Args:
        options_type: a frozen dataclass.
        argv: the words after the command.
        prog: the command's name in the help.

    Raises:
        InputError: an unknown option or key, a value of the wrong kind, a missing value, or an unreadable file.
    """
    types_by_name = get_type_hints(options_type)
    hints = {f.name: types_by_name[f.name] for f in fields(options_type)}  # type: ignore[arg-type]
    _refuse_unknown(argv, hints)
    file = _config_argument(argv)
    grammar = _grammar(options_type, hints, {} if file is None else _read_file(file, hints))
    summary = (inspect.getdoc(options_type) or "").partition("\n\n")[0]
    refusal = io.StringIO()
    try:
        with contextlib.redirect_stderr(refusal):
            parsed, unknown = tyro.cli(
                grammar, args=list(argv), prog=prog, description=summary, return_unknown_args=True
            )
    except SystemExit as end:
        if not end.code:
            raise
        raise InputError(_one_line(refusal.getvalue())) from None
    if unknown:
        raise InputError(f"unexpected argument {unknown[0]!r}; --help lists what is taken")
    return options_type(**{name: getattr(parsed, name) for name in hints})


def _refuse_unknown(argv: Sequence[str], hints: Mapping[str, object]) -> None:
    """Comes before tyro, which would rather miss a positional argument than tell of a misspelt option before it."""
    known = [flag(name) for name in [*hints, "config", "help"]]
    negations = ["--no-" + name.replace("_", "-") for name, hint in hints.items() if hint is bool]
    for word in itertools.takewhile(lambda word: word != "--", argv):
        name = word.partition("=")[0].replace("_", "-")
        if re.match("--?[a-zA-Z]", name) and name not in ("-h", *known, *negations):
            raise InputError(f"unknown option {name!r} (nearest: {nearest(name, known)}); --help lists all")


def _config_argument(argv: Sequence[str]) -> Path | None:
    """The file after the last --config."""
    file = None
    for word, following in itertools.zip_longest(argv, argv[1:], fillvalue="-"):
        if word == "--config" and not following.startswith("-"):
            file = Path(following)
        elif word.startswith("--config="):
            file = Path(word.partition("=")[2])
    return file


def _grammar(options_type: type[Options], hints: Mapping[str, object], defaults: Mapping[str, object]) -> type[Options]:
    """The dataclass that tyro reads: `options_type` with our converter in every field, other defaults, and --config."""
    with_extras = get_type_hints(options_type, include_extras=True)
    rows: list[tuple[str, Any, Any]] = []
    for f in fields(options_type):  # type: ignore[arg-type]
        hint: Any = with_extras[f.name]
        if POSITIONAL in getattr(hint, "__metadata__", ()):
            hint = Annotated[hint, _constructor(f.name, hints[f.name], f.name.upper())]
        elif hints[f.name] is not bool:
            hint = Annotated[hint, _constructor(flag(f.name), hints[f.name], _metavar(hints[f.name]))]
        default: dict[str, Any] = {"default": f.default, "default_factory": f.default_factory}
        if f.name in defaults:
            default = {"default": defaults[f.name]}
        rows.append((f.name, hint, field(**default)))
    file_help = tyro.conf.arg(help="YAML file that sets options by name; a flag beats the file.")
    file = Annotated[Path | None, _constructor("--config", Path | None, "FILE"), file_help]
    rows.append(("config", file, field(default=None)))
    return make_dataclass(options_type.__name__, rows, bases=(options_type,), frozen=True, kw_only=True)


def _constructor(name: str, hint: object, metavar: str) -> PrimitiveConstructorSpec[Any]:
    many = get_origin(hint) is tuple
    return PrimitiveConstructorSpec(
        nargs="*" if many else 1,
        metavar=metavar,
        instance_from_str=lambda words: convert(name, hint, words),
        is_instance=lambda value: True,
        str_from_instance=lambda value: [str(part) for part in value] if many else [_shown(value)],
    )


def _shown(value: object) -> str:
    return "none" if value is None else str(value)


def _metavar(hint: object) -> str:
    if isinstance(hint, type) and hint in SCALARS:
        return SCALARS[hint][0]
    if get_origin(hint) is Literal:
        return "{" + ",".join(map(str, get_args(hint))) + "}"
    members = [_metavar(part) for part in get_args(hint) if part not in (type(None), ...)]
    return f"[{members[0]} ...]" if get_origin(hint) is tuple else "|".join(members)


# --------------------------------------------------------------------------------------------------
# From words to values


def convert(name: str, hint: object, words: Sequence[str]) -> object:
    """The value that words stand for under a type; `name` is what a refusal calls it."""
    if get_origin(hint) is tuple:
        return tuple(_convert_word(name, get_args(hint)[0], word) for word in words)
    if len(words) != 1:
        raise InputError(f"{name}: one value is taken, not {len(words)}")
    return _convert_word(name, hint, words[0])


def _convert_word(name: str, hint: object, word: str) -> object:
    choices = get_args(hint)
    if get_origin(hint) is Literal:
        by_word = {str(choice): choice for choice in choices}
        if word not in by_word:
            listed = ", ".join(by_word)
            raise InputError(f"{name}: {word!r} is not one of {listed} (nearest: {nearest(word, by_word)})")
        return by_word[word]
    if get_origin(hint) in (Union, types.UnionType):
        if type(None) in choices and word.lower() in NONE_WORDS:
            return None
        (member,) = [choice for choice in choices if choice is not type(None)]
        return _convert_word(name, member, word)
    if hint is bool:
        if word.lower() not in ("true", "false"):
            raise InputError(f"{name}: {word!r} is neither true nor false")
        return word.lower() == "true"
    if not (isinstance(hint, type) and hint in SCALARS):
        raise TypeError(f"{name}: options of type {hint} are not supported")
    if not word:
        raise InputError(f"{name}: nothing is given")
    try:
        return hint(word)
    except ValueError:
        raise InputError(f"{name}: {word!r} is not {SCALARS[hint][1]}") from None


# --------------------------------------------------------------------------------------------------
# The file


def _read_file(path: Path, hints: Mapping[str, object]) -> dict[str, object]:
    """The options that a YAML file sets. Every scalar is read as the text that stands there, like a flag's value."""
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise InputError(f"--config {path}: cannot be read ({reason})") from None
    except RecursionError:
        raise InputError(f"--config {path}: must hold plain values, not nested ones") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f" in line {mark.line + 1}"
        raise InputError(f"--config {path}: not valid YAML{place}") from None
    if not isinstance(content, dict):
        if not content:
            return {}
        raise InputError(f"--config {path}: must hold lines of the form `option: value`")
    values = {}
    for key, value in content.items():
        name = str(key).replace("-", "_")
        if name not in hints:
            raise InputError(f"--config {path}: unknown key {key!r} (nearest: {nearest(name, hints)})")
        words = value if isinstance(value, list) else [value]
        if not all(isinstance(word, str) for word in words):
            raise InputError(f"--config {path}: {key} takes plain values, not nested ones")
        values[name] = convert(f"--config {path}: {key}", hints[name], words)
    return values


# --------------------------------------------------------------------------------------------------
# Refusals


def _one_line(box: str) -> str:
    """What a box of tyro's says, without its frame and its pointer to the help."""
    rows = [row.strip("╰╯│─ ") for row in box.splitlines() if not row.startswith("╭")]
    text = " ".join(" ".join(rows).split())
    return text.partition(" For full helptext")[0].rstrip(".") + "; --help lists what is taken"
