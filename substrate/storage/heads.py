"""How far a repository had got, remembered outside of it (storage §3, completeness).

A signature proves who wrote, not that nothing is missing: a repository that was set back to an older state verifies.
So the head of each seal is noted in a file outside, before the branch moves to it; and a start refuses a history in
which the noted head isn't.

The file ``<data>/heads/<deployment>.json``, a format for ever: one line of JSON with the fields of ``epoch.Noted``.
Each deployment has a file of its own, written by the thread that writes its repository: no two share one, so there is
no lock.
"""

import logging
from pathlib import Path

from substrate import layout
from substrate.errors import BadNote, Damaged, RepositoryGone, RolledBack
from substrate.files import plain
from substrate.files.disk import Disk
from substrate.files.folder import Folder
from substrate.signing.epoch import Noted, decode_epoch, decode_noted, encode
from substrate.signing.signers import Verifier
from substrate.storage.opening import Inspected, in_history
from substrate.storage.readview import open_readonly
from substrate.storage.recovery import Keep
from substrate.storage.scan import Head
from waypost.model.errors import Invalid

_log = logging.getLogger(__name__)
_LONGEST = 4096


class Heads:
    """What is remembered of one repository, in a file of its own; the file's directory is made when it is needed."""

    def __init__(self, file: Path, disk: Disk) -> None:
        self.file, self._disk = file, disk
        self._last: Noted | None = None
        self._there: Noted | None = None
        """What the file was found to hold; that it has its name may not be durable."""

    def read(self) -> Noted | None:
        """The newest noted head; None when nothing was ever noted. Raises BadNote, OSError."""
        return read_note(self.file)

    def note(self, noted: Noted) -> None:
        """Remember this head; when it returns, that is durable. Raises OSError."""
        if noted == self._last:
            return
        folder, aside = self.file.parent, self.file.with_suffix(".new")
        if not folder.is_dir():
            self._disk.make_directory(str(folder), 0o700)
            self._disk.sync_directory(str(folder.parent))
        if noted != self._there:
            self._disk.write_file(str(aside), encode(noted) + b"\n", 0o600)
            self._disk.rename(str(aside), str(self.file))
        self._disk.sync_directory(str(folder))
        self._last = self._there = noted

    def begin(self, path: str) -> None:
        """Let a repository be made at ``path``. Raises RepositoryGone where one was, BadNote, OSError."""
        noted = self.read()
        if noted is not None:
            raise RepositoryGone(path, str(noted))

    def found(self, found: Inspected) -> None:
        """Note how far a start has found it to reach, once that is durable. Raises OSError."""
        head = found.plan.head
        self.note(
            Noted(
                repository=found.format.repository,
                epoch=found.format.epoch,
                flush=head.number,
                hash=head.hash,
                head=head.oid.hex(),
            )
        )

    def check(self, folder: Folder, key: Verifier, found: Inspected) -> None:
        """See that what was found holds what was noted; one that was never noted does.

        Raises RolledBack, BadNote, Damaged, OSError.
        """
        noted, head = self.read(), found.plan.head
        self._there = noted
        if noted is None:
            # Made by an earlier Waypost, or its host was killed before the first note.
            _log.info("%s: nothing was noted of it so far", folder.path)
        elif not (holds(found, noted) or _accepted(folder, key, noted)):
            raise RolledBack(
                folder.path,
                str(noted),
                str(head),
                went_back=head.number < noted.flush,
                another=noted.repository != found.format.repository,
                still_there=noted.head if found.objects.find(bytes.fromhex(noted.head)) else None,
            )


def read_note(file: Path) -> Noted | None:
    """The head that such a file holds, None where there is no file. Raises BadNote, OSError."""
    try:
        raw = plain.read(file, _LONGEST)
    except FileNotFoundError:
        return None
    except Damaged as other:
        raise BadNote(str(file), other.why) from None
    try:
        return decode_noted(raw)
    except Invalid as bad:
        raise BadNote(str(file), bad.message) from None


def holds(found: Inspected, noted: Noted) -> bool:
    """Whether the history, journals and all, is at the noted head or descends from it. Raises Damaged."""
    if noted.repository != found.format.repository:
        return False
    oid = bytes.fromhex(noted.head)
    for step in found.plan.steps:
        if isinstance(step, Keep):
            kept = (flush.head for flush in step.scan.flushes if flush.head.number <= step.last.head.number)
            if any(head.oid == oid for head in kept):
                return True
    return noted.flush <= found.tip.number and in_history(found.objects, found.tip, Head(noted.flush, oid, noted.hash))


def _accepted(folder: Folder, key: Verifier, noted: Noted) -> bool:
    """Whether this very loss was accepted already, by an epoch that the host has signed."""
    raw = open_readonly(folder.path, key).read(layout.EPOCH)
    try:
        return raw is not None and decode_epoch(raw).lost == noted
    except Invalid:
        return False
