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
from substrate.packs.objects import Commit, Kind, parse_commit
from substrate.signing.signers import Signed, signature_of
from substrate.storage.flush import Trailer, parse_trailer

_LINE = re.compile(rb"(?:100644|40000) [^\0/]+\0[\s\S]{20}")
_COMMITTER = re.compile(rb"(waypost host <[^>]*>) [0-9]+ \+0000\Z")
_CACHE = 512

Lines = frozenset[bytes]
"""A tree's lines, as git stores them: mode, blank, name, NUL, id."""


class Objects(Protocol):
    """An object database."""

    def object(self, kind: Kind, oid: bytes) -> bytes:
        """An object's bytes. Raises Damaged when it is missing or unreadable."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """A commit on the way: its id, its tree, the trailer if it is a head, and what is wrong with it by itself.

    ``committer`` as the commit has it, without the time; ``signed`` is a head's signature.
    """

    oid: bytes
    tree: bytes
    trailer: Trailer | None
    faults: tuple[str, ...]
    committer: bytes
    signed: Signed | None


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
    committers: dict[bytes, bytes] = {}
    while oid is not None:
        commit = parse_commit(objects.object(Kind.COMMIT, oid))
        trailer = parse_trailer(commit.message)
        signed = None if trailer is None else signature_of(commit.payload, commit.signature)
        match = _COMMITTER.match(commit.committer)
        committer = committers.setdefault(match[1], match[1]) if match else b""
        steps.append(Step(oid, commit.tree, trailer, judge(commit), committer, signed))
        oid = commit.parent
    steps.reverse()
    return steps


class Judge(Protocol):
    """Says what is wrong with a commit by itself."""

    def __call__(self, commit: Commit, /) -> tuple[str, ...]:
        """The faults, in words."""
        ...


class Differ:
    """Tells trees apart. Memory: the lines of 512 trees."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._lines = functools.lru_cache(maxsize=_CACHE)(self._read)

    def changes(self, old: bytes | None, new: bytes | None, prefix: str = "") -> Iterator[Changed]:
        """The files in which two trees differ, by name. Raises Damaged, BadObject."""
        before: Lines = frozenset() if old is None else self._lines(old)
        after: Lines = frozenset() if new is None else self._lines(new)
        # Only lines that differ are taken apart: of a directory of 64 files that is mostly one.
        was, now = _split(before - after), _split(after - before)
        for name in sorted(was.keys() | now.keys()):
            old_blob, old_tree = was.get(name, (None, None))
            new_blob, new_tree = now.get(name, (None, None))
            path = prefix + name.decode("utf-8", "surrogateescape")
            if old_blob is not None or new_blob is not None:
                yield Changed(path, old_blob, new_blob)
            if old_tree is not None or new_tree is not None:
                yield from self.changes(old_tree, new_tree, path + "/")

    def _read(self, oid: bytes) -> Lines:
        data = self._objects.object(Kind.TREE, oid)
        lines = _LINE.findall(data)
        if sum(map(len, lines)) != len(data):
            raise BadObject(f"tree {oid.hex()} holds something that is neither a plain file nor a directory")
        return frozenset(lines)


def _split(lines: Lines) -> dict[bytes, tuple[bytes | None, bytes | None]]:
    """Name to (blob id, tree id), one of the two. Raises BadObject for a tree with a name twice."""
    found: dict[bytes, tuple[bytes | None, bytes | None]] = {}
    for line in lines:
        mode, _, name = line[:-21].partition(b" ")
        if name in found:
            raise BadObject(f"a tree names {name.decode('utf-8', 'replace')!r} twice")
        found[name] = (line[-20:], None) if mode == b"100644" else (None, line[-20:])
    return found
