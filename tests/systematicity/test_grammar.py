"""The grammar family: the translation of an artificial language, and the curriculum that gives it away."""

import re
from collections import Counter
from itertools import permutations, product

import numpy as np
import pytest

from robust_jax.errors import InputError
from robust_jax.randomness import rng
from robust_jax.systematicity.families import FAMILIES
from robust_jax.systematicity.families.grammar import (
    Composer,
    Parameters,
    Recomposition,
    Substitution,
    draw_function,
    draw_grammar,
)
from robust_jax.systematicity.rules.grammar import LONGEST, Function, Grammar, Words
from robust_jax.systematicity.solvers.grammar import FORMS, explanations, solve
from robust_jax.systematicity.task import Example
from robust_jax.systematicity.vocabularies import VOCABULARIES
from tests.systematicity.tasks import task, tasks

PRIMITIVES = (("dax", "RED"), ("lug", "BLUE"), ("wif", "GREEN"), ("tufa", "PINK"))


def words(text: str) -> Words:
    return tuple(text.split())


def grammar(*functions: Function) -> Grammar:
    return Grammar(PRIMITIVES, functions)


TRIPLE = Function("fep", "primitive", None, (0, 0, 0))
SWAP = Function("zup", "string", "string", (1, 0))


def test_the_published_example_parses_as_printed() -> None:
    """Section 4.1: fep triples what stands before it and zup swaps; the figure shows 3, 3, 2, 4 and 4 symbols."""
    language = grammar(SWAP, TRIPLE)
    printed = ["dax fep", "lug fep", "dax zup lug", "dax fep zup lug", "lug zup dax fep"]
    translations = [language(words(text)) for text in printed]
    assert [len(translation) for translation in translations] == [3, 3, 2, 4, 4]
    assert translations == [
        words("RED RED RED"),
        words("BLUE BLUE BLUE"),
        words("BLUE RED"),
        words("BLUE RED RED RED"),
        words("RED RED RED BLUE"),
    ]


DOUBLE_ALL = Function("kiki", "string", None, (0, 0))
SURROUND = Function("gazzer", "string", "primitive", (1, 0, 1))


@pytest.mark.parametrize(
    ("functions", "text", "translation"),
    [
        ((SWAP,), "dax", "RED"),
        ((SWAP,), "dax lug wif", "RED BLUE GREEN"),
        ((SWAP,), "dax lug zup wif", "GREEN RED BLUE"),
        # A string before a function reaches as far as it can: the last zup is the outer one.
        ((SWAP,), "dax zup lug zup wif", "GREEN BLUE RED"),
        # Priority decides which function takes the whole.
        ((SWAP, DOUBLE_ALL), "dax zup lug kiki", "BLUE BLUE RED"),
        ((DOUBLE_ALL, SWAP), "dax zup lug kiki", "BLUE RED BLUE RED"),
        ((SWAP, DOUBLE_ALL), "dax kiki zup lug", "BLUE RED RED"),
        ((SURROUND, SWAP), "dax zup lug gazzer wif", "GREEN BLUE RED GREEN"),
        ((SWAP, SURROUND), "dax zup lug gazzer wif", "GREEN BLUE GREEN RED"),
        # What nothing takes as a whole: the longest beginning that a rule takes, then the rest.
        ((TRIPLE, SWAP), "dax fep lug", "RED RED RED BLUE"),
        ((TRIPLE, SWAP), "dax lug fep", "RED BLUE BLUE BLUE"),
        ((SURROUND,), "dax lug gazzer wif tufa", "GREEN RED BLUE GREEN PINK"),
    ],
)
def test_translations_worked_out_by_hand(functions: tuple[Function, ...], text: str, translation: str) -> None:
    assert grammar(*functions)(words(text)) == words(translation)


@pytest.mark.parametrize("text", ["fep", "fep dax", "dax fep fep", "zup lug", "dax zup", "dax blicket", "blicket"])
def test_what_is_no_input_has_no_translation(text: str) -> None:
    language = grammar(SWAP, TRIPLE)
    assert language.translate(words(text)) is None
    with pytest.raises(ValueError, match="no input"):
        language(words(text))


def test_an_overrun_has_no_translation() -> None:
    language = grammar(DOUBLE_ALL)
    doubled = {kikis: language.translate(words("dax" + " kiki" * kikis)) for kikis in range(1, 40)}
    assert [kikis for kikis, translation in doubled.items() if translation is not None] == [1, 2, 3, 4]
    assert 2**4 <= LONGEST < 2**5


def translated_by_patterns(language: Grammar, text: str) -> str | None:
    """Another interpreter: rules as regular expressions on the text, whose quantifiers are greedy by themselves."""
    lexicon = dict(language.primitives)
    primitive, string = f"({'|'.join(lexicon)})", r"(\S+(?: \S+)*)"
    rules = [
        (re.compile(" ".join([{"primitive": primitive, "string": string}[f.before], f.word])), f.result)
        if f.after is None
        else (
            re.compile(
                " ".join(
                    [
                        {"primitive": primitive, "string": string}[f.before],
                        f.word,
                        {"primitive": primitive, "string": string}[f.after],
                    ]
                )
            ),
            f.result,
        )
        for f in language.functions
    ]

    def whole(part: str) -> list[str] | str | None:
        if part in lexicon:
            return lexicon[part]
        for pattern, result in rules:
            if found := pattern.fullmatch(part):
                return [found[place + 1] for place in result]
        return None

    def translate(part: str) -> str | None:
        found = whole(part)
        if isinstance(found, str):
            return found
        if found is None:
            spaces = [place for place, letter in enumerate(part) if letter == " "]
            place = next((place for place in reversed(spaces) if whole(part[:place]) is not None), None)
            if place is None:
                return None
            found = [part[:place], part[place + 1 :]]
        parts = [translate(one) for one in found]
        return None if None in parts else " ".join(one for one in parts if one)

    translation = translate(text)
    return translation if translation is not None and len(translation.split()) <= LONGEST else None


def random_grammar(seed: int) -> Grammar:
    generator = rng(seed, "test grammar")
    while (language := draw_grammar(Parameters(), generator)) is None:
        pass
    return language


@pytest.mark.parametrize("seed", range(40))
def test_translation_agrees_with_rules_as_patterns(seed: int) -> None:
    language, generator = random_grammar(seed), rng(seed, "test inputs")
    vocabulary = [*language.lexicon, *(function.word for function in language.functions)]
    texts = [" ".join(generator.choice(vocabulary, size=generator.integers(1, 9))) for _ in range(60)]
    texts += [" ".join(Composer(language, generator).composition()) for _ in range(20)]
    found = [language.translate(words(text)) for text in texts]
    assert [None if one is None else " ".join(one) for one in found] == [
        translated_by_patterns(language, text) for text in texts
    ]
    assert sum(one is not None for one in found) >= 15


def test_functions_are_drawn_as_the_grammar_says() -> None:
    generator = rng(0, "test functions")
    drawn = [draw_function("f", generator) for _ in range(4_000)]
    binary = [function for function in drawn if function.after is not None]
    assert {function.form for function in drawn} == set(FORMS)
    # Five standard deviations of a share of 4,000.
    assert abs(len(binary) / len(drawn) - 0.5) < 0.04
    assert abs(np.mean([function.before == "string" for function in drawn]) - 0.5) < 0.04
    assert abs(np.mean([function.after == "string" for function in binary]) - 0.5) < 0.06
    assert abs(np.mean([len(function.result) == 3 for function in drawn]) - 0.5) < 0.04
    triples = Counter(function.result for function in binary if len(function.result) == 3)
    assert max(triples.values()) < 1.5 * min(triples.values())


def test_a_language_has_a_string_function_and_no_two_alike() -> None:
    for seed in range(50):
        functions = random_grammar(seed).functions
        assert any("string" in (function.before, function.after) for function in functions)
        assert len({function.form for function in functions}) == len(functions) == 3


def test_the_curriculum_shows_every_primitive_function_and_order() -> None:
    for seed in range(30):
        language = random_grammar(seed)
        shown = list(Composer(language, rng(seed, "test curriculum")).curriculum())
        functions = {function.word: function for function in language.functions}
        used = [[word for word in text if word in functions] for text in shown]
        for primitive in language.lexicon:
            assert any(
                set(text) - functions.keys() == {primitive} and len(names) == 1
                for text, names in zip(shown, used, strict=True)
            )
        for word, function in functions.items():
            sizes = {len(text) - 1 for text, names in zip(shown, used, strict=True) if names == [word]}
            arguments = [argument for argument in (function.before, function.after) if argument]
            assert sum(2 if argument == "string" else 1 for argument in arguments) in sizes
        strings = [word for word, function in functions.items() if function.takes_string]
        for place, outer in enumerate(strings):
            for inner in strings[place + 1 :]:
                sides = {
                    "before" if names.index(inner) < names.index(outer) else "after"
                    for names in used
                    if sorted(names) == sorted([outer, inner])
                }
                expected = {side for side in ("before", "after") if getattr(functions[outer], side) == "string"}
                assert sides == expected
        assert all(language.translate(text) is not None for text in shown)


@pytest.mark.parametrize("number", range(3))
def test_the_curriculum_identifies_the_language(number: int) -> None:
    """All languages that explain it translate alike, on a thousand inputs that they all know."""
    made = task("grammar", number)
    language = made.rule
    assert isinstance(language, Grammar)
    composer = Composer(language, rng(number, "test query space"))
    inputs = {composer.composition() for _ in range(150)}
    space = sorted(text for text in inputs if len(text) <= LONGEST and language.translate(text) is not None)
    assert len(space) > 40
    found = solve(made.support, [*made.queries, *space])
    assert found == [language(text) for text in [*made.queries, *space]]


def test_the_learner_finds_exactly_what_blind_enumeration_finds() -> None:
    """Two primitives and two functions: every language is tried on the examples, without any pruning."""
    truth = Grammar(
        (("a", "A"), ("b", "B")), (Function("f", "string", "string", (1, 0)), Function("g", "string", None, (0, 0)))
    )
    support = [
        Example(words(text), truth(words(text))) for text in ("a g", "b f b", "a f b", "a b f b a", "a b g", "a f b g")
    ]
    blind = set()
    for primitives in permutations("abfg", 2):
        functions = [word for word in "abfg" if word not in primitives]
        for order in permutations(functions):
            for forms in product(FORMS, repeat=2):
                made = tuple(Function(word, *form) for word, form in zip(order, forms, strict=True))
                language = Grammar(tuple(zip(primitives, "AB", strict=True)), made)
                if all(language.translate(example.x) == example.y for example in support):
                    blind.add((frozenset(language.primitives), made))
    found = {(frozenset(language.primitives), language.functions) for language in explanations(support)}
    assert (frozenset(truth.primitives), truth.functions) in found
    # The learner leaves out orders of functions that never compete: they translate alike.
    assert found <= blind
    inputs = [text for size in range(1, 6) for text in product("abfg", repeat=size)]
    behaviour = {
        tuple(Grammar(tuple(sorted(primitives)), functions).translate(text) for text in inputs)
        for primitives, functions in blind
    }
    assert behaviour == {
        tuple(Grammar(tuple(sorted(primitives)), functions).translate(text) for text in inputs)
        for primitives, functions in found
    }


def test_queries_and_extras_are_nested_and_short() -> None:
    for made in tasks("grammar"):
        language = made.rule
        assert isinstance(language, Grammar)
        assert len(made.queries) == 10
        for text, translation in zip(made.queries, made.answers, strict=True):
            assert sum(word not in language.lexicon for word in text) >= 2
            assert len(text) <= LONGEST and len(translation) <= LONGEST


def test_recomposition_permutes_primitives_within_a_query() -> None:
    made = task("grammar", 0)
    language = made.rule
    assert isinstance(language, Grammar)
    change = FAMILIES["grammar"].change(made, "recomposition", rng(0, "test"))
    assert isinstance(change, Recomposition)
    from robust_jax.systematicity.task import Parts

    changed = change.apply(Parts(language, (), made.queries)).queries
    for old, new in zip(made.queries, changed, strict=True):
        assert Counter(old) == Counter(new)
        assert [word for word in old if word not in language.lexicon] == [
            word for word in new if word not in language.lexicon
        ]
        assert [word in language.lexicon for word in old] == [word in language.lexicon for word in new]
    assert changed != made.queries


def test_substitution_maps_outputs_by_the_symbols_it_names() -> None:
    made = task("grammar, numbers", 0)
    change = FAMILIES["grammar"].change(made, "substitution", rng(0, "test"))
    assert isinstance(change, Substitution)
    from robust_jax.systematicity.task import Parts

    changed = change.apply(Parts(made.rule, (), made.queries))
    symbols = dict(change.symbols)
    assert [changed.rule(x) for x in changed.queries] == [tuple(symbols[s] for s in y) for y in made.answers]
    assert {new for _, new in change.symbols} <= set(VOCABULARIES["numbers"][1])


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"primitives": 7}, "6 symbols, too few for 7 primitives"),
        ({"functions": 6}, "9 words"),
        ({"vocabulary": "words"}, "many-pseudowords, not 'words'"),
        ({"primitives": 1}, "grammar.primitives must be from 2"),
        ({"functions": 0}, "grammar.functions"),
        ({"extra": -1}, "grammar.extra"),
    ],
)
def test_impossible_settings_are_refused_in_one_line(settings: dict, named: str) -> None:
    with pytest.raises(InputError, match=re.escape(named)) as refusal:
        Parameters(**settings)
    assert "\n" not in str(refusal.value)


def test_a_larger_vocabulary_makes_room_for_more_rules() -> None:
    Parameters(primitives=7, functions=5, vocabulary="many-pseudowords")
    for known, symbols in VOCABULARIES.values():
        assert len(set(known)) == len(known) and len(set(symbols)) == len(symbols)
        assert not set(known) & set(symbols)
