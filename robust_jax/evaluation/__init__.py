"""Asking many things of a model: prompts, replies, grades, samples, with resume."""

from robust_jax.evaluation.examiner import (
    EMBEDDING,
    HIDDEN,
    INPUT_STATISTICS,
    OUTPUT_STATISTICS,
    Answers,
    Exam,
    Examiner,
    Question,
)
from robust_jax.evaluation.loading import load_shown
from robust_jax.evaluation.shown_prompt import shown_prompt
from robust_jax.evaluation.templates import TemplateExam, TemplateQuestion

__all__ = [
    "EMBEDDING",
    "HIDDEN",
    "INPUT_STATISTICS",
    "OUTPUT_STATISTICS",
    "Answers",
    "Exam",
    "Examiner",
    "Question",
    "TemplateExam",
    "TemplateQuestion",
    "load_shown",
    "shown_prompt",
]
