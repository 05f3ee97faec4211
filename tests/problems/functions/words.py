"""Words that the template functions of this folder share."""

NAMES = ["Ava", "Omar", "Mei", "Kofi"]
ITEMS = ["pens", "books", "cups", "maps", "kites"]
