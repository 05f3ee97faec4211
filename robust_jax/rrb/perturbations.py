"""The rewritings of a problem: what each is called, how it is done and undone, what the model is told of it.

Text goes in normalised and comes out rewritten. What a rewriting draws at random hangs on the problem's id, the
rewriting's name and the seed alone, so that the same problem gives the same text whatever else is run.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import Literal, NamedTuple

from robust_jax.errors import InputError, nearest
from robust_jax.randomness import rng
from robust_jax.rrb import contextual, rules, semantic, syntactic, visual
from robust_jax.rrb.normalisation import normalise
from robust_jax.runs import check_least

Category = Literal["syntactic", "semantic", "contextual", "visual"]


@dataclass(frozen=True)
class Parameters:
    """What can be set of the rewritings; the defaults are the paper's.

    Raises:
        InputError: a number is out of its range.
    """

    rails: int = 3
    """Lines of the rail fence."""
    rows: int = 5
    """Lines of the snakes."""
    chunk: int = 60
    """Characters a line that the line interleaving takes from each problem."""
    share: float = 1.0
    """Share of the words that not_not, opposites and wrappers would rewrite, from 0 to 1, that they do rewrite."""

    def __post_init__(self) -> None:
        for name in ("rails", "rows", "chunk"):
            check_least(name, getattr(self, name), 1)
        if not 0 <= self.share <= 1:
            raise InputError(f"--share must lie between 0 and 1, not {self.share}")


class Setting(NamedTuple):
    """What a rewriting may use besides the text."""

    item: str
    """The problem's id."""
    distractor: str = ""
    """The other problem, B, normalised."""
    parameters: Parameters = Parameters()
    seed: int = 0


class Undoing(NamedTuple):
    """What undoing may use besides the rewritten text."""

    characters: int
    """Of the original, without the spaces round it."""
    words: int
    parameters: Parameters = Parameters()


@dataclass(frozen=True)
class Perturbation:
    """One rewriting."""

    name: str
    category: Category
    rewrite: Callable[[str, Setting], str]
    """Of a normalised text."""
    rule: Callable[[Parameters], str | None]
    """What the model is told of it; nothing if None."""
    undo: Callable[[str, Undoing], str]
    """The inverse, as far as there is one."""
    remains: str = ""
    """What undoing does not bring back; empty where it brings back everything."""
    uses_tags: bool = False
    """Whether it looks at parts of speech."""
    takes_distractor: bool = False
    """Whether it needs another problem."""
    is_picture: bool = False
    """Whether it takes one line and gives several, so that it must be the last of a composition."""
    is_defined: bool = False
    """Whether it writes definitions into the text."""


class Perturbed(NamedTuple):
    """A rewritten problem and what the model is told of how it was done."""

    text: str
    rule: str | None


def perturb(text: str, perturbation: Perturbation, setting: Setting) -> Perturbed:
    """Normalise a problem and its distractor, and rewrite the problem."""
    setting = setting._replace(distractor=normalise(setting.distractor))
    return Perturbed(perturbation.rewrite(normalise(text), setting), perturbation.rule(setting.parameters))


def undo(text: str, perturbation: Perturbation, original: str, parameters: Parameters = Parameters()) -> str:
    """The problem that was rewritten, as far as it can be told.

    Args:
        text: the rewritten problem.
        perturbation: how it was rewritten.
        original: only its length, in characters and in words, is used, and only to end an interleaving.
        parameters: as they were.
    """
    own = normalise(original).strip()
    return perturbation.undo(text, Undoing(len(own), len(own.split()), parameters))


def find_perturbation(name: str) -> Perturbation:
    """The rewriting of a name; `compose:a+b` does a and then b.

    Raises:
        InputError: there is none, or a composition cannot be written.
    """
    if name.startswith("compose:"):
        return compose([find_perturbation(part) for part in name.removeprefix("compose:").split("+")])
    if name not in PERTURBATIONS:
        near, known = nearest(name, PERTURBATIONS), ", ".join(PERTURBATIONS)
        raise InputError(f"there is no perturbation {name!r} (nearest: {near}); known: {known}")
    return PERTURBATIONS[name]


def compose(parts: list[Perturbation]) -> Perturbation:
    """Several rewritings in turn, as one of the last one's category.

    Raises:
        InputError: fewer than two, or one that cannot take what one before it gives.
    """
    names = "+".join(part.name for part in parts)
    if len(parts) < 2:
        raise InputError(f"compose:{names} has nothing to compose: name two or more, joined by +")
    for early, late in combinations(parts, 2):
        if early.is_picture or (early.is_defined and (late.is_picture or late.is_defined)):
            raise InputError(f"compose:{names}: {early.name} gives several lines, which {late.name} cannot take")
        if early.category == "semantic" and late.takes_distractor:
            raise InputError(f"compose:{names}: {early.name} changes the problem's length, by which {late.name} ends")
    told = [part for part in parts if part.rule(Parameters())]
    return Perturbation(
        name=f"compose:{names}",
        category=parts[-1].category,
        rewrite=lambda text, setting: reduce(lambda so_far, part: part.rewrite(so_far, setting), parts, text),
        rule=lambda parameters: rules.in_turn([part.rule(parameters) or "" for part in told]) if told else None,
        undo=lambda text, undoing: reduce(lambda so_far, part: part.undo(so_far, undoing), reversed(parts), text),
        uses_tags=any(part.uses_tags for part in parts),
        takes_distractor=any(part.takes_distractor for part in parts),
        remains="; ".join(part.remains for part in parts if part.remains),
        is_picture=parts[-1].is_picture,
        is_defined=any(part.is_defined for part in parts),
    )


def _semantic(name: str, rewrite: Callable[..., str], setting: Setting, text: str) -> str:
    return rewrite(text, setting.parameters.share, rng(setting.seed, name, setting.item))


STRIPPED = "spaces round the text"
ALL = (
    Perturbation(
        "word_reversal",
        "syntactic",
        rewrite=lambda text, _: syntactic.word_reversal(text),
        rule=lambda _: rules.WORD_REVERSAL,
        undo=lambda text, _: syntactic.word_reversal(text),
    ),
    Perturbation(
        "sentence_reversal",
        "syntactic",
        rewrite=lambda text, _: syntactic.sentence_reversal(text),
        rule=lambda _: rules.SENTENCE_REVERSAL,
        undo=lambda text, _: syntactic.sentence_reversal(text),
        remains="a period at the beginning",
    ),
    Perturbation(
        "split_reversal",
        "syntactic",
        rewrite=lambda text, _: syntactic.split_reversal(text),
        rule=lambda _: rules.SPLIT_REVERSAL,
        undo=lambda text, _: syntactic.split_reversal(text),
    ),
    Perturbation(
        "not_not",
        "semantic",
        rewrite=lambda text, setting: _semantic("not_not", semantic.not_not, setting, text),
        rule=lambda _: None,
        undo=lambda text, _: semantic.invert_not_not(text),
        uses_tags=True,
        remains="doubled negations of the text's own",
    ),
    Perturbation(
        "opposites",
        "semantic",
        rewrite=lambda text, setting: _semantic("opposites", semantic.opposites, setting, text),
        rule=lambda _: rules.OPPOSITES,
        undo=lambda text, _: semantic.invert_opposites(text),
        uses_tags=True,
        is_defined=True,
    ),
    Perturbation(
        "wrappers",
        "semantic",
        rewrite=lambda text, setting: _semantic("wrappers", semantic.wrappers, setting, text),
        rule=lambda _: rules.WRAPPERS,
        undo=lambda text, _: semantic.invert_wrappers(text),
        uses_tags=True,
        is_defined=True,
    ),
    Perturbation(
        "interleaved_line",
        "contextual",
        rewrite=lambda text, setting: contextual.interleaved_line(text, setting.distractor, setting.parameters.chunk),
        rule=lambda parameters: rules.interleaved_line(parameters.chunk),
        undo=lambda text, undoing: contextual.invert_interleaved_line(text, undoing.characters),
        remains=STRIPPED,
        takes_distractor=True,
        is_picture=True,
    ),
    Perturbation(
        "interleaved_word",
        "contextual",
        rewrite=lambda text, setting: contextual.interleaved_word(text, setting.distractor),
        rule=lambda _: rules.INTERLEAVED_WORD,
        undo=lambda text, undoing: contextual.invert_interleaved_word(text, undoing.words),
        remains="white space other than single spaces between words",
        takes_distractor=True,
    ),
    Perturbation(
        "interleaved_symbol",
        "contextual",
        rewrite=lambda text, setting: contextual.interleaved_symbol(text, setting.distractor),
        rule=lambda _: rules.INTERLEAVED_SYMBOL,
        undo=lambda text, undoing: contextual.invert_interleaved_symbol(text, undoing.characters),
        remains=STRIPPED,
        takes_distractor=True,
    ),
    Perturbation(
        "rail_fence",
        "visual",
        rewrite=lambda text, setting: visual.rail_fence(text, setting.parameters.rails),
        rule=lambda parameters: rules.rail_fence(parameters.rails),
        undo=lambda text, undoing: visual.invert_rail_fence(text, undoing.parameters.rails),
        is_picture=True,
    ),
    Perturbation(
        "rectangle_perimeter",
        "visual",
        rewrite=lambda text, _: visual.rectangle_perimeter(text),
        rule=lambda _: rules.RECTANGLE_PERIMETER,
        undo=lambda text, _: visual.invert_rectangle_perimeter(text),
        remains="spaces at the end",
        is_picture=True,
    ),
    Perturbation(
        "snake_vertical",
        "visual",
        rewrite=lambda text, setting: visual.snake_vertical(text, setting.parameters.rows),
        rule=lambda parameters: rules.snake_vertical(parameters.rows),
        undo=lambda text, _: visual.invert_snake_vertical(text),
        is_picture=True,
    ),
    Perturbation(
        "snake_horizontal",
        "visual",
        rewrite=lambda text, setting: visual.snake_horizontal(text, setting.parameters.rows),
        rule=lambda parameters: rules.snake_horizontal(parameters.rows),
        undo=lambda text, _: visual.invert_snake_horizontal(text),
        is_picture=True,
    ),
    Perturbation(
        "word_split_swap",
        "syntactic",
        rewrite=lambda text, _: syntactic.word_split_swap(text),
        rule=lambda _: rules.WORD_SPLIT_SWAP,
        undo=lambda text, _: syntactic.invert_word_split_swap(text),
    ),
)
PERTURBATIONS = {perturbation.name: perturbation for perturbation in ALL}
"""Every single rewriting by its name: the paper's 13, then the extra."""
THIRTEEN = tuple(name for name in PERTURBATIONS if name != "word_split_swap")
"""The paper's."""
