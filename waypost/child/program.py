"""The code of one run as the runtime sees it: started once, then resumed by outcomes, one at a time.

Two kinds exist, ``async def`` (waypost.child.loop) and ``def`` (waypost.child.thread_run); both speak these records.
A turn is everything that the code does between two outcomes; it ends when the code can't go on by itself.
"""

from typing import Protocol, TypeAlias

import msgspec

from waypost.authoring.requests import Request
from waypost.model.ids import CallId


class Asked(msgspec.Struct, frozen=True):
    """The code made a durable call."""

    call: CallId
    request: Request


class GaveUp(msgspec.Struct, frozen=True):
    """The code no longer waits at this call: its task was cancelled, or its timeout was left in time."""

    call: CallId


Command: TypeAlias = Asked | GaveUp


class Gave(msgspec.Struct, frozen=True):
    """An outcome that is a value."""

    value: object


class Raised(msgspec.Struct, frozen=True):
    """An outcome that is raised at the call."""

    error: BaseException


Outcome: TypeAlias = Gave | Raised


class Waiting(msgspec.Struct, frozen=True):
    """The code waits for outcomes."""


class Stuck(msgspec.Struct, frozen=True):
    """The code waits, but for no durable call: nothing recorded could ever wake it."""


class Finished(msgspec.Struct, frozen=True):
    """The function returned (Gave) or raised (Raised). ``unread``: calls whose mails nobody took."""

    outcome: Outcome
    unread: tuple[CallId, ...] = ()


Rest: TypeAlias = Waiting | Stuck | Finished


class Turn(msgspec.Struct, frozen=True):
    """What the code asked for, in order, and how it stands now."""

    commands: tuple[Command, ...]
    rest: Rest


class Program(Protocol):
    """One run's code. Each method begins a turn, which is handed to the callback that the program was made with."""

    def start(self, now: float) -> None:
        """Call the function. ``now``: Unix time in seconds at which the run started."""
        ...

    def deliver(self, call: CallId, outcome: Outcome, now: float) -> None:
        """Give one outcome to the call that waits for it; a late one is dropped.

        ``now``: Unix time in seconds of the event that brought it; the run's clock.
        """
        ...

    def cancel(self, now: float) -> None:
        """Raise the cancellation where the code waits, once; it may clean up, and ends when it wants to.

        ``now`` as in ``deliver``. Only while the function hasn't returned.
        """
        ...

    def drop(self) -> None:
        """Let go of the code for good; no turn follows."""
        ...
