"""Outgoing mail: arguments to an RFC 5322 message.

Deterministic: the same arguments give the same bytes, so that a repeat after a crash is the same mail. Nothing in an
argument can begin a header field of its own: what would is refused, never cleaned up in silence.
"""

import binascii
import hashlib
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from waypost.model.address import address
from waypost.model.errors import Invalid
from waypost.model.mail_mime import TYPE, TYPE_LIMIT
from waypost.model.mail_record import Attachment

LINE = 76
_ASCII_LINE = 200
"""Characters of a text line or a subject that are still sent as they are."""
_WORD_BYTES = 39
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MESSAGE_ID = re.compile(r"<[!-;=?-~]+@[!-;=?-~]+>\Z")
_PLAIN = re.compile(r"[\t\n -~]*\Z")
_BREAKS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_TOKEN_SAFE = re.compile(r"[A-Za-z0-9 ._+-]{1,60}\Z")


class UnsafeHeader(Invalid):
    """A value can't go into a header field: it holds a line end or a control character, or hasn't the field's form."""

    def __init__(self, field: str, value: str, reason: str) -> None:
        super().__init__(
            f"{value[:80]!r} can't go into the mail's {field}: {reason}",
            hint="pass one line of text without control characters",
        )
        self.field = field
        self.value = value
        self.reason = reason


def compose(  # noqa: PLR0913 - these are the fields of a mail, all by keyword
    *,
    sender: str,
    to: str | Sequence[str],
    subject: str,
    text: str,
    message_id: str,
    date_ms: int,
    in_reply_to: str | None = None,
    references: Sequence[str] = (),
    attachments: Sequence[Attachment] = (),
    automatic: bool = False,
) -> bytes:
    """Make a mail; lines end in CRLF.

    ``date_ms`` is milliseconds since 1970, UTC; ``message_id`` is ``<…@…>`` with its angles; ``automatic`` marks what
    a program sends by itself (RFC 3834), so that no program answers it. Raises BadAddress for an address, UnsafeHeader
    for anything else.
    """
    recipients = (to,) if isinstance(to, str) else tuple(to)
    if not recipients:
        raise UnsafeHeader("To", "", "nobody is named")
    if not _MESSAGE_ID.match(message_id):
        raise UnsafeHeader("Message-ID", message_id, "it must have the form <unique@domain>")
    head = [
        f"From: {address(sender)}",
        f"To: {_folded([address(each) + ',' for each in recipients])[:-1]}",
        f"Subject: {_unstructured('Subject', subject)}",
        f"Date: {_date(date_ms)}",
        f"Message-ID: {message_id}",
    ]
    if in_reply_to is not None:
        head.append(f"In-Reply-To: {_safe('In-Reply-To', in_reply_to)}")
    if references:
        head.append(f"References: {_folded([_safe('References', each) for each in references])}")
    if automatic:
        head.append("Auto-Submitted: auto-generated")
    head.append("MIME-Version: 1.0")
    body = _text_part(text)
    if attachments:
        parts = [body, *(_attachment_part(each) for each in attachments)]
        # "=_" can't occur in quoted-printable or base64, and nobody can write a text that holds its own hash.
        boundary = "=_" + hashlib.sha256(b"\0".join(parts)).hexdigest()[:40]
        head.append(f'Content-Type: multipart/mixed; boundary="{boundary}"')
        mark = f"--{boundary}".encode()
        body = b"\r\n" + b"".join(mark + b"\r\n" + part + b"\r\n" for part in parts) + mark + b"--\r\n"
    return "\r\n".join(head).encode() + b"\r\n" + body


def _safe(field: str, value: str) -> str:
    """The value, if it is one line of text."""
    if _BREAKS.search(value) or not value.strip():
        raise UnsafeHeader(field, value, "it is empty, or holds a line end or a control character")
    return value


def _unstructured(field: str, value: str) -> str:
    """A header text: as it is when it is short ASCII, else in encoded words (RFC 2047), one a line."""
    if not value:
        return ""
    safe = _safe(field, value)
    if safe.isascii() and len(safe) <= _ASCII_LINE and "=?" not in safe and safe == safe.strip():
        return safe
    return _folded([f"=?utf-8?b?{binascii.b2a_base64(each, newline=False).decode()}?=" for each in _cut(safe)])


def _cut(text: str) -> Iterator[bytes]:
    """UTF-8 in portions that fit an encoded word, no character torn."""
    portion = b""
    for character in text:
        encoded = character.encode()
        if len(portion) + len(encoded) > _WORD_BYTES:
            yield portion
            portion = b""
        portion += encoded
    yield portion


def _folded(words: Sequence[str]) -> str:
    return "\r\n ".join(words)


def _date(date_ms: int) -> str:
    """The date as RFC 5322 §3.3 has it; strftime would ask the machine's language for the names."""
    try:
        when = datetime.fromtimestamp(date_ms // 1000, UTC)
    except (OverflowError, ValueError, OSError):
        raise UnsafeHeader("Date", str(date_ms), "it is no time between the years 1 and 9999") from None
    return f"{_DAYS[when.weekday()]}, {when.day:02} {_MONTHS[when.month - 1]} {when.year:04} {when:%H:%M:%S} +0000"


def _text_part(text: str) -> bytes:
    """The text with its own header fields: as it is when it is plain ASCII in short lines, else quoted-printable."""
    unix = text.replace("\r\n", "\n").replace("\r", "\n")
    unix += "" if unix.endswith("\n") else "\n"
    charset, encoding = ("us-ascii", "7bit")
    encoded = unix.replace("\n", "\r\n").encode("utf-8", "replace")
    if not _PLAIN.match(unix) or max(map(len, unix.split("\n"))) > _ASCII_LINE:
        charset, encoding = ("utf-8", "quoted-printable")
        encoded = binascii.b2a_qp(encoded, istext=True)
    head = f"Content-Type: text/plain; charset={charset}\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n"
    return head.encode() + encoded


def _attachment_part(attachment: Attachment) -> bytes:
    kind = attachment.content_type.lower()
    if len(kind) > TYPE_LIMIT or not TYPE.match(kind):
        raise UnsafeHeader("Content-Type", attachment.content_type, "it must have the form type/subtype")
    if kind.startswith(("multipart/", "message/")):
        # These may not be base64 (RFC 2045 §6.4); a mail that goes along as a file is a file.
        kind = "application/octet-stream"
    name = _safe("attachment name", attachment.name)
    said = (
        f'filename="{name}"'
        if _TOKEN_SAFE.match(name)
        else "filename*=utf-8''" + "".join(f"%{byte:02X}" for byte in name.encode())
    )
    head = (
        f"Content-Type: {kind}\r\nContent-Disposition: attachment; {said}\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    )
    encoded = binascii.b2a_base64(attachment.content, newline=False)
    return head.encode() + b"\r\n".join(encoded[at : at + LINE] for at in range(0, len(encoded), LINE))
