"""The one scanner for header fields: where they are, what they are called, where the body begins.

Total over any bytes, linear in the header block, and used for every header there is (the mail's own, each MIME
part's), so that no two readers of a mail can disagree about what it says. It reads, it never decodes.

The rules, chosen over real and hostile mail:

- LF ends a line and a CR before it goes with it. In a mail without any LF, CR ends a line (`lines`).
- A field is printable ASCII without a colon, blanks, a colon (RFC 5322 §3.6.8, with the blanks of §4.5).
- A line that begins with a blank goes on the field before it; the fold becomes one blank, whatever it was.
- The first empty line ends the block. A line that is none of these is junk: among fields it is passed over (an mbox
  ``From `` line, a torn fold), after the last one it begins the body, so that no text is lost.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

HEADER_LIMIT = 512 * 1024
"""Bytes of one header block; the block ends there, and the door refuses such a mail."""

_NAME = re.compile(rb"([!-9;-~]+)[ \t]*:")
_BLANKS = b" \t\r\f\v"


class Field(msgspec.Struct, frozen=True):
    """One header field, from ``start`` to ``end`` with its folds.

    ``label`` is its name as written, ``name`` the same in lower case: how fields are found; the value is unfolded and
    trimmed.
    """

    label: str
    name: str
    value: bytes
    start: int
    end: int


class Block(msgspec.Struct, frozen=True):
    """A header block; ``body`` is the offset behind it, ``cut`` whether it was ended by the limit."""

    fields: tuple[Field, ...]
    by_name: Mapping[str, Sequence[bytes]]
    """Values by lower case name, in order: a mail may have a hundred thousand fields, and many are asked for."""
    body: int
    cut: bool

    def values(self, name: str) -> Sequence[bytes]:
        """Values of every field of this (lower case) name, in order."""
        return self.by_name.get(name, ())

    def first(self, name: str) -> bytes | None:
        """Value of the first field of this (lower case) name."""
        return next(iter(self.values(name)), None)


def lines(raw: bytes) -> bytes:
    """The mail with lines that end in LF: unchanged, unless CR alone ends them all."""
    return raw if b"\n" in raw else raw.replace(b"\r", b"\n")


def block(raw: bytes, start: int = 0, end: int | None = None) -> Block:
    """Read the header block that begins at ``start``; see the rules above. ``raw`` has been through `lines`."""
    stop = len(raw) if end is None else end
    limit = min(stop, start + HEADER_LIMIT)
    found: list[_Open] = []
    junk: int | None = None
    at = start
    while at < limit:
        newline = raw.find(b"\n", at, stop)
        line_end, following = (stop, stop) if newline < 0 else (newline, newline + 1)
        if line_end == at or raw[at:line_end] == b"\r":
            return collected(map(_closed, found), following if junk is None else junk, cut=False)
        name = _NAME.match(raw, at, line_end)
        if name:
            junk = None
            found.append(_Open(name[1], at, following, [raw[name.end() : line_end]]))
        elif raw[at] not in b" \t":
            junk = at if junk is None else junk
        elif junk is None and found:
            found[-1].pieces.append(raw[at:line_end])
            found[-1].end = following
        at = following
    return collected(map(_closed, found), at if junk is None else junk, cut=at < stop)


def collected(fields: Iterable[Field], body: int = 0, *, cut: bool = False) -> Block:
    """A block of these fields."""
    kept = tuple(fields)
    by_name: dict[str, list[bytes]] = {}
    for field in kept:
        by_name.setdefault(field.name, []).append(field.value)
    return Block(kept, by_name, body, cut)


class _Open(msgspec.Struct):
    """A field whose folds are still being gathered."""

    name: bytes
    start: int
    end: int
    pieces: list[bytes]


def _closed(field: _Open) -> Field:
    label = field.name.decode("ascii")
    value = b" ".join(filter(None, (piece.strip(_BLANKS) for piece in field.pieces)))
    return Field(label, label.lower(), value, field.start, field.end)
