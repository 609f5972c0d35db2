"""The parts of a mail: which pieces it is made of, what each says it is, its bytes decoded.

Total and bounded: at most ``DEPTH`` levels and about ``PARTS`` parts are opened, what lies deeper stays whole as one
piece; nothing is dropped but the text around the parts of a multipart. Delimiters are found by offset, without copying.

This does its own splitting and parameters (RFC 2045, 2046, 2231). The standard library's parser ends a header block
at a blank before a colon, takes quadratic time on nested parts, and raises on some parameters, differently from
release to release; a mail must read the same to host and child, today and in a replay years later.
"""

import itertools
import re
from collections.abc import Iterator

import msgspec

from waypost.model.mail_fields import Block, block
from waypost.model.mail_text import decode, one_line, transfer_decoded, words

DEPTH = 16
PARTS = 1000
BOUNDARY_LIMIT = 200
"""Characters; RFC 2046 allows 70, and a longer one is cut, so that it delimits nothing."""
TYPE = re.compile(r"[!#$%&'*+.^_`{|}~0-9a-z-]+/[!#$%&'*+.^_`{|}~0-9a-z-]+\Z")
"""Type and subtype, lower case (RFC 2045 §5.1)."""
TYPE_LIMIT = 100
NAME_LIMIT = 200
"""Bytes of an attachment's name."""

_PIECE = re.compile(r'(?:[^;"]++|"(?:[^"\\]++|\\.)*+"?+)++', re.DOTALL)
_SEGMENT = re.compile(r"([^*]+)\*(?:([0-9]{1,3})(\*)?)?\Z")
_PERCENT = re.compile(rb"%([0-9A-Fa-f]{2})")
_UNSAFE = re.compile(r'[<>:"|?*]')


class Piece(msgspec.Struct, frozen=True):
    """A part that isn't opened further.

    ``kind`` is type/subtype, lower case; ``charset`` as claimed; ``name`` the file name made safe, or empty;
    ``attached`` whether the part asks to be an attachment; ``content`` its bytes, transfer encoding undone.
    """

    kind: str
    charset: str
    name: str
    attached: bool
    content: bytes


def pieces(raw: bytes, head: Block) -> list[Piece]:
    """The pieces of a mail in order; ``head`` is its header block. One piece that isn't a multipart is the mail."""
    out: list[Piece] = []
    _open(raw, head, len(raw), 0, "text/plain", out)
    return out


def safe_name(claimed: str) -> str:
    """A file name that stays one name wherever it is used; may be empty.

    No folder, no control characters, no dots or blanks at its ends, none of the characters that some system gives a
    meaning to, at most ``NAME_LIMIT`` bytes.
    """
    last = re.split(r"[/\\]", one_line(claimed))[-1]
    name = _UNSAFE.sub("_", last).strip(" .")
    if len(name.encode()) > NAME_LIMIT:
        stem, dot, suffix = name.rpartition(".")
        tail = (dot + suffix).encode()[:32] if stem else b""
        name = (name.encode()[: NAME_LIMIT - len(tail)] + tail).decode("utf-8", "ignore")
    return name


def _open(raw: bytes, head: Block, end: int, depth: int, default: str, out: list[Piece]) -> None:
    kind, given = _content_type(head, default)
    boundary = given.get("boundary", "").rstrip()[:BOUNDARY_LIMIT]
    if kind.startswith("multipart/") and depth < DEPTH:
        inner = "message/rfc822" if kind == "multipart/digest" else "text/plain"
        sections = _sections(raw, head.body, end, boundary, PARTS - len(out)) if boundary else []
        for start, stop in sections:
            _open(raw, block(raw, start, stop), stop, depth + 1, inner, out)
        if sections:
            return
        # It can't be taken apart, but it may have been written to be read: show it, as text.
        kind, given = "text/plain", {}
        if not raw[head.body : end].strip():
            return
    out.append(_piece(kind, given, head, raw[head.body : end]))


def _piece(kind: str, given: dict[str, str], head: Block, body: bytes) -> Piece:
    disposition, wanted = _parameters(head.first("content-disposition") or b"")
    encoding = (head.first("content-transfer-encoding") or b"").partition(b";")[0].strip()
    return Piece(
        kind=kind,
        charset=given.get("charset", ""),
        name=safe_name(words((wanted.get("filename") or given.get("name") or "").encode())),
        attached=disposition == "attachment",
        content=transfer_decoded(encoding, body),
    )


def _sections(raw: bytes, start: int, end: int, boundary: str, room: int) -> list[tuple[int, int]]:
    """Where the parts of a multipart lie, as offsets.

    What follows a closing delimiter is no part, but a delimiter after it opens one again: multiparts that share a
    boundary with the one around them lose nothing that way.
    """
    if room <= 0:
        return []
    delimiter = rb"--" + re.escape(boundary.encode()) + rb"(--)?[ \t]*\r?(?=\n|\Z)"
    first = re.compile(delimiter).match(raw, start, end)
    later = re.compile(b"\n" + delimiter).finditer(raw, first.end() if first else start, end)
    found: Iterator[re.Match[bytes]] = itertools.chain([first] if first else [], later)
    sections: list[tuple[int, int]] = []
    opened: int | None = None
    for mark in found:
        if opened is not None:
            # The line end before a delimiter belongs to the delimiter (RFC 2046 §5.1.1).
            torn = raw[mark.start() - 1 : mark.start()] == b"\r"
            sections.append((opened, max(opened, mark.start() - torn)))
        opened = None if mark[1] else min(mark.end() + 1, end)
        if opened is not None and len(sections) + 1 >= room:
            break
    if opened is not None:
        sections.append((opened, end))
    return sections


def _content_type(head: Block, default: str) -> tuple[str, dict[str, str]]:
    """Type and parameters; the first field counts, a missing one is the default, an unreadable one plain text."""
    value = head.first("content-type")
    if value is None:
        return default, {}
    kind, given = _parameters(value)
    return (kind, given) if len(kind) <= TYPE_LIMIT and TYPE.match(kind) else ("text/plain", {})


def _parameters(value: bytes) -> tuple[str, dict[str, str]]:
    """``type/subtype; name=value; …`` taken apart: the first word, lower case, and the parameters by lower case name.

    A parameter in pieces or with a charset (RFC 2231) goes before a plain one of the same name; else the first counts.
    """
    first, *rest = _PIECE.findall(decode(value)) or [""]
    plain: dict[str, str] = {}
    split: dict[str, dict[int, tuple[str, bool]]] = {}
    for piece in rest:
        key, _, text = piece.partition("=")
        key, text = key.strip().lower(), _unquoted(text.strip())
        segment = _SEGMENT.match(key)
        if segment:
            encoded = segment[2] is None or segment[3] is not None
            split.setdefault(segment[1], {}).setdefault(int(segment[2] or 0), (text, encoded))
        else:
            plain.setdefault(key, text)
    return first.split("(")[0].strip().lower(), plain | {key: _assembled(parts) for key, parts in split.items()}


def _unquoted(text: str) -> str:
    if not text.startswith('"'):
        return text
    inside = re.match(r'"((?:[^"\\]|\\.)*)', text, re.DOTALL)
    return re.sub(r"\\(.)", r"\1", inside[1]) if inside else text


def _assembled(parts: dict[int, tuple[str, bool]]) -> str:
    """The value of a parameter that came in numbered pieces, percent-encoded where a piece says so (RFC 2231 §3, 4)."""
    charset = ""
    out: list[bytes] = []
    for place, (number, (text, encoded)) in enumerate(sorted(parts.items())):
        if number != place:
            break
        if encoded and place == 0 and text.count("'") > 1:
            charset, _, said = text.split("'", 2)
        else:
            said = text
        out.append(
            _PERCENT.sub(lambda code: bytes.fromhex(code[1].decode()), said.encode()) if encoded else said.encode()
        )
    return decode(b"".join(out), charset)
