"""The page on which a run's problems or tasks are browsed one by one, each with what was asked and answered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from robust_jax.report.cards import Card
from robust_jax.report.drawing import Figure, as_svg
from robust_jax.report.html import json_block, render_page
from robust_jax.report.publishing import write_report_files
from robust_jax.report.tables import Table
from robust_jax.report.wording import Headline, one_line

MOST_CHARACTERS = 4_000_000
"""Of questions and replies, that a page holds: it is to be sent about and opened on a phone."""
LONGEST_TEXT = 4_000
"""Characters of a question or a reply that are shown: its beginning and its end, where the answer stands."""


@dataclass(frozen=True)
class Browsed:
    """What a page can show one by one."""

    heading: str
    thing: str
    """What one of them is called, such as `problem`."""
    note: str
    shown: Sequence[tuple[str, object]]
    """Name and content, as JSON for the page's script, of those that the page has room for."""
    given: int
    """How many there are in all."""


def write_browsing_report(
    directory: Path,
    script: str,
    *,
    run: Sequence[str],
    finding: Headline,
    figures: Sequence[Figure],
    tables: Sequence[Table],
    glossary: Mapping[str, str],
    cards: Sequence[Card] = (),
    settings: Mapping[str, Any] | None = None,
    browsed: Browsed | None = None,
) -> None:
    """Writes the page, `tables.md` and `figures/` of a run, or of several side by side.

    Args:
        directory: made if it does not exist.
        script: the file that tells `browse` how one of what is browsed looks.
        run: see `render_page`, as for cards, glossary and settings.
        finding: the headline.
        figures: what is drawn.
        tables: what is shown as a whole.
        browsed: what is shown one by one; None for several runs.

    Raises:
        RunError: a file cannot be written.
    """
    drawings = [(figure, as_svg(figure)) for figure in figures]
    blocks = browsed and {
        "heading": browsed.heading,
        "thing": browsed.thing,
        "note": browsed.note,
        "names": json_block([one_line(name) for name, _ in browsed.shown]),
        "blocks": [json_block(content) for _, content in browsed.shown],
        "given": browsed.given,
    }
    page = render_page(
        "browse.html",
        ["browse.js", script],
        run=run,
        headline=finding,
        drawings=drawings,
        tables=tables,
        cards=cards,
        glossary=glossary,
        settings=settings,
        browsed=blocks if browsed and browsed.shown else None,
    )
    write_report_files(directory, page, drawings, tables)


def shortened(text: str) -> str:
    """A text's beginning and end where it is too long to be shown."""
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters left out …\n{text[-half:]}"
