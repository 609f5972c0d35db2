"""Writing a small file so that it is there, whole, or not at all, whatever happens meanwhile."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def named(path: Path) -> Iterator[None]:
    """What the system refuses in the block, without saying of which file, is said to be of this one."""
    try:
        yield
    except OSError as failure:
        if failure.filename is None:
            failure.filename = str(path)
        raise


def write_synced(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write a file that doesn't exist yet and sync it; on failure nothing of it stays. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        with named(path), os.fdopen(descriptor, "wb", buffering=0) as file:
            rest = memoryview(data)
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def place(path: Path, data: bytes, mode: int = 0o600, *, aside: Path | None = None) -> bool:
    """Make a file under its name, durably, unless one has that name; whether it was made. Raises OSError.

    ``aside`` is the folder it is written in first, on the same file system; by default the one it will lie in.
    """
    written = (aside or path.parent) / f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}"
    write_synced(written, data, mode)
    try:
        os.link(written, path)
    except FileExistsError:
        return False
    finally:
        written.unlink(missing_ok=True)
    sync_directory(path.parent)
    return True
