"""Rewritings that interleave the problem, A, with another one, B. The shorter starts over until the longer ends."""

from collections.abc import Sequence

TAG_A, TAG_B = "<Problem A> ", "<Problem B> "


def interleaved_line(text: str, distractor: str, chunk: int = 60) -> str:
    """Chunks of `chunk` characters of A and B in turn, A first, one a line, each behind its tag."""
    rows = _alternate(_chunks(text.strip(), chunk), _chunks(distractor.strip(), chunk))
    return "\n".join(f"{TAG_A}{own}\n{TAG_B}{other}" for own, other in rows)


def invert_interleaved_line(text: str, length: int) -> str:
    """A, without the spaces round it; `length` is its number of characters."""
    return "".join(line.removeprefix(TAG_A) for line in text.split("\n")[::2])[:length]


def interleaved_word(text: str, distractor: str) -> str:
    """Words of A and B in turn, A first, with single spaces between them."""
    return " ".join(word for pair in _alternate(text.split(), distractor.split()) for word in pair)


def invert_interleaved_word(text: str, length: int) -> str:
    """A with single spaces between its words; `length` is its number of words."""
    return " ".join(text.split(" ")[::2][:length])


def interleaved_symbol(text: str, distractor: str) -> str:
    """Characters of A and B in turn, A first, with nothing between them."""
    return "".join(symbol for pair in _alternate(text.strip(), distractor.strip()) for symbol in pair)


def invert_interleaved_symbol(text: str, length: int) -> str:
    """A, without the spaces round it; `length` is its number of characters."""
    return text[::2][:length]


def _chunks(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _alternate(own: Sequence[str], other: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs until the longer sequence ends; an empty one fills its places with empty texts."""
    own, other = own or [""], other or [""]
    return [(own[place % len(own)], other[place % len(other)]) for place in range(max(len(own), len(other)))]
