"""The rule of the grammar family: an artificial language and its translation (paper Section 4.1).

A language has primitives, each translated to one symbol, and functions, which take what stands before them, or before
and after, and rearrange and repeat its translation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Words = tuple[str, ...]
Argument = Literal["primitive", "string"]

LONGEST = 30
"""Words of an input, and symbols of its translation, at most."""


@dataclass(frozen=True)
class Function:
    """A word that transforms what stands beside it."""

    word: str
    before: Argument
    """What it takes from before itself: one primitive, or a whole string."""
    after: Argument | None
    """What it takes from after itself, if anything."""
    result: tuple[int, ...]
    """Its arguments' translations in the order in which they are written: 0 is the one before, 1 the one after."""

    @property
    def takes_string(self) -> bool:
        return "string" in (self.before, self.after)

    @property
    def form(self) -> tuple[Argument, Argument | None, tuple[int, ...]]:
        """The function without its name."""
        return self.before, self.after, self.result

    def place(self, words: Words, primitives: Mapping[str, str]) -> int | None:
        """Where it stands if it takes all of `words`, a string before it taken as long as it can be; else None."""
        last = len(words) - 1
        if self.after is None:
            place = last
        elif self.before == "primitive":
            place = 1
        elif self.after == "primitive":
            place = last - 1
        else:
            place = next((i for i in range(last - 1, 0, -1) if words[i] == self.word), 0)
        if not 0 < place <= last or words[place] != self.word:
            return None
        if self.before == "primitive" and not (place == 1 and words[0] in primitives):
            return None
        if self.after is None:
            return place
        if self.after == "primitive" and not (place == last - 1 and words[last] in primitives):
            return None
        return place if place < last else None

    def __str__(self) -> str:
        names = {"primitive": "uv", "string": "xy"}
        before = names[self.before][0]
        after = "" if self.after is None else names[self.after][1]
        result = " ".join(f"[{(before, after)[place]}]" for place in self.result)
        return f"{before} {self.word}{' ' + after if after else ''} → {result}"


@dataclass(frozen=True)
class Grammar:
    """A language: the first rule that takes the whole of an input applies to it, and its arguments follow suit."""

    primitives: tuple[tuple[str, str], ...]
    """Words with their symbols."""
    functions: tuple[Function, ...]
    """By priority: an earlier one takes the whole of an input before a later one can."""

    @cached_property
    def lexicon(self) -> dict[str, str]:
        return dict(self.primitives)

    def __call__(self, words: Words, /) -> Words:
        translation = self.translate(words)
        if translation is None:
            raise ValueError(f"{' '.join(words)!r} is no input of this language")
        return translation

    def translate(self, words: Words) -> Words | None:
        """The translation; None for what is no input of the language, or too long.

        What no rule takes as a whole is cut in two: the longest beginning that a rule takes as a whole is translated
        by itself, and then the rest. A single primitive is such a beginning.
        """
        parts = self._parts(words)
        if parts is None:
            return None
        if isinstance(parts, str):
            return (parts,)
        translated: list[str] = []
        known: dict[Words, Words] = {}
        for part in parts:
            if part not in known:
                translation = self.translate(part)
                if translation is None:
                    return None
                known[part] = translation
            translated += known[part]
            if len(translated) > LONGEST:
                return None
        return tuple(translated)

    def _parts(self, words: Words) -> str | tuple[Words, ...] | None:
        """What the translation is put together from: one symbol, or the translations of parts; None if nothing."""
        taken = self._taken(words)
        if taken is not None:
            return taken
        for end in range(len(words) - 1, 0, -1):
            if self._taken(words[:end]) is not None:
                return words[:end], words[end:]
        return None

    def _taken(self, words: Words) -> str | tuple[Words, ...] | None:
        """Like `_parts`, by a single rule that takes all the words."""
        if len(words) == 1:
            return self.lexicon.get(words[0])
        for function in self.functions:
            place = function.place(words, self.lexicon)
            if place is not None:
                arguments = (words[:place], words[place + 1 :])
                return tuple(arguments[number] for number in function.result)
        return None

    def __str__(self) -> str:
        rules = [f"{word} → {symbol}" for word, symbol in self.primitives]
        return "; ".join([*rules, *map(str, self.functions), "otherwise in turn"])
