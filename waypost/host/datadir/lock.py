"""One host for each data directory: an flock on a file that is never deleted and says who holds it.

The folder itself is locked, too: who deletes the file by hand, taking it for a stale one, would let a second host in
to write over what the first one writes. The descriptors are never inherited, so a child that outlives its host can't
keep the lock; the kernel lets go of it when the host ends, however it ends. Nobody else ever locks either: a reader
that did would refuse a starting host.
"""

import fcntl
import json
import os
import shlex
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from waypost.host.errors import HostRuns, NotWritable

_LONGEST = 4096


class HostLock:
    """The lock, held from ``take`` until ``release`` or the end of the process."""

    def __init__(self, *descriptors: int) -> None:
        self._descriptors = descriptors

    @classmethod
    def take(cls, path: Path, *, command: tuple[str, ...], since: str) -> Self:
        """Take the lock and say so in the file. Raises HostRuns with the holder's words, NotWritable."""
        held: list[int] = []
        try:
            held.append(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
            held.append(os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
            for descriptor in held:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            words = {"pid": os.getpid(), "since": since, "command": shlex.join(command)[:_LONGEST]}
            os.ftruncate(held[0], 0)
            os.pwrite(held[0], json.dumps(words).encode() + b"\n", 0)
        except BlockingIOError:
            holder = _holder(os.pread(held[0], 2 * _LONGEST, 0))
            _close(held)
            raise HostRuns(str(path.parent), holder) from None
        except OSError as failure:
            _close(held)
            raise NotWritable(str(path), failure) from failure
        return cls(*held)

    def release(self) -> None:
        """Let go; a second time is no error."""
        held, self._descriptors = self._descriptors, ()
        _close(held)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _close(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _holder(text: bytes) -> str:
    """Who holds the lock, in words; the text may be half written."""
    try:
        words = json.loads(text)
        return f"pid {int(words['pid'])}, since {words['since']}, started as `{words['command']}`"
    except (ValueError, KeyError, TypeError):
        return "it has just begun and hasn't said who it is, or its lock file was deleted"
