"""What every page is made with: a template and a script become one file that opens offline and needs nothing else."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from robust_jax.report import drawing
from robust_jax.report.cards import Card
from robust_jax.report.drawing import Figure
from robust_jax.report.tables import Table
from robust_jax.report.wording import Headline

_FOLDER = Path(__file__).parent


def render_page(
    template: str,
    scripts: Sequence[str],
    *,
    run: Sequence[str],
    headline: Headline,
    drawings: Sequence[tuple[Figure, str]],
    tables: Sequence[Table],
    cards: Sequence[Card] = (),
    glossary: Mapping[str, str] = MappingProxyType({}),
    settings: Mapping[str, Any] | None = None,
    **values: Any,
) -> str:
    """A page as text, every value escaped but for what `json_block` and `inline_svg` give.

    Args:
        template: its file in this folder, which extends frame.html.
        scripts: the files of its script, in their order; no other script can run on the page.
        run: what tells the run from others: protocol, model, problems.
        headline: the finding.
        drawings: the figures with their SVG.
        tables: those that are shown as a whole.
        cards: the figures that a reader wants first.
        glossary: terms with their meaning.
        settings: of the run; None where there are several.
        values: what else the template uses.
    """
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    text = "\n".join((_FOLDER / script).read_text(encoding="utf-8") for script in ("elements.js", *scripts))
    page = environment.get_template(template).render(
        script=Markup(text),
        script_hash="sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode(),
        title=" · ".join(run),
        run=run,
        headline=headline,
        figures=[(figure, inline_svg(figure, svg)) for figure, svg in drawings],
        tables=tables,
        cards=cards,
        glossary=glossary,
        settings=settings,
        **values,
    )
    return re.sub("[\ud800-\udfff]", "\ufffd", page)  # half a character, which a reply may hold, has no UTF-8


def json_block(value: object) -> Markup:
    """JSON that cannot leave its script element: no `<` is left in it."""
    return Markup(json.dumps(value, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c"))


_VARIABLES = {
    drawing.INK: "var(--ink)",
    drawing.MUTED: "var(--muted)",
    drawing.RULE: "var(--rule)",
    drawing.PAPER: "var(--paper)",
    drawing.BASE: "var(--base)",
    drawing.RANDOM: "var(--random)",
    drawing.BEAM: "var(--beam)",
    drawing.METRIC: "var(--metric)",
}


def inline_svg(figure: Figure, svg: str) -> Markup:
    """The figure as an element of the page, in the page's colours, without the ids that figures share."""
    opening, content = svg[svg.index("<svg") :].split(">", 1)
    view = re.search(r'viewBox="[^"]*"', opening)
    content = re.sub(r'<g id="[^"]*"', "<g", content)
    for colour, variable in _VARIABLES.items():
        content = re.sub(f"(fill|stroke): {colour}", rf"\1: {variable}", content)
    return Markup(f'<svg role="img" aria-label="{Markup.escape(figure.title)}" {view[0] if view else ""}>{content}')
