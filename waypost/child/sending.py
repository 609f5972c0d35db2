"""One message out on one descriptor: what a child can do before it has loaded anything else, so as to say ``ready``."""

import fcntl
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ipc.errors import ChannelTaken

if TYPE_CHECKING:
    from ipc import control, events
    from ipc.ready import Message


FLOORS = (1000, 200, 20, 0)
"""The descriptors go above the first of these that the limit of open files allows."""


class Way(int):
    """A descriptor that leads to the host, and knows to which file: what a workflow's code does to it is noticed."""

    file: tuple[int, int]

    @classmethod
    def lifted(cls, fd: int) -> "Way":
        """The same file under a high number that no program executed from here gets; ``fd`` is closed. Raises OSError.

        Code that closes or replaces what it takes for free begins at 3.
        """
        way = cls(_above(fd, FLOORS))
        way.file = _file(way)
        os.close(fd)
        return way

    def check(self) -> None:
        """Raises ChannelTaken: what is written here would come nowhere, or where it isn't meant to, and be awaited."""
        try:
            same = _file(self) == self.file
        except OSError:
            same = False
        if not same:
            raise ChannelTaken(self)


def _above(fd: int, floors: Sequence[int]) -> int:
    floor, *others = floors
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, floor)
    except OSError:
        if not others:
            raise
        return _above(fd, others)


def _file(fd: int) -> tuple[int, int]:
    found = os.fstat(fd)
    return found.st_dev, found.st_ino


def send(fd: int, sender: "control.Sender | events.Sender", message: "Message") -> None:
    """Seal and write, waiting for room: the host always reads. Raises OSError, IpcError."""
    if isinstance(fd, Way):
        fd.check()
    rest = memoryview(sender.seal(message))
    while rest:
        rest = rest[os.write(fd, rest) :]
