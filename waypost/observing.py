"""Timing marks: how long the parts of a mail's way took, told to whoever observes, without waiting and without failing.

A mail's way has the legs of the reference system: ``enqueue`` (at the door, until it is durable), ``claim`` (asked
for, until it is visible), ``consume`` (the take-up, with the event that it causes), ``events`` (what its run then does,
until it rests or has ended); ``round_trip`` is all from the claim on. Seconds are of the monotonic clock, by ``Clock``.

Whoever marks is none the worse for it: an observer drops what it has no room for, and one that has failed or ended
hears nothing. Values, and one protocol; beside ``waypost.acting``.
"""

from typing import Protocol, TypeAlias

import msgspec


class Enqueued(msgspec.Struct, frozen=True):
    """A mail was accepted, ``seconds`` after it was handed over at the door."""

    deployment: str
    seconds: float


class Timed(msgspec.Struct, frozen=True, kw_only=True):
    """A mail that a run took up has had its effect, durably: the run rests, is paused, or has ended.

    Beside the legs, in seconds, what the work consisted of: ``written`` events in ``commits`` commits; and how much
    else there was when it was claimed: ``mails`` waiting, ``runs`` driven or with mail.
    """

    deployment: str
    claim: float
    consume: float
    events: float
    round_trip: float
    written: int
    commits: int
    mails: int
    runs: int


class Flushed(msgspec.Struct, frozen=True):
    """Flushes that returned since this was told last: the seconds that each took, in order."""

    deployment: str
    seconds: tuple[float, ...]


class ClockSet(msgspec.Struct, frozen=True):
    """The wall clock jumped by so many seconds; below 0: back."""

    seconds: float


Mark: TypeAlias = Enqueued | Timed | Flushed | ClockSet


class Observer(Protocol):
    """Whom marks are told."""

    def mark(self, what: Mark) -> None:
        """Take a mark, or drop it; never waits, never raises."""
        ...


class Nobody:
    """Observes nothing."""

    def mark(self, what: Mark) -> None:
        """Drop it."""


NOBODY = Nobody()
