"""Completing a matrix by trying every rule for every feature under every binding (paper Section 4.2)."""

from collections.abc import Sequence
from itertools import permutations, product

from robust_jax.systematicity.rules.raven import FIXED_RULES, Panel, Row, RowRule
from robust_jax.systematicity.task import Example


def solve(support: Sequence[Example[Row, Panel]], queries: Sequence[Row]) -> list[Panel] | None:
    """The panels on which all rules and bindings agree that explain the rows; None where they do not."""
    answers = [_answer(support, query) for query in queries]
    known = [answer for answer in answers if answer is not None]
    return known if len(known) == len(answers) else None


def _answer(support: Sequence[Example[Row, Panel]], query: Row) -> Panel | None:
    """The last panel, place by place; None where a place may hold several values, or none."""
    places = range(len(query[0]))
    values = {track: _values(support, query, *track) for track in product(places, repeat=3)}
    possible: list[set[int]] = [set() for _ in places]
    # A feature is known by its place in the first column; a binding says where it stands in the others.
    for second, third in product(permutations(places), repeat=2):
        tracks = list(zip(places, second, third, strict=True))
        if all(values[track] for track in tracks):
            for track in tracks:
                possible[track[2]] |= values[track]
    if any(len(found) != 1 for found in possible):
        return None
    return tuple(value for found in possible for value in found)


def _values(support: Sequence[Example[Row, Panel]], query: Row, first: int, second: int, third: int) -> set[int]:
    """What one feature may be in the last panel if it stands at these places, by every rule that explains its rows."""
    rows = [(example.x[0][first], example.x[1][second], example.y[third]) for example in support]
    asked = query[0][first], query[1][second]
    rules = [*FIXED_RULES, RowRule("distribute-three", values=tuple(sorted(set(rows[0]))))]
    return {
        value
        for rule in rules
        if all(rule.third(*row[:2]) == row[2] for row in rows) and (value := rule.third(*asked)) is not None
    }
