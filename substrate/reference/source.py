"""A git repository that is only read: branches, trees and files, each with a limit.

Nothing but its object database is opened, so that neither a configuration file nor a hook of its has a say; nothing is
written. Every size is asked for before the object is read. Names are bytes from a stranger: they come as text with
surrogates for what is no UTF-8, and are never used as a path of the file system.
"""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pygit2

from substrate.errors import BadObject
from substrate.packs.objects import Commit, Kind, parse_commit, parse_tree
from substrate.reference.errors import NotReference, Unreadable

MIB = 1024 * 1024
COMMIT = 4 * MIB
TREE = 16 * MIB
REFS = 16 * MIB
"""Bytes of a commit, of a tree (some 200,000 names), of the file ``packed-refs`` at most."""
READ = frozenset({"main", "events"})
"""Branches that are read."""
DEPTH = 32
"""Directories below one another at most."""

_CACHE = 4
_PREFIX = "refs/heads/"
_OID = re.compile(r"[0-9a-f]{40}\Z")
_FILE, _DIRECTORY = b"100644", b"40000"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a tree. ``kind``: ``file``, ``directory``, or ``other`` (a link, a submodule, an executable)."""

    name: str
    kind: str
    oid: bytes


class Source:
    """One repository."""

    def __init__(self, path: str, objects: pygit2.Odb, branches: dict[str, bytes]) -> None:
        self.path, self.branches = path, branches
        self._objects = objects
        self.entries = functools.lru_cache(maxsize=_CACHE)(self._entries)
        """The lines of a tree, in its order. Raises Unreadable."""

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open a bare repository, or the ``.git`` of one with a working tree. Raises NotReference."""
        here = Path(path)
        if here.is_file():
            raise NotReference(
                str(path), "it is a file", hint=f"a bundle is unpacked by `git clone --mirror {path} FOLDER`"
            )
        for folder in (here, here / ".git"):
            if (folder / "objects").is_dir():
                try:
                    objects = pygit2.Odb(str(folder / "objects"))
                    return cls(str(path), objects, dict(_branches(folder)))
                except (OSError, pygit2.GitError) as failure:
                    raise NotReference(str(path), str(failure)) from failure
        raise NotReference(str(path), "no git repository lies there")

    def commit(self, oid: bytes) -> Commit:
        """A commit. Raises Unreadable."""
        try:
            return parse_commit(self._read(Kind.COMMIT, oid, COMMIT))
        except BadObject as bad:
            raise Unreadable(f"commit {oid.hex()}", bad.message) from None

    def _entries(self, oid: bytes) -> tuple[Entry, ...]:
        try:
            return tuple(
                Entry(each.name, _kind(each.line), each.oid) for each in parse_tree(self._read(Kind.TREE, oid, TREE))
            )
        except BadObject as bad:
            raise Unreadable(f"tree {oid.hex()}", bad.message) from None

    def file(self, oid: bytes, limit: int) -> bytes:
        """A file's bytes, at most ``limit`` of them. Raises Unreadable."""
        return self._read(Kind.BLOB, oid, limit)

    def size(self, oid: bytes) -> int:
        """How many bytes a file has. Raises Unreadable."""
        return self._header(oid)[1]

    def _read(self, kind: Kind, oid: bytes, limit: int) -> bytes:
        found, size = self._header(oid)
        name = f"{kind.name.lower()} {oid.hex()}"
        if found != kind:
            raise Unreadable(name, "it is an object of another kind")
        if size > limit:
            raise Unreadable(name, f"it has {size} bytes, at most {limit} are read")
        try:
            return self._objects.read(pygit2.Oid(oid))[1]
        except (KeyError, pygit2.GitError) as bad:
            raise Unreadable(name, f"it can't be read: {bad}") from None

    def _header(self, oid: bytes) -> tuple[int, int]:
        try:
            kind, size = self._objects.read_header(pygit2.Oid(oid))
        except KeyError:
            raise Unreadable(f"object {oid.hex()}", "it is missing") from None
        except pygit2.GitError as bad:
            raise Unreadable(f"object {oid.hex()}", f"it can't be read: {bad}") from None
        return int(kind), size

    # --- whole directories ---

    def files(self, oid: bytes, path: str, depth: int = 0) -> Iterator[tuple[str, Entry]]:
        """Everything below a tree that is no directory, by path. Raises Unreadable."""
        if depth > DEPTH:
            raise Unreadable(path, f"more than {DEPTH} directories lie in one another")
        for entry in self.entries(oid):
            below = f"{path}/{entry.name}" if path else entry.name
            if entry.kind == "directory":
                yield from self.files(entry.oid, below, depth + 1)
            else:
                yield below, entry


def _kind(line: bytes) -> str:
    mode = line.partition(b" ")[0]
    return "file" if mode == _FILE else "directory" if mode == _DIRECTORY else "other"


def _branches(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The branches, packed ones first: a loose one of the same name comes later and wins.

    Of those that nobody asks for (``READ`` are) only the name counts, and what their files hold isn't looked at.
    """
    packed = folder / "packed-refs"
    if packed.is_file():
        with packed.open("rb") as file:
            for line in file.read(REFS).decode("utf-8", "surrogateescape").splitlines():
                text, _, name = line.partition(" ")
                if name.startswith(_PREFIX) and _OID.match(text):
                    yield name.removeprefix(_PREFIX), bytes.fromhex(text)
    heads = folder / "refs" / "heads"
    for loose in sorted(heads.rglob("*")) if heads.is_dir() else ():
        name = str(loose.relative_to(heads))
        if loose.is_file() and not loose.name.endswith(".lock"):
            yield name, _loose(loose) if name in READ else b""


def _loose(file: Path) -> bytes:
    with file.open("rb") as opened:
        text = opened.read(COMMIT).decode("ascii", "replace").strip()
    if not _OID.match(text):
        raise NotReference(str(file), "the branch holds no object id of git's SHA-1")
    return bytes.fromhex(text)
