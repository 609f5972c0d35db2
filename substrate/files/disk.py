"""Every change of the file system that the storage makes, one numbered point each.

``Disk`` is the only way from this package to a file that is written. Before each operation it passes a point, so that
a test's subclass can die, fail or run out of space at exactly the n-th; and it reports what is known to be durable, so
that a power cut can be played back. Reading needs no disk.
"""

import errno
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Disk:
    """The real file system. Every method raises OSError as the operating system does."""

    def __init__(self) -> None:
        self.points = 0
        """How many points were passed."""

    def point(self, operation: str, path: str) -> None:  # noqa: ARG002 - for subclasses
        """Pass a point: called before each operation with its name and path. Subclasses may raise here."""
        self.points += 1

    def synced(self, path: str, size: int) -> None:
        """Told after a journal's sync returned: its first ``size`` bytes survive a power cut."""

    # --- journals: an open descriptor ---

    def open_file(self, path: str, flags: int) -> int:
        """Open a file to be written, and return its descriptor, which is to be closed by ``close_file``. No point."""
        return os.open(path, flags | os.O_RDWR | os.O_CLOEXEC, 0o644)

    def close_file(self, descriptor: int) -> None:
        """Let go of a descriptor. No point: nothing on the disk changes."""
        os.close(descriptor)

    def create(self, path: str, size: int) -> int:
        """Make a file that must not exist, reserve ``size`` bytes of it, and return its descriptor."""
        self.point("create", path)
        descriptor = self.open_file(path, os.O_CREAT | os.O_EXCL)
        try:
            self.reserve(descriptor, path, size)
        except BaseException:
            self.close_file(descriptor)
            raise
        return descriptor

    def reopen(self, path: str) -> int:
        """Open an existing file for reading and writing."""
        self.point("reopen", path)
        return self.open_file(path, 0)

    def reserve(self, descriptor: int, path: str, size: int) -> None:
        """Make sure that the first ``size`` bytes can be written without running out of space."""
        self.point("reserve", path)
        os.posix_fallocate(descriptor, 0, size)

    def write_at(self, descriptor: int, path: str, data: bytes, offset: int) -> None:
        """Write all of ``data`` at ``offset``."""
        self.point("write", path)
        written = self.write_some(descriptor, data, offset)
        if written != len(data):
            rest = memoryview(data)
            while written < len(data):
                written += self.write_some(descriptor, rest[written:], offset + written)

    def write_some(self, descriptor: int, data: bytes | memoryview, offset: int) -> int:
        """Hand bytes to the operating system, which may take fewer; how many it took. No point: part of a write."""
        return os.pwrite(descriptor, data, offset)

    def sync_data(self, descriptor: int, path: str, size: int) -> None:
        """Make the first ``size`` bytes durable: fdatasync, for a file whose length doesn't change.

        One that has no name any more is gone with its descriptor, so there is nothing durable about it: an error.
        """
        self.point("sync", path)
        os.fdatasync(descriptor)
        if not os.fstat(descriptor).st_nlink:
            raise FileNotFoundError(errno.ENOENT, "somebody has removed the file", path)
        self.synced(path, size)

    def sync(self, descriptor: int, path: str, size: int) -> None:
        """Make the file durable, its length and all."""
        self.point("sync", path)
        os.fsync(descriptor)
        self.synced(path, size)

    def cut(self, descriptor: int, path: str, size: int) -> None:
        """Make the file end after ``size`` bytes."""
        self.point("cut", path)
        os.ftruncate(descriptor, size)

    def protect(self, descriptor: int, path: str) -> None:
        """Nobody writes into this file any more."""
        self.point("protect", path)
        os.fchmod(descriptor, 0o444)

    # --- names ---

    def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Write a whole file, replacing one of that name, and sync it. It is not atomic: write aside, then rename."""
        self.point("write-file", path)
        descriptor = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
        try:
            os.fchmod(descriptor, mode)
            rest, written = memoryview(data), 0
            while written < len(data):
                written += self.write_some(descriptor, rest[written:], written)
            self.point("sync-file", path)
            os.fsync(descriptor)
        except OSError as failure:
            failure.filename = failure.filename or path  # the system says it only of what is opened
            raise
        finally:
            os.close(descriptor)

    def link(self, source: str, target: str) -> None:
        """Give a file a second name, which must be free."""
        self.point("link", target)
        os.link(source, target)

    def rename(self, source: str, target: str) -> None:
        """Move a name, replacing what the target names."""
        self.point("rename", target)
        os.rename(source, target)  # noqa: PTH104 - this class is the seam to the operating system

    def unlink(self, path: str) -> None:
        """Remove a name; one that is gone already is fine."""
        self.point("unlink", path)
        Path(path).unlink(missing_ok=True)

    def make_directory(self, path: str, mode: int = 0o755) -> None:
        """Make a directory; one that is there already is fine."""
        self.point("mkdir", path)
        Path(path).mkdir(mode=mode, exist_ok=True)

    def sync_directory(self, path: str) -> None:
        """Make the names in a directory durable."""
        self.point("sync-directory", path)
        with directory(path) as descriptor:
            os.fsync(descriptor)


@contextmanager
def directory(path: str) -> "Iterator[int]":
    """A directory's descriptor for the length of a block."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
