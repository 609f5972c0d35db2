"""Reading objects that are in the repository's packs, through libgit2.

Only the object database is opened, never the repository around it: so neither a configuration file nor the environment
has a say in what is read.
"""

from contextlib import suppress
from pathlib import Path

import pygit2

from substrate.errors import Damaged, FlushFailed, lacks_files
from substrate.files import plain
from substrate.packs.large import LARGE, read_large
from substrate.packs.objects import Kind

_CACHE = 4 * 1024 * 1024
"""With 16 MB it takes the same time: what is read again and again is in ``trees`` and ``index``."""
_FIRST = 2
"""Digits of an object's name that its directory has."""
_WINDOW = 1024 * 1024
_MAPPED = 8 * 1024 * 1024
_TREES = 512 * 1024
"""Bytes of trees after which the packs are opened anew: of each of them libgit2 keeps the versions that it rests on, a
dozen as a rule, up to 16 MB for each pack, and no setting bounds that."""


class SealedObjects:
    """The packs of one repository. Not for two threads at once.

    For the whole process libgit2 caches 4 MB of objects and maps 8 MB of packs, a window of 1 MB at a time; for one
    repository it keeps some 8 MB of older trees, and maps the indexes of the packs, 30 bytes an object.
    """

    def __init__(self, objects: str) -> None:
        """Open them. Raises Damaged where something else lies among them."""
        pygit2.settings.cache_max_size(_CACHE)
        pygit2.settings.mwindow_size = _WINDOW
        pygit2.settings.mwindow_mapped_limit = _MAPPED
        for directory in ("pack", "info", *_loose(objects)):  # libgit2 would open a pipe that lies there, and wait
            plain.refuse_others(f"{objects}/{directory}")
        self._objects = objects
        self._odb = pygit2.Odb(objects)
        self._trees = 0

    def reopen(self) -> None:
        """Open the packs that there are now, and let go of those that have gone: a merge replaces some."""
        del self._odb  # first: packs that are open are taken over by the next one, with all that is kept of them
        self._odb = pygit2.Odb(self._objects)
        self._trees = 0

    def let_go(self) -> None:
        """Close all packs, now and not when somebody collects garbage; nothing is found any more."""
        self._odb = pygit2.Odb()

    def find(self, oid: bytes) -> tuple[int, bytes] | None:
        """An object's kind and bytes; None when it isn't there. Raises Damaged when it can't be read."""
        try:
            kind, data = self._odb.read(pygit2.Oid(oid))
        except KeyError:
            return None
        except (ValueError, pygit2.GitError) as bad:  # ValueError: an entry of no kind
            if lacks_files(f"{bad}"):  # nothing is wrong with what can't be opened
                raise FlushFailed(self._objects, f"{bad}", None) from None
            raise Damaged(self._objects, f"object {oid.hex()} can't be read: {bad}") from None
        if int(kind) == Kind.TREE:
            self._trees += len(data)
            if self._trees > _TREES:
                self.reopen()
        return int(kind), data

    def read(self, kind: Kind, oid: bytes) -> bytes:
        """The bytes of an object of this kind. Raises Damaged when it is missing, unreadable or of another kind."""
        try:
            found = self.find(oid)
        except Damaged:
            found = None
        if found is None:
            # Another process's merge may have taken the pack away in which we would have found it.
            self.reopen()
            found = self.find(oid)
        if found is None or found[0] != kind:
            raise Damaged(self._objects, f"{kind.name.lower()} {oid.hex()} is missing")
        return found[1]

    def file(self, path: str, oid: bytes) -> bytes:
        """The bytes of the file at a path; a large one is read without holding up anybody else. Raises Damaged."""
        if path.endswith(".json"):  # an event, an entry: none of them is large
            return self.read(Kind.BLOB, oid)
        try:
            kind, size = self._odb.read_header(pygit2.Oid(oid))
        except (KeyError, ValueError, pygit2.GitError):
            return self.read(Kind.BLOB, oid)
        large = None
        if size >= LARGE and int(kind) == Kind.BLOB:
            large = read_large(f"{self._objects}/pack", oid, size)
        return self.read(Kind.BLOB, oid) if large is None else large

    def tree(self, oid: bytes) -> bytes:
        """The bytes of a tree. Raises Damaged."""
        return self.read(Kind.TREE, oid)


def _loose(objects: str) -> list[str]:
    """The directories of single objects: none as a rule, but another program's git may have left some."""
    with suppress(FileNotFoundError):
        return [path.name for path in Path(objects).iterdir() if len(path.name) == _FIRST]
    return []
