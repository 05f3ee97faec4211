"""What the model is told of each rewriting: once, and so that the original can be found from it alone."""

from collections.abc import Sequence

WORD_REVERSAL = (
    "The words of the problem stand in reverse order. A word is a run of characters without white space; the "
    "characters within a word are in their normal order."
)
SENTENCE_REVERSAL = (
    "The sentences of the problem stand in reverse order. A sentence is what stands between two periods, or between "
    "a period and an end of the text; every '.' counts as a period."
)
SPLIT_REVERSAL = (
    "The characters of every word of the problem stand in reverse order, while the words themselves keep their order. "
    "A word is what stands between two spaces."
)
WORD_SPLIT_SWAP = (
    "Every word of the problem was cut in the middle and its two halves changed places, while the words themselves "
    "keep their order. A word is what stands between two spaces. Where a word has an odd number of characters, the "
    "half that originally came first is the shorter one."
)
_DEFINED = (
    'in the middle of the text a block of the form defyn{let "new" mean "old", ...}. lists every new name with the '
    "word it stands for. The block itself is not part of the problem."
)
OPPOSITES = (
    f"Some words of the problem go by other names, which may be words with a meaning of their own: {_DEFINED} "
    "Read every new name as the old word, whatever it would mean otherwise."
)
WRAPPERS = (
    f"Some words, numbers and letters of the problem go by names of the form N(word), in which N(...) is neither a "
    f"product nor a function: {_DEFINED}"
)
INTERLEAVED_WORD = (
    "The text holds two problems, A and B, interleaved word by word: the first word belongs to A, the second to B, "
    "the third to A, and so on. The shorter problem starts over from its first word, as often as it takes, until the "
    "longer one ends. Solve problem A only."
)
INTERLEAVED_SYMBOL = (
    "The text holds two problems, A and B, interleaved character by character, spaces included: the first character "
    "belongs to A, the second to B, the third to A, and so on. The shorter problem starts over from its first "
    "character, as often as it takes, until the longer one ends. Solve problem A only."
)
_GRID = "The grid stands between the lines GRID START and GRID END, which are not part of it."
RECTANGLE_PERIMETER = (
    "The problem runs clockwise along the edge of a rectangle of characters, one character a cell, from the top left "
    "corner: along the top line to the right, down the right side, along the bottom line to the left, and up the left "
    "side. Spaces fill what is left of the edge after the end of the text. The periods inside the rectangle are empty "
    f"cells. {_GRID}"
)


def interleaved_line(chunk: int) -> str:
    return (
        f"The text holds two problems, A and B. Each was cut into segments of {chunk} characters, without regard to "
        "words; the last segment may be shorter. The segments of A and B alternate, one a line, and in front of each "
        "stands its tag, <Problem A> or <Problem B>, with one space behind it. Joining the segments of one problem "
        "gives that problem. The shorter problem starts over from its first segment, as often as it takes, until the "
        "longer one ends. Solve problem A only."
    )


def rail_fence(rails: int) -> str:
    return (
        f"The problem is written as a rail fence over {_lines(rails)}. Every column holds one character of the text, "
        "spaces included: the first column in the top line, each following column one line further down until the "
        "bottom line is reached, then one line further up until the top line is reached, and so on. All other cells "
        "hold a period; a column of nothing but periods stands for a period of the text. To read the text, go from "
        f"left to right and take the character of every column in turn. {_GRID}"
    )


def snake_vertical(rows: int) -> str:
    return (
        f"The problem is written as a snake into {_lines(rows)}: down the first column, up the second, down the third, "
        "and so on, one character a cell, spaces included. Where the text does not fill the last column, lines "
        f"without a character in it are one character shorter than the others. {_GRID}"
    )


def snake_horizontal(rows: int) -> str:
    return (
        f"The problem is written as a snake into {_lines(rows)}: along the first line from left to right, along the "
        "second from right to left, along the third from left to right, and so on, one character a cell, spaces "
        "included. Where the text does not fill all lines, the last ones are shorter or empty; a shorter line that "
        f"runs from right to left has no gap at its left. {_GRID}"
    )


def in_turn(told: Sequence[str]) -> str:
    """Several rules as one: they are undone from the last to the first."""
    if len(told) == 1:
        return told[0]
    listed = " ".join(f"({number}) {rule}" for number, rule in enumerate(told, start=1))
    return (
        f"The problem was transformed {len(told)} times, each time from what the time before had given. To undo it, "
        f"begin with the last. {listed}"
    )


def _lines(count: int) -> str:
    return "one line" if count == 1 else f"{count} lines"
