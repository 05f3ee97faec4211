"""The math-aware tokenizer of the Levenshtein distance (paper C.3.1)."""

import re
import unicodedata

_TOKEN = re.compile(
    r"""
    \d{1,3} (?:,\d{3})+ (?!\d) (?:\.\d+)?   # 1,234,567.89
  | \d+ (?:\.\d+)?                          # 1234.5
  | \.\d+                                   # .5
  | [^\W\d_]+                               # a word: letters alone
  | (?<!\#) \#{4} (?!\#)                    # the mark before a final answer
  | [-+*/=%^()<>$€£×÷]
    """,
    re.VERBOSE,
)
# NFKC turns ½ into 1⁄2 with a fraction slash and leaves the minus sign alone.
_OPERATORS = str.maketrans({"−": "-", "⁄": "/", "∕": "/"})


def math_tokens(text: str) -> list[str]:
    """Numbers, words and operators of a text, after Unicode NFKC and case folding.

    A number loses its thousands separators and keeps its decimals; its sign is a token of its own. A word is a run of
    letters. Every operator or symbol of `+ - * / = % ^ ( ) < > $ € £ × ÷` is a token, and so is `####`. The minus sign
    and the hyphen are one operator. All other punctuation and white space is dropped.
    """
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_OPERATORS)
    return [token.replace(",", "") for token in _TOKEN.findall(folded)]
