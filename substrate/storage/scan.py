"""Reading a journal: which whole, verifying flushes it holds, and how it ends (storage §3).

Pure: bytes in, findings out. Nothing here decides what a finding means; that is ``recovery``.
"""

import enum
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from substrate.errors import BadObject
from substrate.packs import pack
from substrate.packs.objects import Commit, Kind, object_id, parse_commit
from substrate.packs.unpack import Entry, read_entry, read_head
from substrate.storage.flush import parse_trailer

Verifies = Callable[[bytes, bytes], bool]
"""Whether an armoured signature (second) is the host's over a payload (first)."""

_STREAM = re.compile(rb"\x78\x01[\x00\x01]")
"""How a zlib stream of stored blocks begins."""
_BLOCK_LIMIT = 0xFFFF
_ZEROS = bytes(64 * 1024)


class Stop(enum.Enum):
    """Why a scan went no further."""

    END = "the file ends, or holds nothing more"
    TORN = "what follows isn't a whole flush"
    UNSIGNED = "a whole head follows that this host's key has not signed"
    SPOILT = "a whole and signed flush follows with an object that nothing in it names"
    HEADLESS = "whole flushes follow, and the file doesn't begin as a journal"


@dataclass(frozen=True, slots=True)
class Head:
    """The last commit of a flush: its number, object id (20 bytes) and hash (64 hex digits)."""

    number: int
    oid: bytes
    hash: str

    def __str__(self) -> str:
        return f"flush {self.number} {self.oid.hex()}"


@dataclass(frozen=True, slots=True)
class Flushed:
    """A whole flush: its head, the parent of its first commit, and where it ends in bytes and in entries."""

    head: Head
    parent: bytes | None
    end: int
    entries: int


@dataclass(frozen=True, slots=True)
class Scan:
    """What a journal holds. ``entries`` may go past the last whole flush; each flush says how many are before it.

    ``stopped`` is the offset that ``stop`` is about, ``later`` the verifying heads found by search behind the last
    whole flush, ``sha`` the trailer in hex where the file is a finished pack.
    """

    file: str
    flushes: tuple[Flushed, ...]
    entries: tuple[pack.Indexed, ...]
    stop: Stop
    stopped: int
    later: tuple[Head, ...]
    sha: str | None
    objects: Mapping[bytes, tuple[Kind, bytes]] = field(repr=False)

    @property
    def end(self) -> int:
        """Where the last whole flush ends; all that follows is a tail."""
        return self.flushes[-1].end if self.flushes else pack.HEADER


def head_of(oid: bytes, commit: Commit, verifies: Verifies) -> Head | None:
    """The head that a commit is; None for one that this host hasn't signed, or that ends no flush."""
    trailer = parse_trailer(commit.message)
    if trailer is None or commit.signature is None or not verifies(commit.payload, commit.signature):
        return None
    return Head(trailer.number, oid, trailer.hash)


def scan(file: str, raw: bytes, verifies: Verifies, *, keep: bool = False) -> Scan:
    """Read a journal from its start. ``keep`` hands out every object that was read, by id."""
    sha = _finished(raw)
    limit = len(raw) - pack.TRAILER if sha else len(raw)
    walk = _Walk(raw, limit, verifies, keep=keep)
    stop = walk.go()
    if walk.flushes and raw[: len(pack.MAGIC)] != pack.MAGIC:
        stop = Stop.HEADLESS  # a journal's beginning is durable before its first flush: no crash leaves this
    end = walk.flushes[-1].end if walk.flushes else pack.HEADER
    if stop is Stop.END and not _blank(raw, end, limit):
        stop = Stop.TORN
    later = () if stop is Stop.END else tuple(_search(raw, max(end, walk.at), limit, verifies))
    return Scan(file, tuple(walk.flushes), tuple(walk.entries), stop, walk.at, later, sha, walk.objects)


def _blank(raw: bytes, start: int, limit: int) -> bool:
    """Whether there are zeros only: megabytes of them, behind what a killed host has written, so none is copied."""
    pieces = ((at, min(len(_ZEROS), limit - at)) for at in range(start, limit, len(_ZEROS)))
    return all(raw.startswith(_ZEROS[:size], at) for at, size in pieces)


class _Walk:
    """One pass over the entries of a journal, from flush to flush."""

    def __init__(self, raw: bytes, limit: int, verifies: Verifies, *, keep: bool) -> None:
        self.at = pack.HEADER
        self.flushes: list[Flushed] = []
        self.entries: list[pack.Indexed] = []
        self.objects: dict[bytes, tuple[Kind, bytes]] = {}
        self._raw, self._limit, self._verifies, self._keep = raw, limit, verifies, keep
        self._trees: dict[int, bytes] = {}
        self._open: list[Commit] = []
        self._fresh: list[tuple[bytes, int]] = []
        self._later: list[bytes] = []
        self._last: bytes | None = None

    def go(self) -> Stop:
        while self.at < self._limit and self._raw[self.at]:
            try:
                entry = read_entry(self._raw, self.at, self._limit, self._trees)
                oid = object_id(entry.kind, entry.data)
                if entry.kind is Kind.COMMIT and (wrong := self._commit(oid, entry)) is not None:
                    return wrong
            except BadObject:
                return Stop.TORN
            self._take(oid, entry)
        return Stop.END

    def _take(self, oid: bytes, entry: Entry) -> None:
        self.entries.append(pack.Indexed(oid, zlib.crc32(self._raw[self.at : entry.end]), self.at))
        if entry.kind is Kind.TREE:
            self._trees[self.at] = entry.data
            self._later.append(entry.data)
        if entry.kind is not Kind.COMMIT:
            self._fresh.append((oid, len(self._later)))
        if self._keep:
            self.objects[oid] = entry.kind, entry.data
        self.at = entry.end

    def _commit(self, oid: bytes, entry: Entry) -> Stop | None:
        """Follow the chain of commits; why to stop at a signed head that doesn't verify, or has lost something."""
        commit = parse_commit(entry.data)
        if self._open and commit.parent != self._last:
            raise BadObject(f"commit {oid.hex()} doesn't follow the one before it")
        self._open.append(commit)
        self._last = oid
        if commit.signature is None:
            return None
        head = head_of(oid, commit, self._verifies)
        if head is None:
            return Stop.UNSIGNED
        if not all(self._named(each, tree) for each, tree in self._fresh):
            return Stop.SPOILT
        self.flushes.append(Flushed(head, self._open[0].parent, entry.end, len(self.entries) + 1))
        self._open.clear()
        self._fresh.clear()
        self._later.clear()
        return None

    def _named(self, oid: bytes, tree: int) -> bool:
        """Whether a commit or a tree names an object; ``tree``: of the flush's trees, the first that came after it.

        Checksums cover an entry's content, but neither its kind nor how far back its base lies: an object that isn't
        what was written has another id, by which nobody calls it.
        """
        return (
            any(oid in self._later[at] for at in range(tree, len(self._later)))
            or any(oid == commit.tree for commit in self._open)
            or any(oid in data for data in self._trees.values())
        )


def _search(raw: bytes, start: int, limit: int, verifies: Verifies) -> Iterator[Head]:
    """Heads behind a place that can't be read: commits are stored uncompressed, so they can be found without it.

    ``start`` is an entry's beginning. What lies within a blob is a mail's content and no head of ours, whatever it
    looks like: so the extent that the entry at ``start`` states twice is passed over, and every whole stream is.
    """
    at = start + _claimed(raw, start)
    while match := _STREAM.search(raw, at, limit):
        at = match.start()
        content, end = _stream(raw, at, limit)
        if end is None:
            at += 1
            continue
        at = end
        if content.startswith(b"tree "):
            try:
                head = head_of(object_id(Kind.COMMIT, content), parse_commit(content), verifies)
            except BadObject:
                continue
            if head is not None:
                yield head


def _claimed(raw: bytes, at: int) -> int:
    """How many bytes the blob that begins at ``at`` takes, whole or not; 0 unless its head says so twice over.

    The size in the entry's head and the length in its stream, which stands there with its complement, must agree: so
    damage to either is no claim, and nothing that follows is passed over for it.
    """
    try:
        kind, size, body = read_head(raw, at)
    except IndexError:
        return 0
    match = _STREAM.match(raw, body)
    if kind != Kind.BLOB or match is None:
        return 0
    length = _block(raw, body + 2)
    if length is None or (length != size if raw[body + 2] else not 0 < length < size):
        return 0
    blocks = max(1, -(-size // _BLOCK_LIMIT))  # at least: more would be passed over what isn't the blob's
    return body - at + 2 + 5 * blocks + size + 4


def _stream(raw: bytes, at: int, limit: int) -> tuple[bytes, int | None]:
    """The content of the whole stored stream at ``at``, and where it ends; None for none that is whole."""
    pieces: list[bytes] = []
    here, last = at + 2, False
    while not last:
        length = _block(raw, here)
        if length is None or here + 5 + length > limit:
            return b"", None
        last = raw[here] == 1
        pieces.append(raw[here + 5 : here + 5 + length])
        here += 5 + length
    content = b"".join(pieces)
    if here + 4 > limit or raw[here : here + 4] != zlib.adler32(content).to_bytes(4, "big"):
        return b"", None
    return content, here + 4


def _block(raw: bytes, at: int) -> int | None:
    """The length of the stored block at ``at``; None where none is."""
    head = raw[at : at + 5]
    length, complement = int.from_bytes(head[1:3], "little"), int.from_bytes(head[3:], "little")
    return length if len(head) == 5 and head[0] <= 1 and length ^ complement == _BLOCK_LIMIT else None  # noqa: PLR2004 - RFC 1951


def _finished(raw: bytes) -> str | None:
    """The trailer of a file that is a finished pack, in hex."""
    if len(raw) < pack.HEADER + pack.TRAILER or raw[:8] != pack.MAGIC or raw[8:12] == b"\0\0\0\0":
        return None
    trailer = raw[-pack.TRAILER :]
    return trailer.hex() if pack.trailer(memoryview(raw)[: -pack.TRAILER]) == trailer else None
