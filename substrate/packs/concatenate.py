"""Copying the entries of several packs into one, step by step.

Distances to delta bases are relative, so entries are copied as they are. An object that several packs hold is copied
once; where that leaves a gap, deltas that reach over it, or whose base was left out, get a new distance. Each source is
held against its own trailer first, so that damage is never copied under a fresh checksum.

Memory: the sources' indexes and the new one, some 30 bytes for each object of either; of the packs a piece at a time;
for each object of a source that isn't copied whole some 200 bytes.
"""

import hashlib
import os
import zlib
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, TypeAlias

from substrate.errors import BadObject
from substrate.files.disk import Disk
from substrate.files.folder import Folder
from substrate.packs import pack
from substrate.packs.packindex import FIRST_BYTES, IndexMaker, PackIndex
from substrate.packs.unpack import read_distance, read_head

PIECE = 256 * 1024
"""Bytes that a step reads, or writes and syncs."""
_ENTRIES = 2048
"""Entries that a step looks at."""

Steps: TypeAlias = Generator[None, None, None]


class Concatenation:
    """The new pack at ``path`` in the making, and its index. ``made`` is its trailer, once it is durable."""

    def __init__(self, disk: Disk, folder: Folder, path: str, sources: Sequence[str]) -> None:
        self.index = IndexMaker()
        self.made = b""
        self._disk, self._folder, self._path, self._sources = disk, folder, path, sources
        self._repeated: set[bytes] = set()
        self._kept: dict[bytes, int] = {}
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._written = 0
        self._hash = hashlib.sha1(usedforsecurity=False)

    def steps(self) -> Steps:
        """Do it. Raises OSError; BadObject for a source that isn't as it was written."""
        count = yield from self._count()
        size = sum(Path(self._folder.pack(sha, "pack")).stat().st_size for sha in self._sources)
        descriptor = self._disk.create(self._path, size)
        try:
            self._put(pack.header(count))
            for sha in self._sources:
                yield from self._copy(descriptor, sha)
            yield from self._write(descriptor, 0)
            self.made = self._hash.digest()
            self._disk.cut(descriptor, self._path, self._written + pack.TRAILER)
            self._disk.write_at(descriptor, self._path, self.made, self._written)
            self._disk.sync(descriptor, self._path, self._written + pack.TRAILER)
            self._disk.protect(descriptor, self._path)
        finally:
            self._disk.close_file(descriptor)

    # --- what there is ---

    def _count(self) -> Generator[None, None, int]:
        """How many different objects there are, and which of them are in several sources."""
        indexes = []
        for sha in self._sources:
            indexes.append(self._index(sha))
            yield
        count = looked = 0
        for first in range(FIRST_BYTES):  # part by part: a set of all ids would be most of what a merge needs
            seen: set[bytes] = set()
            for index in indexes:
                oids = index.oids(first)
                self._repeated.update(seen.intersection(oids))
                seen.update(oids)
                looked += len(oids)
            count += len(seen)
            if looked >= _ENTRIES:
                looked = 0
                yield
        return count

    def _index(self, sha: str) -> PackIndex:
        index = PackIndex(Path(self._folder.pack(sha, "idx")).read_bytes())
        if index.pack.hex() != sha:
            raise BadObject(f"{self._folder.pack(sha, 'idx')} is the index of another pack")
        return index

    # --- copying ---

    def _copy(self, descriptor: int, sha: str) -> Steps:
        index = self._index(sha)
        with Path(self._folder.pack(sha, "pack")).open("rb", buffering=PIECE) as file:
            for _ in _pieces(file, sha):  # whole, before anything that it says is believed
                yield
            dropped: set[int] = set()
            for number, entry in enumerate(index, 1):
                if entry.oid in self._repeated and entry.oid in self._kept:
                    dropped.add(entry.offset)
                if number % _ENTRIES == 0:
                    yield
            if dropped:
                yield from self._copy_rest(descriptor, file, index, dropped)
                return
            shift = self._here - pack.HEADER
            for number, entry in enumerate(index, 1):
                self._place(entry.oid, entry.crc, entry.offset + shift)
                if number % _ENTRIES == 0:
                    yield
            for piece in _pieces(file, sha):
                self._put(piece)
                yield from self._write(descriptor, PIECE)

    def _copy_rest(self, descriptor: int, file: BinaryIO, index: PackIndex, dropped: set[int]) -> Steps:
        """Copy all but what is in the new pack already, in the order in which the entries lie."""
        entries: dict[int, tuple[bytes, int]] = {}
        for number, entry in enumerate(index, 1):
            entries[entry.offset] = entry.oid, entry.crc
            if number % _ENTRIES == 0:
                yield
        begins = sorted(entries)  # of plain numbers: of whole entries it would take five times as long
        yield
        moved: dict[int, int] = {}
        size = file.seek(0, os.SEEK_END)
        file.seek(pack.HEADER)
        for number, (offset, end) in enumerate(zip(begins, [*begins[1:], size - pack.TRAILER], strict=True), 1):
            oid, crc = entries[offset]
            data = file.read(end - offset)
            if len(data) != end - offset:
                raise BadObject(f"{file.name} has lost its end")
            if offset in dropped:
                moved[offset] = self._kept[oid]
            else:
                here = moved[offset] = self._here
                changed = _with_new_distance(data, offset, here, moved)
                self._place(oid, crc if changed is None else zlib.crc32(changed), here)
                self._put(data if changed is None else changed)
            if number % _ENTRIES == 0 or self._buffered >= PIECE:
                yield from self._write(descriptor, PIECE)
                yield

    def _place(self, oid: bytes, crc: int, offset: int) -> None:
        self.index.add(oid, crc, offset)
        if oid in self._repeated:
            self._kept[oid] = offset

    @property
    def _here(self) -> int:
        return self._written + self._buffered

    def _put(self, data: bytes) -> None:
        self._buffer.append(data)
        self._buffered += len(data)

    def _write(self, descriptor: int, least: int) -> Steps:
        """Write and sync what is buffered, if it is ``least`` bytes; a big entry goes in pieces."""
        if self._buffered < max(1, least):
            return
        data = memoryview(b"".join(self._buffer))
        self._buffer, self._buffered = [], 0
        for at in range(0, len(data), 2 * PIECE):
            piece = data[at : at + 2 * PIECE]
            self._hash.update(piece)
            self._disk.write_at(descriptor, self._path, bytes(piece), self._written)
            self._written += len(piece)
            self._disk.sync_data(descriptor, self._path, self._written)
            yield


def _pieces(file: BinaryIO, sha: str) -> Iterator[bytes]:
    """The entries of a pack, a piece of its file at a time. Raises BadObject, at the end, for one that has changed."""
    left = file.seek(0, os.SEEK_END) - pack.HEADER - pack.TRAILER
    file.seek(0)
    total = hashlib.sha1(file.read(pack.HEADER), usedforsecurity=False)
    while left > 0 and (piece := file.read(min(PIECE, left))):
        left -= len(piece)
        total.update(piece)
        yield piece
    trailer = file.read(pack.TRAILER)
    if total.hexdigest() != sha or trailer != total.digest():
        raise BadObject(f"{file.name} isn't as it was written")


def _with_new_distance(entry: bytes, offset: int, here: int, moved: dict[int, int]) -> bytes | None:
    """An entry whose base lies at another distance now; None for one that can stay as it is. Raises BadObject."""
    if entry[0] >> 4 & 7 != pack.OFS_DELTA:
        return None
    kind, size, body = read_head(entry, 0)
    back, stream = read_distance(entry, body)
    base = moved.get(offset - back)
    if base is None:
        raise BadObject(f"a delta at byte {offset} whose base is no entry before it")
    if here - base == back:
        return None
    return pack.entry_head(kind << 4, size) + pack.distance(here - base) + entry[stream:]
