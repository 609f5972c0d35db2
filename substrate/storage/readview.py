"""Reading a repository that no host has open: no file is touched, and every acknowledged write is shown.

The journals are synced through read-only descriptors first, so that nothing is shown that a power cut could take back;
then they are read by the rules of recovery and laid over the packs in memory (storage §3, readers).
"""

import contextlib
import functools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from substrate import state
from substrate.errors import Damaged, NotInHistory
from substrate.files import plain
from substrate.files.folder import Folder
from substrate.packs.objects import Kind, parse_commit
from substrate.packs.sealed import SealedObjects
from substrate.packs.trees import Trees
from substrate.signing.signers import Verifier
from substrate.storage.flush import Trailer, parse_trailer
from substrate.storage.opening import Inspected, inspect
from substrate.storage.recovery import Keep

_TRIES = 5


class ReadView:
    """A repository as of one commit, for ever: the last durable flush when it was opened, or an older commit.

    Nothing that the writer does afterwards shows: what was in journals is in memory here (some 8 MB at most, as a
    rule), and what was in packs is found in the packs that replace them.
    """

    def __init__(self, path: str, found: Inspected, at: str | None = None) -> None:
        """Raises NotInHistory."""
        self.path = path
        self.format: state.Format = found.format
        self.repository_id = found.format.repository
        self.flush_number = found.plan.head.number
        """Of the last flush up to this commit."""
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
        if at is not None:
            self._go_back(at)
        root = parse_commit(self.object(Kind.COMMIT, self._head)).tree
        # Not by a method of its own: a view that refers to itself would keep its packs open after its end.
        self._trees = Trees(functools.partial(_object, self._overlay, self._objects, Kind.TREE), root)

    @property
    def head(self) -> str:
        """The commit that is shown, 40 hex digits."""
        return self._head.hex()

    def _go_back(self, at: str) -> None:
        """Stand at an older commit. The signed head stands for all before it, so the way goes from parent to parent."""
        oid: bytes | None = self._head
        while oid is not None and oid.hex() != at:
            oid = parse_commit(self.object(Kind.COMMIT, oid)).parent
        if oid is None:
            raise NotInHistory(self.path, at)
        self._head = oid
        trailer: Trailer | None = None
        while oid is not None and trailer is None:
            commit = parse_commit(self.object(Kind.COMMIT, oid))
            trailer, oid = parse_trailer(commit.message), commit.parent
        self.flush_number, self.flush_hash = (
            (0, self.repository_id) if trailer is None else (trailer.number, trailer.hash)
        )

    def read(self, path: str) -> bytes | None:
        """A file's bytes; None where there is no file. Raises Damaged."""
        oid = self._trees.blob(path)
        if oid is None:
            return None
        found = self._overlay.get(oid)
        return self._objects.file(path, oid) if found is None else found[1]

    def entries(self, path: str) -> tuple[str, ...]:
        """The sorted names in a directory (``""`` is the root); empty where there is none."""
        return self._trees.names(path)

    def several(self, directory: str, names: Sequence[str]) -> list[bytes | None]:
        """Files of one directory."""
        return [self.read(f"{directory}/{name}") for name in names]

    def directory_id(self, path: str) -> str:
        """The id of a directory's tree, 40 hex digits; empty where there is none."""
        oid = self._trees.directory(path)
        return "" if oid is None else oid.hex()

    def directory(self, oid: bytes) -> bytes:
        """The bytes of a directory by its id, as git has them. Raises Damaged where it isn't there."""
        return self.object(Kind.TREE, oid)

    def object(self, kind: Kind, oid: bytes) -> bytes:
        """The bytes of an object, from the journals or the packs. Raises Damaged when it isn't there."""
        return _object(self._overlay, self._objects, kind, oid)


def _object(overlay: Mapping[bytes, tuple[Kind, bytes]], sealed: SealedObjects, kind: Kind, oid: bytes) -> bytes:
    found = overlay.get(oid)
    return found[1] if found is not None and found[0] is kind else sealed.read(kind, oid)


def open_readonly(path: str | Path, key: Verifier, at: str | None = None) -> ReadView:
    """Look at a repository without being its host, as of its last durable flush or of the commit ``at``.

    Raises NotARepository, NewerFormat, Damaged, ForeignJournal, Unsigned, NotInHistory, OSError. A host that starts or
    stops in the same moment is waited out.
    """
    folder = Folder(str(path))
    for _ in range(_TRIES - 1):
        # Journals may become packs between two of our looks; what is really damaged still is at the last one.
        with contextlib.suppress(FileNotFoundError, Damaged):
            return _look(folder, key, at)
    return _look(folder, key, at)


def _look(folder: Folder, key: Verifier, at: str | None) -> ReadView:
    return ReadView(folder.path, inspect(folder, key, _durable_bytes, keep=True), at)


def _durable_bytes(path: str) -> bytes:
    descriptor = plain.opened(path)
    try:
        with os.fdopen(descriptor, "rb") as file:
            os.fdatasync(descriptor)
            return file.read()
    except OSError as failure:  # by a descriptor the system doesn't say of which file
        raise OSError(failure.errno, failure.strerror, path) from failure
