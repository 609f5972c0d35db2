"""A repository's history as a row of commits, each with what it changed: the ground that ``verify`` stands on.

Walks first parents only, never by date. What a commit changed follows from two trees, read entry by entry; nothing is
taken from an index or a cache on disk.
"""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from substrate.errors import BadObject
from substrate.flush import Trailer, parse_trailer
from substrate.objects import Commit, Kind, parse_commit

_ENTRY = re.compile(rb"(100644|40000) ([^\0/]+)\0([\s\S]{20})")
_TREE = re.compile(rb"(?:(?:100644|40000) [^\0/]+\0[\s\S]{20})*\Z")
_CACHE = 512

Entries = dict[bytes, tuple[bytes, bytes]]
"""A tree: name to (mode, id)."""


class Objects(Protocol):
    """An object database."""

    def object(self, kind: Kind, oid: bytes) -> bytes:
        """An object's bytes. Raises Damaged when it is missing or unreadable."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """A commit on the way: its id, its tree, the trailer if it is a head, and what is wrong with it by itself."""

    oid: bytes
    tree: bytes
    trailer: Trailer | None
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Changed:
    """A file that a commit added (``old`` is None), changed, or removed (``new`` is None); blob ids."""

    path: str
    old: bytes | None
    new: bytes | None


def back_to_the_start(objects: Objects, tip: bytes, judge: "Judge") -> list[Step]:
    """Every commit from the first one to ``tip``. Raises Damaged, BadObject where the row breaks off."""
    steps: list[Step] = []
    oid: bytes | None = tip
    while oid is not None:
        commit = parse_commit(objects.object(Kind.COMMIT, oid))
        trailer = parse_trailer(commit.message)
        steps.append(Step(oid, commit.tree, trailer, judge(commit, trailer)))
        oid = commit.parent
    steps.reverse()
    return steps


class Judge(Protocol):
    """Says what is wrong with a commit by itself: identities, signature."""

    def __call__(self, commit: Commit, trailer: Trailer | None) -> tuple[str, ...]:
        """The faults, in words."""
        ...


class Differ:
    """Tells trees apart. Memory: the entries of 512 trees."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._entries = functools.lru_cache(maxsize=_CACHE)(self._parsed)

    def changes(self, old: bytes | None, new: bytes | None, prefix: str = "") -> Iterator[Changed]:
        """The files in which two trees differ. Raises Damaged, BadObject."""
        if old == new:
            return
        before: Entries = {} if old is None else self._entries(old)
        after: Entries = {} if new is None else self._entries(new)
        # Comparing items is what makes this quick: only the entries that differ are looked at one by one.
        for name in sorted({name for name, _ in before.items() ^ after.items()}):
            was, now = before.get(name), after.get(name)
            path = prefix + name.decode("utf-8", "surrogateescape")
            was_file, was_tree = _split(was)
            now_file, now_tree = _split(now)
            if was_file != now_file:
                yield Changed(path, was_file, now_file)
            yield from self.changes(was_tree, now_tree, path + "/")

    def _parsed(self, oid: bytes) -> Entries:
        data = self._objects.object(Kind.TREE, oid)
        if not _TREE.match(data):
            raise BadObject(f"tree {oid.hex()} holds something that is neither a plain file nor a directory")
        return {name: (mode, entry) for mode, name, entry in _ENTRY.findall(data)}


def _split(entry: tuple[bytes, bytes] | None) -> tuple[bytes | None, bytes | None]:
    """(blob id, tree id) of an entry: one of them, or neither."""
    if entry is None:
        return None, None
    mode, oid = entry
    return (oid, None) if mode == b"100644" else (None, oid)
