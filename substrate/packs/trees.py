"""The tree of the branch, in memory as far as it is being written.

A directory is loaded when something is first written below it, kept while it is written, and let go at the seal after
the journal in which it was last written; what isn't loaded is in a sealed pack and is read from there. So memory is
bounded by what two journals can hold (2 x 4,096 objects, each directory at most 256 entries outside ``code/``), and
the cost of a write follows its depth, never the history.
"""

import functools
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import msgspec

from substrate.errors import BadPath
from substrate.packs.objects import EMPTY_TREE, parse_tree

_SEALED_CACHE = 64
_DIRECTORIES = 1024
"""How many paths of directories are remembered in pieces: most writes go where one has just gone."""


class Base(msgspec.Struct, frozen=True):
    """A tree's last version in a journal: which journal, at which offset, how many deltas deep, and its bytes."""

    journal: int
    offset: int
    depth: int
    data: bytes


class TreeSink(Protocol):
    """Where written trees go."""

    @property
    def number(self) -> int:
        """Of the present journal."""
        ...

    def add_tree(self, data: bytes, base: Base | None) -> tuple[bytes, Base | None]:
        """Store a tree and return its id, and what the next version can be a delta against."""
        ...


class _Directory:
    """A loaded directory: sorted keys (a directory's ends with ``/``), their lines, and the loaded ones below."""

    __slots__ = ("base", "changed", "children", "head", "key", "keys", "lines", "written")

    def __init__(self, data: bytes, name: bytes = b"") -> None:
        self.key, self.head = name + b"/", b"40000 %b\0" % name
        """What it sorts by in the directory above, and its line there without the id."""
        entries = list(parse_tree(data))
        self.keys = [entry.key for entry in entries]
        self.lines = [entry.line for entry in entries]
        self.children: dict[bytes, _Directory] = {}
        self.changed: set[bytes] = set()
        self.base: Base | None = None
        self.written = 0

    def oid(self, key: bytes) -> bytes | None:
        at = bisect_left(self.keys, key)
        return self.lines[at][-20:] if at < len(self.keys) and self.keys[at] == key else None

    def put(self, key: bytes, line: bytes) -> None:
        keys = self.keys
        at = bisect_left(keys, key)
        if at < len(keys) and keys[at] == key:
            self.lines[at] = line
        else:
            keys.insert(at, key)
            self.lines.insert(at, line)

    def remove(self, key: bytes) -> bytes | None:
        at = bisect_left(self.keys, key)
        if at == len(self.keys) or self.keys[at] != key:
            return None
        del self.keys[at]
        return self.lines.pop(at)[-20:]


class Trees:
    """The visible tree. ``load`` gives the bytes of a tree that isn't in memory, by id."""

    def __init__(self, load: Callable[[bytes], bytes], root: bytes) -> None:
        self._load = load
        self._sealed = functools.lru_cache(maxsize=_SEALED_CACHE)(lambda oid: _Directory(load(oid)))
        self._root = _Directory(load(root) if root != EMPTY_TREE else b"")
        self._found: tuple[str, _Directory] | None = None
        self._open: tuple[str, _Directory] | None = None
        """Where it was last read and written: a commit's files mostly lie beside each other."""

    # --- reading ---

    def blob(self, path: str) -> bytes | None:
        """The id of the blob at a path; None where no file is."""
        above, _, name = path.rpartition("/")
        node = self._find(above)
        return None if node is None else node.oid(name.encode())

    def blobs(self, directory: str, names: Sequence[str]) -> list[bytes | None]:
        """The ids of files in one directory, in the order of these names; None for one that isn't there."""
        node = self._find(directory)
        if node is None:
            return [None] * len(names)
        lines = dict(zip(node.keys, node.lines, strict=True))
        return [None if (line := lines.get(name.encode())) is None else line[-20:] for name in names]

    def directory(self, path: str) -> bytes | None:
        """The id of a directory's tree as of the last ``write``; None where no directory is."""
        above, _, name = path.rpartition("/")
        node = self._find(above)
        return None if node is None else node.oid(name.encode() + b"/")

    def size(self, path: str) -> int:
        """Bytes of a directory's tree as it is now; 0 where no directory is."""
        node = self._find(path)
        return 0 if node is None else sum(map(len, node.lines))

    def names(self, path: str) -> tuple[str, ...]:
        """The names in a directory, sorted; nothing where no directory is. ``""`` is the root."""
        node = self._find(path)
        if node is None or not node.keys:
            return ()
        found = b"\0".join(node.keys).decode()
        if "/" not in found:  # files alone: as they lie
            return tuple(found.split("\0"))
        return tuple(sorted(key.rstrip("/") for key in found.split("\0")))

    def files(self, path: str) -> Iterator[str]:
        """Every file below a directory, by full path."""
        node = self._find(path)
        for key in node.keys if node is not None else ():
            if key.endswith(b"/"):
                yield from self.files(f"{path}/{key[:-1].decode()}")
            else:
                yield f"{path}/{key.decode()}"

    def _find(self, directory: str) -> _Directory | None:
        """A directory to read: the one being written, or a sealed one (never attached, never changed)."""
        last = self._found
        if last is not None and last[0] == directory:
            return last[1]
        node = self._root
        for part in _parts(directory):
            child = node.children.get(part)
            if child is None:
                oid = node.oid(part + b"/")
                if oid is None:
                    return None
                child = self._sealed(oid)
            node = child
        self._found = directory, node
        return node

    # --- writing ---

    def check(self, path: str) -> bytes | None:
        """The id of the blob that a put would replace. Raises BadPath where a file and a directory would collide."""
        above, _, last = path.rpartition("/")
        node = self._find(above)
        if node is None:
            self._check_above(path, above)
            return None
        name = last.encode()
        if not node.keys or name > node.keys[-1]:  # as a directory it would come later still
            return None
        if node.oid(name + b"/") is not None:
            raise BadPath(path, "a directory of that name is there")
        return node.oid(name)

    def put(self, path: str, oid: bytes) -> None:
        """Name a blob."""
        above, _, name = path.rpartition("/")
        key = name.encode()
        self._writable(above).put(key, b"".join((b"100644 ", key, b"\0", oid)))

    def remove(self, path: str) -> bytes | None:
        """Remove a file; the id that it had. Directories that it leaves empty go at ``write``."""
        above, _, name = path.rpartition("/")
        return self._writable(above).remove(name.encode())

    def remove_directory(self, path: str) -> None:
        """Remove a directory with all that is below it."""
        above, _, last = path.rpartition("/")
        node, name = self._writable(above), last.encode()
        node.remove(name + b"/")
        node.children.pop(name, None)
        node.changed.discard(name)
        self._forget()

    def write(self, sink: TreeSink) -> bytes:
        """Store every directory that has changed; the new root's id. An empty directory is left out."""
        self._forget()
        oid = self._write(self._root, sink)
        return EMPTY_TREE if oid is None else oid

    def evict(self, journal: int) -> None:
        """Let go of what was last written before this journal: all of it must be in sealed packs by now."""
        self._forget()
        self._evict(self._root, journal)

    def _writable(self, directory: str) -> _Directory:
        last = self._open
        if last is not None and last[0] == directory:
            return last[1]
        node = self._root
        for part in _parts(directory):
            node.changed.add(part)
            child = node.children.get(part)
            if child is None:
                oid = node.oid(part + b"/")
                child = node.children[part] = _Directory(b"" if oid is None else self._load(oid), part)
                self._found = None  # it may have been read from where it is sealed
            node = child
        self._open = directory, node
        return node

    def _forget(self) -> None:
        self._found = self._open = None

    def _check_above(self, path: str, directory: str) -> None:
        """Refuse a directory that isn't there yet where a file is in its way."""
        node = self._root
        for part in _parts(directory):
            if node.oid(part) is not None:
                raise BadPath(path, f"{part.decode()} is a file")
            child = node.children.get(part)
            if child is None:
                oid = node.oid(part + b"/")
                if oid is None:
                    return
                child = self._sealed(oid)
            node = child

    def _write(self, node: _Directory, sink: TreeSink) -> bytes | None:
        if node.changed:
            for name in node.changed:
                child = node.children[name]
                oid = self._write(child, sink)
                if oid is None:
                    del node.children[name]
                    node.remove(child.key)
                else:
                    node.put(child.key, child.head + oid)
            node.changed.clear()
        node.written = sink.number
        if not node.lines and node is not self._root:
            return None
        oid, node.base = sink.add_tree(b"".join(node.lines), node.base)
        return oid

    def _evict(self, node: _Directory, journal: int) -> None:
        for name, child in list(node.children.items()):
            if child.written < journal:
                del node.children[name]
            else:
                self._evict(child, journal)


@functools.lru_cache(maxsize=_DIRECTORIES)
def _parts(directory: str) -> tuple[bytes, ...]:
    return tuple(directory.encode().split(b"/")) if directory else ()
