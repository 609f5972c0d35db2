"""What the host needs to know of a mail at the door, and whether it lets it in: no part of a body is opened.

Total, linear in the header block (the body is only hashed). A message id is bytes here, as it stood in the mail:
identity never depends on a decoding.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from waypost.model.mail_address import Mailbox, mailboxes
from waypost.model.mail_fields import HEADER_LIMIT, Block, block, lines
from waypost.model.mail_text import id_text, words

THREAD_LIMIT = 64
"""Ids of other mails that are looked up to find a mail's thread."""
ID_LIMIT = 4096
"""Bytes of a message id; a line may have 998 (RFC 5322 §2.1.1), so that even a folded one stays below."""

# A file that has none of these is no mail, however many lines with a colon it has.
_MAIL_FIELDS = "from sender to cc bcc date subject message-id return-path received mime-version content-type"
_TELLING = frozenset(_MAIL_FIELDS.split())

# Fields that transport and delivery add, so that one mail that came twice differs in nothing else. The list is part
# of the queue entry's format: never change it. By prefix: seals of relays, and marks of spam filters.
_TRACES = """return-path received x-received received-spf authentication-results delivered-to x-delivered-to
    x-original-to envelope-to x-envelope-to x-envelope-from delivery-date x-virus-scanned status x-status x-uid x-uidl
    lines content-length"""
TRACE_FIELDS = frozenset(_TRACES.split())
TRACE_PREFIXES = ("arc-", "x-spam-")

_ID = re.compile(rb"<[^<>]+>")


class Answer(msgspec.Struct, frozen=True):
    """What a person decided, and the rest of what they wrote (may be empty)."""

    approved: bool
    comment: str


class Gist(msgspec.Struct, frozen=True, kw_only=True):
    """A mail seen from outside.

    ``id``: the value of its first Message-ID field, unfolded, trimmed, angles kept; when there is none, or it is
    empty, ``sha256:`` and the hex SHA-256 of the raw bytes. ``in_reply_to`` and ``references``: ids, in the order
    they stand in. ``sender``: the first From address or nothing; ``from_count``: how many there are. ``automatic``: no
    answer may go back to it. ``bare_sha256``: of the mail without trace fields and with LF line ends.
    """

    id: bytes
    sender: str
    from_count: int
    subject: str
    in_reply_to: tuple[bytes, ...]
    references: tuple[bytes, ...]
    automatic: bool
    sha256: str
    bare_sha256: str
    answer: Answer | None = None
    """Yes or no, if that is what it says; `mail_door.scan` looks into the body for it, the scan here doesn't."""

    @property
    def message_id(self) -> str:
        """The id as text, for people and for headers; see `mail_text.id_text`."""
        return id_text(self.id)

    @property
    def sole_sender(self) -> str | None:
        """The sender, if exactly one address claims to be it: whoever answers for somebody must be one person."""
        return self.sender if self.from_count == 1 else None


def scan(raw: bytes) -> Gist:
    """Look at a mail from outside. Total: any bytes have a gist, whether or not the door lets them in."""
    text = lines(raw)
    head = block(text)
    digest = hashlib.sha256(raw).hexdigest()
    senders = [box for value in head.values("from") for box in mailboxes(value)]
    return Gist(
        id=message_id(head, digest),
        sender=senders[0].address if senders else "",
        from_count=len(senders),
        subject=_subject(head),
        in_reply_to=tuple(ids(head.values("in-reply-to"))),
        references=tuple(ids(head.values("references"))),
        automatic=automatic(head, senders),
        sha256=digest,
        bare_sha256=_bare(text, head),
    )


def subject(raw: bytes) -> str:
    """A mail's subject, as ``scan`` has it, and nothing else: a list of mails hashes none of them. Total."""
    return _subject(block(lines(raw)))


def malformed(raw: bytes, *, limit: int) -> str | None:
    """Why the door refuses these bytes, in one line for the sender; None when it takes them.

    Refused: nothing at all, more than ``limit`` bytes, a header block of over ``HEADER_LIMIT`` bytes or without any
    field that makes a mail, a message id of over ``ID_LIMIT`` bytes. Everything else is a mail, broken or not: it is
    kept byte for byte, and `parse` shows of it what can be shown.
    """
    if not raw:
        return "the mail is empty (0 bytes); send a message with header fields, an empty line and a text"
    if len(raw) > limit:
        return f"the mail is over {limit} bytes, the most that is taken; send large files another way"
    head = block(lines(raw))
    if head.cut:
        return f"the mail's header goes on for more than {HEADER_LIMIT} bytes; send it with fewer or shorter fields"
    if not any(field.name in _TELLING for field in head.fields):
        return "this is not a mail: it doesn't begin with header fields such as From, To or Subject"
    longest = len(head.first("message-id") or b"")
    if longest > ID_LIMIT:
        return f"the mail's Message-ID has {longest} bytes, and at most {ID_LIMIT} are taken"
    return None


def thread_candidates(gist: Gist) -> tuple[bytes, ...]:
    """Ids of the mails that this one may answer, most likely first, at most ``THREAD_LIMIT``.

    In-Reply-To, then References from the last to the first (storage §5), each id once.
    """
    return tuple(dict.fromkeys((*gist.in_reply_to, *reversed(gist.references))))[:THREAD_LIMIT]


def message_id(head: Block, digest: str) -> bytes:
    """The mail's id (decision 6) from its header block and the SHA-256 of its raw bytes."""
    return head.first("message-id") or b"sha256:" + digest.encode()


def ids(values: Iterable[bytes]) -> Iterator[bytes]:
    """Message ids in In-Reply-To or References; where no angles mark them, the words that look like addresses."""
    for value in values:
        marked = _ID.findall(value)
        yield from marked or (word for word in value.split() if b"@" in word)


def from_machine(head: Block) -> bool:
    """Whether a program wrote the mail by itself and says so: RFC 3834 §5, an empty return path, a delivery report."""
    submitted = head.first("auto-submitted")
    return (
        (submitted is not None and _first_word(submitted) != b"no")
        or head.first("return-path") == b"<>"
        or _first_word(head.first("content-type") or b"") == b"multipart/report"
    )


def automatic(head: Block, senders: Sequence[Mailbox]) -> bool:
    """Whether nothing may be sent back by itself: from a machine, to many, or with the wish not to be answered.

    ``senders`` are the mailboxes of its From fields.
    """
    suppressed = head.first("x-auto-response-suppress")
    return (
        from_machine(head)
        or _first_word(head.first("precedence") or b"") in {b"bulk", b"junk", b"list", b"auto_reply"}
        or (suppressed is not None and _first_word(suppressed) != b"none")
        or any(head.first(name) is not None for name in ("list-id", "x-autoreply", "x-autorespond", "x-loop"))
        or any(box.address.lower().startswith("mailer-daemon@") for box in senders)
    )


def _subject(head: Block) -> str:
    return words(head.first("subject") or b"")


def _first_word(value: bytes) -> bytes:
    return re.split(rb"[\s;(,]", value.lower(), maxsplit=1)[0]


def _bare(text: bytes, head: Block) -> str:
    """SHA-256 of what the sender wrote: trace fields and an mbox line out, line ends LF, none at the end."""
    kept: list[bytes] = []
    at = text.find(b"\n") + 1 if text.startswith(b"From ") else 0
    for field in head.fields:
        if field.name in TRACE_FIELDS or field.name.startswith(TRACE_PREFIXES):
            kept.append(text[at : field.start])
            at = field.end
    kept.append(text[at:])
    return hashlib.sha256(b"".join(kept).replace(b"\r\n", b"\n").rstrip(b"\n")).hexdigest()
