"""Reading a repository that no host has open: no file is touched, and every acknowledged write is shown.

The journals are synced through read-only descriptors first, so that nothing is shown that a power cut could take back;
then they are read by the rules of recovery and laid over the packs in memory (storage §3, readers).
"""

import contextlib
import os
from pathlib import Path

from substrate import state
from substrate.errors import Damaged
from substrate.folder import Folder
from substrate.keys import PublicKey
from substrate.objects import Kind, parse_commit
from substrate.opening import Inspected, inspect
from substrate.recovery import Keep
from substrate.trees import Trees

_TRIES = 5


class ReadView:
    """A repository as of its last durable flush. Memory: the objects of the journals, at most some 8 MB as a rule."""

    def __init__(self, path: str, found: Inspected) -> None:
        self.path = path
        self.format: state.Format = found.format
        self.repository_id = found.format.repository
        self.flush_number = found.plan.head.number
        """Of the last flush that counts."""
        self.flush_hash = found.plan.head.hash
        """Of that flush, 64 hex digits."""
        self.sealed_number = found.tip.number
        """Of the flush that stock git sees."""
        self._head = found.plan.head.oid
        self._objects = found.objects
        self._overlay: dict[bytes, tuple[Kind, bytes]] = {}
        for step in found.plan.steps:
            if isinstance(step, Keep):
                self._overlay.update(step.scan.objects)
        root = parse_commit(self.object(Kind.COMMIT, self._head)).tree
        self._trees = Trees(lambda oid: self.object(Kind.TREE, oid), root)

    @property
    def head(self) -> str:
        """The head of the last flush that counts, 40 hex digits."""
        return self._head.hex()

    def read(self, path: str) -> bytes | None:
        """A file's bytes; None where there is no file. Raises Damaged."""
        oid = self._trees.blob(path)
        return None if oid is None else self.object(Kind.BLOB, oid)

    def entries(self, path: str) -> tuple[str, ...]:
        """The sorted names in a directory (``""`` is the root); empty where there is none."""
        return self._trees.names(path)

    def directory_id(self, path: str) -> str:
        """The id of a directory's tree, 40 hex digits; empty where there is none."""
        oid = self._trees.directory(path)
        return "" if oid is None else oid.hex()

    def directory(self, oid: bytes) -> bytes:
        """The bytes of a directory by its id, as git has them. Raises Damaged where it isn't there."""
        return self.object(Kind.TREE, oid)

    def object(self, kind: Kind, oid: bytes) -> bytes:
        """The bytes of an object, from the journals or the packs. Raises Damaged when it isn't there."""
        found = self._overlay.get(oid)
        return found[1] if found is not None and found[0] is kind else self._objects.read(kind, oid)


def open_readonly(path: str | Path, key: PublicKey) -> ReadView:
    """Look at a repository without being its host.

    Raises NotARepository, NewerFormat, Damaged, ForeignJournal, Unsigned, OSError. A host that starts or stops in
    the same moment is waited out.
    """
    folder = Folder(str(path))
    for _ in range(_TRIES - 1):
        # Journals may become packs between two of our looks; what is really damaged still is at the last one.
        with contextlib.suppress(FileNotFoundError, Damaged):
            return _look(folder, key)
    return _look(folder, key)


def _look(folder: Folder, key: PublicKey) -> ReadView:
    return ReadView(folder.path, inspect(folder, key, _durable_bytes, keep=True))


def _durable_bytes(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        os.fdatasync(descriptor)
        return file.read()
