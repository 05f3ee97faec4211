"""The word lists that GSM-Symbolic files name without giving them: written for this project, under the same names.

A list holds words, numbers, or pairs of a word and the number that it stands for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from robust_jax.problems.arithmetic import whole
from robust_jax.types import Number, Pair, Value

NAMES_FEMALE = (
    *("Abeni", "Adriana", "Agnes", "Akua", "Alma", "Anjali", "Astrid", "Beatriz", "Birgit", "Carmen", "Chiara"),
    *("Dalia", "Daniela", "Eilidh", "Elena", "Esperanza", "Farida", "Fiona", "Gabriela", "Greta", "Halima", "Hanna"),
    *("Helga", "Inaya", "Irene", "Jasmin", "Joana", "Kamala", "Karin", "Keiko", "Lakshmi", "Leyla", "Lotte", "Lucia"),
    *("Magdalena", "Mariam", "Marta", "Meera", "Nadia", "Naomi", "Ngozi", "Nina", "Paloma", "Petra", "Ramona"),
    *("Roza", "Sabine", "Sakura", "Samira", "Signe", "Tamar", "Teresa", "Uma", "Vera", "Wanjiru", "Yara", "Zainab"),
)
NAMES_MALE = (
    *("Adnan", "Akira", "Alejandro", "Anton", "Arjun", "Bashir", "Bogdan", "Bruno", "Cedric", "Chidi", "Dario"),
    *("Dmitri", "Eduardo", "Emeka", "Enzo", "Farid", "Felix", "Gael", "Georg", "Giovanni", "Hamid", "Haruto", "Hugo"),
    *("Ibrahim", "Igor", "Ivan", "Jamal", "Javier", "Joaquin", "Kaito", "Karim", "Kofi", "Laszlo", "Leif", "Lorenzo"),
    *("Manuel", "Marek", "Mehmet", "Mihai", "Nikhil", "Olaf", "Otto", "Pavel", "Pedro", "Quentin", "Rafael", "Ravi"),
    *("Ruben", "Samir", "Sergei", "Stefan", "Tariq", "Tenzin", "Tobias", "Umar", "Viktor", "Yusuf", "Zoltan"),
)

_FRACTION_WORDS = {
    "half": (1, 2),
    "a third": (1, 3),
    "two thirds": (2, 3),
    "a quarter": (1, 4),
    "three quarters": (3, 4),
    "a fifth": (1, 5),
    "two fifths": (2, 5),
    "three fifths": (3, 5),
    "four fifths": (4, 5),
    "a sixth": (1, 6),
    "an eighth": (1, 8),
    "a tenth": (1, 10),
}
_UNITS = (
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen"),
    *("fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def number_word(number: int) -> str:
    """A whole number from 1 to 99 in words, such as forty-two.

    Raises:
        ValueError: the number is not between 1 and 99.
    """
    if not 1 <= number <= 99:
        raise ValueError(f"{number} is not between 1 and 99")
    if number < 20:
        return _UNITS[number - 1]
    tens = _TENS[number // 10 - 2]
    return f"{tens}-{_UNITS[number % 10 - 1]}" if number % 10 else tens


def _fraction(top: int, bottom: int) -> Pair:
    return Pair(f"{top}/{bottom}", whole(Fraction(top, bottom)))


_WORDED_FRACTIONS = tuple(Pair(word, whole(Fraction(*number))) for word, number in _FRACTION_WORDS.items())
_PRINTED_FRACTIONS = tuple(
    _fraction(top, bottom)
    for bottom, tops in {2: (1,), 3: (1, 2), 4: (1, 3), 5: (1, 2, 3, 4), 6: (1, 5), 8: (1, 3, 5), 10: (1, 3)}.items()
    for top in tops
)
_TIMES = (Pair("twice", 2), *(Pair(f"{number_word(number)} times", number) for number in range(3, 9)))

WORD_LISTS: Mapping[str, tuple[Value, ...]] = {
    "names_female": NAMES_FEMALE,
    "names_male": NAMES_MALE,
    "names": tuple(sorted((*NAMES_FEMALE, *NAMES_MALE))),
    "currencies_sym": ("$", "€", "£", "¥", "₹"),
    "fruits": ("pear", "mango", "plum", "lemon", "peach", "papaya", "fig", "guava", "lime", "quince", "tangerine"),
    "colors": ("blue", "green", "yellow", "red", "violet", "teal", "brown", "pink", "gray", "turquoise", "crimson"),
    "sports": ("basketball", "volleyball", "hockey", "handball", "table tennis", "rugby", "cricket", "water polo"),
    "cities": (
        "Lisbon",
        "Nairobi",
        "Montreal",
        "Seville",
        "Osaka",
        "Denver",
        "Lima",
        "Hanoi",
        "Oslo",
        "Accra",
        "Perth",
    ),
    "weekdays": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "weights_med": ("pound", "kilogram"),
    "weights_sm": ("ounce", "gram"),
    "length_lg": ("mile", "kilometer"),
    "fraction_alph": _WORDED_FRACTIONS,
    "fraction_alnum": (*_WORDED_FRACTIONS, *_PRINTED_FRACTIONS),
    "fraction_nums": _PRINTED_FRACTIONS,
    "fractions": _PRINTED_FRACTIONS,
    "fraction_decimals": tuple(Fraction(number, 20) for number in (2, 3, 4, 5, 6, 8, 10, 12, 15)),
    "multi_times": _TIMES,
    "multiple_ice": (Pair("thrice", 3), *_TIMES),
    "multiple": (Pair("double", 2), Pair("triple", 3), Pair("quadruple", 4)),
}
"""What each list holds. Units are in the singular, because the files put an s behind them."""


_NUMBER = re.compile(r"\d{1,30}(?:\.\d{1,30})?(?:/\d{1,30})?")


def read_word(word: str) -> Number | None:
    """The number that a default value stands for: `two-thirds`, `1/3`, `four`, `three times`, `0.25`; None if none."""
    spelled = " ".join(word.lower().replace("-", " ").split())
    if _NUMBER.fullmatch(spelled):
        try:
            return whole(Fraction(spelled))
        except ZeroDivisionError:
            return None
    return _SPELLED.get(spelled.removesuffix(" times"))


def _without_article(word: str) -> str:
    return word.removeprefix("a ").removeprefix("an ")


_SPELLED: dict[str, Number] = {number_word(number).replace("-", " "): number for number in range(1, 100)}
_SPELLED |= {"double": 2, "triple": 3, "quadruple": 4, "thrice": 3, "twice": 2, "half": Fraction(1, 2)}
for _pair in _WORDED_FRACTIONS:
    for _article in ("a ", "one ", ""):
        _SPELLED[_article + _without_article(_pair.word)] = _pair.number
