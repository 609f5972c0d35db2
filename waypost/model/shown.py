"""Text that somebody else chose, made fit to be shown: in a terminal, a cell of a table, a sentence. Pure."""

import unicodedata
from collections.abc import Iterator
from typing import Final

_MARKS: Final = frozenset(("Mn", "Me"))
_MOST_MARKS: Final = 6
"""More than any language's over one character; a hundred would reach over the lines above."""


def harmless(text: str) -> str:
    """One line, without what would steer a terminal or what no terminal can show.

    White space becomes blanks; of marks that are drawn over one character a few are left.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_tame(text))


def _tame(text: str) -> Iterator[str]:
    marks = 0
    for each in text:
        marks = marks + 1 if unicodedata.category(each) in _MARKS else 0
        if marks <= _MOST_MARKS:
            yield each if each.isprintable() else " " if each.isspace() else "\N{REPLACEMENT CHARACTER}"
