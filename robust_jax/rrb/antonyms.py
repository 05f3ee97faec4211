"""Antonyms of verbs and adjectives, from a table that `experiments/rrb/antonyms.py` made of WordNet."""

from functools import cache
from importlib import resources

TABLE = "antonyms.tsv"


def antonym(part: str, word: str, lemma: str) -> str | None:
    """The antonym of a verb or an adjective, looked up as it stands and then by its dictionary form.

    Of several, the table holds the one of fewest words, then the shortest, then the first of the alphabet.

    Args:
        part: VERB or ADJ.
        word: as the text has it.
        lemma: its dictionary form.
    """
    table = _table()
    return table.get((part, word.lower())) or table.get((part, lemma.lower()))


@cache
def _table() -> dict[tuple[str, str], str]:
    lines = (resources.files("robust_jax.rrb") / TABLE).read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return {(part, word): opposite for part, word, opposite in rows}
