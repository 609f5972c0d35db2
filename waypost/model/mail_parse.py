"""From a raw mail to the `Mail` that a workflow sees: addresses, text, attachments, every header, decoded.

Total: any bytes give a Mail, at worst one with empty fields whose raw bytes are in the repository all the same. The
same bytes give the same Mail on every machine and in every replay.
"""

import hashlib
from collections.abc import Iterator

from waypost.model.mail_address import Mailbox, mailboxes
from waypost.model.mail_fields import Block, block, lines
from waypost.model.mail_mime import DEPTH, Piece, pieces
from waypost.model.mail_record import Attachment, Mail
from waypost.model.mail_scan import automatic, ids, message_id
from waypost.model.mail_text import decode, id_text, one_line, words

_SUFFIXES = {
    "application/json": ".json",
    "application/pdf": ".pdf",
    "application/pgp-signature": ".asc",
    "application/zip": ".zip",
    "image/gif": ".gif",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "message/rfc822": ".eml",
    "text/calendar": ".ics",
    "text/csv": ".csv",
    "text/html": ".html",
    "text/plain": ".txt",
}


def parse(raw: bytes) -> Mail:
    """Read a mail. Total: never raises, whatever the bytes."""
    readable = lines(raw)
    head = block(readable)
    digest = hashlib.sha256(raw).hexdigest()
    senders = list(_boxes(head, "from"))
    text, markup, attachments = _content(readable, head)
    date = head.first("date")
    return Mail(
        message_id=id_text(message_id(head, digest)),
        sender=senders[0].address if senders else "",
        sender_name=senders[0].name if senders else "",
        to=tuple(box.address for box in _boxes(head, "to")),
        cc=tuple(box.address for box in _boxes(head, "cc")),
        subject=words(head.first("subject") or b""),
        date=None if date is None else one_line(decode(date)),
        text=text,
        html=markup,
        attachments=attachments,
        in_reply_to=next((id_text(each) for each in ids(head.values("in-reply-to"))), None),
        references=tuple(id_text(each) for each in ids(head.values("references"))),
        headers=tuple((field.label, words(field.value)) for field in head.fields),
        automatic=automatic(head, senders),
        sha256=digest,
    )


def _boxes(head: Block, name: str) -> Iterator[Mailbox]:
    return (box for value in head.values(name) for box in mailboxes(value))


def _content(raw: bytes, head: Block) -> tuple[str, str, tuple[Attachment, ...]]:
    """Text, HTML and attachments of a mail."""
    found = pieces(raw, head)
    plain, markup, attached = _sorted(found)
    # A mail that is nothing but another mail is read through; the other mail stays an attachment, whole.
    for _ in range(DEPTH):
        if len(found) != 1 or found[0].kind != "message/rfc822":
            break
        inner = lines(found[0].content)
        found = pieces(inner, block(inner))
        plain, markup, _unused = _sorted(found)
    shown = "\n".join(_text(each) for each in plain)
    tagged = "\n".join(_text(each) for each in markup)
    if not shown.strip() and tagged:
        from waypost.model.mail_html import to_text  # most mails bring plain text

        shown = to_text(tagged)
    return shown, tagged, tuple(_attachment(each, place) for place, each in enumerate(attached, 1))


def _sorted(found: list[Piece]) -> tuple[list[Piece], list[Piece], list[Piece]]:
    """Pieces that are the mail's text, those that are its HTML, and its attachments.

    A text with a file name is a file, unless it is all there is. A lone message/partial or the like is shown as text.
    """
    plain: list[Piece] = []
    markup: list[Piece] = []
    attached: list[Piece] = []
    alone = len(found) == 1
    for piece in found:
        body = not piece.attached and (alone or not piece.name)
        if body and (piece.kind == "text/plain" or (alone and _odd_message(piece))):
            plain.append(piece)
        elif body and piece.kind == "text/html":
            markup.append(piece)
        else:
            attached.append(piece)
    return plain, markup, attached


def _odd_message(piece: Piece) -> bool:
    return piece.kind.startswith("message/") and piece.kind != "message/rfc822"


def _text(piece: Piece) -> str:
    return decode(piece.content, piece.charset).replace("\r\n", "\n").replace("\r", "\n")


def _attachment(piece: Piece, place: int) -> Attachment:
    name = piece.name or f"part-{place}{_SUFFIXES.get(piece.kind, '.bin')}"
    return Attachment(name, piece.kind, piece.content)
