"""Pack entries, deltas and pack indexes as bytes (git's gitformat-pack, version 2).

Pure. Two things here differ from what git's own writer does, and carry the speed: blobs and commits are framed as
*stored* zlib blocks, because a compressor's set-up costs more than an event is worth, and a tree that changed by a
line is an OFS_DELTA against its previous version, so that its cost doesn't follow its size.
"""

import functools
import hashlib
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple
from zlib import adler32

from substrate.errors import BadObject
from substrate.packs.objects import Kind

OFS_DELTA = 6
MAGIC = b"PACK\0\0\0\x02"
HEADER = 12
"""Bytes of a pack's header: magic, version, count."""
TRAILER = 20
"""Bytes of a pack's trailer: SHA-1 of all before it."""

_STORED = struct.Struct("<BBBHH").pack
_BIG = struct.Struct(">I").pack
_join = b"".join
"""Of a few pieces it takes half of what a formatting does; this is done for every object that is written."""
_LARGE = 1024 * 1024
_STORED_LIMIT = 0xFFFF
_COPY_LIMIT = 0xFFFFFF
_COPY_DEFAULT = 0x10000
_INSERT_LIMIT = 0x7F
_SIZES = 8192
"""How many sizes and places are remembered with their encodings: trees are small and differ by a line."""


class Indexed(NamedTuple):
    """An entry as a pack index knows it: object id (20 bytes), CRC-32 and offset of the raw entry."""

    oid: bytes
    crc: int
    offset: int


def header(count: int) -> bytes:
    """A pack's header; a journal that is still open says 0."""
    return MAGIC + _BIG(count)


def trailer(content: bytes | memoryview) -> bytes:
    """A pack's trailer: SHA-1 (20 bytes) of header and entries."""
    return hashlib.sha1(content, usedforsecurity=False).digest()


@functools.lru_cache(maxsize=_SIZES)
def entry_head(kind_bits: int, size: int) -> bytes:
    """The kind (shifted to where it stands, ``kind << 4``) and inflated size of an entry, as git writes them."""
    byte = kind_bits | (size & 15)
    size >>= 4
    out = bytearray()
    while size:
        out.append(byte | 0x80)
        byte = size & 0x7F
        size >>= 7
    out.append(byte)
    return bytes(out)


@functools.lru_cache(maxsize=_SIZES)
def distance(back: int) -> bytes:
    """How far before a delta its base begins, in the offset encoding of OFS_DELTA."""
    out = [back & 0x7F]
    back >>= 7
    while back:
        back -= 1
        out.append(0x80 | (back & 0x7F))
        back >>= 7
    return bytes(reversed(out))


def stored(data: bytes) -> bytes:
    """Data as a zlib stream that isn't compressed."""
    size = len(data)
    if size <= _STORED_LIMIT:
        return _block(size) + data + _BIG(adler32(data))
    return b"".join(_pieces(data))


def _pieces(data: bytes) -> Iterator[bytes]:
    """The same of a large one, a megabyte at a time: other threads wait for a piece of it, and not for all."""
    stream, view = zlib.compressobj(0), memoryview(data)
    for at in range(0, len(data), _LARGE):
        yield stream.compress(view[at : at + _LARGE])
    yield stream.flush()


def _compressed(data: bytes) -> bytes:
    # A third of the time of what is usual, for a tenth more on the disk: every 64th append compresses a segment.
    return zlib.compress(data, 1)


def whole(kind: Kind, data: bytes, *, compress: bool = False) -> bytes:
    """An entry that stands for itself."""
    size = len(data)
    if not compress and size <= _STORED_LIMIT:
        return _join((_BEFORE_STORED[kind](size), data, _BIG(adler32(data))))
    head = entry_head(kind << 4, size)
    return head + _compressed(data) if compress else b"".join((head, *_pieces(data)))


def tree_delta(old: bytes, new: bytes, back: int) -> bytes:
    """An entry for a tree, against the version that begins ``back`` bytes before it in the same pack."""
    was, size = len(old), len(new)
    before, after = _shared(old, new)
    middle = new[before : size - after]
    if not 0 < len(middle) <= _INSERT_LIMIT:
        change = delta(old, new)
        return entry_head(OFS_DELTA << 4, len(change)) + distance(back) + stored(change)
    # One line was added or replaced: all but that line, the distance and the checksum was made before.
    head, block, begin, end = _template(was, size, before, after)
    change = _join((begin, middle, end))
    return _join((head, distance(back), block, change, _BIG(adler32(change))))


def _before_stored(kind: int) -> Callable[[int], bytes]:
    """What comes before an object of each size; a memory for each kind, as a lone number is found sooner."""
    return functools.lru_cache(maxsize=_SIZES)(lambda size: entry_head(kind << 4, size) + _block(size))


_BEFORE_STORED = tuple(_before_stored(kind) for kind in range(4))


@functools.lru_cache(maxsize=_SIZES)
def _block(size: int) -> bytes:
    """The header of a zlib stream with one stored block, and of that block."""
    return _STORED(0x78, 1, 1, size, size ^ 0xFFFF)


# --- deltas --------------------------------------------------------------------------------------------------------


def delta(old: bytes, new: bytes) -> bytes:
    """Make ``new`` from ``old``: what both begin with, what is new between, what both end with."""
    was, size = len(old), len(new)
    before, after = _shared(old, new)
    insert = _insert(new[before : size - after])
    return b"%b%b%b%b%b" % (_varint(was), _varint(size), _copy(0, before), insert, _copy(was - after, after))


@functools.lru_cache(maxsize=_SIZES)
def _template(was: int, size: int, before: int, after: int) -> tuple[bytes, bytes, bytes, bytes]:
    """The parts of a delta's entry that its one short insertion stands between: (head, zlib header, before, after)."""
    begin = b"%b%b%b%c" % (_varint(was), _varint(size), _copy(0, before), size - before - after)
    end = _copy(was - after, after)
    total = len(begin) + (size - before - after) + len(end)
    return entry_head(OFS_DELTA << 4, total), _block(total), begin, end


def apply_delta(old: bytes, change: bytes) -> bytes:
    """The inverse of ``delta``, for any delta of git's. Raises BadObject."""
    try:
        return _apply(old, change)
    except IndexError:
        raise BadObject("a delta that ends within an instruction") from None


def _apply(old: bytes, change: bytes) -> bytes:
    source, at = _read_varint(change, 0)
    target, at = _read_varint(change, at)
    if source != len(old):
        raise BadObject("a delta against another base")
    out = bytearray()
    while at < len(change):
        op = change[at]
        at += 1
        if op & 0x80:
            start, at = _read_sparse(change, at, op & 0x0F)
            size, at = _read_sparse(change, at, op >> 4 & 0x07)
            out += old[start : start + (size or _COPY_DEFAULT)]
        elif op:
            out += change[at : at + op]
            at += op
        else:
            raise BadObject("a delta with an instruction that git reserves")
        if len(out) > target:
            raise BadObject("a delta that makes more than it says")
    if len(out) != target:
        raise BadObject("a delta that makes less than it says")
    return bytes(out)


@functools.lru_cache(maxsize=_SIZES)
def _varint(value: int) -> bytes:
    out = bytearray()
    while value > _INSERT_LIMIT:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at


def _read_sparse(data: bytes, at: int, present: int) -> tuple[int, int]:
    """A little-endian number of which only the bytes whose bit is set are there."""
    value = shift = 0
    while present:
        if present & 1:
            value |= data[at] << shift
            at += 1
        present >>= 1
        shift += 8
    return value, at


def _insert(data: bytes) -> bytes:
    pieces = [data[at : at + _INSERT_LIMIT] for at in range(0, len(data), _INSERT_LIMIT)]
    return b"".join([b"%c%b" % (len(piece), piece) for piece in pieces])


@functools.lru_cache(maxsize=_SIZES)
def _copy(start: int, size: int) -> bytes:
    out = bytearray()
    while size > 0:
        step = min(size, _COPY_LIMIT)
        op, arguments = 0x80, bytearray()
        for bit in range(4):
            if byte := start >> (8 * bit) & 0xFF:
                op |= 1 << bit
                arguments.append(byte)
        for bit in range(3):
            if byte := step >> (8 * bit) & 0xFF:
                op |= 0x10 << bit
                arguments.append(byte)
        out.append(op)
        out += arguments
        start += step
        size -= step
    return bytes(out)


def _shared(old: bytes, new: bytes) -> tuple[int, int]:
    """How much two texts have in common at their beginning, and in what is left of them at their end."""
    was, size = len(old), len(new)
    if new.startswith(old):  # The common case: a line was added at the end.
        return was, 0
    if size == was:  # The next common one: a line was replaced.
        return _around(old, new)
    shared = min(was, size)
    before = _common(old, new, shared)
    return before, _common_end(old, new, shared - before)


def _around(old: bytes, new: bytes) -> tuple[int, int]:
    """How much two different texts of one length have in common at their beginning and at their end."""
    # As two numbers: what differs are the bits of their exclusive or, found without a step per byte.
    change = int.from_bytes(old) ^ int.from_bytes(new)
    return len(old) - (change.bit_length() + 7) // 8, ((change & -change).bit_length() - 1) // 8


def _common(old: bytes, new: bytes, limit: int) -> int:
    # By halves over slices: each compare is one memcmp, where a loop over bytes would cost a thousand steps.
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_end(old: bytes, new: bytes, limit: int) -> int:
    low, high, ends, endn = 0, limit, len(old), len(new)
    while low < high:
        middle = (low + high + 1) // 2
        if old[ends - middle : ends - low] == new[endn - middle : endn - low]:
            low = middle
        else:
            high = middle - 1
    return low


# --- the index -----------------------------------------------------------------------------------------------------


def index_file(entries: Iterable[Indexed], pack_sha: bytes) -> bytes:
    """A version 2 index of a pack whose trailer is ``pack_sha``. Packs of 2 GB and more are never written."""
    ordered = sorted(entries)
    count = len(ordered)
    fan = [0] * 256
    for oid, _, _ in ordered:
        fan[oid[0]] += 1
    total = 0
    for first, number in enumerate(fan):
        total += number
        fan[first] = total
    body = b"".join(
        (
            b"\xfftOc\0\0\0\x02",
            struct.pack(">256I", *fan),
            b"".join([oid for oid, _, _ in ordered]),
            struct.pack(f">{count}I", *[crc for _, crc, _ in ordered]),
            struct.pack(f">{count}I", *[offset for _, _, offset in ordered]),
            pack_sha,
        )
    )
    return body + hashlib.sha1(body, usedforsecurity=False).digest()
