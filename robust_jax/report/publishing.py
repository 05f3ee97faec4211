"""Every report's last step: the page, the tables and the figures as files, and the finding in the terminal."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from robust_jax.report.drawing import Figure, as_csv, as_png
from robust_jax.report.tables import Table, as_markdown, as_rich
from robust_jax.report.wording import Headline
from robust_jax.runs.writing import keeping, write_atomically


def write_report_files(
    directory: Path, page: str, drawings: Sequence[tuple[Figure, str]], tables: Sequence[Table]
) -> None:
    """Writes `report.html`, `tables.md` and `figures/`, each file as a whole or not at all.

    Args:
        directory: made if it does not exist.
        page: the content of `report.html`.
        drawings: each figure with its SVG; it is written as PNG and CSV, too.
        tables: the content of `tables.md`.

    Raises:
        RunError: a file cannot be written.
    """
    written = "\n".join(map(as_markdown, tables))
    files = {Path("report.html"): page.encode(), Path("tables.md"): written.encode("utf-8", "replace")}
    for figure, svg in drawings:
        files |= figure_files(figure, svg)
    write_files(directory, files)


def figure_files(figure: Figure, svg: str) -> dict[Path, bytes]:
    """A figure as SVG, PNG and CSV, by paths within a run directory."""
    path = Path("figures") / figure.name
    return {
        path.with_suffix(".svg"): svg.encode(),
        path.with_suffix(".png"): as_png(figure),
        path.with_suffix(".csv"): as_csv(figure).encode("utf-8", "replace"),
    }


def write_files(directory: Path, files: Mapping[Path, bytes]) -> None:
    """Writes `files` by their paths within `directory`, each as a whole or not at all.

    Raises:
        RunError: a file cannot be written.
    """
    with keeping(directory):
        for path, content in files.items():
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(directory / path, content)


def print_finding(finding: Headline, tables: Sequence[Table], console: Console) -> None:
    """Prints the finding in plain words and tables."""
    console.print(Text(finding.sentence, style="bold"))
    if finding.detail:
        console.print(Text(finding.detail))
    for table in tables:
        console.print()
        console.print(as_rich(table))
