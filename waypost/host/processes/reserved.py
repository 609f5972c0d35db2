"""Which users of this machine are a host's that runs: a lock on one byte for each, of a file that all hosts share.

A number is given by a hash of the data directory's place, and kept; so two data directories can come to have the same
one, at the latest when one is a copy of the other. What runs as a deployment's user is ended with its child, and when
its host starts: without this, one host would end another one's children.

The file is ``/run/waypost.users``, 0600: byte N is user N, and byte N + 2**32 is locked as long as all that runs as
user N is ended (`ipc.sweep`), byte N + 2**33 while somebody begins to share it, or has ended to. The kernel lets go of
a lock when its host ends, however it ends, so nothing has to be cleared away. Byte N is 1 from before a child runs as
user N on until all that runs as it was ended, and 0 or not there else: so a start knows for whom something may be left.
Only root has users to give, and root alone is asked for here.
"""

import fcntl
import logging
import os
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from ipc.sweep import NOTHING, SWEPT

log = logging.getLogger(__name__)

PLACE = Path("/run/waypost.users")
_SOMETHING = b"\1"
_TURN = 2 * SWEPT


class Reserved:
    """What one host has reserved, until ``release`` or the end of the process. For one thread, but for ``use``."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor
        self._refused: set[int] = set()

    @property
    def descriptor(self) -> int | None:
        """Whoever has it has what is reserved; None: nothing is."""
        return self._descriptor

    @classmethod
    def begin(cls, place: Path = PLACE) -> Self:
        """With nothing reserved yet. Where there is no such place every user can be had, and the log says so."""
        if os.geteuid() != 0:
            return cls(None)
        try:
            # Not to be inherited: whoever has the descriptor has the locks.
            return cls(os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        except OSError as failure:
            log.warning("%s: %s; no other host of this machine may use the same --uids", place, failure.strerror)
            return cls(None)

    def take(self, uid: int) -> bool:
        """Reserve a user; False when it is another host's that runs. Raises OSError.

        Waits for the end of a sweep: after a kill, the guardian may be at it. That has an end of its own.
        """
        return uid not in self._refused and self._locked(uid, fcntl.F_WRLCK)

    def refuse(self, uid: int) -> None:
        """Take this one for another host's, whatever the file says: somebody may have removed the one before it."""
        self._refused.add(uid)

    def share(self, uid: int) -> bool:
        """Have a user beside others who share it; False when it is reserved. As ``take`` in all else."""
        return self._locked(uid, fcntl.F_RDLCK)

    @contextmanager
    def turn(self, uid: int, patience: float) -> Iterator[bool]:
        """Whoever shares a user begins to, and ends what is left of it, in a block of these: one after the other.

        Else who comes meets who has it alone for that moment, takes it for a deployment's, and is ended with the rest.
        False where it isn't ours: who has it may be stopped, and is waited for no longer than so many seconds.
        """
        if self._descriptor is None:
            yield True
            return
        # Of its own, with the lock: whose turn comes when it is waited for no more gives it back by closing this.
        apart, had = os.open(f"/proc/self/fd/{self._descriptor}", os.O_RDWR | os.O_CLOEXEC), Future[None]()
        waiting = threading.Thread(target=_wait, args=(apart, uid + _TURN, had), name="waypost-turn", daemon=True)
        try:
            waiting.start()
        except RuntimeError:  # its user gets no more threads: then nobody is waited for
            patience = 0.0
            _at_once(apart, uid + _TURN, had)
        with suppress(TimeoutError):
            had.result(patience)
        ours = not had.cancel()
        try:
            yield ours
        finally:
            if ours:
                os.close(apart)

    def leave(self, uid: int) -> None:
        """Let go of this one. Raises OSError."""
        if self._descriptor is not None:
            fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, _byte(uid, fcntl.F_UNLCK))

    def use(self, uid: int) -> None:
        """Something will run as this user: note it, for whoever has to end that. What can't be noted is logged."""
        if self._descriptor is not None:
            try:
                os.pwrite(self._descriptor, _SOMETHING, uid)
            except OSError as failure:
                log.warning("that something runs as user %d can't be noted: %s", uid, failure.strerror)

    def used(self, uid: int) -> bool:
        """Whether something may run as this user. Raises OSError."""
        return self._descriptor is None or os.pread(self._descriptor, 1, uid) not in {b"", NOTHING}

    def release(self) -> None:
        """Let go of all of them; a second time is no error."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _locked(self, uid: int, kind: int) -> bool:
        if self._descriptor is None:
            return True
        fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLKW, _byte(uid + SWEPT))
        try:
            fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, _byte(uid, kind))
        except (BlockingIOError, PermissionError):
            return False
        finally:
            fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, _byte(uid + SWEPT, fcntl.F_UNLCK))
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _wait(apart: int, byte: int, had: "Future[None]") -> None:
    """In a thread of its own: the kernel lets those that wait on in order, and knows no limit of time."""
    fcntl.fcntl(apart, fcntl.F_OFD_SETLKW, _byte(byte))
    if had.set_running_or_notify_cancel():
        had.set_result(None)
    else:
        os.close(apart)


def _at_once(apart: int, byte: int, had: "Future[None]") -> None:
    try:
        fcntl.fcntl(apart, fcntl.F_OFD_SETLK, _byte(byte))
    except OSError:
        os.close(apart)
    else:
        had.set_result(None)


def _byte(uid: int, kind: int = fcntl.F_WRLCK) -> bytes:
    # Of the open file, not of the process: that isn't lost when somebody else closes the same file (fcntl(2)).
    return struct.pack("@hhqqi4x", kind, os.SEEK_SET, uid, 1, 0)
