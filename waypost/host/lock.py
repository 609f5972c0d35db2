"""One host for each data directory: an flock on a file that is never deleted and says who holds it.

The descriptor is never inherited, so a child that outlives its host can't keep the lock; the kernel lets go of it when
the host ends, however it ends. Nobody else ever locks the file: a reader that did would refuse a starting host.
"""

import fcntl
import json
import os
import shlex
from pathlib import Path
from types import TracebackType
from typing import Self

from waypost.host.errors import HostRuns, NotWritable

_LONGEST = 4096


class HostLock:
    """The lock, held from ``take`` until ``release`` or the end of the process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, path: Path, *, command: tuple[str, ...], since: str) -> Self:
        """Take the lock and say so in the file. Raises HostRuns with the holder's words, NotWritable."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as failure:
            raise NotWritable(str(path), failure) from failure
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            words = {"pid": os.getpid(), "since": since, "command": shlex.join(command)[:_LONGEST]}
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, json.dumps(words).encode() + b"\n", 0)
        except BlockingIOError:
            holder = _holder(os.pread(descriptor, 2 * _LONGEST, 0))
            os.close(descriptor)
            raise HostRuns(str(path.parent), holder) from None
        except OSError as failure:
            os.close(descriptor)
            raise NotWritable(str(path), failure) from failure
        return cls(descriptor)

    def release(self) -> None:
        """Let go; a second time is no error."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _holder(text: bytes) -> str:
    """Who holds the lock, in words; the text may be half written."""
    try:
        words = json.loads(text)
        return f"pid {int(words['pid'])}, since {words['since']}, started as `{words['command']}`"
    except (ValueError, KeyError, TypeError):
        return "it has just begun and hasn't said who it is"
