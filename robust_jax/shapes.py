"""Sizes of arrays in few steps: every size is a compilation, so work of many sizes is padded to a few."""


def power_of_two(count: int, least: int = 1) -> int:
    """The smallest power of two that is not below either; `least` is one itself."""
    return max(least, 1 << max(count - 1, 0).bit_length())


def half_octave(count: int, least: int = 1) -> int:
    """The smallest of least · {1, 1.5, 2, 3, 4, 6, 8 …} that is not below `count`: for where padding is dear."""
    power = least
    while power < count:
        if power * 3 // 2 >= count:
            return power * 3 // 2
        power *= 2
    return power
