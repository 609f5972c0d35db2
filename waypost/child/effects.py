"""What the drive of a run wants done in the world, and how step bodies end: data, performed by the runtime."""

from typing import TypeAlias

import msgspec

from waypost.authoring.requests import CallChild, Quit, Send
from waypost.child.calls import Try
from waypost.model.events import AnyEvent, Fault
from waypost.model.ids import CallId


class Append(msgspec.Struct, frozen=True):
    """Propose events; they are accepted or refused together."""

    events: tuple[AnyEvent, ...]


class Ask(msgspec.Struct, frozen=True):
    """Ask for what the host alone can write: a mail, a child run, the end of this run.

    ``seen``: of a child run, what the code had been given when this was the last that it asked for; else 0.
    """

    call: CallId
    request: Send | CallChild | Quit
    seen: int = 0


class Fetch(msgspec.Struct, frozen=True):
    """Get a blob or mail that an event names."""

    sha256: str


class Keep(msgspec.Struct, frozen=True):
    """Store a value that is too large for an event."""

    sha256: str
    raw: bytes


class Body(msgspec.Struct, frozen=True):
    """Run one try of a step, under this idempotency key."""

    step: Try
    key: str


class CallOff(msgspec.Struct, frozen=True):
    """Tell the body that runs for this call that its run is being cancelled."""

    call: CallId


class Pause(msgspec.Struct, frozen=True):
    """Ask for the run to be paused: code and log differ, or there is no code for it."""

    detail: str
    code: str = "code-changed"


class Credit(msgspec.Struct, frozen=True):
    """One page of the log was taken in."""


class Starve(msgspec.Struct, frozen=True):
    """No thread was to be had for the run's code: have its ``begin`` called again."""


class Leave(msgspec.Struct, frozen=True):
    """Forget the run: this child has nothing more to do with it. ``reason`` is for its log."""

    reason: str


Effect: TypeAlias = Append | Ask | Fetch | Keep | Body | CallOff | Pause | Credit | Starve | Leave


class Completed(msgspec.Struct, frozen=True):
    """A body returned; ``raw`` is the value's JSON."""

    raw: bytes


class Errored(msgspec.Struct, frozen=True):
    """A body raised. ``answer``: trying again is pointless."""

    fault: Fault
    answer: bool


BodyEnd: TypeAlias = Completed | Errored
