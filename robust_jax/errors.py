"""The two ways in which a command may end badly. Anything else that escapes is a fault of ours."""


class InputError(Exception):
    """What was asked cannot be done: the message says in one line what is wrong and what to do (exit code 2)."""


class RunError(Exception):
    """The run failed on its way: the message says what was kept and how to resume (exit code 1)."""
