"""Untrusted YAML as plain data: no aliases, no tags, no deep nesting, and faults named by their line."""

from __future__ import annotations

import re
from fractions import Fraction

import yaml

from robust_jax.errors import InputError
from robust_jax.problems.arithmetic import whole
from robust_jax.types import Number

MAX_BYTES = 2_000_000
"""Size of a file."""
_MAX_EVENTS = 100_000
"""Values and keys of a file."""
_MAX_NESTING = 12
_MAX_MESSAGE = 500


class _Loader(yaml.CSafeLoader):
    """YAML with the scalars of its version 1.2: `no` is a word, 12:30 is not a number, a decimal is exact."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        seen: set[object] = set()
        for key, _ in node.value:
            if not isinstance(key.value, str) or key.value in seen:
                raise InputError(f"line {key.start_mark.line + 1}: a key that stands twice or is no word: {key.value}")
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)

    def construct_decimal(self, node: yaml.ScalarNode) -> Number:
        return whole(Fraction(str(node.value)))


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"true|false", [*"tf"]),
    ("int", r"[-+]?(?:0|[1-9]\d{0,29})", [*"-+0123456789"]),
    ("float", r"[-+]?\d{1,30}\.\d{1,30}", [*"-+0123456789"]),
    ("null", r"null|~|", ["n", "~", ""]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), _first)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_decimal)


def read_yaml(content: bytes, file: str) -> tuple[object, list[int]]:
    """What a file holds, and the line at which each entry of its list `templates` begins.

    Args:
        content: the file's bytes.
        file: its name, for messages.

    Raises:
        InputError: it is no YAML, too large, or built to grow; names the line.
    """
    if len(content) > MAX_BYTES:
        raise InputError(f"{file} is larger than {MAX_BYTES // 10**6} MB: split it")
    try:
        text = content.decode()
        _refuse_what_grows(text)
        loader = _Loader(text)
        root = loader.get_single_node()
        return loader.construct_document(root) if root is not None else None, _template_lines(root)
    except UnicodeDecodeError:
        raise InputError(f"{file} is not a text file in UTF-8") from None
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise InputError(f"{file}{line}: not valid YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"{file} is not valid YAML: {one_line(error)}") from None
    except InputError as error:
        raise InputError(f"{file}, {one_line(error)}") from None


def one_line(error: Exception) -> str:
    """What an error says, in one line that is not too long."""
    return " ".join(str(error).split())[:_MAX_MESSAGE]


def _refuse_what_grows(text: str) -> None:
    """Aliases and deep nesting let a short file stand for a huge one; the language needs neither."""
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=_Loader)):
        if count > _MAX_EVENTS:
            raise InputError(f"line {_line(event)}: more than {_MAX_EVENTS:,} values: split the file")
        if isinstance(event, yaml.AliasEvent):
            raise InputError(f"line {_line(event)}: aliases (*{event.anchor}) are not allowed")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_NESTING:
            raise InputError(f"line {_line(event)}: nested more than {_MAX_NESTING} levels deep")


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def _template_lines(root: yaml.Node | None) -> list[int]:
    """The line at which each template begins."""
    for key, value in root.value if isinstance(root, yaml.MappingNode) else ():
        if key.value == "templates" and isinstance(value, yaml.SequenceNode):
            return [node.start_mark.line + 1 for node in value.value]
    return []
