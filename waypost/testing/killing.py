"""A disk that kills: its own process, or the children of it, before or after the flush of a journal.

A kill after the n-th sync comes when the data of that flush is durable and nobody has been told: no answer, no mail and
no step's body that waits for it has left. Before it, the bytes are written and nothing says that they will stay.
"""

import errno
import os
import signal
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from waypost.testing.boundaries import Boundaries
from waypost.testing.disks import TAKES_SPACE, RecordingDisk, durable
from waypost.testing.snapshots import Snapshots

KILLED = "killed"
"""Begins the line that says which child was killed after which flush."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """When what happens, in numbers of journal syncs since the host began; the first is 1.

    ``die_before_text``, ``die_after_text``: at the first sync of a journal that brings these bytes, such as a commit's
    message.
    """

    die_before: Collection[int] = ()
    die_before_text: bytes = b""
    die_after: Collection[int] = ()
    die_after_text: bytes = b""
    boundaries: Boundaries | None = None
    """After syncs that bring what no host of this play has brought before, every so many-th time."""
    spare_host: bool = False
    """At such a boundary its children die, and it lives on."""
    snapshots: Snapshots | None = None
    """Before chosen syncs all is copied as a power cut would leave it."""
    full_while: Path | None = None
    """The disk is full as long as this file is there."""


class KillingDisk(RecordingDisk):
    """Counts the flushes of all journals, and kills at the chosen ones.

    ``record``: what an earlier host on these journals has noted there, this one brings no more.
    """

    def __init__(self, record: Path, moments: Moments) -> None:
        super().__init__(record)
        self._moments, self._record_file = moments, record
        self._sizes = durable(record)
        self.flushes = 0

    def create(self, path: str, size: int) -> int:
        """Make a file: one that was of this name before has nothing to do with it."""
        self._sizes[path] = 0
        return super().create(path, size)

    def sync_data(self, descriptor: int, path: str, size: int) -> None:
        """Make a flush durable, with what is to happen before and after."""
        self.flushes += 1
        moments = self._moments
        brought = self._brought(path, size)
        if self.flushes in moments.die_before or (moments.die_before_text and moments.die_before_text in brought):
            die()
        if moments.snapshots is not None:
            moments.snapshots.before(self.flushes, brought, self._record_file)
        super().sync_data(descriptor, path, size)
        if self.flushes in moments.die_after or (moments.die_after_text and moments.die_after_text in brought):
            die()
        if moments.boundaries is not None and moments.boundaries.reached(brought):
            self._strike(moments.boundaries)

    def point(self, operation: str, path: str) -> None:
        """Pass a point, unless the disk is full."""
        super().point(operation, path)
        full = self._moments.full_while
        if full is not None and operation in TAKES_SPACE and full.exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def _strike(self, boundaries: Boundaries) -> None:
        if not self._moments.spare_host:
            boundaries.struck()
            die()
        elif killed := kill_children(os.getpid()):
            boundaries.struck()
            for pid in killed:
                write(f"{KILLED} {pid} after flush {self.flushes}")

    def _brought(self, path: str, size: int) -> bytes:
        """What this sync adds to a journal, where commits aren't compressed; a merge only writes old ones once more."""
        if not path.endswith(".jpack"):
            return b""
        before, self._sizes[path] = self._sizes.get(path, 0), size
        with Path(path).open("rb") as journal:
            journal.seek(before)
            return journal.read(size - before)


def die() -> None:
    """End this process by kill -9; doesn't return."""
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()


def children_of(parent: int) -> tuple[int, ...]:
    """The processes that a process has started and not reaped, by proc(5)."""
    found: list[int] = []
    for file in Path(f"/proc/{parent}/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            found.extend(int(pid) for pid in file.read_text(encoding="ascii").split())
    return tuple(found)


def kill_children(parent: int) -> tuple[int, ...]:
    """Do kill -9 of every child of this process; their pids, once they are dead. Their owner is left to reap them."""
    killed: list[int] = []
    for pid in children_of(parent):
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return tuple(killed)


def write(line: str) -> None:
    """One write for a line: what a reader sees of a killed host ends between two lines."""
    os.write(1, f"{line}\n".encode("utf-8", "backslashreplace"))
