"""Rewritings that lay the problem out as a picture of characters between two marks."""

from collections.abc import Sequence

START, END = "GRID START", "GRID END"
EMPTY = "."


def rail_fence(text: str, rails: int = 3) -> str:
    """A zigzag over `rails` lines, one column a character, periods in the empty cells."""
    rows = [_rail(place, rails) for place in range(len(text))]
    return _grid(
        ["".join(c if row == rail else EMPTY for c, row in zip(text, rows, strict=True)) for rail in range(rails)]
    )


def invert_rail_fence(grid: str, rails: int = 3) -> str:
    """The text along the zigzag."""
    lines = _lines(grid)
    return "".join(lines[_rail(place, rails)][place] for place in range(len(lines[0])))


def _rail(place: int, rails: int) -> int:
    """The line of a column: down and up again, the turning points once."""
    period = max(1, 2 * (rails - 1))
    return min(place % period, period - place % period)


def rectangle_perimeter(text: str) -> str:
    """Clockwise round a rectangle from its top left corner; spaces fill the way to its end, periods the inside."""
    length = len(text)
    height = max(3, _ceil_div(length + 4, 10))
    width = max(2, _ceil_div(length - 2 * height + 4, 2))
    round_it = text.ljust(2 * (width + height) - 4)
    top, right = round_it[:width], round_it[width : width + height - 2]
    bottom = round_it[width + height - 2 : 2 * width + height - 2]
    left = round_it[2 * width + height - 2 :]
    inside = EMPTY * (width - 2)
    between = [f"{first}{inside}{last}" for first, last in zip(left[::-1], right, strict=True)]
    return _grid([top, *between, bottom[::-1]])


def invert_rectangle_perimeter(grid: str) -> str:
    """The text round the rectangle, without the spaces at its end."""
    top, *between, bottom = _lines(grid)
    right, left = (line[-1] for line in between), (line[0] for line in reversed(between))
    return "".join([top, *right, bottom[::-1], *left]).rstrip(" ")


def snake_vertical(text: str, rows: int = 5) -> str:
    """Column by column over `rows` lines, down the first, up the second and so on; a line may lack its last cell."""
    lines = [""] * rows
    for column, start in enumerate(range(0, len(text), rows)):
        for row, symbol in zip(_downwards_or_up(column, rows), text[start : start + rows], strict=False):
            lines[row] += symbol
    return _grid(lines)


def invert_snake_vertical(grid: str) -> str:
    """The text along the snake."""
    lines = _lines(grid)
    return "".join(
        lines[row][column]
        for column in range(max(map(len, lines)))
        for row in _downwards_or_up(column, len(lines))
        if column < len(lines[row])
    )


def _downwards_or_up(column: int, rows: int) -> Sequence[int]:
    return range(rows) if column % 2 == 0 else range(rows)[::-1]


def snake_horizontal(text: str, rows: int = 5) -> str:
    """Line by line over `rows` lines, the first to the right, the second to the left and so on; the last are short."""
    width = max(1, _ceil_div(len(text), rows))
    return _grid([_turned(row, text[row * width : (row + 1) * width]) for row in range(rows)])


def invert_snake_horizontal(grid: str) -> str:
    """The text along the snake."""
    return "".join(_turned(row, line) for row, line in enumerate(_lines(grid)))


def _turned(row: int, line: str) -> str:
    return line if row % 2 == 0 else line[::-1]


def _grid(lines: Sequence[str]) -> str:
    return "\n".join([START, *lines, END])


def _lines(grid: str) -> list[str]:
    return grid.split("\n")[1:-1]


def _ceil_div(number: int, by: int) -> int:
    return -(-number // by)
