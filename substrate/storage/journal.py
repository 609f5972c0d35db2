"""The journal: a pack in progress, appended to once per flush.

What is added is visible at once and durable when ``write`` has returned; a flush is one write and one sync, whatever it
holds. Memory: the index of the objects since the last seal, the objects of the present flush, and 256 KiB of blobs
before it: the events that a run's next segment is made of are read from there.
"""

import errno
import os
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from substrate.files.disk import Disk
from substrate.files.folder import Folder
from substrate.packs import pack
from substrate.packs.objects import Kind, object_id
from substrate.packs.trees import Base
from substrate.packs.unpack import read_entry
from substrate.signing.chain import Proven

_Written: TypeAlias = tuple[int, int]
"""Offset and size of an entry; a plain tuple, as one is made for every object."""

_TREE, _BLOB = Kind.TREE, Kind.BLOB
"""Looked up once: on the class it costs as much as a checksum."""
_FULL = (errno.ENOSPC, errno.EDQUOT)
_DELTA_DEPTH = 24
_DELTA_WORTH = 120
"""Bytes of a tree below which a delta saves nothing."""
_FRESH = 256 * 1024
"""Bytes of blobs beyond which a flush forgets those that it has made durable."""
_AHEAD = 64 * 1024
"""Bytes of zeros that are written ahead of what the journal holds, so many at a time.

Reserved space that was never written costs the file system a transaction of its own at the sync after its first write:
at every other append. Space that holds zeros already doesn't, and reads the same.
"""


class Journal:
    """One journal file, reserved in advance, open for appending."""

    def __init__(self, disk: Disk, path: str, number: int, descriptor: int, room: int) -> None:
        self.path = path
        self.number = number
        self.end = pack.HEADER
        """Bytes that are durable."""
        self._disk, self._descriptor, self._room = disk, descriptor, room
        self._offset = pack.HEADER
        self._prepared = min(_AHEAD, room)
        """Bytes from the beginning that have been written once, with zeros or with what is there."""
        self._buffer: list[bytes] = []
        self._written: dict[bytes, _Written] = {}
        self._fresh: dict[bytes, bytes] = {}
        self._fresh_bytes = 0

    @classmethod
    def allocate(cls, disk: Disk, folder: Folder, number: int, room: int) -> "Journal":
        """Make the next journal, its space reserved and its name durable. Raises OSError, also for a full disk."""
        path = folder.journal(number)
        try:
            descriptor = disk.create(path, room)
        except OSError:
            disk.unlink(path)
            raise
        try:
            disk.write_at(descriptor, path, pack.header(0).ljust(min(_AHEAD, room), b"\0"), 0)
            disk.sync(descriptor, path, pack.HEADER)
            disk.sync_directory(folder.journals)
        except BaseException:
            disk.close_file(descriptor)
            raise
        return cls(disk, path, number, descriptor, room)

    # --- what it holds ---

    @property
    def objects(self) -> int:
        """How many objects were added."""
        return len(self._written)

    @property
    def room(self) -> int:
        """Bytes that can still be written without asking for space."""
        return self._room - self._offset - pack.TRAILER

    @property
    def reserved(self) -> int:
        """Bytes of the whole file."""
        return self._room

    def index(self) -> list[pack.Indexed]:
        """The entries as a pack's index knows them; of what is durable."""
        content = memoryview(_read(self._descriptor, self.end))
        return [
            pack.Indexed(oid, zlib.crc32(content[offset : offset + size]), offset)
            for oid, (offset, size) in self._written.items()
        ]

    def blob(self, oid: bytes) -> bytes | None:
        """The bytes of a blob that was added here; None for any other object."""
        fresh = self._fresh.get(oid)
        if fresh is not None:
            return fresh
        written = self._written.get(oid)
        if written is None:
            return None
        offset, size = written
        raw = os.pread(self._descriptor, size, offset)
        return read_entry(raw, 0, len(raw), {}).data

    # --- adding ---

    def add(self, kind: Kind, data: bytes, *, compress: bool = False) -> bytes:
        """Add an object that stands for itself; its id. One that is here already isn't added again."""
        if compress and isinstance(data, Proven):
            return self._add_log(data)
        oid = object_id(kind, data)
        if oid not in self._written:
            self._append(oid, pack.whole(kind, data, compress=compress))
            if kind is _BLOB:
                self._fresh[oid] = data
                self._fresh_bytes += len(data)
        return oid

    def _add_log(self, log: Proven) -> bytes:
        if log.oid not in self._written:
            self._append(log.oid, pack.entry_head(Kind.BLOB << 4, len(log)) + log.deflated)
            self._fresh[log.oid] = log
            self._fresh_bytes += len(log)
        return log.oid

    def add_tree(self, data: bytes, base: Base | None) -> tuple[bytes, Base | None]:
        """Add a tree, as a delta against its last version where that lies in this journal."""
        oid = object_id(_TREE, data)
        known = self._written.get(oid)
        if known is not None:
            # Its depth isn't known any more; as deep as may be, so that the next version stands for itself.
            return oid, Base(self.number, known[0], _DELTA_DEPTH, data)
        at, following = self._offset, None
        if len(data) < _DELTA_WORTH:
            entry = pack.whole(_TREE, data)
        elif base is None or base.journal != self.number or base.depth >= _DELTA_DEPTH:
            entry, following = pack.whole(_TREE, data), Base(self.number, at, 0, data)
        else:
            entry = pack.tree_delta(base.data, data, at - base.offset)
            following = Base(self.number, at, base.depth + 1, data)
        size = len(entry)  # as _append, without its call: six trees are written for every event
        self._written[oid] = at, size
        self._buffer.append(entry)
        self._offset = at + size
        return oid, following

    def _append(self, oid: bytes, entry: bytes) -> None:
        at = self._offset
        self._written[oid] = at, len(entry)
        self._buffer.append(entry)
        self._offset = at + len(entry)

    def has(self, size: int) -> bool:
        """Whether so many bytes more can be written, for which the disk is asked; False where it is full.

        Raises OSError. A disk that has refused has no less space than before.
        """
        try:
            self._grow(size)
        except OSError as full:
            if full.errno not in _FULL:
                raise
            self._disk.cut(self._descriptor, self.path, self._room)
            return False
        return True

    def _grow(self, size: int) -> None:
        if self.room < size:
            room = self._offset + size + pack.TRAILER
            self._disk.reserve(self._descriptor, self.path, room)
            self._room = room

    def write(self) -> None:
        """Make all that was added durable: one write, one sync. Raises OSError; the journal is void after that."""
        data = b"".join(self._buffer)
        try:
            self._grow(0)
            if self._prepared < self._offset:
                ahead = min(_AHEAD, self._room - self._offset)
                self._disk.write_at(self._descriptor, self.path, bytes(ahead), self._offset)
                self._prepared = self._offset + ahead
            self._disk.write_at(self._descriptor, self.path, data, self.end)
            self._disk.sync_data(self._descriptor, self.path, self._offset)
        except OSError:
            # What was answered "withheld" must not come back at the next start, whole as it may look by then: after a
            # failed sync the system shows what was written, and has forgotten that it isn't on the disk.
            with suppress(OSError):
                self._disk.cut(self._descriptor, self.path, self.end)
            raise
        self.end = self._offset
        self._buffer.clear()
        if self._fresh_bytes > _FRESH:
            self._fresh.clear()
            self._fresh_bytes = 0

    def finish(self) -> str:
        """Turn the file into a finished pack, durable; the pack's name. Raises OSError. Nothing is added after that."""
        return finish(self._disk, self.path, self._descriptor, self.end, len(self._written))

    def close(self) -> None:
        """Let go of the file as it is; doing it twice is fine."""
        if self._descriptor >= 0:
            self._disk.close_file(self._descriptor)
            self._descriptor = -1


def finish(disk: Disk, path: str, descriptor: int, end: int, count: int) -> str:
    """Cut a journal at ``end``, fill in its count and its trailer, and sync it; the trailer in hex (storage §3)."""
    # Cut with the trailer's room left in place, so that a disk that is full by now can't stop us here.
    disk.cut(descriptor, path, end + pack.TRAILER)
    disk.write_at(descriptor, path, pack.header(count), 0)
    trailer = pack.trailer(_read(descriptor, end))
    disk.write_at(descriptor, path, trailer, end)
    disk.sync(descriptor, path, end + len(trailer))
    disk.protect(descriptor, path)
    return trailer.hex()


def copy(disk: Disk, path: str, target: str, end: int, count: int) -> str:
    """Write a journal's first ``end`` bytes as a finished pack into a new file, sync it and read it back; its trailer.

    A file of which a sync may have failed is never trusted again (storage §2): the system reports such a failure once,
    and takes the next sync for a success. Raises OSError, also where what comes back isn't what was written.
    """
    content = pack.header(count) + Path(path).read_bytes()[pack.HEADER : end]
    data = content + pack.trailer(content)
    disk.unlink(target)
    descriptor = disk.create(target, len(data))
    try:
        disk.write_at(descriptor, target, data, 0)
        disk.sync(descriptor, target, len(data))
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)  # so that the disk is asked, and not a cache
        if _read(descriptor, len(data) + 1) != data:
            raise OSError(errno.EIO, "it doesn't give back what was written", target)
        disk.protect(descriptor, target)
    finally:
        disk.close_file(descriptor)
    return data[-pack.TRAILER :].hex()


def _read(descriptor: int, size: int) -> bytes:
    pieces, at = [], 0
    while at < size:
        # One read gives at most 2 GB, and may give less.
        piece = os.pread(descriptor, size - at, at)
        if not piece:
            break
        pieces.append(piece)
        at += len(piece)
    return b"".join(pieces)
