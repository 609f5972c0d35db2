"""The ``waypost`` command, killed at the n-th thing that it does to its data directory, or says to its host.

    python -m waypost.testing.dying ORDER DATA VERB …

ORDER is a file. As long as it isn't there nothing happens. From when it is, each point that is passed is counted: a
change to a file or folder below DATA, a point of the disk (`files/disk.py`), a connection, a part of a request.
At the point whose number stands in ORDER the process ends by kill -9, before the operation. What was counted is
appended to ``ORDER.passed``, a line for each point. Python's own audit events say what is done (PEP 578); nothing in
the product knows of it.
"""

import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any

from substrate.files.disk import Disk

_FILES = {
    "open", "os.chmod", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.truncate",
    "os.utime",
}  # fmt: skip
_SAYS = {"socket.connect", "http.client.send"}


class Dying:
    """Counts, and ends the process; the hook of one process."""

    def __init__(self, order: str, data: str) -> None:
        self._order, self._data = order, data.rstrip("/") + "/"
        self._lock = threading.Lock()
        self._busy = threading.local()
        self._passed = 0

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Take one of Python's events."""
        if event in _SAYS:
            self.point(event)
        elif event in _FILES and self._ours(arguments) and not _reads(event, arguments):
            self.point(f"{event} {arguments[0]}")

    def point(self, what: str) -> None:
        """Pass a point, or end there."""
        if getattr(self._busy, "counting", False):
            return  # our own doing
        self._busy.counting = True
        try:
            with self._lock:
                self._count(what)
        finally:
            self._busy.counting = False

    def _count(self, what: str) -> None:
        try:
            with open(self._order, encoding="ascii") as file:  # noqa: PTH123 - within an audit hook
                wanted = int(file.read() or 0)
        except FileNotFoundError:
            return
        self._passed += 1
        with open(f"{self._order}.passed", "a", encoding="utf-8") as passed:  # noqa: PTH123 - the same
            passed.write(f"{self._passed} {what}\n")
        if self._passed == wanted:
            os.kill(os.getpid(), signal.SIGKILL)
            signal.pause()

    def _ours(self, arguments: tuple[Any, ...]) -> bool:
        named = (os.fsdecode(each) for each in arguments[:2] if isinstance(each, str | bytes))
        return any(each.startswith(self._data) for each in named)


def _reads(event: str, arguments: tuple[Any, ...]) -> bool:
    """Of an opening, whether nothing can be changed by it."""
    return event == "open" and not arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)


def main(arguments: Sequence[str]) -> None:
    """Run the command; doesn't return."""
    order, data, *rest = arguments
    dying = Dying(order, data)
    passes = Disk.point

    def point(disk: Disk, operation: str, path: str) -> None:
        dying.point(f"{operation} {path}")
        passes(disk, operation, path)

    setattr(Disk, "point", point)  # noqa: B010 - the product has no other seam for a command of its own
    sys.argv = ["waypost", *rest]
    sys.addaudithook(dying.audit)
    from waypost.cli.main import main as command

    command()


if __name__ == "__main__":
    main(sys.argv[1:])
