"""The row of journals: the one that is written, the next one in reserve, and those on their way to become packs.

A seal never takes the last journal away: the next one is allocated first, and when there is no space for it the seal
waits and writing goes on in what is left.
"""

import errno
import logging
import os
import shlex
from collections.abc import Callable
from pathlib import Path

from substrate.files.disk import Disk
from substrate.files.folder import Folder
from substrate.storage.journal import Journal
from substrate.storage.seal import move_ref, publish
from waypost.model.limits import MIB, Limits
from waypost.model.times import stamp

_log = logging.getLogger(__name__)
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Journals:
    """All journals of one repository. ``ref`` is where the branch stands, 40 hex digits."""

    def __init__(
        self,
        disk: Disk,
        folder: Folder,
        limits: Limits,
        *,
        ref: str | None,
        held: tuple[str, ...],
        note: Callable[[], None] | None = None,
    ) -> None:
        """``note`` is called before the branch moves to the newest durable head."""
        self.ref = ref
        self._note = note
        self._disk, self._folder, self._limits = disk, folder, limits
        self._held = list(held)
        self._finished: list[tuple[Journal, str]] = []
        self._spare: Journal | None = None
        self._last = 0
        self._lacking = False
        self._locked = 0
        """Inode of the branch's lock that was last complained of."""

    def begin(self, number: int) -> Journal:
        """Allocate the first journal. Raises OSError."""
        self._last = number - 1
        self.current = self._allocate()
        return self.current

    @property
    def room(self) -> int:
        """Bytes that can be written without asking the disk for space."""
        return max(0, self.current.room) + (self._spare.room if self._spare is not None else 0)

    @property
    def unsealed(self) -> bool:
        """Whether something that is durable isn't on the branch yet."""
        return self.current.objects > 0 or bool(self._finished) or bool(self._held)

    @property
    def full(self) -> bool:
        """Whether the present journal has as much as a pack should have."""
        return self.current.objects >= self._limits.seal_objects or self.current.end >= self._limits.seal_bytes

    def blob(self, oid: bytes) -> bytes | None:
        """A blob that isn't in a published pack yet."""
        data = self.current.blob(oid)
        if data is None and self._finished:
            data = next((found for journal, _ in self._finished if (found := journal.blob(oid)) is not None), None)
        return data

    def reserve(self) -> None:
        """Have the next journal ready before the present one is half full; a full disk is no error here."""
        if self._spare is None and self.current.end * 2 >= self.current.reserved:
            self._spare = self._try_allocate()

    def seal(self, head: str) -> int | None:
        """Bring all that is durable to packs and move the branch to ``head``, as far as the world lets us.

        The number of the newest journal that is now in a pack, None where none became one. Raises OSError,
        SecondWriter.
        """
        if self.current.objects:
            following = self._spare or self._try_allocate()
            if following is None:
                return None
            self._finish()
            self.current, self._spare = following, None
        return self._publish(head)

    def close(self, head: str) -> None:
        """Seal for the last time and leave no empty journal. Raises OSError, SecondWriter."""
        if self.current.objects:
            self._finish()
        else:
            self._discard(self.current)
        if self._spare is not None:
            self._discard(self._spare)
            self._spare = None
        self._publish(head)

    def let_go(self) -> None:
        """Close every descriptor and leave the files as they are. Doing it twice is fine."""
        spare = [self._spare] if self._spare is not None else []
        for journal in (self.current, *spare, *(finished for finished, _ in self._finished)):
            journal.close()

    def _finish(self) -> None:
        self._finished.append((self.current, self.current.finish()))

    def _publish(self, head: str) -> int | None:
        published = None
        while self._finished:
            journal, sha = self._finished[0]
            try:
                publish(self._disk, self._folder, journal.path, sha, journal.index())
            except OSError as full:
                if full.errno not in _FULL:
                    raise
                _log.warning("%s: no space for a pack's index; the seal waits", self._folder.path)
                return published
            journal.close()
            self._held.append(journal.path)
            published = journal.number
            del self._finished[0]
        self._move(head)
        return published

    def _move(self, head: str) -> None:
        if not self._held:
            return
        if not self._noted():
            return
        if not move_ref(self._disk, self._folder, self.ref, head):
            self._say_locked()
            return
        self.ref = head
        for path in self._held:
            self._disk.unlink(path)
        self._held.clear()

    def _noted(self) -> bool:
        """Have the newest durable head noted outside; False where the disk there has no space for it."""
        try:
            if self._note is not None:
                self._note()
        except OSError as full:
            if full.errno not in _FULL:
                raise
            _log.warning("%s: no space to note how far it has got; the seal waits", self._folder.path)
            return False
        return True

    def _say_locked(self) -> None:
        """Once for each lock: a seal is tried again and again, and nobody but a person can tell a dead holder."""
        lock = Path(f"{self._folder.ref}.lock")
        try:
            found = lock.stat()
        except FileNotFoundError:
            return  # let go this very moment
        if found.st_ino != self._locked:
            self._locked = found.st_ino
            since = stamp(found.st_mtime_ns // 1_000_000)
            _log.warning(
                "%s: another program holds the lock of the branch since %s; what is written is safe, but git doesn't "
                "see it; if no git is at work there any more: rm %s",
                lock, since, shlex.quote(str(lock)),
            )  # fmt: skip

    def _allocate(self) -> Journal:
        self._last += 1
        return Journal.allocate(self._disk, self._folder, self._last, self._limits.seal_bytes + MIB)

    def _try_allocate(self) -> Journal | None:
        try:
            journal = self._allocate()
        except OSError as full:
            if full.errno not in _FULL:
                raise
            if not self._lacking:  # once: it is tried again at every flush and seal
                _log.warning("%s: no space for the next journal: %s", self._folder.path, os.strerror(full.errno or 0))
            self._lacking = True
            return None
        self._lacking = False
        return journal

    def _discard(self, journal: Journal) -> None:
        journal.close()
        self._disk.unlink(journal.path)
