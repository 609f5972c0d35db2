"""Verbs of the command line run inside the test's own process: the same code, without the start of an interpreter.

Not for ``run``, which takes the process over; see ``host_process`` for that.
"""

import contextlib
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from waypost.cli.command import run


@dataclass(frozen=True, slots=True)
class Done:
    """What a verb ended with, and what it said."""

    status: int
    out: str
    err: str


def verb(*arguments: str, data: Path | None = None, stdin: bytes = b"", cwd: Path | None = None) -> Done:
    """Run a verb to its end. Not for use by two threads at once: streams and folder are the process's."""
    where = () if data is None else ("--data", str(data))
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(cwd or Path.cwd()),
        _stdin(stdin),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        status = run([*arguments, *where])
    return Done(int(status), out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _stdin(raw: bytes) -> Iterator[None]:
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8")
    try:
        yield
    finally:
        sys.stdin = before
