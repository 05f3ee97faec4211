"""Reading the answer out of a model's reply and grading it (paper Section 2.2), in exact arithmetic throughout.

The work has three layers: `read_number` knows how numbers are written, `extract` finds the one that is the answer,
`grade` decides what it is worth. Every pattern runs in time linear in the reply, whatever the reply holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Literal
from unicodedata import normalize

from robust_jax.errors import InputError
from robust_jax.types import Grading, Number, Response, Status

ExtractionMode = Literal["standard", "marked", "last-number"]
"""standard: the rules in their order; marked: those that look behind a marker, so that a bare number is no answer;
last-number: the last decimal alone, as in the LPDS paper."""

Rule = Literal["boxed", "####", "answer is", "last number"]


@dataclass(frozen=True)
class Extraction:
    """What was read from a reply."""

    value: Number | None = None
    rule: Rule | None = None
    """The rule that found the value."""
    text: str | None = None
    """The number as the reply writes it, without LaTeX spacing and with plain signs."""
    unclosed_thinking: bool = False
    """The reply ends inside `<think>`, so that nothing was read."""


@dataclass(frozen=True)
class Grade:
    """What a reply is worth."""

    status: Status
    score: float
    """1 right, 0 wrong."""
    value: Number | None = None
    rule: Rule | None = None


# --------------------------------------------------------------------------------------------------
# How numbers are written

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


def _plain(text: str) -> str:
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
    """What one number looks like in `_plain` text; group `number` is set unless a sub- or superscript was consumed.

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


_IN_TEXT = _number_pattern(fractions=True, statement=False)
_IN_STATEMENT = _number_pattern(fractions=True, statement=True)
_DECIMAL_IN_TEXT = _number_pattern(fractions=False, statement=False)


def _exact(decimal: str) -> Number:
    digits, _, places = decimal.replace(",", "").replace(_THIN, "").replace(" ", "").partition(".")
    return _simplest(Fraction(int(digits + places), 10 ** len(places))) if places else int(digits)


def _simplest(value: Fraction) -> Number:
    return value.numerator if value.denominator == 1 else value


def _value(number: re.Match[str]) -> Number | None:
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
    number = _IN_STATEMENT.fullmatch(_plain(text).lstrip(_WRAPPING).rstrip(_WRAPPING + ".,;:!?%"))
    return _value(number) if number and number["number"] else None


def parse_gold(text: str) -> Number:
    """The right answer as a data set stores it: a formatted number, or a solution that ends in `#### number`.

    Raises:
        InputError: the text is not a number.
    """
    value = read_number(text.rpartition("####")[2])
    if value is None:
        raise InputError(f"the answer {text[-80:]!r} is not a number: write one such as 12, -3.5 or 7/2")
    return value


def format_number(value: Number) -> str:
    """The exact text of a number, such as `12` or `7/2`, from which `read_number` gives the same number back."""
    return str(value)


# --------------------------------------------------------------------------------------------------
# Which number is the answer

_BRACE = re.compile(r"\\(?:boxed|fbox)\s*\{|\\[{}]|[{}]")
_HASHES = re.compile(r"####(?![ \t*]{0,8}(?:step|part|case)\b)", re.IGNORECASE)  # `#### Step 2` is a heading
_ANSWER_IS = re.compile(
    r"\banswer(?: (?:to|for) [^.:\n]{1,80}?)?[*_ \t]{0,4}(?:(?P<label>[:=])|\b(?:is|(?:would|should|must) be)\b)",
    re.IGNORECASE,
)
_SHORT_LEAD = re.compile(r"[\W_]*(?:\w{1,3}[\W_]+)?")
_SENTENCE_END = re.compile(r"[.!?][*_)\]\"']{0,3}\s+(?=[A-Z])")
_ASIDE = re.compile(r"[,;]\s|(?<=[\w%.}])\s\(")  # `12, since 3 × 4 = 12` and `12 (3 × 4 = 12)`
_OPERATION = re.compile(r"\s?[-+*/×÷^]\s?[\d($\\]")

_DIGIT = re.compile(r"\d")
_SOLID = re.compile(r"[^\W_]")
_NEXT_QUESTION = re.compile(
    r"\n[ \t]{0,8}(?:#{1,6} |\*\*)?(?:(?:question|problem|exercise|instruction|user|human|q)(?: ?\d+)?|example \d+)"
    r"(?:\*\*)?:|\n#{1,6} (?:question|problem|exercise|instruction)\b",
    re.IGNORECASE,
)


def without_thinking(text: str) -> tuple[str, bool]:
    """The text outside `<think>` blocks, and whether the last one stays open. The prompt may have opened the first."""
    *closed, rest = text.split("</think>")
    shown = [part.partition("<think>")[0] if i or "<think>" in part else "" for i, part in enumerate(closed)]
    return "".join([*shown, rest.partition("<think>")[0]]), "<think>" in rest


def _without_run_on(text: str) -> str:
    """The text up to the next question that a model asks itself once it has answered.

    Before the first digit there is no answer to run on from: a reply that restates its question is kept.
    """
    digit = _DIGIT.search(text)
    marker = _NEXT_QUESTION.search(text, digit.start()) if digit else None
    return text[: marker.start()] if marker else text


def _line_after(text: str, start: int) -> str:
    """The rest of the line at `start`, or the next line that says anything."""
    solid = _SOLID.search(text, start)
    if not solid:
        return ""
    end = text.find("\n", solid.start())
    return text[max(start, text.rfind("\n", 0, solid.start()) + 1) : None if end < 0 else end]


def _first(statement: str) -> re.Match[str] | None:
    return next((number for number in _IN_STATEMENT.finditer(statement) if number["number"]), None)


def _stated(statement: str, labelled: bool = False) -> re.Match[str] | None:
    """The number that a statement gives: its first, or in an equation the right side if that is a number.

    `Answer:` may also head a whole solution. There only a number right behind the label counts, and no equation.
    """
    plain = _SENTENCE_END.split(_plain(statement), 1)[0].strip()
    first = _first(plain)
    if not first or (labelled and not (first.start() <= 20 and _SHORT_LEAD.fullmatch(plain, 0, first.start()))):
        return None
    aside = _ASIDE.search(plain, first.end())
    _, equals, right = plain[first.end() : aside.start() if aside else None].replace("≈", "=").rpartition("=")
    if labelled:
        return None if equals else first
    result = _first(right.strip()) if equals else None
    return result if result and not _OPERATION.match(result.string, result.end()) else first


def last_box(text: str) -> str:
    """What stands in the last box that is closed; empty if there is none."""
    last, content = -1, ""
    opened: list[re.Match[str]] = []
    for brace in _BRACE.finditer(text) if "\\boxed" in text or "\\fbox" in text else ():
        if brace[0] == "}" and opened:
            box = opened.pop()
            if len(box[0]) > 1 and box.start() > last:
                last, content = box.start(), text[box.end() : brace.start()]
        elif brace[0] == "{" or len(brace[0]) > 2:
            opened.append(brace)
    return content


def _boxed(text: str) -> re.Match[str] | None:
    """The number in the last box that is closed."""
    return _stated(last_box(text))


def _behind(marker: re.Pattern[str], text: str) -> re.Match[str] | None:
    """The number in the line behind the last marker."""
    markers = list(marker.finditer(text))
    return _stated(_line_after(text, markers[-1].end()), markers[-1].lastgroup == "label") if markers else None


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    for line in filter(None, reversed(text.splitlines())):
        if numbers := [number for number in pattern.finditer(_plain(line)) if number["number"]]:
            return numbers[-1]
    return None


_MARKED: dict[Rule, Callable[[str], re.Match[str] | None]] = {
    "boxed": _boxed,
    "####": partial(_behind, _HASHES),
    "answer is": partial(_behind, _ANSWER_IS),
}
_RULES: dict[ExtractionMode, dict[Rule, Callable[[str], re.Match[str] | None]]] = {
    "standard": {**_MARKED, "last number": partial(_last, _IN_TEXT)},
    "marked": _MARKED,
    "last-number": {"last number": partial(_last, _DECIMAL_IN_TEXT)},
}


def extract(response: str, mode: ExtractionMode = "standard") -> Extraction:
    """The answer that a reply gives, by the first rule that finds a number.

    Closed thinking is dropped and a run-on is cut before the next question, in either mode. Then the standard rules
    are, in this order: the last closed `\\boxed{}`; the line of the last `####`; the last 'answer is'; the last number
    of the reply. The first three read the first number behind their marker, or the result if an equation stands there.
    Sub- and superscripts are never answers, and neither are digits that are part of a name such as CO2.
    """
    shown, unclosed = without_thinking(response)
    if unclosed:
        return Extraction(unclosed_thinking=True)
    answer = _without_run_on(shown)
    for rule, find in _RULES[mode].items():
        number = find(answer)
        value = _value(number) if number else None
        if number and value is not None:
            return Extraction(value, rule, number[0].strip())
    return Extraction()


# --------------------------------------------------------------------------------------------------
# What a reply is worth

_REFUSAL = re.compile(
    r"\b(?:can(?:no|['’])t|not able to|unable to|sorry|apologi[sz]e|won['’]t|will not|refuse|decline)\b",
    re.IGNORECASE,
)
_LONGEST_REFUSAL = 400


def is_refusal(shown: str) -> bool:
    """Whether a reply without an answer says, in a few words, that it cannot or will not answer."""
    return len(shown) <= _LONGEST_REFUSAL and bool(_REFUSAL.search(shown))


def _without_unfinished(text: str) -> str:
    """A reply that was cut, without the word it ends in if that may be half a number."""
    if text[-1:] in tuple("^{\\") or text.rstrip(".,/+-")[-1:].isdecimal():
        return text[: len(text) - len(text.split()[-1])]
    return text


def grade(response: Response, gold: Number, grading: Grading, mode: ExtractionMode = "standard") -> Grade:
    """Grades a reply: right if |given − right| ≤ absolute + relative · |right|, in exact fractions.

    A reply that was cut by its length is graded like any other if it had already given its answer behind a marker (a
    closed box, `####`, 'answer is'); a number that ends where the reply was cut may lack digits and is no answer.
    Otherwise, and if its thinking never closes, it is truncated: its last number is only a step on the way.
    A short reply with no number that says it cannot or will not answer is refused; any other without a number is
    unparsed. A reply that failed is an error and a prompt that did not fit is skipped: neither is a wrong answer.
    """
    if response.finish_reason == "error":
        return Grade("error", 0.0)
    if response.finish_reason == "context":
        return Grade("skipped", 0.0)
    if response.finish_reason == "filter":
        return Grade("refused", 0.0)
    text = response.text
    if response.finish_reason == "length":
        text = _without_unfinished(text)
        if extract(text).rule in (None, "last number"):
            return Grade("truncated", 0.0)
    found = extract(text, mode)
    if found.unclosed_thinking:
        return Grade("truncated", 0.0)
    if found.value is None:
        return Grade("refused" if is_refusal(without_thinking(text)[0]) else "unparsed", 0.0)
    error = abs(Fraction(found.value - gold))
    right = error <= grading.absolute + grading.relative * abs(Fraction(gold))
    return Grade("ok", float(right), found.value, found.rule)
