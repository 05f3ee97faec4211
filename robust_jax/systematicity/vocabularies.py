"""The words and symbols of the artificial languages."""

from collections.abc import Mapping
from string import ascii_lowercase, ascii_uppercase

PSEUDOWORDS = ("dax", "lug", "wif", "zup", "fep", "blicket", "kiki", "tufa", "gazzer")
MORE_PSEUDOWORDS = """
bivo cruzz delm doffin ebbit fasp frolo gomp grilda hask imber jorvy klee lemmo manx morp nilt noba orfit plim
pozzle quib rasto rundle sarn skiv sulo tharn tiggo umple vask velb vondo wenzo wurf yarl yombi zant zib zolt
"""
COLOURS = ("RED", "YELLOW", "GREEN", "BLUE", "PURPLE", "PINK")
MORE_COLOURS = """
ORANGE BROWN BLACK WHITE GREY TEAL GOLD SILVER CYAN MAROON OLIVE NAVY LIME CORAL INDIGO VIOLET BEIGE IVORY
"""

VOCABULARIES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "pseudowords": (PSEUDOWORDS, COLOURS),
    "letters": (tuple(ascii_lowercase), tuple(ascii_uppercase)),
    "numbers": (tuple(map(str, range(100))), tuple(map(str, range(100, 200)))),
    "many-pseudowords": ((*PSEUDOWORDS, *MORE_PSEUDOWORDS.split()), (*COLOURS, *MORE_COLOURS.split())),
}
"""By name: the words that a language is made of, and the symbols that they are translated to."""
