"""Ideal learners: each finds the rule of its family from the examples of a task, and answers by it."""
