"""Grammar-based instruction learning (paper Section 4.1): translating an artificial language from examples."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import factorial, prod

import numpy as np

from robust_jax.errors import InputError
from robust_jax.systematicity.rules.grammar import LONGEST, Argument, Function, Grammar, Words
from robust_jax.systematicity.task import Change, Deal, Draft, Kind, Parts, Task
from robust_jax.systematicity.vocabularies import VOCABULARIES

QUERIES = 10
DEEPEST = 3
"""How many functions stand within one another at most in an input that is composed."""
ORDERS = 30
"""Draws of the order of a query's primitives before one that makes it equal another input is kept."""
FEWEST_RECOMPOSITIONS = 1_000_000
"""Ways, at least, in which the primitives of all queries can stand: a language of little more than functions of one
argument leaves too few."""
PROBES = 40
"""Further inputs on which the curriculum must settle the translation, so that it settles the language."""


@dataclass(frozen=True)
class Parameters:
    """Settings of the grammar family.

    Raises:
        InputError: the vocabulary is too small, or there are not so many functions.
    """

    primitives: int = 4
    """Words with a translation of their own."""
    functions: int = 3
    """Words that transform what stands beside them."""
    extra: int = 4
    """Support examples beyond the curriculum (Figure 8B)."""
    vocabulary: str = "pseudowords"
    """pseudowords, letters, numbers or many-pseudowords."""

    def __post_init__(self) -> None:
        for name, least, most in (("primitives", 2, 99), ("functions", 1, 8), ("extra", 0, 100)):
            if not least <= getattr(self, name) <= most:
                raise InputError(f"grammar.{name} must be from {least} to {most}, not {getattr(self, name)}")
        if self.vocabulary not in VOCABULARIES:
            raise InputError(f"grammar.vocabulary must be one of {', '.join(VOCABULARIES)}, not {self.vocabulary!r}")
        words, symbols = VOCABULARIES[self.vocabulary]
        if self.primitives + self.functions > len(words) or self.primitives > len(symbols):
            raise InputError(
                f"grammar.vocabulary={self.vocabulary} has {len(words)} words and {len(symbols)} symbols, too few for "
                f"{self.primitives} primitives and {self.functions} functions: choose another or smaller numbers"
            )


def draw_function(word: str, generator: np.random.Generator) -> Function:
    """A function: one argument or two, each a primitive or a string, and a result of two or three entries."""
    before = _draw_argument(generator)
    after = _draw_argument(generator) if generator.integers(2) else None
    arity = 1 if after is None else 2
    length = int(generator.integers(2, 4))
    result = [*range(arity), *generator.integers(arity, size=length - arity).tolist()]
    generator.shuffle(result)
    return Function(word, before, after, tuple(result))


def _draw_argument(generator: np.random.Generator) -> Argument:
    return "string" if generator.integers(2) else "primitive"


def draw_grammar(parameters: Parameters, generator: np.random.Generator) -> Grammar | None:
    """A language; None where two functions are alike or none takes a string."""
    words, symbols = VOCABULARIES[parameters.vocabulary]
    chosen = _some(words, parameters.primitives + parameters.functions, generator)
    meanings = _some(symbols, parameters.primitives, generator)
    primitives = tuple(zip(chosen, meanings, strict=False))
    functions = tuple(draw_function(word, generator) for word in chosen[parameters.primitives :])
    if len({function.form for function in functions}) < len(functions):
        return None
    return Grammar(primitives, functions) if any(function.takes_string for function in functions) else None


def _some(items: Sequence[str], count: int, generator: np.random.Generator) -> list[str]:
    return [items[place] for place in generator.permutation(len(items))[:count].tolist()]


@dataclass(frozen=True)
class Composer:
    """Puts together inputs of a language."""

    grammar: Grammar
    generator: np.random.Generator

    def primitives(self, count: int) -> Words:
        """Primitives in random order, none twice as long as there are others."""
        words = list(self.grammar.lexicon)
        repeated = -(-count // len(words))
        return tuple(word for _ in range(repeated) for word in _some(words, len(words), self.generator))[:count]

    def applied(self, function: Function, before: Words, after: Words) -> Words:
        """A function word with its arguments."""
        return (*before, function.word, *(after if function.after else ()))

    def curriculum(self) -> Iterator[Words]:
        """What shows the language, rule by rule (Section 4.1, support and query set)."""
        functions = self.grammar.functions
        yield from self.lexical_anchors()
        for function in functions:
            yield from self.template_resolvers(function)
        strings = [function for function in functions if function.takes_string]
        others = [function for function in functions if not function.takes_string]
        for outer, inner in combinations([*strings, *others], 2):
            yield from self.precedence_proofs(outer, inner)

    def lexical_anchors(self) -> Iterator[Words]:
        """Every primitive under some function; one with two arguments gets it twice."""
        for word in self.grammar.lexicon:
            function = self.grammar.functions[int(self.generator.integers(len(self.grammar.functions)))]
            yield self.applied(function, (word,), (word,))

    def template_resolvers(self, function: Function) -> Iterator[Words]:
        """The function with two primitives for every string; and where it takes single primitives, once more with a
        further primitive beside each, which shows that it leaves that one alone.
        """
        for beside in (1, 2) if "primitive" in (function.before, function.after) else (1,):
            size = {"primitive": beside, "string": 3 - beside}
            before, after = size[function.before], size[function.after or "primitive"]
            words = self.primitives(before + after)
            yield self.applied(function, words[:before], words[before:])

    def precedence_proofs(self, outer: Function, inner: Function) -> Iterator[Words]:
        """A function of higher priority with another one inside its string, on both sides if both are strings.

        A function of single primitives comes last: nothing else shows that it does not take the whole string.
        """
        if outer.before == "string":
            a, b, c = self.primitives(3)
            yield self.applied(outer, self.applied(inner, (a,), (b,)), (c,))
        if outer.after == "string":
            a, b, c = self.primitives(3)
            yield self.applied(outer, (a,), self.applied(inner, (b,), (c,)))

    def composition(self, depth: int = DEEPEST) -> Words:
        """A random function whose strings are compositions again, or one or two primitives."""
        functions = self.grammar.functions
        function = functions[int(self.generator.integers(len(functions)))]
        arguments = [self._argument(argument, depth - 1) for argument in (function.before, function.after) if argument]
        return self.applied(function, arguments[0], arguments[-1])

    def _argument(self, argument: Argument, depth: int) -> Words:
        if argument == "string" and depth > 0 and self.generator.random() < 0.7:
            return self.composition(depth)
        return self.primitives(int(self.generator.integers(1, 3)) if argument == "string" else 1)

    def compositions(self, count: int, seen: set[Words]) -> tuple[Words, ...] | None:
        """Distinct inputs with at least two function words, none of them seen; None if they do not come about."""
        found: list[Words] = []
        for _ in range(100 * count):
            if len(found) == count:
                return tuple(found)
            words = self.composition()
            functions = sum(word not in self.grammar.lexicon for word in words)
            if functions < 2 or len(words) > LONGEST or words in seen or self.grammar.translate(words) is None:
                continue
            seen.add(words)
            found.append(words)
        return tuple(found) if len(found) == count else None


# --------------------------------------------------------------------------------------------------
# Changes of the surface


@dataclass(frozen=True)
class Substitution:
    """Other words and other symbols: φ renames the words of every input, ψ the symbols of its translation."""

    words: tuple[tuple[str, str], ...]
    """Every word of the language with the one that takes its place."""
    symbols: tuple[tuple[str, str], ...]

    def apply(self, parts: Parts[Words, Words]) -> Parts[Words, Words]:
        grammar = parts.rule
        assert isinstance(grammar, Grammar)
        words, symbols = dict(self.words), dict(self.symbols)
        renamed = Grammar(
            tuple((words[word], symbols[symbol]) for word, symbol in grammar.primitives),
            tuple(replace(function, word=words[function.word]) for function in grammar.functions),
        )
        support, queries = (
            tuple(tuple(words[word] for word in text) for text in texts) for texts in (parts.support, parts.queries)
        )
        return Parts(renamed, support, queries)

    def inverse(self) -> "Substitution":
        return Substitution(
            tuple((new, old) for old, new in self.words), tuple((new, old) for old, new in self.symbols)
        )


@dataclass(frozen=True)
class Recomposition:
    """The primitives of every query in another order; the language and the support stay as they are."""

    orders: tuple[tuple[int, ...], ...]
    """One for each query: its i-th primitive is the one that was number order[i]."""

    def apply(self, parts: Parts[Words, Words]) -> Parts[Words, Words]:
        grammar = parts.rule
        assert isinstance(grammar, Grammar)
        queries = zip(parts.queries, self.orders, strict=True)
        return replace(parts, queries=tuple(reordered(query, order, grammar) for query, order in queries))

    def inverse(self) -> "Recomposition":
        return Recomposition(tuple(tuple(sorted(range(len(o)), key=o.__getitem__)) for o in self.orders))


def reordered(query: Words, order: Sequence[int], grammar: Grammar) -> Words:
    """A query whose i-th primitive is the one that was number order[i]."""
    primitives = [word for word in query if word in grammar.lexicon]
    permuted = (primitives[place] for place in order)
    return tuple(next(permuted) if word in grammar.lexicon else word for word in query)


def _arrangements(query: Words, grammar: Grammar) -> int:
    """In how many ways its primitives can stand."""
    counts = Counter(word for word in query if word in grammar.lexicon)
    return factorial(counts.total()) // prod(map(factorial, counts.values()))


def _draw_recomposition(task: Task[Words, Words], grammar: Grammar, generator: np.random.Generator) -> Recomposition:
    """An order for every query, drawn until it is like no other input; a query that has no such order keeps one."""
    seen = {example.x for example in task.support}
    orders = []
    for query in task.queries:
        count = sum(word in grammar.lexicon for word in query)
        for _ in range(ORDERS):
            order = tuple(generator.permutation(count).tolist())
            permuted = reordered(query, order, grammar)
            if permuted not in seen:
                break
        seen.add(permuted)
        orders.append(order)
    return Recomposition(tuple(orders))


# --------------------------------------------------------------------------------------------------
# The family


class GrammarFamily:
    """Implements `task.Family`."""

    name = "grammar"
    parameters = Parameters
    title = "Translate inputs of an artificial language, going by examples."
    answer_form = "a string of symbols with spaces between them"

    def kinds(self, parameters: Parameters) -> tuple[Kind, ...]:
        return ("substitution", "recomposition", "reordering")

    def draft(self, parameters: Parameters, deal: Deal, generator: np.random.Generator) -> Draft[Words, Words] | None:
        grammar = draw_grammar(parameters, generator)
        if grammar is None:
            return None
        composer = Composer(grammar, generator)
        curriculum = tuple(dict.fromkeys(composer.curriculum()))
        if any(grammar.translate(words) is None for words in curriculum):
            return None
        seen = set(curriculum)
        queries = composer.compositions(QUERIES, seen)
        extra = composer.compositions(parameters.extra, seen)
        probes = composer.compositions(PROBES, set())
        if queries is None or extra is None or probes is None:
            return None
        if prod(_arrangements(query, grammar) for query in queries) < FEWEST_RECOMPOSITIONS:
            return None
        return Draft(grammar, curriculum, queries, extra, probes)

    def change(self, task: Task[Words, Words], kind: Kind, generator: np.random.Generator) -> Change[Words, Words]:
        grammar = task.rule
        assert isinstance(grammar, Grammar)
        if kind == "recomposition":
            return _draw_recomposition(task, grammar, generator)
        words, symbols = VOCABULARIES[task.parameters.vocabulary]
        old_words = [*grammar.lexicon, *(function.word for function in grammar.functions)]
        old_symbols = list(grammar.lexicon.values())
        return Substitution(
            tuple(zip(old_words, _some(words, len(old_words), generator), strict=True)),
            tuple(zip(old_symbols, _some(symbols, len(old_symbols), generator), strict=True)),
        )

    def instructions(self, task: Task[Words, Words]) -> str:
        return INSTRUCTIONS

    def show_input(self, x: Words) -> str:
        return " ".join(x)

    show_output = show_input

    def read_input(self, text: str) -> Words:
        return tuple(text.split())

    def read_output(self, value: object) -> Words | None:
        """Symbols with spaces or commas between them, or a list of them."""
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(part, (str, int)) and not isinstance(part, bool) for part in parts):
            return None
        return tuple(word for part in parts for word in str(part).upper().replace(",", " ").split())

    def output_schema(self, task: Task[Words, Words]) -> Mapping[str, object]:
        return {"type": "string"}


INSTRUCTIONS = """Every input is a sequence of words of the artificial language; its translation is a sequence of \
symbols.
- Some words are primitives. A primitive is translated to one symbol, always the same; different primitives are \
translated to different symbols.
- The other words are functions. A function takes what stands directly before it, or what stands directly before and \
directly after it. What it takes on either side is, depending on the function and the side, either exactly one \
primitive or a whole string of words. A function is translated to the translations of what it takes, in some order \
and some of them repeated; it leaves none of them out and adds nothing.
- If a function can take all the rest of an input, it does, and what it takes is translated in the same way. If \
several functions can, the one of the highest priority does: the functions that take a string have a fixed order of \
priority. A string before a function reaches as far as it can.
- If no function can take all the rest of an input, the longest beginning that is a primitive, or that a function can \
take as a whole, is translated by itself, and then what follows it in the same way.

Work out from the examples what every word does. Then translate every query."""


FAMILY = GrammarFamily()
