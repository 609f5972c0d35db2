"""Files that have no name before they are whole, so that a death at any moment leaves nothing of them.

What this promises: ``publish`` makes a file appear under its name whole and durable, or not at all, and never in the
place of another. It has no other name before (``O_TMPFILE``), so what a killed process has written is gone with it.
Where a file system can't do that (NFS, for one), it is written as ``.waypost.<8 hex digits>`` beside its place, 0600,
and a kill may leave that. Where there are no hard links either (FAT), it gets its name by a rename that replaces
nothing, and is as private as everything on that file system.
"""

import ctypes
import errno
import os
import secrets
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, BinaryIO

from waypost.host.datadir.files import sync_directory

_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS})
_AT_FDCWD, _RENAME_NOREPLACE = -100, 1
_CANT = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT})
"""A file system or a kernel that knows no nameless files; a process without /proc can't give one a name."""


def scratch(folder: Path) -> IO[bytes]:
    """A file to write and read again, in this folder's file system; it is gone when it is closed. Raises OSError."""
    try:
        return tempfile.TemporaryFile(dir=folder)
    except OSError as failure:
        failure.filename = str(folder)  # the system says it of a name that nobody knows
        raise


def publish(file: Path, write: Callable[[BinaryIO], None]) -> None:
    """Make ``file`` (0600) of what ``write`` writes. Raises FileExistsError where it is there, OSError."""
    folder = file.absolute().parent
    try:
        Path("/proc/self/fd").stat()
        descriptor = os.open(folder, os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC, 0o600)
    except OSError as failure:
        if failure.errno not in _CANT:
            raise
        _by_another_name(file, write)
    else:
        with os.fdopen(descriptor, "wb") as into:
            _written(into, write)
            _name(into.fileno(), folder, file)
    sync_directory(folder)


def _by_another_name(file: Path, write: Callable[[BinaryIO], None]) -> None:
    aside = file.with_name(f".waypost.{secrets.token_hex(4)}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as into:
            _written(into, write)
        try:
            os.link(aside, file)
        except OSError as failure:
            if failure.errno not in _NO_LINKS:
                raise
            _move(aside, file)
    finally:
        aside.unlink(missing_ok=True)


def _move(aside: Path, file: Path) -> None:
    """Rename it, if nothing has that name (renameat2(2)). Raises FileExistsError, OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    names = _AT_FDCWD, os.fsencode(aside), _AT_FDCWD, os.fsencode(file)
    if libc.renameat2(*names, ctypes.c_uint(_RENAME_NOREPLACE)):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(file))


def _written(into: BinaryIO, write: Callable[[BinaryIO], None]) -> None:
    write(into)
    into.flush()
    os.fsync(into.fileno())


def _name(descriptor: int, folder: Path, file: Path) -> None:
    """Give it its name: by linkat(AT_SYMLINK_FOLLOW), which Python does only beside a directory's descriptor."""
    beside = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.link(f"/proc/self/fd/{descriptor}", file.absolute(), src_dir_fd=beside, follow_symlinks=True)
    finally:
        os.close(beside)
