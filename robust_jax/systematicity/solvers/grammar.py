"""Learning an artificial language by enumeration (paper Section 4.1).

Every language with the forms of functions that the family draws is a hypothesis. The lexicon is settled first, then
each function from the examples in which it is alone, and last the functions together with their priority.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import get_args

from robust_jax.systematicity.rules.grammar import Argument, Function, Grammar, Words
from robust_jax.systematicity.task import Example

Examples = Sequence[Example[Words, Words]]


def solve(support: Examples, queries: Sequence[Words]) -> list[Words] | None:
    """The translations on which all languages agree that explain the support and know every query; None if none do."""
    agreed: list[Words] | None = None
    for grammar in explanations(support, queries):
        translations = [translation for query in queries if (translation := grammar.translate(query)) is not None]
        if len(translations) < len(queries):
            continue  # Every query is an input of the language.
        if agreed is not None and translations != agreed:
            return None
        agreed = translations
    return agreed


def explanations(support: Examples, queries: Sequence[Words] = ()) -> Iterator[Grammar]:
    """Every language that translates the support as it is translated there, equal ones under other names apart."""
    words = list(dict.fromkeys(word for text in (*(example.x for example in support), *queries) for word in text))
    for lexicon in _lexicons(words, support):
        functions = [word for word in words if word not in lexicon]
        choices = [_functions(word, lexicon, support) for word in functions]
        telling = [
            [
                example
                for example in support
                if word in example.x and {*lexicon, *functions[: number + 1]} >= {*example.x}
            ]
            for number, word in enumerate(functions)
        ]
        yield from _completions(Grammar(tuple(lexicon.items()), ()), choices, telling)


def _completions(
    grammar: Grammar, choices: Sequence[Sequence[Function]], telling: Sequence[Examples]
) -> Iterator[Grammar]:
    """The language with one more function of each choice, as long as it explains the examples that tell of it."""
    if not choices:
        yield grammar
        return
    for function in choices[0]:
        for extended in _extensions(grammar, function):
            if _explains(extended, telling[0]):
                yield from _completions(extended, choices[1:], telling[1:])


def _explains(grammar: Grammar, examples: Examples) -> bool:
    return all(grammar.translate(example.x) == example.y for example in examples)


def _extensions(grammar: Grammar, function: Function) -> Iterator[Grammar]:
    """The language with one function more, at every priority that can matter: one without a string never competes."""
    functions = grammar.functions
    strings = sum(known.takes_string for known in functions)
    for place in range(strings + 1) if function.takes_string else (len(functions),):
        yield Grammar(grammar.primitives, (*functions[:place], function, *functions[place:]))


def _forms() -> tuple[tuple[Argument, Argument | None, tuple[int, ...]], ...]:
    """Arguments and result of every function that there may be."""
    kinds = get_args(Argument)
    results = {
        arity: [result for size in (2, 3) for result in product(range(arity), repeat=size) if len(set(result)) == arity]
        for arity in (1, 2)
    }
    return tuple(
        (before, after, result)
        for before in kinds
        for after in (None, *kinds)
        for result in results[1 if after is None else 2]
    )


FORMS = _forms()


def _functions(word: str, lexicon: Mapping[str, str], support: Examples) -> list[Function]:
    """What a word may be, by the examples in which it is the only function."""
    known = {*lexicon, word}
    alone = [example for example in support if word in example.x and known.issuperset(example.x)]
    primitives = tuple(lexicon.items())
    functions = (Function(word, *form) for form in FORMS)
    return [function for function in functions if _explains(Grammar(primitives, (function,)), alone)]


def _lexicons(words: Sequence[str], support: Examples) -> Iterator[dict[str, str]]:
    """Every choice of primitives with their symbols that can explain which symbols stand in which translation.

    No function drops an argument, so an input has the symbols of all its primitives and no others. Different
    primitives have different symbols, and every symbol has one.
    """
    inputs = [(set(example.x), set(example.y)) for example in support]
    symbols = set().union(*(found for _, found in inputs))
    possible = {
        word: sorted(set.intersection(*meanings))
        for word in words
        if (meanings := [found for used, found in inputs if word in used])
    }

    def extend(number: int, lexicon: dict[str, str]) -> Iterator[dict[str, str]]:
        if number == len(words):
            if len(lexicon) == len(symbols) and all(
                {lexicon[word] for word in used if word in lexicon} == found for used, found in inputs
            ):
                yield lexicon
            return
        word = words[number]
        yield from extend(number + 1, lexicon)
        for symbol in possible.get(word, ()):
            if symbol not in lexicon.values():
                yield from extend(number + 1, {**lexicon, word: symbol})

    yield from extend(0, {})
