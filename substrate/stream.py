"""What a repository publishes, in one order: facts as they become visible, then how far they are durable.

Part of ``substrate.messages``, by whose name it is imported.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from substrate.granting import NOTHING_GRANTED, GrantsChanged, InForce
from substrate.state import Drain, Latch
from substrate.ticking import ScheduleMoved
from waypost.model.events import AnyEvent
from waypost.model.ids import Generation, RunId
from waypost.model.mail import Gist
from waypost.model.queue import Entry, Outgoing
from waypost.model.run import Driven, Ended, Live


class Recorded(msgspec.Struct, frozen=True):
    """An event with its stored bytes."""

    event: AnyEvent
    raw: bytes

    def __repr__(self) -> str:
        return f"Recorded({self.event!r})"


class Appended(msgspec.Struct, frozen=True):
    """Events were added to a run, one at least; ``state`` is the run after them."""

    run: RunId
    events: tuple[Recorded, ...]
    state: Live | Ended


@dataclass(frozen=True, slots=True)
class Queued:
    """A mail is in the inbox (new, or a claim that went back); ``attempt`` counts its claims so far.

    ``live``: as it is published, the state of the run that it is for, if that hasn't ended.
    """

    entry: Entry
    gist: Gist
    attempt: int = 0
    live: Live | None = None


@dataclass(frozen=True, slots=True)
class Claimed:
    """A mail went to processing."""

    arrival: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Consumed:
    """A mail was taken up by ``run``, or rejected (``run`` is None)."""

    arrival: int
    run: RunId | None


@dataclass(frozen=True, slots=True)
class Held:
    """A mail was put on hold: a new one, or one that was claimed."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class OutboxAdded:
    """A mail waits to be delivered."""

    outgoing: Outgoing
    message: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class OutboxRemoved:
    """A mail was delivered or given up."""

    ordinal: int


@dataclass(frozen=True, slots=True)
class GenerationBegun:
    """A new child incarnation may be spawned; every earlier one is shut out."""

    generation: Generation


Moved: TypeAlias = (
    Queued | Claimed | Consumed | Held | OutboxAdded | OutboxRemoved | GenerationBegun | GrantsChanged | ScheduleMoved
)
"""What isn't an event of a run."""
Fact: TypeAlias = Appended | Moved


class Committed(msgspec.Struct, frozen=True):
    """Positions ``first`` to ``last`` became visible, with what they changed, in order. Positions are never stored."""

    first: int
    last: int
    facts: tuple[Fact, ...]


class Durable(msgspec.Struct, frozen=True):
    """Everything up to and including this position is on disk."""

    up_to: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What a subscriber needs to know of the past; the stream goes on from ``position``."""

    position: int
    repository: str
    generation: Generation
    runs: tuple[Driven, ...]
    """Runs whose code has something to do; of the others is told when something comes to them."""
    queue: tuple[Queued, ...]
    """Mails in the inbox, in arrival order."""
    outbox: tuple[OutboxAdded, ...]
    held: str = ""
    """Why nothing may leave and no child may run until an operator says so; empty as a rule."""
    held_at: str = ""
    """Since when, in ISO 8601 UTC, as far as that was written down."""
    latch: Latch | None = None
    """Why no child may run until an operator resets it; all else goes on."""
    drain: Drain | None = None
    """Whether an operator has it come to rest, which isn't over."""
    granted: InForce = NOTHING_GRANTED
    """What the steps may do."""


Stream: TypeAlias = Snapshot | Committed | Durable
