"""What a supervisor's decision wants done: effects by role, which the shell carries out on the actors it has started.

Records only; ``Reply``, ``Tell``, ``Halt`` and ``WakeAt`` come from elsewhere.
"""

from dataclasses import dataclass
from typing import TypeAlias

from actors.describing import Description
from actors.draining import Close, Doze, Quiesce, Takes, TakeUpMail, Weigh
from actors.messages import GenerationDown, Launch, Role, Send, Terminate, WatchRun
from substrate.messages import Operation, Question
from waypost.acting import Halt, Reply, Tell, WakeAt
from waypost.model.ids import Generation


@dataclass(frozen=True, slots=True)
class Hire:
    """Start the actor of this role; the child's ``incarnation`` is its generation."""

    role: Role
    incarnation: int


@dataclass(frozen=True, slots=True)
class Dismiss:
    """Ask the actor of this role to end; ``ActorEnded`` tells that it has."""

    role: Role


@dataclass(frozen=True, slots=True)
class Enlist:
    """Subscribe the actor of this role to the substrate's stream."""

    role: Role


@dataclass(frozen=True, slots=True)
class EnlistOutsiders:
    """Subscribe those whom the host named."""


@dataclass(frozen=True, slots=True)
class OpenRepository:
    """Have the substrate open."""

    correlation: int


@dataclass(frozen=True, slots=True)
class Pass:
    """Submit to the substrate, durably."""

    correlation: int
    what: Operation | Question


@dataclass(frozen=True, slots=True)
class TellChild:
    """Send this to the child's actor."""

    message: Launch | Terminate | Send | Weigh


@dataclass(frozen=True, slots=True)
class TellDispatch:
    """Send this to dispatch."""

    message: GenerationDown | TakeUpMail | Quiesce | Close | Doze


@dataclass(frozen=True, slots=True)
class Up:
    """Tell dispatch that the child is ready: ``GenerationUp``, with the child's ref, which only the shell has."""

    generation: Generation
    broken: str = ""
    takes: Takes = "all"


@dataclass(frozen=True, slots=True)
class Introduce:
    """Tell the child who its peers are now."""


@dataclass(frozen=True, slots=True)
class Attend:
    """Pass a watcher on to the broadcaster, and remember it for the next one."""

    watch: WatchRun


@dataclass(frozen=True, slots=True)
class AttendAll:
    """Pass on to a new broadcaster all watchers that are still there."""


@dataclass(frozen=True, slots=True)
class Announce:
    """Tell the host's sink."""

    description: Description


Effect: TypeAlias = (
    Hire
    | Dismiss
    | Enlist
    | EnlistOutsiders
    | OpenRepository
    | Pass
    | TellChild
    | TellDispatch
    | Up
    | Introduce
    | Attend
    | AttendAll
    | Announce
    | Halt
    | Reply
    | Tell
    | WakeAt
)
