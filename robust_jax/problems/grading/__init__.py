"""Reading the answer out of a model's reply and grading it (paper Section 2.2), in exact arithmetic throughout.

`numbers` knows how numbers are written, `extraction` finds the part of a reply that is its answer, `comparison` decides
what it is worth, and `latex` compares answers that are no numbers.
"""

from robust_jax.problems.grading.comparison import Grade, grade, is_refusal
from robust_jax.problems.grading.extraction import (
    Extraction,
    ExtractionMode,
    Rule,
    extract,
    extract_statement,
    last_box,
    without_thinking,
)
from robust_jax.problems.grading.numbers import format_number, parse_gold, read_number

__all__ = [
    "Extraction",
    "ExtractionMode",
    "Grade",
    "Rule",
    "extract",
    "extract_statement",
    "format_number",
    "grade",
    "is_refusal",
    "last_box",
    "parse_gold",
    "read_number",
    "without_thinking",
]
