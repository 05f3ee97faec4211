"""Asking many things of a model: prompts, replies, grades, samples, with resume."""

from robust_jax.evaluation.examiner import (
    EMBEDDING,
    HIDDEN,
    INPUT_STATISTICS,
    OUTPUT_STATISTICS,
    Answers,
    Examiner,
    Question,
)

__all__ = ["EMBEDDING", "HIDDEN", "INPUT_STATISTICS", "OUTPUT_STATISTICS", "Answers", "Examiner", "Question"]
