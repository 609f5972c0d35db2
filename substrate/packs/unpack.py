"""Reading single entries of a pack in progress, where anything may follow the last good byte.

Pure. A pack's own index isn't needed: an entry says its kind and size, and its zlib stream says where it ends and
whether it is whole (adler-32).
"""

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from substrate.errors import BadObject
from substrate.packs import pack
from substrate.packs.objects import Kind

_OBJECT_LIMIT = 1 << 30
_SLACK = 1024
_PIECE = 1024 * 1024
_STORED_BLOCK = struct.Struct("<BBBHH").pack
_STORED_HEAD = 7
_STORED_LIMIT = 0x10000


@dataclass(frozen=True, slots=True)
class Entry:
    """A whole entry: its object, deltas resolved, and the offset behind it."""

    kind: Kind
    data: bytes = field(repr=False)
    end: int


def read_entry(raw: bytes, at: int, limit: int, trees: Mapping[int, bytes]) -> Entry:
    """The entry at ``at``; ``trees`` are the trees before it by offset, one of which may be its base.

    Raises BadObject when no whole entry lies there.
    """
    try:
        kind, size, body = read_head(raw, at)
        base: bytes | None = None
        if kind == pack.OFS_DELTA:
            back, body = read_distance(raw, body)
            base = trees[at - back]
            kind = Kind.TREE
        if size > _OBJECT_LIMIT:
            raise BadObject(f"an entry of {size} bytes at byte {at}")
        data, end = inflate(raw, body, limit, size)
        return Entry(Kind(kind), data if base is None else pack.apply_delta(base, data), end)
    except (IndexError, KeyError, ValueError) as bad:
        raise BadObject(f"no whole entry at byte {at}: {bad!r}") from None


def inflate(raw: bytes, at: int, limit: int, size: int) -> tuple[bytes, int]:
    """The zlib stream at ``at``, which must give exactly ``size`` bytes and end before ``limit``; and where it ends.

    Raises BadObject.
    """
    if size < _STORED_LIMIT and raw[at : at + _STORED_HEAD] == _STORED_BLOCK(0x78, 1, 1, size, size ^ 0xFFFF):
        start, end = at + _STORED_HEAD, at + _STORED_HEAD + size
        data = raw[start:end]
        if end + 4 > limit or raw[end : end + 4] != struct.pack(">I", zlib.adler32(data)):
            raise BadObject(f"a torn stream at byte {at}")
        return data, end + 4
    stream, out, given = zlib.decompressobj(), list[bytes](), 0
    try:
        while not stream.eof and at < limit:
            # In pieces: what zlib leaves over is copied, behind a small entry lies the rest of the journal, and of a
            # large one each copy would hold up every other thread.
            piece = raw[at : min(limit, at + size - given + _SLACK, at + _PIECE)]
            out.append(stream.decompress(piece, max(1, size + 1 - given)))
            at += len(piece) - len(stream.unused_data) - len(stream.unconsumed_tail)
            given += len(out[-1])
            if given > size:
                break
    except zlib.error as bad:
        raise BadObject(f"a torn stream: {bad}") from None
    if not stream.eof or given != size:
        raise BadObject("a stream that is torn, or of another size than its entry says")
    return b"".join(out), at


def read_head(raw: bytes | bytearray, at: int) -> tuple[int, int, int]:
    """Kind and inflated size of the entry at ``at``, and the offset behind its head. Raises IndexError."""
    byte = raw[at]
    at += 1
    kind, size, shift = byte >> 4 & 7, byte & 15, 4
    while byte & 0x80:
        byte = raw[at]
        at += 1
        size |= (byte & 0x7F) << shift
        shift += 7
    return kind, size, at


def read_distance(raw: bytes | bytearray, at: int) -> tuple[int, int]:
    """How far back the base of an OFS_DELTA lies, and the offset behind that number. Raises IndexError."""
    byte = raw[at]
    at += 1
    back = byte & 0x7F
    while byte & 0x80:
        byte = raw[at]
        at += 1
        back = ((back + 1) << 7) | (byte & 0x7F)
    return back, at
