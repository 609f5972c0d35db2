"""What a supervisor's decision wants done: effects by role, which the shell carries out on the actors it has started.

Records only; ``Reply``, ``Tell``, ``Halt`` and ``WakeAt`` come from elsewhere.
"""

from dataclasses import dataclass
from typing import TypeAlias

from actors.describing import Description
from actors.messages import Role, Terminate, WakeAt, WatchRun
from ipc.deliveries import CredentialsUpdated, SourcesUpdated
from substrate.messages import Operation, Question
from waypost.acting import Halt, Reply, Tell
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
class LaunchChild:
    """Let the child begin."""


@dataclass(frozen=True, slots=True)
class EndChild:
    """Have the child leave, down the ladder."""

    message: Terminate


@dataclass(frozen=True, slots=True)
class Up:
    """Tell dispatch that the child is ready."""

    generation: Generation
    broken: str = ""
    closed: bool = False


@dataclass(frozen=True, slots=True)
class CloseIntake:
    """Tell dispatch that no run is to begin any more."""

    generation: Generation


@dataclass(frozen=True, slots=True)
class Gone:
    """Tell dispatch that the child is no longer to be relied on."""

    generation: Generation
    unexpected: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Calm:
    """Tell dispatch to begin nothing more and to say who still executes."""

    generation: Generation


@dataclass(frozen=True, slots=True)
class MayDoze:
    """Ask dispatch whether all is at rest; then it begins nothing more."""

    generation: Generation


@dataclass(frozen=True, slots=True)
class WeighChild:
    """Have the child's memory told."""


@dataclass(frozen=True, slots=True)
class GiveChild:
    """Send the child what was delivered for it."""

    payload: CredentialsUpdated | SourcesUpdated


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
    | LaunchChild
    | EndChild
    | Up
    | Gone
    | Calm
    | MayDoze
    | CloseIntake
    | WeighChild
    | GiveChild
    | Introduce
    | Attend
    | AttendAll
    | Announce
    | Halt
    | Reply
    | Tell
    | WakeAt
)
