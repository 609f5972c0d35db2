"""Where the command's words go, and the form of its errors. Light: ``waypost --help`` comes by here."""

import sys

from waypost.model.shown import harmless

__all__ = ["complain", "err", "harmless", "out"]


def out(*lines: str) -> None:
    """Say something, line by line, at once; no line, nothing. Lines of two threads are never mixed."""
    if lines:
        print(_whole(lines), end="", flush=True)  # noqa: T201 - the command line is what prints


def err(*lines: str) -> None:
    """Say it beside the answer; no line, nothing."""
    if lines:
        print(_whole(lines), end="", file=sys.stderr, flush=True)  # noqa: T201 - the same


def _whole(lines: tuple[str, ...]) -> str:
    """With the last line's end: that is written with it, and not after whatever another thread says meanwhile."""
    return "\n".join((*lines, ""))


def complain(message: str, hint: str = "") -> None:
    """An error: what and where, perhaps in several lines, then what to do."""
    first, *more = message.splitlines() or [""]
    err(f"waypost: {harmless(first)}", *map(harmless, more))
    err(*(f"  {harmless(line)}" for line in hint.splitlines()))
