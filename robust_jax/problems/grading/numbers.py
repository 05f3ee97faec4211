"""How numbers are written, by people and by models, and what they are exactly.

Every pattern runs in time linear in the text, whatever the text holds.
"""

from __future__ import annotations

import re
from fractions import Fraction
from unicodedata import normalize

from robust_jax.errors import InputError
from robust_jax.types import Number

_LONGEST = 1000
"""Characters of a number, and size of its exponent, beyond which it is not read: arithmetic must stay cheap."""

_THIN = "\u2009"
"""Stands for every space that may separate thousands, so that it differs from the one between words."""

_CHARACTERS = str.maketrans(
    dict.fromkeys("\u2212\u2010\u2011\u2012\u2013\ufe63\uff0d", "-")
    | dict.fromkeys("\u00a0\u2006\u2007\u2008\u200a\u202f\u205f", _THIN)
    | dict.fromkeys("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff", "")
    | dict.fromkeys("⋅·∙✕✖", "×")
    | {"⁄": "/", "∕": "/", "／": "/", "＋": "+", "，": ",", "．": ".", "％": "%", "＄": "$", "＝": "="}
    | {fraction: normalize("NFKC", fraction).replace("⁄", "/") for fraction in "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"}
)
_FRACTION_AFTER_DIGIT = re.compile(r"(?<=\d)(?=[¼-¾⅐-⅞])")
_SUPERSCRIPT = re.compile("[⁺⁻]?[⁰¹²³⁴-⁹]+")
_SUPERSCRIPT_DIGITS = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "+-0123456789")

_LATEX_TEXT = re.compile(r"\\(?:text(?:bf|it|rm)?|math(?:rm|bf|it|sf)|operatorname|mbox) ?\{([^{}]*)\}")
_LATEX_COMMAND = re.compile(r"\\(?:[A-Za-z]+|.)", re.DOTALL)
_LATEX_MEANING = {
    **dict.fromkeys(["\\,", "\\;", "\\:", "\\ "], _THIN),
    **dict.fromkeys(["\\frac", "\\dfrac", "\\tfrac", "\\cfrac"], "\\frac"),
    **dict.fromkeys(["\\times", "\\cdot"], "×"),
    **dict.fromkeys(["\\!", "\\left", "\\right"], ""),
    "\\$": "$",
    "\\%": "%",
    "\\div": "÷",
    "\\approx": "≈",
}
_SHORT_FRACTION = re.compile(r"\\frac ?(\d) ?(\d)")


def plain(text: str) -> str:
    """The text with one character for each sign and space, and without the LaTeX that only shapes the print."""
    if not text.isascii():
        text = _FRACTION_AFTER_DIGIT.sub(" ", text)
        text = _SUPERSCRIPT.sub(lambda m: "^{" + m[0].translate(_SUPERSCRIPT_DIGITS) + "}", text)
        text = text.translate(_CHARACTERS)
    text = text.replace("{,}", ",")
    if "\\" in text:
        text = _LATEX_TEXT.sub(r" \1 ", text)
        # An unknown command keeps a space behind it, or its letters would seem to be part of the number that follows.
        text = _LATEX_COMMAND.sub(lambda m: _LATEX_MEANING.get(m[0], m[0] + " " if m[0][1:].isalpha() else " "), text)
        text = _SHORT_FRACTION.sub(r"\\frac{\1}{\2}", text)
    return text


_CURRENCY = "$¢£¤¥฿" + "".join(map(chr, range(0x20A0, 0x20C1)))
_SPACE = f"[ {_THIN}]"


def _number_pattern(*, fractions: bool, statement: bool) -> re.Pattern[str]:
    """What one number looks like in `plain` text; group `number` is set unless a sub- or superscript was consumed.

    A minus that opens the text, apart from its digits, is a sign in a statement and elsewhere the bullet of a list.
    """
    # Groups either all fit or none is joined: 1,234,5 and 1,23 are lists. The bound keeps hostile lists cheap.
    whole = (
        rf"(?:[1-9]\d{{0,2}}(?:,\d{{3}}){{1,20}}(?!\d|,\d)"
        rf"|[1-9]\d{{0,2}}(?:{_SPACE}\d{{3}}){{1,20}}(?!\d)"
        rf"|[1-9]\d?(?:,\d\d){{1,20}},\d{{3}}(?!\d|,\d)"  # lakh and crore
        rf"|\d++)"
    )
    # A point is decimal where digits follow; it may lead the number unless it closes a word, a bracket or a number.
    decimal = rf"(?:{whole}(?:\.\d++)?|(?<![\w.)\]}}])\.\d++)"
    exponent = r"(?:[eE](?P<exponent>[-+]?\d++))?"
    power = rf"{_SPACE}?\^{_SPACE}?\{{?{_SPACE}?(?P<power>[-+]?\d++){_SPACE}?\}}?"
    forms = [
        rf"(?:(?P<coefficient>{decimal}){_SPACE}?[×*x]{_SPACE}?)?10{power}",
        rf"(?P<decimal>{decimal}){exponent}",
    ]
    if fractions:
        # Not within 12/05/2024, which is a date.
        slash = rf"{_SPACE}?/{_SPACE}?"
        term = rf"\{{{_SPACE}?(?P<latex_%s>[-+]?{decimal}){_SPACE}?\}}"
        forms = [
            rf"(?:(?P<latex_whole>{whole}){_SPACE}?)?\\frac{_SPACE}?{term % 'top'}{_SPACE}?{term % 'bottom'}",
            rf"(?<!/)(?<!/ )(?:(?P<whole>{whole}){_SPACE})?(?P<top>{whole}){slash}(?P<bottom>{whole})"
            rf"(?![.,]\d|{slash}\d)",
            *forms,
        ]
    operator = r"=≈<>≤≥(\[{|+*/×÷-"
    apart = rf"(?<=[{operator}])|(?<=[{operator}]{_SPACE})" + (r"|\A" if statement else "")
    sign = rf"(?<![A-Za-z\d)\]}}%])(?<![\d)\]}}%$]{_SPACE})[-+](?!{_SPACE})|(?:{apart})[-+]{_SPACE}"
    currency = rf"(?<![\d)\]}}%])[{_CURRENCY}]{_SPACE}?(?P<inner_sign>[-+](?!{_SPACE}))?"
    # Digits behind a letter belong to a name (CO2, x1), unless the letters are a currency or multiply (5x6).
    start = r"(?:(?<![A-Za-z\d])|(?<=USD|EUR|GBP|INR|JPY)|(?<=Rs)|(?<=\dx))"
    script = r"(?:\^|(?<=[^\W_])_) ?(?:\{[^{}]*\}|[-+]?\w+)"
    return re.compile(rf"(?P<number>(?P<sign>{sign})?(?:{currency})?{start}(?:{'|'.join(forms)}))|{script}")


NUMBER_IN_TEXT = _number_pattern(fractions=True, statement=False)
NUMBER_IN_STATEMENT = _number_pattern(fractions=True, statement=True)
DECIMAL_IN_TEXT = _number_pattern(fractions=False, statement=False)


def _exact(decimal: str) -> Number:
    digits, _, places = decimal.replace(",", "").replace(_THIN, "").replace(" ", "").partition(".")
    return _simplest(Fraction(int(digits + places), 10 ** len(places))) if places else int(digits)


def _simplest(value: Fraction) -> Number:
    return value.numerator if value.denominator == 1 else value


def exact_value(number: re.Match[str]) -> Number | None:
    """The value of a match of a number pattern; None if it is too long or undefined, or may mean two things."""
    groups = number.groupdict()
    if len(number[0]) > _LONGEST:
        return None
    value: Number
    if top := groups.get("latex_top") or groups.get("top"):
        whole = groups["latex_whole"] or groups["whole"]
        over, under = _exact(top), _exact(groups["latex_bottom"] or groups["bottom"])
        if under == 0 or (whole and not 0 < over < under):  # 2 3/2 is a product, a slip or two numbers
            return None
        value = _simplest(Fraction(over) / under + (_exact(whole) if whole else 0))
    else:
        value = _exact(groups["decimal"] or groups["coefficient"] or "1")
        if exponent := groups["exponent"] or groups["power"]:
            if len(exponent) > len(str(_LONGEST)) + 1 or abs(int(exponent)) > _LONGEST:
                return None
            value = _simplest(value * Fraction(10) ** int(exponent))
    negative = (groups["sign"] or "").startswith("-") != (groups["inner_sign"] == "-")
    return -value if negative else value


_WRAPPING = f" {_THIN}\t\r\n*_`'\"“”‘’()[]{_CURRENCY}"


def read_number(text: str) -> Number | None:
    """The exact value of a text that is one formatted number, None if it is not.

    It may carry a sign (any of the minus characters), a currency sign, separated thousands (`1,234`, `12,34,567`,
    `1{,}234`, `1 234` with a plain or a thin space), decimals, an exponent (`1.5e3`, `1.5 × 10^3`), emphasis, brackets,
    LaTeX spacing and `\\text{}`, and punctuation at its end; it may be a fraction (`3/4`, `\\frac{3}{4}`, `¾`) or a
    mixed number (`2 1/2`). A percentage reads as the number before its sign. Longer than 1,000 characters, or with an
    exponent beyond ±1,000, it is not read.
    """
    number = NUMBER_IN_STATEMENT.fullmatch(plain(text).lstrip(_WRAPPING).rstrip(_WRAPPING + ".,;:!?%"))
    return exact_value(number) if number and number["number"] else None


def parse_gold(text: str) -> Number:
    """The right answer as a data set stores it: a formatted number, or a solution that ends in `#### number`.

    Raises:
        InputError: the text is not a number.
    """
    value = read_number(text.rpartition("####")[2])
    if value is None:
        raise InputError(f"the answer {text[-80:]!r} is not a number: write one such as 12, -3.5 or 7/2")
    return value


def format_number(value: Number | str) -> str:
    """The exact text of a number, such as `12` or `7/2`, from which `read_number` gives the same number back.

    An answer in LaTeX is its own text.
    """
    return str(value)
