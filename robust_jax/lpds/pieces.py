"""A template's question as a chain of pieces that are tokenised alone, so that no variation has to be tokenised whole.

The mean embedding of a variation is then a sum over its pieces (paper Section 4.1, E_i). That holds only where no token
reaches over the edge of two pieces. Each hole of the question therefore grows through its neighbouring text up to the
nearest single spaces, where tokenizers cut; holes that meet become one piece with the values of both. Whether it holds
is not believed but tried, on every value of every piece and on random fillings.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from math import prod

import numpy as np
from jaxtyping import Float, Int

from robust_jax.difficulty import Term
from robust_jax.errors import InputError
from robust_jax.problems.template import SymbolicTemplate
from robust_jax.problems.text import Hole, Text
from robust_jax.randomness import rng
from robust_jax.types import Point, Template, TokenEmbeddings, Value

MOST_VALUES = 20_000
"""Values of one piece: with more, its holes' slots have too many combinations to be written out."""
MOST_NUMBERS = 1 << 25
"""Numbers in the embedding sums of one template, 128 MiB."""
FILLINGS_TRIED = 500
CARRIER = "a"
"""Stands before a piece that is tokenised alone, because tokenizers treat the beginning of a text in its own way."""

Segment = tuple[str | Hole, ...]
"""A stretch of the question whose edges no token crosses."""

Numbers = tuple[Mapping[Value, int] | None, ...]
"""For each slot the number of each of its values; None for a slot that the question does not show."""


@dataclass(frozen=True, eq=False)
class SeparableQuestion:
    """A question whose mean embeddings are sums over pieces; made by `separated`."""

    terms: tuple[Term, ...]
    """G parts: the pieces that depend on the same slots, taken together."""
    _slots: tuple[tuple[int, ...], ...]
    """The slots that each term depends on, by position."""
    _numbers: Numbers

    def choices(self, points: Sequence[Point]) -> Int[np.ndarray, "C G"]:
        """Which piece of each term a filling has.

        Raises:
            KeyError: a value lies outside its slot's domain.
        """
        values = list(chain.from_iterable(points))  # zip(*points) would make an iterator a point
        of_slot = [
            np.fromiter(map(known.__getitem__, values[place :: len(self._numbers)]), np.int64, len(points))
            if known
            else np.zeros(0, np.int64)
            for place, known in enumerate(self._numbers)
        ]
        found = np.zeros((len(self.terms), len(points)), np.int64)
        for row, slots in zip(found, self._slots, strict=True):
            for slot in slots:
                row *= len(self._numbers[slot] or ())
                row += of_slot[slot]
        return found.T


def separated(template: Template, model: TokenEmbeddings) -> SeparableQuestion | None:
    """The template's question in pieces, or None where its tokens or its slots do not allow it."""
    if not isinstance(template, SymbolicTemplate):
        return None
    parts = [_Part.of(template, segment) for segment in segments(template.question)]
    by_slots: dict[tuple[int, ...], list[_Part]] = {}
    for part in parts:
        by_slots.setdefault(part.slots, []).append(part)
    sizes = {slots: prod(len(template.slots[slot].domain) for slot in slots) for slots in by_slots}
    width = model.embedding_table.shape[1]
    if max(sizes.values()) > MOST_VALUES or sum(sizes.values()) * width > MOST_NUMBERS:
        return None
    shown = {slot for slots in by_slots for slot in slots}
    numbers = tuple(
        {value: number for number, value in enumerate(dict.fromkeys(slot.domain))} if place in shown else None
        for place, slot in enumerate(template.slots)
    )
    for place, part in enumerate(parts):
        part.write(template, numbers)
        if not part.tokenise(model, begins=place == 0):
            return None
    if not _holds(template, parts, numbers, model):
        return None
    terms = tuple(_term(of_slots, model.embedding_table) for of_slots in by_slots.values())
    return SeparableQuestion(terms, tuple(by_slots), numbers)


def segments(question: Text) -> Iterator[Segment]:
    """The question cut at single spaces: every segment but the first begins at one, and holds no cut beside a hole."""
    grown: list[str | Hole] = []
    for piece in question.pieces:
        cuts = [] if isinstance(piece, Hole) else _cuts(piece)
        if isinstance(piece, Hole) or not cuts:
            grown.append(piece)
            continue
        # A text of words alone ends at its last cut; a hole is left behind at the first.
        first = cuts[0] if any(isinstance(part, Hole) for part in grown) else cuts[-1]
        yield (*grown, piece[:first])
        if first < cuts[-1]:
            yield (piece[first : cuts[-1]],)
        grown = [piece[cuts[-1] :]]
    yield tuple(grown)


def _cuts(literal: str) -> list[int]:
    """Where single spaces begin; beside the literal stand holes, whose values have no spaces at their edges."""
    padded = f".{literal}."
    return [
        place
        for place, letter in enumerate(literal)
        if letter == " " and not padded[place].isspace() and not padded[place + 2].isspace()
    ]


@dataclass
class _Part:
    """A segment with the texts and the tokens of all its values."""

    segment: Segment
    slots: tuple[int, ...]
    texts: list[str | None]
    """By the number of the value; None where a hole has no value there, which no valid filling asks for."""
    ids: list[list[int]]

    @classmethod
    def of(cls, template: SymbolicTemplate, segment: Segment) -> "_Part":
        names = frozenset().union(*(part.expression.names for part in segment if isinstance(part, Hole)))
        slots = tuple(place for place, slot in enumerate(template.slots) if slot.name in names)
        return cls(segment, slots, [], [])

    def write(self, template: SymbolicTemplate, numbers: Numbers) -> None:
        """Write the segment out for every combination of its slots' values."""
        names = [template.slots[slot].name for slot in self.slots]
        for values in product(*(numbers[slot] or () for slot in self.slots)):
            try:
                self.texts.append(_written(self.segment, dict(zip(names, values, strict=True))))
            except InputError:
                self.texts.append(None)

    def tokenise(self, model: TokenEmbeddings, *, begins: bool) -> bool:
        """Tokenise all texts alone; False where the carrier before them does not stay apart."""
        carrier = "" if begins else CARRIER
        [before] = model.tokenize_all([carrier]) if carrier else [[]]
        encoded = model.tokenize_all([carrier + (text or "") for text in self.texts])
        self.ids = [ids[len(before) :] for ids in encoded]
        return all(ids[: len(before)] == before for ids in encoded)

    def number(self, point: Point, numbers: Numbers) -> int:
        """The number of the part's text at a filling."""
        found = 0
        for slot in self.slots:
            known = numbers[slot]
            assert known is not None  # of a slot that the question shows
            found = found * len(known) + known[point[slot]]
        return found


def _written(segment: Segment, values: Mapping[str, Value]) -> str:
    return "".join(part if isinstance(part, str) else part.render(values) for part in segment)


def _holds(template: SymbolicTemplate, parts: Sequence[_Part], numbers: Numbers, model: TokenEmbeddings) -> bool:
    """Whether the pieces' tokens are those of the whole text, for every value of each piece and for random fillings."""
    generator = rng(0, "separability", template.id)
    points = [template.random(generator) for _ in range(FILLINGS_TRIED)]
    rows = [[part.number(point, numbers) for part in parts] for point in points]
    tried = [(row, template.text(point)) for row, point in zip(rows, points, strict=True)]
    shown = [part.texts[number] or "" for part, number in zip(parts, rows[0], strict=True)]
    for place, part in enumerate(parts):
        for number, text in enumerate(part.texts):
            if text is not None:
                row = [*rows[0][:place], number, *rows[0][place + 1 :]]
                tried.append((row, "".join([*shown[:place], text, *shown[place + 1 :]])))
    whole = model.tokenize_all([text for _, text in tried])
    return all(
        [token for part, number in zip(parts, row, strict=True) for token in part.ids[number]] == ids
        for (row, _), ids in zip(tried, whole, strict=True)
    )


def _term(parts: Sequence[_Part], table: Float[np.ndarray, "V D"]) -> Term:
    """The parts that depend on the same slots as one: their embedding sums and token counts, added up."""
    counts = np.array([[len(ids) for ids in part.ids] for part in parts])
    sums = np.zeros((counts.shape[1], table.shape[1]), np.float32)
    for number in range(counts.shape[1]):
        tokens = [token for part in parts for token in part.ids[number]]
        sums[number] = table[tokens].sum(axis=0, dtype=np.float64)
    return Term(sums, counts.sum(axis=0))
