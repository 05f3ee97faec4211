"""Asking many things of a model: prompts, replies, grades, samples, with resume."""

from robust_jax.evaluation.examiner import Answers, Examiner, Question

__all__ = ["Answers", "Examiner", "Question"]
