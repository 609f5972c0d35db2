"""What the drive of a run wants done in the world, and how step bodies end: data, performed by the runtime."""

from dataclasses import dataclass
from typing import TypeAlias

from waypost.authoring.requests import Send
from waypost.child.calls import Try
from waypost.model.events import AnyEvent, Fault
from waypost.model.ids import CallId


@dataclass(frozen=True, slots=True)
class Append:
    """Propose events; they are accepted or refused together."""

    events: tuple[AnyEvent, ...]


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask for a mail to be sent."""

    call: CallId
    mail: Send


@dataclass(frozen=True, slots=True)
class Fetch:
    """Get a blob or mail that an event names."""

    sha256: str


@dataclass(frozen=True, slots=True)
class Keep:
    """Store a value that is too large for an event."""

    sha256: str
    raw: bytes


@dataclass(frozen=True, slots=True)
class Body:
    """Run one try of a step, under this idempotency key."""

    step: Try
    key: str


@dataclass(frozen=True, slots=True)
class Pause:
    """Ask for the run to be paused: code and log differ."""

    detail: str


@dataclass(frozen=True, slots=True)
class Credit:
    """One page of the log was taken in."""


@dataclass(frozen=True, slots=True)
class Leave:
    """Forget the run: this child has nothing more to do with it. ``reason`` is for its log."""

    reason: str


Effect: TypeAlias = Append | Ask | Fetch | Keep | Body | Pause | Credit | Leave


@dataclass(frozen=True, slots=True)
class Completed:
    """A body returned; ``raw`` is the value's JSON."""

    raw: bytes


@dataclass(frozen=True, slots=True)
class Errored:
    """A body raised. ``answer``: trying again is pointless."""

    fault: Fault
    answer: bool


BodyEnd: TypeAlias = Completed | Errored
