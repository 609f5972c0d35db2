"""Text in the width of a terminal: how many columns it takes, cut to some, or laid out over several lines. Pure."""

import unicodedata
from collections.abc import Iterator

_WIDE = frozenset("WF")
_NONE = frozenset(("Mn", "Me", "Cf"))
"""Categories of what is drawn over the character before it, or not at all."""


def width(text: str) -> int:
    """The columns that a terminal needs for it."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def cut(text: str, columns: int) -> str:
    """As much of it as goes into so many columns; where that isn't all, it ends with ``…``."""
    if width(text) <= columns:
        return text
    return beginning(text, columns - 1) + "…" if columns else ""


def beginning(text: str, columns: int) -> str:
    """As much of it as goes into so many columns."""
    used = 0
    for at, character in enumerate(text):
        used += _columns(character)
        if used > columns:
            return text[:at]
    return text


def padded(text: str, columns: int, *, right: bool = False) -> str:
    """It in exactly so many columns."""
    short = cut(text, columns)
    blanks = " " * (columns - width(short))
    return blanks + short if right else short + blanks


def laid_out(text: str, columns: int, indent: int, *, whole_words: bool = False) -> Iterator[str]:
    """Lines of at most so many columns, broken at blanks where there are any; all but the first are indented.

    ``whole_words``: a word that is longer than a line is left in one piece, so that it can be copied.
    """
    line = ""
    for word in text.split(" "):
        room = columns - width(line) - (1 if line else 0)
        if line.strip() and width(word) > room:
            yield line.rstrip()
            line = " " * indent + word
        else:
            line = f"{line} {word}" if line else word
        while width(line) > columns and not whole_words:
            head = beginning(line, columns)
            yield head
            line = " " * indent + line[len(head) :]
    yield line.rstrip()


def _columns(character: str) -> int:
    if unicodedata.category(character) in _NONE:
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1
