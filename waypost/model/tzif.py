"""Whether a file of the zone database is what it says it is: TZif of version 2 to 4, by RFC 9636 sections 3.2 and 3.3.

Python's reader trusts the counts and indices of such a file: one that was damaged, or written in part, can end the
process. So a file is looked at here first, from its first byte to its last.

Promise: what passes has counts that add up to its length, no index that leads out of it, instants that rise, no last
change behind which that reader would look for another, and rules for the time after them that can be read; and no file,
whatever is in it, takes more than one pass.
"""

import re
import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

LARGEST: Final = 256 * 1024
"""Bytes of a file at most; the largest there is has 4,000."""

_HEAD: Final = struct.Struct(">4sc15x6I")
_VERSIONS: Final = (b"2", b"3", b"4")
_TYPE: Final = struct.Struct(">iBB")
_DAY: Final = 86_400
_FIRST: Final = -(1 << 59)
"""No instant is earlier: before the Big Bang (RFC 9636 section 3.2)."""

_NAME = rb"(?:[A-Za-z]{3,32}|<[A-Za-z0-9+-]{3,32}>)"
_HOURS = rb"[+-]?(\d{1,3})(?::[0-5]\d){0,2}"
_DAYS = rb"\d|[1-9]\d|[12]\d\d|3[0-5]\d|36[0-5]"
_DATE = rb"(?:J0*(?:%(days)s)|0*(?:%(days)s)|M(?:[1-9]|1[0-2])\.[1-5]\.[0-6])" % {b"days": _DAYS}
_FOOTER = re.compile(
    rb"\n(?:%(name)s%(hours)s(?:(%(name)s)(?:%(hours)s)?,%(date)s(?:/%(hours)s)?,%(date)s(?:/%(hours)s)?)?)?\n"
    % {b"name": _NAME, b"hours": _HOURS, b"date": _DATE}
)
"""The TZ string of POSIX, with the hours of version 3: standard time, or that and summer time and when they change."""
_OFFSETS, _SUMMER = (1, 3), 2
"""Groups of it: hours from UTC, and the name of summer time."""
_OFFSET_HOURS: Final = 23
"""The form has 24 hours, too, and Python no such offset. One hour less where summer time is an hour ahead of it."""
_TIME_HOURS: Final = 167


class _Counts(NamedTuple):
    """Of a header, in its order; and how wide an instant is in its data block."""

    ut: int
    standard: int
    leaps: int
    times: int
    types: int
    letters: int
    wide: int

    @property
    def size(self) -> int:
        """Bytes of the data block behind the header."""
        once = self.letters + self.standard + self.ut
        return self.times * (self.wide + 1) + self.types * _TYPE.size + self.leaps * (self.wide + 4) + once


def whole(raw: bytes) -> bool:
    """Whether all of it can be read, and is as it should be."""
    if len(raw) > LARGEST:
        return False
    first = _counts(raw, 0, wide=4)
    if first is None:
        return False
    # What version 1 had is skipped by every reader that knows version 2.
    begin = _HEAD.size + first.size
    second = _counts(raw, begin, wide=8)
    if second is None:
        return False
    data, end = begin + _HEAD.size, begin + _HEAD.size + second.size
    return end < len(raw) and _block(raw[data:end], second) and _footer(raw[end:])


def _counts(raw: bytes, at: int, *, wide: int) -> _Counts | None:
    if len(raw) < at + _HEAD.size:
        return None
    magic, version, ut, standard, leaps, times, types, letters = _HEAD.unpack_from(raw, at)
    if magic != b"TZif" or version not in _VERSIONS:
        return None
    return _Counts(ut, standard, leaps, times, types, letters, wide)


def _block(raw: bytes, of: _Counts) -> bool:
    """A data block of version 2, as long as its header says."""
    if not of.types or not of.letters or of.ut not in (0, of.types) or of.standard not in (0, of.types):
        return False
    parts, at = list[bytes](), 0
    sizes = (of.times * 8, of.times, of.types * _TYPE.size, of.letters, of.leaps * 12, of.standard, of.ut)
    for size in sizes:
        parts.append(raw[at : at + size])
        at += size
    times, indices, types, letters, leaps, standard, ut = parts
    return (
        _rising(struct.unpack(f">{of.times}q", times))
        and all(index < of.types for index in indices)
        and all(_type(one, letters) for one in _TYPE.iter_unpack(types))
        and _saving(indices, tuple(_TYPE.iter_unpack(types)))
        and _rising([instant for instant, _ in struct.iter_unpack(">qi", leaps)])
        and set(standard + ut) <= {0, 1}
        and letters.isascii()
    )


def _rising(instants: Sequence[int]) -> bool:
    """Each later than the one before it."""
    return all(a < b for a, b in zip((_FIRST - 1, *instants), instants, strict=False))


def _type(one: tuple[int, int, int], letters: bytes) -> bool:
    """A local time: within a day of UTC, and with a name that ends."""
    offset, summer, name = one
    return -_DAY < offset < _DAY and summer in (0, 1) and letters.find(b"\0", name) >= 0


def _saving(indices: bytes, types: Sequence[tuple[int, int, int]]) -> bool:
    """Where the last change is to summer time: whether a neighbour of such a change tells what is saved by it.

    Python's reader looks for that from its second change on, before and behind each; behind the last one it reads
    whatever lies in memory there.
    """
    last = indices[-1] if len(indices) > 1 else len(types) - 1
    offset, summer, _ = types[last]
    if not summer or last == len(types) - 1:  # of the last local time it never looks behind
        return True
    before = (a for a, b in pairwise(indices) if b == last)
    behind = (b for a, b in pairwise(indices[1:]) if a == last)
    return any(not types[each][1] and types[each][0] != offset for each in (*before, *behind))


def _footer(raw: bytes) -> bool:
    match = _FOOTER.fullmatch(raw)
    if match is None:
        return False
    farthest = _OFFSET_HOURS - (match[_SUMMER] is not None and match[3] is None)
    return all(
        int(hours) <= (farthest if group in _OFFSETS else _TIME_HOURS)
        for group, hours in enumerate(match.groups(), 1)
        if hours is not None and group != _SUMMER
    )
