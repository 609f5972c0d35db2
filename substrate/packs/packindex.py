"""Pack indexes, version 2, read entry by entry and made bucket by bucket, so that no step of it takes long.

Pure. ``pack.index_file`` makes the same bytes at once, for the few thousand objects of a journal.
"""

import hashlib
import struct
from collections.abc import Generator, Iterator

from substrate.errors import BadObject
from substrate.packs.pack import Indexed

_MAGIC = b"\xfftOc\0\0\0\x02"
_FAN = 8
_OIDS = _FAN + 1024
_TAIL = 40
_FAR = 0x8000_0000
"""Marks an offset of 2 GB and more, which no pack of ours has."""
_STEP = 2048
_RECORD = struct.Struct(">20sII")
_WHOLE_RECORD = struct.Struct(f"{_RECORD.size}s")
FIRST_BYTES = 256
"""How many parts an index has, by the first byte of an object's id."""


class PackIndex:
    """An index as it lies on disk. Iterating gives its entries by object id. Raises BadObject for what is none."""

    def __init__(self, raw: bytes) -> None:
        if raw[:_FAN] != _MAGIC or len(raw) < _OIDS + _TAIL:
            raise BadObject("not a pack index of version 2")
        (self.count,) = struct.unpack_from(">I", raw, _OIDS - 4)
        """How many objects it lists."""
        if len(raw) != _OIDS + 28 * self.count + _TAIL or hashlib.sha1(raw[:-20]).digest() != raw[-20:]:  # noqa: S324 - git's format
            raise BadObject("a pack index that isn't as it was written, or of a pack that is too large")
        self.pack = raw[-_TAIL:-20]
        """The trailer of its pack."""
        self._raw = memoryview(raw)

    def oids(self, first: int) -> list[bytes]:
        """The ids that begin with this byte."""
        begin = 0 if first == 0 else struct.unpack_from(">I", self._raw, _FAN + 4 * (first - 1))[0]
        (end,) = struct.unpack_from(">I", self._raw, _FAN + 4 * first)
        return [oid for (oid,) in struct.iter_unpack("20s", self._raw[_OIDS + 20 * begin : _OIDS + 20 * end])]

    def __iter__(self) -> Iterator[Indexed]:
        crcs = _OIDS + 20 * self.count
        offsets, end = crcs + 4 * self.count, crcs + 8 * self.count
        raw = self._raw
        for (oid,), (crc,), (offset,) in zip(
            struct.iter_unpack("20s", raw[_OIDS:crcs]),
            struct.iter_unpack(">I", raw[crcs:offsets]),
            struct.iter_unpack(">I", raw[offsets:end]),
            strict=True,
        ):
            if offset & _FAR:
                raise BadObject("a pack index with an offset of 2 GB and more")
            yield Indexed(oid, crc, offset)


class IndexMaker:
    """Collects entries in any order and makes the index of their pack. Memory: some 30 bytes an entry."""

    def __init__(self) -> None:
        self._buckets = [bytearray() for _ in range(FIRST_BYTES)]

    def add(self, oid: bytes, crc: int, offset: int) -> None:
        """An entry of the pack; an object must come only once."""
        self._buckets[oid[0]] += _RECORD.pack(oid, crc, offset)

    def make(self, pack_sha: bytes) -> Generator[None, None, bytes]:
        """The whole file; each yield ends a step of some two thousand entries."""
        oids, crcs, offsets = [], [], []
        fan, total, yielded = [], 0, 0
        for bucket in self._buckets:
            records = sorted(record for (record,) in _WHOLE_RECORD.iter_unpack(bucket))
            total += len(records)
            fan.append(total)
            oids.append(b"".join([record[:20] for record in records]))
            crcs.append(b"".join([record[20:24] for record in records]))
            offsets.append(b"".join([record[24:] for record in records]))
            if total - yielded >= _STEP:
                yielded = total
                yield
        body = b"".join((_MAGIC, struct.pack(">256I", *fan), *oids, *crcs, *offsets, pack_sha))
        return body + hashlib.sha1(body, usedforsecurity=False).digest()
