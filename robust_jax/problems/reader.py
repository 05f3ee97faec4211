"""Reads a suite in the template language: no unknown keys, and every fault named by its line or template."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from robust_jax.errors import InputError, nearest
from robust_jax.problems.arithmetic import whole
from robust_jax.problems.domains import Grid, common_kind
from robust_jax.problems.expressions import RESERVED, parse
from robust_jax.problems.plain_yaml import one_line, read_yaml
from robust_jax.problems.template import SymbolicTemplate, affordable
from robust_jax.problems.text import MAX_PLACES, parse_text
from robust_jax.types import Example, Grading, Number, Pair, Point, Slot, Suite, Value

_MAX_WORD = 500
_MAX_TEXT = 20_000
"""Characters of a question, a solution, or all constraints."""
_MAX_SLOTS = 50
_MAX_CONSTRAINTS = 100
_TEMPLATE_KEYS = (
    *("id", "question", "solution", "slots", "constraints", "answer", "base"),
    *("steps", "difficulty", "title"),
)
_DIFFICULTIES = ("basic", "intermediate", "advanced")
_NUMBER = re.compile(r"[-+]?\d{1,30}(\.\d{1,30})?(/\d{1,30})?")
_SLOT_NAME = re.compile(r"[A-Za-z_]\w{0,39}", re.ASCII)


def read_suite(content: bytes, file: str) -> Suite:
    """The suite that a YAML file holds.

    Args:
        content: the file's bytes.
        file: its name, for messages.

    Raises:
        InputError: the content is not in the template language; names the line or the template.
    """
    data, lines = read_yaml(content, file)
    try:
        return _read_suite(data, lines)
    except InputError as error:
        raise InputError(f"{file}: {one_line(error)}") from None


# --------------------------------------------------------------------------------------------------
# From plain data to types


def _read_suite(data: object, lines: Sequence[int]) -> Suite:
    suite = _mapping(data, "the suite", ("name", "description", "grading", "lists", "examples", "templates"))
    lists = {
        str(name): _values(values, f"list '{name}'")
        for name, values in _mapping(suite.get("lists", {}), "lists", None).items()
    }
    templates: dict[str, SymbolicTemplate] = {}
    for line, entry in zip(lines, _sequence(suite.get("templates"), "templates"), strict=True):
        try:
            template = _read_template(entry, lists)
        except InputError as error:
            raise InputError(f"line {line}: {error}") from None
        if template.id in templates:
            raise InputError(f"line {line}: template {template.id} stands twice")
        templates[template.id] = template
    if not templates:
        raise InputError("the suite has no templates")
    examples = []
    for number, entry in enumerate(_sequence(suite.get("examples", []), "examples"), 1):
        example = _mapping(entry, f"example {number}", ("question", "solution"))
        question, solution = (_word(example.get(key), f"example {number}, {key}") for key in ("question", "solution"))
        examples.append(Example(question.strip(), solution.strip()))
    return Suite(
        name=_word(suite.get("name"), "name"),
        templates=tuple(templates.values()),
        examples=tuple(examples),
        grading=_read_grading(suite.get("grading", "exact")),
        description=_word(suite.get("description", ""), "description", least=0).strip(),
    )


def _read_grading(data: object) -> Grading:
    if data == "exact":
        return Grading()
    grading = _mapping(data, "grading", ("absolute", "relative"))
    absolute, relative = (Fraction(_number(grading.get(key, 0), f"grading, {key}")) for key in ("absolute", "relative"))
    if absolute < 0 or relative < 0:
        raise InputError("grading: a tolerance cannot be negative")
    return Grading(absolute, relative)


def _read_template(data: object, lists: Mapping[str, tuple[Value, ...]]) -> SymbolicTemplate:
    identity = data.get("id") if isinstance(data, dict) else None
    if not isinstance(identity, str) or not re.fullmatch(r"[a-z0-9_]{1,80}", identity):
        raise InputError("a template needs an 'id' of small letters, digits and underscores")
    where = f"template {identity}"
    entry = _mapping(data, where, _TEMPLATE_KEYS)
    slots: list[Slot] = []
    distinct: list[tuple[str, ...]] = []
    for key, domain in _mapping(entry.get("slots", {}), f"{where}, slots", None).items():
        group = tuple(name.strip() for name in key.split(","))
        slots += _read_slots(group, domain, lists, f"{where}, slot '{key}'")
        if len(group) > 1:
            distinct.append(group)
    if not 1 <= len(slots) <= _MAX_SLOTS:
        raise InputError(f"{where} needs 1 to {_MAX_SLOTS} slots")
    names = [slot.name for slot in slots]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{where}: slot '{name}' stands twice")
    sources = [str(source) for source in _sequence(entry.get("constraints", []), f"{where}, constraints")]
    if len(sources) > _MAX_CONSTRAINTS or sum(map(len, sources)) > _MAX_TEXT:
        raise InputError(f"{where} has more than {_MAX_CONSTRAINTS} constraints, or {_MAX_TEXT:,} characters of them")
    constraints = tuple(parse(source, names, where=f"{where}, constraint", wanted="boolean") for source in sources)
    for constraint in constraints:
        if not constraint.names:
            raise InputError(f"{where}: the constraint '{constraint.source}' mentions no slot")
    steps, difficulty = entry.get("steps"), entry.get("difficulty", "")
    if steps is not None and (not isinstance(steps, int) or isinstance(steps, bool) or steps < 1):
        raise InputError(f"{where}: steps has to be a positive whole number")
    if "difficulty" in entry and difficulty not in _DIFFICULTIES:
        raise InputError(f"{where}: difficulty has to be one of {', '.join(_DIFFICULTIES)}")
    question, solution = (_text(entry.get(key), f"{where}, {key}") for key in ("question", "solution"))
    template = SymbolicTemplate(
        id=identity,
        slots=tuple(slots),
        question=parse_text(question, slots, where=f"{where}, question"),
        solution=parse_text(solution, slots, where=f"{where}, solution"),
        answer=parse(str(entry.get("answer", "")), names, where=f"{where}, answer", wanted="number"),
        constraints=constraints,
        distinct=tuple(distinct),
        base=_read_base(entry["base"], slots, f"{where}, base") if "base" in entry else None,
        title=_word(entry.get("title", ""), f"{where}, title", least=0),
        steps=steps,
        difficulty=str(difficulty),
    )
    return affordable(template)


def _read_slots(
    names: Sequence[str], data: object, lists: Mapping[str, tuple[Value, ...]], where: str
) -> Iterator[Slot]:
    for name in names:
        if not _SLOT_NAME.fullmatch(name) or name in RESERVED or keyword.iskeyword(name):
            raise InputError(f"{where}: '{name}' cannot be a slot's name: write one short word that is no keyword")
    entry = _mapping(data, where, ("list", "choice", "range", "grid", "pairs", "places"))
    places = entry.pop("places", 0)
    if not isinstance(places, int) or isinstance(places, bool) or not 0 <= places <= MAX_PLACES:
        raise InputError(f"{where}: places has to be a whole number from 0 to {MAX_PLACES}")
    if len(entry) != 1:
        raise InputError(f"{where} needs exactly one of list, choice, range, grid, pairs")
    [(form, content)] = entry.items()
    domain: Sequence[Value]
    match form:
        case "list":
            if not isinstance(content, str) or content not in lists:
                hint = f"did you mean '{nearest(str(content), lists)}'?" if lists else "the suite has no lists"
                raise InputError(f"{where}: there is no list '{content}': {hint}")
            domain = lists[content]
        case "choice":
            domain = _values(content, where)
        case "pairs":
            domain = _distinct([_pair(item, where) for item in _sequence(content, where)], where)
        case _:
            domain = _read_grid(content, form, where)
    if len(domain) < len(names):
        raise InputError(f"{where}: {len(names)} slots cannot be pairwise distinct over {len(domain)} values")
    if places and common_kind(domain) is not Fraction:
        raise InputError(f"{where}: places is for numbers")
    for value in domain[:2] if isinstance(domain, Grid) else domain:
        if places and isinstance(value, Fraction) and 10**places % value.denominator:
            raise InputError(f"{where}: {value} has more than {places} decimals")
    return (Slot(name, domain, places) for name in names)


def _read_grid(content: object, form: str, where: str) -> Grid:
    ends = [_number(item, where) for item in _sequence(content, where)]
    if len(ends) not in (2, 3) or (form == "range" and any(end.denominator != 1 for end in ends)):
        raise InputError(
            f"{where}: write {form}: [start, stop] or [start, stop, step]" + " in whole numbers" * (form == "range")
        )
    try:
        return Grid.between(*ends)
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None


def _read_base(data: object, slots: Sequence[Slot], where: str) -> Point:
    base = _mapping(data, where, [slot.name for slot in slots])
    missing = [slot.name for slot in slots if slot.name not in base]
    if missing:
        raise InputError(f"{where} has no value for slot '{missing[0]}'")
    return tuple(_read_base_value(base[slot.name], slot, f"{where}, slot '{slot.name}'") for slot in slots)


def _read_base_value(data: object, slot: Slot, where: str) -> Value:
    kind = common_kind(slot.domain)
    if kind is str:
        return _word(data, where)
    if kind is Fraction:
        return _number(data, where)
    known = {pair.word: pair for pair in slot.domain if isinstance(pair, Pair)}
    if isinstance(data, list):
        pair = _pair(data, where)
        if known.get(pair.word, pair) != pair:
            raise InputError(f"{where}: '{pair.word}' stands for {known[pair.word].number} in the slot's pairs")
        return pair
    if str(data) not in known:
        raise InputError(f"{where}: '{data}' is none of the pairs: write [word, number]")
    return known[str(data)]


# --------------------------------------------------------------------------------------------------
# Plain data


def _mapping(data: object, where: str, keys: Sequence[str] | None) -> dict[str, object]:
    if not isinstance(data, dict):
        raise InputError(f"{where} has to be a mapping of keys to values")
    for key in data:
        if not isinstance(key, str):
            raise InputError(f"{where}: the key {key} has to be a word: write it in quotes")
        if keys is not None and key not in keys:
            raise InputError(f"{where}: unknown key '{key}': did you mean '{nearest(key, keys)}'?")
    return dict(data)


def _sequence(data: object, where: str) -> list[object]:
    if not isinstance(data, list):
        raise InputError(f"{where} has to be a list")
    return data


def _word(data: object, where: str, least: int = 1) -> str:
    if not isinstance(data, str) or len(data.strip()) < least:
        raise InputError(f"{where} has to be text" + ("" if data is None else f", not {data}: write it in quotes"))
    return data


def _text(data: object, where: str) -> str:
    text = _word(data, where).strip()
    if len(text) > _MAX_TEXT:
        raise InputError(f"{where} is longer than {_MAX_TEXT:,} characters")
    return text


def _number(data: object, where: str) -> Number:
    if isinstance(data, str) and _NUMBER.fullmatch(data):
        try:
            return whole(Fraction(data))
        except (ValueError, ZeroDivisionError):
            pass
    if isinstance(data, bool) or not isinstance(data, (int, Fraction)):
        raise InputError(f"{where}: '{data}' is not a number such as 3, 0.5 or 1/2")
    return data


def _pair(data: object, where: str) -> Pair:
    parts = _sequence(data, where)
    if len(parts) != 2:
        raise InputError(f"{where}: a pair is [word, number]")
    return Pair(_short(parts[0], where), _number(parts[1], where))


def _short(data: object, where: str) -> str:
    word = _word(data, where)
    if len(word) > _MAX_WORD or "\n" in word or word != word.strip():
        raise InputError(f"{where}: '{word[:40]}' has to be one line without spaces around it")
    return word


def _values(data: object, where: str) -> tuple[Value, ...]:
    """Words or numbers, not both."""
    items = _sequence(data, where)
    if any(isinstance(item, str) for item in items):
        return _distinct([_short(item, where) for item in items], where)
    return _distinct([_number(item, where) for item in items], where)


def _distinct(values: Sequence[Value], where: str) -> tuple[Value, ...]:
    spellings = [value.word if isinstance(value, Pair) else value for value in values]
    seen: set[object] = set()
    for spelling in spellings:
        if spelling in seen:
            raise InputError(f"{where}: '{spelling}' stands twice")
        seen.add(spelling)
    if not values:
        raise InputError(f"{where} is empty")
    return tuple(values)
