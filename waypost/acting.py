"""The words between a decision and its shell: what a decision yields, and what every actor is told beside its own.

Values only, so that decisions can be imported without a thread or a clock; ``waypost.shell`` carries them out.
"""

from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import msgspec
import pykka

from waypost.model.times import Now

Ref: TypeAlias = pykka.ActorRef[Any]
S = TypeVar("S")


class Clock(Protocol):
    """Both clocks, read together, and wake-up calls. ``waypost.testing.ManualClock`` is the one that tests turn."""

    def now(self) -> Now:
        """The time at this moment."""
        ...

    def wake(self, ref: Ref, message: Any, *, mono: float | None = None, wall: int | None = None) -> None:
        """Send ``message`` once the monotonic clock shows ``mono``, or the wall clock ``wall``; one of the two is set.

        What goes by the wall clock comes also when that is set back, though it isn't due: who asked looks at the time,
        and asks anew for what it still waits for.

        A wake-up can't be taken back: who no longer wants it ignores it, by a token in the message.
        """
        ...


class Box(Protocol):
    """Where an answer is left for another thread."""

    def put(self, value: Any, /) -> None:
        """Leave it; never waits."""
        ...


class Next(msgspec.Struct, Generic[S], frozen=True):
    """What a decision yields: the new state, and the effects in the order in which they are to be performed."""

    state: S
    effects: tuple[Any, ...] = ()


class Question(msgspec.Struct, frozen=True):
    """What ``request`` sends; a decision sees ``Asked`` and answers, now or later, with ``Reply``."""

    body: Any
    answer: Box
    """Where the answer goes, once; an exception is raised at the asker."""


class Asked(msgspec.Struct, frozen=True):
    """A question with the token that its answer needs."""

    token: int
    body: Any


class Reply(msgspec.Struct, frozen=True):
    """Effect: answer a question. An exception as value is raised at the asker."""

    token: int
    value: Any


class Tell(msgspec.Struct, frozen=True):
    """Effect: send a message; an actor that has gone is no error (its end is told by itself)."""

    ref: Ref
    message: Any


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Effect: ask the clock for ``message`` at ``mono`` (seconds) or ``wall`` (Unix ms)."""

    message: Any
    mono: float | None = None
    wall: int | None = None


@dataclass(frozen=True, slots=True)
class Halt:
    """Effect: stop at once; what is still queued is refused."""


@dataclass(frozen=True, slots=True)
class ActorEnded:
    """To the parent, once, whichever way the actor ended. ``failure`` is None for a clean stop.

    ``fault`` is the failure's kind where it has one, as ``WaypostError`` says: what a new start may not mend.
    """

    name: str
    incarnation: int
    failure: str | None
    fault: str | None = None
