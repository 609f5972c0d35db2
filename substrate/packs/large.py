"""Large blobs out of packs, read without holding up the other threads of the process.

libgit2 reads, inflates and hashes an object in one call that lets nobody else run: of 64 MB that is a third of a
second. Here each of the three is a call of Python's own that lets go. What isn't found so (a pack of git's own making
may have it as a delta) is left to libgit2.
"""

import hashlib
import mmap
import os
import struct
import zlib
from contextlib import suppress
from pathlib import Path

from substrate.packs.objects import Kind
from substrate.packs.unpack import read_head

LARGE = 1024 * 1024
"""Bytes from which a blob is read so."""
_HEAD = 32
_SLACK = 64 * 1024
_MAGIC = b"\xfftOc\0\0\0\x02"
_FAN = 8
_OIDS = _FAN + 1024
_FAR = 0x8000_0000


def read_large(packs: str, oid: bytes, size: int) -> bytes | None:
    """A blob of this size from the packs in a directory; None where no pack has it whole and sound."""
    for index in sorted(Path(packs).glob("*.idx")):
        with suppress(OSError, ValueError, IndexError, zlib.error, struct.error):
            offset = _offset(index, oid)
            if offset is None:
                continue
            data = _read(index.with_suffix(".pack"), offset, size)
            head = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
            head.update(data)
            if head.digest() == oid:
                return data
    return None


def _offset(index: Path, oid: bytes) -> int | None:
    with index.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as raw:
        if raw[:_FAN] != _MAGIC:
            return None
        low = struct.unpack_from(">I", raw, _FAN + 4 * (oid[0] - 1))[0] if oid[0] else 0
        (high,) = struct.unpack_from(">I", raw, _FAN + 4 * oid[0])
        (count,) = struct.unpack_from(">I", raw, _OIDS - 4)
        while low < high:
            middle = (low + high) // 2
            found = raw[_OIDS + 20 * middle : _OIDS + 20 * (middle + 1)]
            if found == oid:
                (offset,) = struct.unpack_from(">I", raw, _OIDS + 24 * count + 4 * middle)
                return None if offset & _FAR else int(offset)
            low, high = (middle + 1, high) if found < oid else (low, middle)
    return None


def _read(pack: Path, offset: int, size: int) -> bytes:
    """The blob at an offset. Raises ValueError for anything else, zlib.error, OSError."""
    descriptor = os.open(pack, os.O_RDONLY | os.O_CLOEXEC)
    try:
        kind, found, body = read_head(os.pread(descriptor, _HEAD, offset), 0)
        if (kind, found) != (Kind.BLOB, size):
            raise ValueError("no blob of this size lies here")
        # Stored blocks add five bytes to each 64 KB; what is read of the next entry is left alone.
        data = zlib.decompress(os.pread(descriptor, size + size // 1024 + _SLACK, offset + body), bufsize=size)
    finally:
        os.close(descriptor)
    if len(data) != size:
        raise ValueError("a blob of another size lies here")
    return data
