"""What is asked: templates, their slots and variations, suites, prompts and grading."""

from robust_jax.problems.checking import base_notes, check_suite, check_template
from robust_jax.problems.grading import Extraction, ExtractionMode, Grade, extract, format_number, grade
from robust_jax.problems.prompts import INSTRUCTION, STOP, PromptForm, ShotsAs, build_prompt
from robust_jax.problems.suite import list_suites, load_suite, read_problems
from robust_jax.problems.template import SymbolicTemplate, restricted
from robust_jax.problems.trace import check_trace

__all__ = [
    "INSTRUCTION",
    "STOP",
    "Extraction",
    "ExtractionMode",
    "Grade",
    "PromptForm",
    "ShotsAs",
    "SymbolicTemplate",
    "base_notes",
    "build_prompt",
    "check_suite",
    "check_template",
    "check_trace",
    "extract",
    "format_number",
    "grade",
    "list_suites",
    "load_suite",
    "read_problems",
    "restricted",
]
