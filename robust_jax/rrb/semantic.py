"""Rewritings of what words say: doubled negations, and words under other names with their definitions in the text."""

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from robust_jax.rrb.antonyms import antonym
from robust_jax.rrb.latex import Mask, Span, commands, latex_spans, words_in_math
from robust_jax.rrb.tagging import Word, tagged_words

NEGATIONS = "not not "
FACTORS = range(2, 11)
"""N of a wrapped word N(word)."""

_PLAIN_WORD = re.compile(r"[^\W_]+(?:[.,'’-][^\W_]+)*")
"""What a word may look like: a tag does not make a word of a sign."""
_LETTERS_AND_DIGITS = re.compile(r"[^\W_]+")
_MATH_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+")
_BLOCK = re.compile(r'\n\ndefyn\{((?:let "[^"\n]*" mean "[^"\n]*"(?:, )?)+)\}\.(\n\n|\Z)')
_ENTRY = re.compile(r'let "([^"\n]*)" mean "([^"\n]*)"')


# --------------------------------------------------------------------------------------------------
# Doubled negations


def not_not(text: str, share: float, generator: np.random.Generator) -> str:
    """`not not ` before the first adjective and before every second adjective or number, outside LaTeX and drawings.

    Args:
        text: a problem.
        share: of these places, how many are used, drawn at random.
        generator: draws them.

    Raises:
        InputError: spaCy or its model is not installed.
    """
    spans = latex_spans(text)
    eligible = [word for word in _words(text, spans) if word.part in ("ADJ", "NUM") and word.text.lower() != "such"]
    first_adjective = next((word for word in eligible if word.part == "ADJ"), None)
    chosen = [word for number, word in enumerate(eligible, start=1) if number % 2 == 0 or word is first_adjective]
    pieces, position = [], 0
    for word in _share_of(chosen, share, generator):
        pieces += [text[position : word.start], NEGATIONS]
        position = word.start
    return "".join([*pieces, text[position:]])


def invert_not_not(text: str) -> str:
    """The text without doubled negations: the original, unless that has some of its own."""
    return text.replace(NEGATIONS, "")


# --------------------------------------------------------------------------------------------------
# Words under other names


def opposites(text: str, share: float, generator: np.random.Generator) -> str:
    """Verbs and adjectives under the names of their antonyms, defined in the middle of the text.

    A word without an antonym, or whose antonym is in the text, gets `anti` before it. Capitals are kept. Formulas,
    commands and drawings stay as they are, but for the words of a formula's `\\text{}`.

    Args:
        text: a problem.
        share: how many of the different words are renamed, drawn at random.
        generator: draws them.

    Raises:
        InputError: spaCy or its model is not installed.
    """
    words = [
        word
        for word in _words(text, _without_words(text, latex_spans(text)))
        if word.part in ("VERB", "ADJ") and len(word.text) > 1 and _is_whole(word, text)
    ]
    present = {run.lower() for run in _LETTERS_AND_DIGITS.findall(text)}
    names: dict[str, str] = {}
    taken: set[str] = set()
    for word in _share_of(_by_spelling(words), share, generator):
        candidates = _candidates(word)
        name = next(name for name in candidates if name not in taken and not _occurs(name.lower(), text, present))
        names[word.text] = name
        taken.add(name)
    return _renamed(text, words, names)


def invert_opposites(text: str) -> str:
    """The text that `opposites` rewrote, by the definitions in it."""
    return _restored(text, r"(?<![^\W_])", r"(?![^\W_])")


def wrappers(text: str, share: float, generator: np.random.Generator) -> str:
    """Nouns, names, numbers and single letters (not a, A) as N(word), defined in the middle of the text.

    The N from 2 to 10 are drawn without repetition until they are used up. Commands and drawings stay as they are; in
    a formula every number and every run of letters is wrapped.

    Args:
        text: a problem.
        share: how many of the different words are wrapped, drawn at random.
        generator: draws them and their N.

    Raises:
        InputError: spaCy or its model is not installed.
    """
    spans = latex_spans(text)
    found = [
        word
        for word in _words(text, _without_words(text, spans))
        if word.part in ("NOUN", "PROPN", "NUM") or (len(word.text) == 1 and word.text.isalpha())
    ]
    found += [word for span in spans if span.kind == "math" for word in _math_words(text, span)]
    words = sorted(word for word in found if word.text not in ("a", "A"))
    names: dict[str, str] = {}
    pool: list[int] = []
    for word in _share_of(_by_spelling(words), share, generator):
        pool = pool or generator.permutation(FACTORS).tolist()
        # A name that the text has already would make two things of one; a word left without any stays as it is.
        factor = next((n for n in pool if f"{n}({word.text})" not in text), None)
        if factor is not None:
            pool.remove(factor)
            names[word.text] = f"{factor}({word.text})"
    return _renamed(text, words, names)


def invert_wrappers(text: str) -> str:
    """The text that `wrappers` rewrote, by the definitions in it."""
    return _restored(text)


def _renamed(text: str, words: Sequence[Word], names: Mapping[str, str]) -> str:
    """The text with its words under their new names, and the definitions at the space nearest to its middle."""
    if not names:
        return text
    pieces, position = [], 0
    for word in words:
        if word.text in names:
            pieces += [text[position : word.start], names[word.text]]
            position = word.end
    renamed = "".join([*pieces, text[position:]])
    block = "defyn{" + ", ".join(f'let "{new}" mean "{old}"' for old, new in names.items()) + "}."
    spaces = [place for place, symbol in enumerate(renamed) if symbol == " "]
    if not spaces:
        return f"{renamed}\n\n{block}"
    middle = min(spaces, key=lambda place: abs(2 * place + 1 - len(renamed)))
    return f"{renamed[:middle]}\n\n{block}\n\n{renamed[middle + 1 :]}"


def _restored(text: str, before: str = "", behind: str = "") -> str:
    """The text under its old names, without the definitions; a name counts where both patterns fit round it."""
    found = _BLOCK.search(text)
    if found is None:
        return text
    meanings = dict(_ENTRY.findall(found[1]))
    without = text[: found.start()] + (" " if found[2] else "") + text[found.end() :]
    names = "|".join(sorted(map(re.escape, meanings), key=len, reverse=True))
    return re.sub(f"{before}(?:{names}){behind}", lambda name: meanings[name[0]], without)


def _candidates(word: Word) -> Iterator[str]:
    """The antonym, then the word behind more and more of `anti`, all with the word's capitals."""
    opposite = antonym(word.part, word.text, word.lemma)
    if opposite is not None:
        yield _in_case_of(word.text, opposite)
    for count in itertools.count(1):
        yield _in_case_of(word.text, "anti" * count + word.text.lower())


def _in_case_of(word: str, opposite: str) -> str:
    if len(word) > 1 and word.isupper():
        return opposite.upper()
    return opposite[:1].upper() + opposite[1:] if word[:1].isupper() else opposite


def _occurs(name: str, text: str, present: set[str]) -> bool:
    return name in present if name.isalnum() else name in text.lower()


# --------------------------------------------------------------------------------------------------
# Which words


def _masked(text: str, spans: Iterable[Span]) -> str:
    """The text with every span as one word of x, so that all others keep their places and their neighbours."""
    pieces, position = [], 0
    for span in spans:
        pieces += [text[position : span.start], "x" * (span.end - span.start)]
        position = span.end
    return "".join([*pieces, text[position:]])


def _without_words(text: str, spans: Sequence[Span]) -> list[Span]:
    """The spans, cut so that the plain words of formulas lie outside."""
    cut: list[Span] = []
    for span in spans:
        position = span.start
        for words in words_in_math(text, span) if span.kind == "math" else ():
            cut.append(Span(position, words.start, span.kind))
            position = words.end
        cut.append(Span(position, span.end, span.kind))
    return cut


def _words(text: str, spans: Sequence[Span]) -> list[Word]:
    """The words outside the spans, with their parts of speech."""
    mask = Mask(spans)
    return [
        word
        for word in tagged_words(_masked(text, spans))
        if _PLAIN_WORD.fullmatch(word.text) and not mask.touches(word.start, word.end)
    ]


def _math_words(text: str, span: Span) -> list[Word]:
    """Numbers and runs of letters of a formula, outside its commands and plain words."""
    mask = Mask(sorted([*commands(text, span), *words_in_math(text, span)]))
    found = _MATH_WORD.finditer(text, span.start, span.end)
    return [Word(*word.span(), word[0], "", "") for word in found if not mask.touches(*word.span())]


def _is_whole(word: Word, text: str) -> bool:
    """Whether no letter or digit touches the word: `gonna` is tagged as two."""
    return not text[max(0, word.start - 1) : word.start].isalnum() and not text[word.end : word.end + 1].isalnum()


def _by_spelling(words: Iterable[Word]) -> list[Word]:
    """The first word of every spelling."""
    first: dict[str, Word] = {}
    for word in words:
        first.setdefault(word.text, word)
    return list(first.values())


def _share_of(words: Sequence[Word], share: float, generator: np.random.Generator) -> list[Word]:
    """That share of them, rounded up, drawn at random; in their order."""
    if share >= 1:
        return list(words)
    kept = generator.permutation(len(words))[: math.ceil(share * len(words))]
    return [words[place] for place in sorted(kept.tolist())]
