"""Rewritings of the order of words, sentences and letters."""

import re

_WORD = re.compile(r"\S+")


def word_reversal(text: str) -> str:
    """The words in reverse order, while the white space between them keeps its place; its own inverse."""
    words = _WORD.findall(text)
    return _WORD.sub(lambda _: words.pop(), text)


def sentence_reversal(text: str) -> str:
    """The pieces between periods in reverse order; a first piece that would be empty goes to the end.

    Its own inverse, unless the text begins with a period.
    """
    pieces = text.split(".")[::-1]
    if pieces[0] == "":
        pieces = [*pieces[1:], ""]
    return ".".join(pieces)


def split_reversal(text: str) -> str:
    """Every word, as single spaces part them, with its characters reversed; its own inverse."""
    return " ".join(word[::-1] for word in text.split(" "))


def word_split_swap(text: str) -> str:
    """Every word, as single spaces part them, with its halves swapped; of an odd word the first half is the shorter."""
    return " ".join(_turned(word, len(word) // 2) for word in text.split(" "))


def invert_word_split_swap(text: str) -> str:
    """The text of which `word_split_swap` makes this one."""
    return " ".join(_turned(word, (len(word) + 1) // 2) for word in text.split(" "))


def _turned(word: str, place: int) -> str:
    return word[place:] + word[:place]
