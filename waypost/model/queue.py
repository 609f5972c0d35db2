"""A queue entry: what is known of an accepted mail, and where it stands in the claim-check queue.

The raw message is stored once, under its arrival ordinal; entries refer to it. Later states add fields and never
change these (decision 7): the format is final from the first day.
"""

import base64

import msgspec
from msgspec import UNSET, UnsetType

from waypost.model.errors import Invalid
from waypost.model.events import Mailed
from waypost.model.ids import CallId, RunId, message_key


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One accepted mail. ``id`` is the message id as text, or base64 of its bytes when they are no UTF-8."""

    arrival: int
    """Ordinal that the substrate assigned; it is the order of the queue."""
    id: str
    base64: bool = False
    address: str
    run: RunId
    """Decided at enqueue, so that two mails of one thread that arrive together don't become two runs."""
    starts: bool
    """Whether taking it up starts the run; otherwise it is for a run that exists or is started by an earlier mail."""
    old: RunId | UnsetType = UNSET
    """The finished run of the same thread that the new run will name."""
    received: str
    """When it was accepted, ISO 8601 UTC; information only, order is the arrival."""
    sender: str = msgspec.field(default="", name="from")
    sha256: str
    bare: str
    """SHA-256 of the message without its trace headers: equal for a redelivery."""

    attempt: int = 0
    """Claims so far that ended with their generation; a claim's own number is in its file's name."""

    told: CallId | UnsetType = UNSET
    """The approval that it is no answer to, as its sender was told by a notice."""

    # Entries on hold:
    held: str | UnsetType = UNSET
    """When it was put on hold, ISO 8601 UTC; kept when it was rejected from there, gone when it was let in."""
    why: str | UnsetType = UNSET
    """Why: ``id-clash``, ``poison`` or, of an imported mail, ``stale``."""
    clash: int | UnsetType = UNSET
    """Arrival of the mail that has the Message-ID which this one names; ``id`` is then one of its own. Stays."""

    # Consumed entries only:
    consumed: str | UnsetType = UNSET
    """When it was consumed, ISO 8601 UTC: the retention horizon counts from here."""
    rejected: str | UnsetType = UNSET
    """Why it was rejected after acceptance; such an entry caused no event."""

    @property
    def message_id(self) -> bytes:
        """The message id's bytes."""
        return base64.b64decode(self.id) if self.base64 else self.id.encode()

    @property
    def key(self) -> str:
        """What the entry is filed under: SHA-256 (hex) of the message id's bytes."""
        return message_key(self.message_id)

    @property
    def mailed(self) -> Mailed:
        """The entry as an event refers to it."""
        return Mailed(arrival=self.arrival, id=self.id, base64=self.base64, sha256=self.sha256, sender=self.sender)


def id_text(message_id: bytes) -> tuple[str, bool]:
    """A message id as JSON can hold it: the text and whether it is base64."""
    try:
        return message_id.decode(), False
    except UnicodeDecodeError:
        return base64.b64encode(message_id).decode(), True


class Outgoing(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """An outbox entry: a call's mail, whose bytes lie in the run's blobs under ``sha256``, or a notice of the host's.

    A notice belongs to no run: it is ``about`` a mail, and its bytes are its ``message``.
    """

    ordinal: int
    run: RunId = RunId("")
    call: CallId = CallId("")
    message_id: str
    to: tuple[str, ...]
    sha256: str

    # Notices only:
    about: int = 0
    """Arrival of the mail whose sender is told; 0 for a call's mail."""
    message: str = ""

    @property
    def key(self) -> str:
        """What the entry is filed under: SHA-256 (hex) of its message id."""
        return message_key(self.message_id.encode())


_entries = msgspec.json.Decoder(Entry)
_outgoing = msgspec.json.Decoder(Outgoing)


def encode(entry: Entry | Outgoing) -> bytes:
    """One line of JSON, keys in the fixed order of the record."""
    return msgspec.json.encode(entry)


def decode(raw: bytes) -> Entry:
    """Read a queue entry, strictly. Raises Invalid."""
    try:
        return _entries.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as bad:
        raise Invalid(f"not a queue entry: {bad}") from None


def decode_outgoing(raw: bytes) -> Outgoing:
    """Read an outbox entry, strictly. Raises Invalid."""
    try:
        return _outgoing.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as bad:
        raise Invalid(f"not an outbox entry: {bad}") from None
