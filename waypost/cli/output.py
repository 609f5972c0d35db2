"""Where the command's words go, and the form of its errors. Light: ``waypost --help`` comes by here."""

import sys
import unicodedata
from collections.abc import Iterator
from typing import Final

_MARKS: Final = frozenset(("Mn", "Me"))
_MOST_MARKS: Final = 6
"""More than any language's; a hundred would reach over the lines above."""


def out(*lines: str) -> None:
    """Say something, line by line, at once; no line, nothing."""
    if lines:
        print(*lines, sep="\n", flush=True)  # noqa: T201 - the command line is what prints


def err(*lines: str) -> None:
    """Say it beside the answer; no line, nothing."""
    if lines:
        print(*lines, sep="\n", file=sys.stderr, flush=True)  # noqa: T201 - the same


def harmless(text: str) -> str:
    """Text that somebody else chose, in one line, without what would steer a terminal or that no terminal can show.

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


def complain(message: str, hint: str = "") -> None:
    """An error: what and where, perhaps in several lines, then what to do."""
    first, *more = message.splitlines() or [""]
    err(f"waypost: {harmless(first)}", *map(harmless, more))
    err(*(f"  {harmless(line)}" for line in hint.splitlines()))
