"""Where the command's words go, and the form of its errors. Light: ``waypost --help`` comes by here."""

import sys


def out(*lines: str) -> None:
    """Say something, line by line, at once; no line, nothing."""
    if lines:
        print(*lines, sep="\n", flush=True)  # noqa: T201 - the command line is what prints


def err(*lines: str) -> None:
    """Say it beside the answer; no line, nothing."""
    if lines:
        print(*lines, sep="\n", file=sys.stderr, flush=True)  # noqa: T201 - the same


def harmless(text: str) -> str:
    """Text that somebody else chose, without what would steer a terminal, or that no terminal can show."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def complain(message: str, hint: str = "") -> None:
    """An error: what and where, then what to do."""
    err(f"waypost: {harmless(message)}", *((f"  {harmless(hint)}",) if hint else ()))
