"""Makes the table of antonyms out of WordNet's data files (Debian: the package wordnet-base).

python experiments/rrb/antonyms.py /usr/share/wordnet robust_jax/rrb/antonyms.tsv
"""

import argparse
from collections import defaultdict
from pathlib import Path

FILES = {"VERB": "data.verb", "ADJ": "data.adj"}
HEAD = "# Antonyms of verbs and adjectives: part of speech, word, antonym. Made by experiments/rrb/antonyms.py of\n# "


def read(path: Path) -> tuple[str, dict[str, set[str]]]:
    """The licence at the head of a data file, and every antonym that the file gives of each word.

    A line holds: offset, file number, type, number of words (hexadecimal), word and id for each, number of pointers,
    and for each pointer its symbol, the offset and type it points to, and the numbers of the two words it relates.
    """
    licence, synsets = [], {}
    for line in path.read_text(encoding="ascii").splitlines():
        if line.startswith("  "):
            licence.append(line.strip().partition(" ")[2].strip())
            continue
        fields = line.partition(" | ")[0].split()
        count = int(fields[3], 16)
        words = [_plain(word) for word in fields[4 : 4 + 2 * count : 2]]
        first = 5 + 2 * count
        ends = first + 4 * int(fields[first - 1])
        synsets[fields[0]] = (words, [fields[start : start + 4] for start in range(first, ends, 4)])
    antonyms: dict[str, set[str]] = defaultdict(set)
    for words, pointers in synsets.values():
        for symbol, target, _, places in pointers:
            if symbol == "!" and target in synsets:
                source, opposite = int(places[:2], 16), int(places[2:], 16)
                antonyms[words[source - 1]].add(synsets[target][0][opposite - 1])
    return " ".join(licence), antonyms


def _plain(word: str) -> str:
    """Without the mark of an adjective's position, such as (a), and with spaces for underscores."""
    return word.partition("(")[0].replace("_", " ").lower()


def main(wordnet: Path, out: Path) -> None:
    rows = []
    for part, name in FILES.items():
        licence, antonyms = read(wordnet / name)
        for word, opposites in sorted(antonyms.items()):
            ranked = sorted(opposites - {word}, key=lambda other: (len(other.split()), len(other), other))
            rows += [f"{part}\t{word}\t{best}" for best in ranked[:1]]
    source = f"WordNet, whose licence follows.\n# {licence}\n"
    out.write_text(HEAD + source + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of WordNet's data files")
    parser.add_argument("out", type=Path, help="the table")
    given = parser.parse_args()
    main(given.folder, given.out)
