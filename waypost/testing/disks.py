"""Disks that fail on purpose, and a way to play back a power cut.

Each is a real disk until its moment comes. ``DyingDisk`` stops a process without ending it: from the chosen point on
nothing more reaches the file system. ``FailingDisk`` answers one operation with an error. ``RecordingDisk`` notes what
is durable in a file beside the repository, so that a test in another process can cut the power.
"""

import errno
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

from substrate.files.disk import Disk

TAKES_SPACE = frozenset({"create", "reserve", "write-file", "mkdir", "link"})
"""Operations that fail on a full disk."""


def _halve(operation: str, path: str) -> None:
    """Half of a whole file was written when it happened: it lies there, before its sync."""
    if operation == "sync-file":
        file = Path(path)
        found = file.stat()
        file.chmod(0o600)  # what is never written again can't be opened by its own user either
        os.truncate(path, found.st_size // 2)
        file.chmod(stat.S_IMODE(found.st_mode))


class Died(BaseException):
    """The process is gone; not an Exception, so that nothing in between can catch it by accident."""


class DyingDisk(Disk):
    """Dies at a point: that operation and all later ones don't happen. ``half`` writes half of it first.

    Its open files are closed by its death, as a real process's are, although what it died in is never told.
    """

    def __init__(self, at: int, *, half: bool = False) -> None:
        super().__init__()
        self.at = at
        self.half = half
        self._held: set[int] = set()

    def open_file(self, path: str, flags: int) -> int:
        """Open, and remember that it is open."""
        descriptor = super().open_file(path, flags)
        self._held.add(descriptor)
        return descriptor

    def close_file(self, descriptor: int) -> None:
        """Close, unless death has done it: the number may be another file's by now."""
        if descriptor in self._held:
            self._held.remove(descriptor)
            super().close_file(descriptor)

    def point(self, operation: str, path: str) -> None:
        """Pass a point, or die there."""
        super().point(operation, path)
        if self.points >= self.at:
            if self.half and self.points == self.at:
                _halve(operation, path)
            while self._held:
                self.close_file(next(iter(self._held)))
            raise Died(f"at point {self.points}: {operation} {path}")

    def write_at(self, descriptor: int, path: str, data: bytes, offset: int) -> None:
        """Write, or write half and die."""
        if self.half and self.points + 1 == self.at:
            os.pwrite(descriptor, data[: len(data) // 2], offset)
        super().write_at(descriptor, path, data, offset)


class FailingDisk(Disk):
    """Fails once, at a point, with an errno; or from there on, as a full disk does, for what takes space.

    A write that fails has written half of what it should.
    """

    def __init__(self, at: int, error: int = errno.EIO) -> None:
        super().__init__()
        self.at = at
        self.error = error
        self.lasting = error == errno.ENOSPC
        """Whether it goes on failing for what takes space."""

    def point(self, operation: str, path: str) -> None:
        """Pass a point, or raise OSError there."""
        super().point(operation, path)
        if self.points == self.at:
            _halve(operation, path)
        if self.points == self.at or (self.lasting and self.points > self.at and operation in TAKES_SPACE):
            raise OSError(self.error, os.strerror(self.error), path)

    def write_at(self, descriptor: int, path: str, data: bytes, offset: int) -> None:
        """Write, or write half and fail."""
        if self.points + 1 == self.at:
            os.pwrite(descriptor, data[: len(data) // 2], offset)
        super().write_at(descriptor, path, data, offset)


class ShortDisk(Disk):
    """Takes at most so many bytes at once, as the operating system is free to: nothing is lost or written twice."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
        self.short = 0
        """How many writes were taken in part only."""

    def write_some(self, descriptor: int, data: bytes | memoryview, offset: int) -> int:
        """Write a part."""
        self.short += len(data) > self.most
        return super().write_some(descriptor, data[: self.most], offset)


class HookedDisk(Disk):
    """Remembers the points that were passed, and is held at each while a hook runs: (number, operation, path)."""

    def __init__(self, hook: Callable[[int, str, str], None] | None = None) -> None:
        super().__init__()
        self.passed: list[tuple[str, str]] = []
        self.hook = hook

    def point(self, operation: str, path: str) -> None:
        """Note it, and call the hook."""
        super().point(operation, path)
        self.passed.append((operation, path))
        if self.hook is not None:
            self.hook(self.points, operation, path)


class RecordingDisk(Disk):
    """Notes every returned sync of a journal in ``record``, one line each: its durable size, a blank, its path."""

    def __init__(self, record: str | Path) -> None:
        super().__init__()
        self._record = os.open(record, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC, 0o600)

    def synced(self, path: str, size: int) -> None:
        """Note it. One write of a line, appended: so several processes may share the file."""
        os.write(self._record, f"{size} {path}\n".encode())

    def close(self) -> None:
        """Let go of the record."""
        os.close(self._record)


class LapsingDisk(RecordingDisk):
    """Fails a sync of a journal once, when ``armed``, and then says of the same file that all is well.

    As a real system does: it reports a failed sync once, shows what was written ever after, and has it no longer on the
    disk. So nothing more of that file counts as durable, whatever is synced. Not counted down: it may be armed again.
    """

    def __init__(self, record: str | Path) -> None:
        super().__init__(record)
        self.armed = False
        self._lapsed: set[str] = set()

    def sync_data(self, descriptor: int, path: str, size: int) -> None:
        """Sync, or fail once."""
        if self.armed and path.endswith(".jpack"):
            self.armed = False
            self._lapsed.add(path)
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        super().sync_data(descriptor, path, size)

    def synced(self, path: str, size: int) -> None:
        """Note it, unless the file has failed."""
        if path not in self._lapsed:
            super().synced(path, size)


def durable(record: str | Path) -> dict[str, int]:
    """By a journal's path, how much of it is durable, as a ``RecordingDisk`` has noted; nothing where none has."""
    lines = Path(record).read_text(encoding="utf-8").splitlines() if Path(record).exists() else ()
    return {path: int(size) for size, _, path in (line.partition(" ") for line in lines)}


def power_cut(repository: str | Path, record: str | Path, target: str | Path) -> None:
    """Copy a repository as a power cut would have left it: each journal only as far as a sync has returned.

    Hard links stay hard links. What follows the durable part of a journal reads as zeros, as reserved space does.
    """
    kept = durable(record)
    source, copy = Path(repository), Path(target)
    seen: dict[int, Path] = {}

    def copy_file(one: str, other: str) -> str:
        inode = Path(one).stat().st_ino
        if inode in seen:
            os.link(seen[inode], other)
        else:
            shutil.copy2(one, other)
            seen[inode] = Path(other)
        return other

    shutil.copytree(source, copy, copy_function=copy_file, symlinks=True)
    for journal in sorted((source / "waypost" / "journal").glob("*.jpack")):
        cut = copy / journal.relative_to(source)
        mode, length = cut.stat().st_mode, cut.stat().st_size
        cut.chmod(0o644)
        known = kept.get(str(journal), 0)
        if known < length:
            os.truncate(cut, known)
            os.truncate(cut, length)
        cut.chmod(mode)
