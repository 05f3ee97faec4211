"""What a model is asked: one problem, as it is or rewritten, or several in one context."""

from collections.abc import Sequence

from robust_jax.types import Message, Prompt

SYSTEM = r"You solve mathematical problems. Reason step by step, and put your final answer within \boxed{}."

UNDOING = r"""The text below TRANSFORMED INPUT is a mathematical problem that was transformed. Work in three steps:
1. Read the TRANSFORMATION RULE and undo what it describes, so that you have the original problem.
2. Solve the original problem.
3. Put its final answer within \boxed{}."""

SEVERAL = r"""Solve the following {count} problems one after the other, in the order in which they are given. They have
nothing to do with each other. Write out the reasoning for each, and end each with a line of the form
Answer to problem k: \boxed{{...}}
where k is the number of the problem."""


def problem_prompt(text: str, rule: str | None = None) -> Prompt:
    """One problem; with a rule, a rewritten one, whose rule the model is told once."""
    if rule is None:
        return _prompt(text, text)
    return _prompt(f"{UNDOING}\n\nTRANSFORMATION RULE: {rule}\n\nTRANSFORMED INPUT:\n{text}", text)


def several_prompt(texts: Sequence[str]) -> Prompt:
    """Several problems in one context, to be solved in order; the last one is the tested one."""
    if len(texts) == 1:
        return problem_prompt(texts[0])
    listed = "\n\n".join(f"Problem {place}: {text}" for place, text in enumerate(texts, start=1))
    return _prompt(f"{SEVERAL.format(count=len(texts))}\n\n{listed}", texts[-1])


def preceded_prompt(before: str, text: str) -> Prompt:
    """One problem behind a text that is not to be worked on."""
    return _prompt(f"{before}\n\nNow solve the following problem.\n\n{text}", text)


def _prompt(question: str, problem: str) -> Prompt:
    messages = (Message("system", SYSTEM), Message("user", question))
    return Prompt(messages, problem=problem, raw=f"Question: {question}\nAnswer:")
