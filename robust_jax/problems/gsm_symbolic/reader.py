"""Reads GSM-Symbolic files: one JSON file is one template, with words of our own in its lists.

Files contradict themselves here and there. What is decided then is noted, so that `templates check` can say it.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from robust_jax.errors import InputError
from robust_jax.problems.domains import common_kind
from robust_jax.problems.expressions import RESERVED, parse
from robust_jax.problems.gsm_symbolic.annotated import Line, pieces, read_annotated
from robust_jax.problems.gsm_symbolic.domains import read_draw
from robust_jax.problems.gsm_symbolic.equations import solve
from robust_jax.problems.gsm_symbolic.python_source import in_template_language, read_python, substituted
from robust_jax.problems.gsm_symbolic.word_lists import read_word
from robust_jax.problems.template import SymbolicTemplate, affordable
from robust_jax.problems.text import Hole, Text
from robust_jax.randomness import rng
from robust_jax.types import Pair, Point, Slot, Value

_MAX_SLOTS = 50
_MAX_CIRCLE = 30
"""Words of a list that is gone through in order."""
_COMPARED = 16
"""Fillings on which the two answers of a file are compared."""
_MAX_TRIED = 10_000
"""Values that are tried for a slot that has no default."""
_DEFINITION = re.compile(r"(?P<names>[\w$,\s]+?)\s*=\s*(?P<draw>[^=].*)")
_NAME = re.compile(r"[A-Za-z_]\w{0,39}", re.ASCII)
_OPERATORS = tuple("+-*/=÷×^")
_DECIMAL = re.compile(r"\d+\.(\d+)")


def read_gsm_symbolic(content: bytes, identity: str) -> tuple[SymbolicTemplate, list[str]]:
    """The template of one file, and how its contradictions were read, one line each.

    Args:
        content: the file.
        identity: the template's id.

    Raises:
        InputError: it cannot be read as a template; names the line of `question_annotated` where there is one.
    """
    where = f"template {identity}"
    try:
        return _read(content, identity)
    except InputError as error:
        message = str(error)
        raise InputError(message if message.startswith(where) else f"{where}: {message}") from None


def _read(content: bytes, identity: str) -> tuple[SymbolicTemplate, list[str]]:
    where = f"template {identity}"
    file = read_annotated(content)
    init = _read_init(file.init)
    conditions = [_read_line(line) for line in file.conditions]
    assert file.answer is not None
    answer = _read_line(file.answer)
    question = [_question_hole(piece) if is_hole else piece for piece, is_hole in pieces(file.question)]
    solution = [read_python(piece) if is_hole else piece for piece, is_hole in pieces(file.solution)]
    defaults = {hole.name: hole.default for hole in reversed(question) if isinstance(hole, _QuestionHole)}
    repeated = {name for group in init.distinct for name in group}
    free = {name: domain for name, domain in init.domains.items() if name not in repeated}
    solved, conditions = solve(conditions, free, latent=free.keys() - defaults.keys())

    language = _Language(init, solved)
    in_question = [
        piece if isinstance(piece, str) else (language.source(piece.tree), language.is_capital(piece))
        for piece in question
    ]
    in_solution = [
        piece if isinstance(piece, str) else (language.source(language.in_arithmetic(piece, *beside)), False)
        for piece, *beside in zip(solution, ["", *solution], [*solution[1:], ""], strict=False)
    ]
    in_conditions = [language.source(condition) for condition in conditions]
    in_answer = language.source(answer)
    mentioned = _mentioned(
        [*in_conditions, in_answer, *(part[0] for part in (*in_question, *in_solution) if not isinstance(part, str))]
    )
    slots = tuple(
        Slot(language.spelling(name), domain, _places(defaults.get(name, ""), domain))
        for name, domain in init.domains.items()
        if name not in solved and language.spelling(name) in mentioned
    )
    if not 1 <= len(slots) <= _MAX_SLOTS:
        raise InputError(f"{where} needs 1 to {_MAX_SLOTS} slots")
    names = [slot.name for slot in slots]
    # A name that nothing mentions is no slot; the others of its group still differ.
    groups = (tuple(s for name in group if (s := language.spelling(name)) in names) for group in init.distinct)
    template = SymbolicTemplate(
        id=identity,
        slots=slots,
        question=_text(in_question, slots, f"{where}, question"),
        solution=_text(in_solution, slots, f"{where}, solution"),
        answer=parse(in_answer, names, where=f"{where}, answer", wanted="number"),
        constraints=tuple(
            parse(source, names, where=f"{where}, condition", wanted="boolean") for source in in_conditions
        ),
        distinct=tuple(group for group in groups if len(group) > 1),
        checks_equations=False,
    )
    template, notes = _with_one_answer(affordable(template))
    template, more = _with_base(template, {language.spelling(name): default for name, default in defaults.items()})
    return template, notes + more


# --------------------------------------------------------------------------------------------------
# What `#init` defines


@dataclass
class _Init:
    domains: dict[str, Sequence[Value]] = field(default_factory=dict)
    """By slot, in the file's order."""
    distinct: list[tuple[str, ...]] = field(default_factory=list)
    following: dict[str, ast.expr] = field(default_factory=dict)
    """Names of words that follow a slot's word in its list, as expressions over that slot."""


def _read_init(lines: Iterable[Line]) -> _Init:
    init = _Init()
    for line in lines:
        definition = _DEFINITION.fullmatch(line.source)
        if definition is None:
            raise InputError(f"line {line.number}: '{line.source[:60]}' is not of the form '- name = list or range'")
        names = tuple(name.strip().removeprefix("$") for name in definition["names"].split(","))
        for name in names:
            if not _NAME.fullmatch(name) or keyword.iskeyword(name):
                raise InputError(f"line {line.number}: '{name}' cannot be a variable's name")
        try:
            draw = read_draw(definition["draw"])
        except InputError as error:
            raise InputError(f"line {line.number}: {error}") from None
        if draw.count != len(names):
            raise InputError(f"line {line.number}: {len(names)} names for {draw.count} drawn values")
        if draw.is_sequence:
            init.domains[names[0]] = draw.domain
            init.following |= {name: _following(names[0], draw.domain, k) for k, name in enumerate(names) if k}
            continue
        init.domains |= dict.fromkeys(names, draw.domain)
        if len(names) > 1:
            init.distinct.append(names)
    return init


def _following(name: str, domain: Sequence[Value], distance: int) -> ast.expr:
    """The word so many places after a slot's word, in a list that is read as a circle."""
    words = [str(word) for word in domain]
    if len(words) > _MAX_CIRCLE:
        raise InputError(f"'{name}' goes through a list of more than {_MAX_CIRCLE} words")
    result: ast.expr = ast.Constant(words[(len(words) - 1 + distance) % len(words)])
    for index in reversed(range(len(words) - 1)):
        test = ast.Compare(ast.Name(name, ast.Load()), [ast.Eq()], [ast.Constant(words[index])])
        result = ast.IfExp(test, ast.Constant(words[(index + distance) % len(words)]), result)
    return result


def _read_line(line: Line) -> ast.expr:
    try:
        return read_python(line.source)
    except InputError as error:
        raise InputError(f"line {line.number}: {error}") from None


# --------------------------------------------------------------------------------------------------
# From Python to the template language


class _Language:
    """How the file's names and expressions are written in the template language."""

    def __init__(self, init: _Init, solved: Mapping[str, ast.expr]) -> None:
        self.domains = init.domains
        self.words = {name for name, domain in init.domains.items() if isinstance(domain[0], str)} | set(init.following)
        respelled = {
            name: ast.Name(self.spelling(name), ast.Load()) for name in init.domains if self.spelling(name) != name
        }
        computed = {**init.following, **solved}
        self._replaced = respelled | {name: substituted(tree, respelled) for name, tree in computed.items()}

    def spelling(self, name: str) -> str:
        """The slot's name; one that the language has for a function gets an underscore."""
        return f"{name}_" if name in RESERVED else name

    def source(self, tree: ast.expr) -> str:
        return in_template_language(tree, self._replaced, self.words)

    def in_arithmetic(self, tree: ast.expr, before: object, after: object) -> ast.expr:
        """What a hole of the solution shows: beside an operator, the number that a word stands for."""
        is_operand = isinstance(before, str) and before.rstrip()[-1:] in _OPERATORS
        is_operand |= isinstance(after, str) and after.lstrip()[:1] in _OPERATORS
        return ast.UnaryOp(ast.UAdd(), tree) if is_operand and self._is_pair(tree) else tree

    def _is_pair(self, tree: ast.expr) -> bool:
        return isinstance(tree, ast.Name) and isinstance(self.domains.get(tree.id, ("",))[0], Pair)

    def is_capital(self, hole: _QuestionHole) -> bool:
        """Whether the text begins a word with a capital that the list begins with a small letter."""
        domain = self.domains.get(hole.name, ())
        return hole.default[:1].isupper() and all(str(word)[:1].islower() for word in domain)


@dataclass(frozen=True)
class _QuestionHole:
    name: str
    default: str
    tree: ast.expr


def _question_hole(content: str) -> _QuestionHole:
    name, _, default = (part.strip() for part in content.partition(","))
    return _QuestionHole(name, default, read_python(name))


def _mentioned(sources: Iterable[str]) -> set[str]:
    trees = (ast.parse(source, mode="eval") for source in sources)
    return {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _text(parts: Iterable[str | tuple[str, bool]], slots: Sequence[Slot], where: str) -> Text:
    places = {slot.name: slot.places for slot in slots}
    holes: list[str | Hole] = []
    for part in parts:
        if isinstance(part, str):
            holes.append(part)
            continue
        source, is_capital = part
        expression = parse(source, places, where=where)
        if expression.kind == "boolean":
            raise InputError(f"{where}: '{source}' is true or false: it cannot be printed")
        least_places = places.get(source, 0)
        holes.append(Hole(expression, least_places=least_places, as_fraction=True, capital=is_capital))
    return Text(tuple(holes))


def _places(default: str, domain: Sequence[Value]) -> int:
    """Decimals that the file prints the slot with, if its values have no more."""
    decimals = _DECIMAL.fullmatch(default)
    places = len(decimals[1]) if decimals else 0
    fits = all(10**places % Fraction(value).denominator == 0 for value in domain[:100] if isinstance(value, Fraction))
    return places if fits and common_kind(domain) is Fraction else 0


# --------------------------------------------------------------------------------------------------
# Two answers, and the original problem


def _with_one_answer(template: SymbolicTemplate) -> tuple[SymbolicTemplate, list[str]]:
    """The template whose answer is the number that its solution ends in.

    Where `#answer` gives another number on some fillings, such as where one of the two cuts off a fraction, a condition
    leaves those out. Where it never gives that number the solution is believed, because it shows how it came about.
    """
    names = [slot.name for slot in template.slots]
    written, where = _final_source(template.solution), f"template {template.id}"
    if written is None or written == template.answer.source:
        return template, []
    final = parse(written, names, where=f"{where}, solution", wanted="number")
    generator = rng(0, "gsm-symbolic answers", template.id)
    agreed = []
    for _ in range(_COMPARED):
        values = dict(zip(names, template.random(generator), strict=True))
        agreed.append(template.answer.number(values) == final.number(values))
    solved = replace(template, answer=final)
    if all(agreed):
        return solved, []
    if not any(agreed):
        return solved, [f"{where}: '#answer' never gives the number that the solution ends in, which is taken"]
    both = parse(f"({template.answer.source}) == ({written})", names, where=f"{where}, condition", wanted="boolean")
    note = f"{where}: fillings for which '#answer' does not give the number that the solution ends in are left out"
    return replace(solved, constraints=(*template.constraints, both)), [note]


def _with_base(template: SymbolicTemplate, defaults: Mapping[str, str]) -> tuple[SymbolicTemplate, list[str]]:
    """The template with the default values as its base problem, if they give an answer."""
    base = _base(template, defaults)
    if base is None:
        return template, [f"template {template.id}: no base problem: a slot lacks a default value"]
    try:
        template.fill(base)
    except InputError as error:
        return template, [f"template {template.id}: no base problem: {str(error).partition(': ')[2]}"]
    return replace(template, base=base), []


def _final_source(solution: Text) -> str | None:
    """The expression behind `####`, where the solution ends."""
    match solution.pieces[-3:]:
        case [*_, str(before), Hole(expression=expression), str(after)] if not after.strip():
            if before.rstrip(" $").endswith("####"):
                return expression.source
    return None


def _base(template: SymbolicTemplate, defaults: Mapping[str, str]) -> Point | None:
    """The original problem: the default values, and for one slot that has none a value that fits to the others."""
    values = {slot.name: _default(defaults.get(slot.name, ""), slot) for slot in template.slots}
    missing = [slot for slot in template.slots if values[slot.name] is None]
    if not missing:
        return tuple(values.values())  # type: ignore[arg-type]
    [slot, *others] = missing
    conditions = [constraint for constraint in template.constraints if slot.name in constraint.names]
    for value in slot.domain[:_MAX_TRIED] if not others else ():
        filled: dict[str, Value] = {name: value if known is None else known for name, known in values.items()}
        if all(condition.holds(filled) for condition in conditions):
            return tuple(filled.values())
    return None


def _default(written: str, slot: Slot) -> Value | None:
    """The value that a default stands for; it may lie outside the domain."""
    if not written:
        return None
    for value in slot.domain[:_MAX_TRIED]:
        word = value.word if isinstance(value, Pair) else value
        if isinstance(word, str) and word.casefold() == written.casefold():
            return value
    kind = common_kind(slot.domain)
    if kind is str:
        return written
    number = read_word(written)
    return Pair(written, number) if kind is Pair and number is not None else number
