"""The figures that a reader wants first, at the top of a page."""

from typing import NamedTuple

from robust_jax.report.inputs import Interval
from robust_jax.report.wording import percent, share_span


class Card(NamedTuple):
    """One figure at the top of the page."""

    label: str
    value: str
    span: str
    n: int | None
    arm: str
    """What its colour stands for."""


def accuracy_card(label: str, accuracy: Interval, arm: str) -> Card:
    """An accuracy as a card."""
    return Card(label, percent(accuracy["value"]), share_span(accuracy), accuracy["n"], arm)
