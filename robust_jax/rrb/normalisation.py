"""What is done to every problem before it is rewritten."""

import re

_LINE_END = re.compile(r"\r\n?|\n")
_FALSE_ESCAPE = re.compile(r"(?<=[bntafr])\\")


def normalise(text: str) -> str:
    r"""The text on one line, free of comments and of what a rewriting could turn into a false escape.

    A line that begins with `%` is a LaTeX comment and is dropped; any other `%` stays, because `20% of` is prose. A
    space goes between one of the letters b, n, t, a, f, r and a backslash behind it (`\omega\neq` → `\omega \neq`):
    reversed, the pair would read as an escape sequence. A newline becomes `; `.
    """
    lines = [line for line in _LINE_END.split(text) if not line.startswith("%")]
    return _FALSE_ESCAPE.sub(r" \\", "\n".join(lines)).replace("\n", "; ")
