"""Mail that no run has: what may be asked about it, and what an operator does with it.

Part of ``substrate.messages``, by whose name it is imported.
"""

from dataclasses import dataclass

from waypost.model.queue import Entry


@dataclass(frozen=True, slots=True)
class ReleaseHeld:
    """Hold to inbox, by an operator: it is let in as a mail of its own. Value: ``Accepted``."""

    arrival: int


@dataclass(frozen=True, slots=True)
class RejectHeld:
    """Hold to consumed, by an operator, marked as rejected; it causes no event and stays readable. Value: None."""

    arrival: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadHold:
    """Mails on hold, oldest first. Value: tuple of ``Kept``."""

    limit: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRejected:
    """Mails that were rejected within the horizon, a portion of them. Value: ``RejectedPage``.

    ``limit``: consumed entries that are looked at, about; ``cursor``: where the page before ended.
    """

    limit: int = 256
    cursor: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """A mail that no run has, and what it says of itself."""

    entry: Entry
    message_id: str
    subject: str


@dataclass(frozen=True, slots=True)
class RejectedPage:
    """``counted``: how many were ever rejected; ``cursor`` is None where this was the last page."""

    mails: tuple[Kept, ...]
    counted: int
    cursor: tuple[int, int] | None = None
