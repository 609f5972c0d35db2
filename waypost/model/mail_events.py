"""The events of a run's outgoing mail: it is in the outbox, it was handed over, it wasn't.

Part of ``waypost.model.events``, by whose name they are imported.
"""

from msgspec import UNSET, UnsetType

from waypost.model.event_parts import Call, Event, Line, Sha256, Text


class MailQueued(Event, frozen=True, kw_only=True):
    """The call's mail is in the outbox; in one commit with its entry."""

    call: Call
    message_id: Line
    to: tuple[Line, ...]
    ordinal: int
    """Of the outbox entry."""
    sha256: Sha256
    """Of the message's bytes."""


class MailSent(Event, frozen=True, kw_only=True):
    """The mail was handed over; in one commit with the removal of its outbox entry."""

    call: Call
    ordinal: int


class MailFailed(Event, frozen=True, kw_only=True):
    """The call's mail was refused (no ``ordinal``: nothing was queued), or can't be delivered."""

    call: Call
    reason: Text
    ordinal: int | UnsetType = UNSET
