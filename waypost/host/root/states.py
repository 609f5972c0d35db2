"""The root's states and effects: what its decisions (logic, redeploying) are about."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from actors.describing import Description
from actors.messages import DeploymentSpec
from waypost.acting import Ref
from waypost.host.described import Described, Sleep
from waypost.host.errors import HostError
from waypost.host.mail.stuck import Stuck
from waypost.host.messages import Rouse
from waypost.host.root.line import Line
from waypost.host.root.seats import Seat
from waypost.host.root.slots import Slots
from waypost.model.ids import Deployment
from waypost.model.limits import Limits
from waypost.model.times import Now

# --- effects -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StartBus:
    """``BusStarted`` follows."""

    incarnation: int


@dataclass(frozen=True, slots=True)
class StartDeployment:
    """A supervisor and its courier; ``DeploymentStarted`` follows."""

    spec: DeploymentSpec
    incarnation: int


@dataclass(frozen=True, slots=True)
class Install:
    """Put other code into a repository that nobody has open; ``Installed`` follows."""

    one: Described


@dataclass(frozen=True, slots=True)
class Dismiss:
    """Have an actor end; its end is told by itself. A supervisor ends its whole crew first."""

    ref: Ref


@dataclass(frozen=True, slots=True)
class Report:
    """Tell whoever watches the host how a deployment is now."""

    description: Description


@dataclass(frozen=True, slots=True)
class Introduce:
    """Have who sits there watch the deployment of this supervisor."""

    seat: Seat
    supervisor: Ref


@dataclass(frozen=True, slots=True)
class Reseat:
    """Have another one sit there."""

    seat: Seat
    incarnation: int


@dataclass(frozen=True, slots=True)
class Vacate:
    """Nobody sits there any more, as whoever did failed too often: say so where operators look."""

    seat: Seat
    why: str


@dataclass(frozen=True, slots=True)
class Store:
    """Put the code of a deployment that isn't run here into its repository, and answer whoever asked."""

    one: Described
    asker: int


@dataclass(frozen=True, slots=True)
class Note:
    """Note for the next start of a host that this deployment sleeps."""

    name: Deployment
    sleep: Sleep


@dataclass(frozen=True, slots=True)
class Forget:
    """Have the keeper forget what this deployment was given: it asks anew, should it have a process again."""

    name: Deployment


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Nothing is left that could go on by itself: the process should end, and say why."""

    error: HostError


Wish: TypeAlias = Rouse | int
"""Why a deployment is to be awake: mail that the bus keeps for it, or (a token) somebody who wants its supervisor."""

# --- states --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """A deployment whose supervisor lives."""

    spec: DeploymentSpec
    incarnation: int
    description: Description
    supervisor: Ref
    courier: Ref
    stuck: Stuck | None = None
    """A mail of it that can't leave, as its courier says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Raising:
    """A deployment whose supervisor is being made (anew)."""

    spec: DeploymentSpec
    incarnation: int
    description: Description
    last: Ref | None = None
    """The supervisor that failed: mail for it is withheld until the next one is there."""
    wishes: tuple[Wish, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """A deployment that says that it sleeps, and whose supervisor was told to go; ``wishes`` came after that."""

    spec: DeploymentSpec
    incarnation: int
    description: Description
    supervisor: Ref
    courier: Ref
    wishes: tuple[Wish, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dormant:
    """A deployment that sleeps until ``deadline`` (Unix ms; None: until something comes): all of it is this record."""

    spec: DeploymentSpec
    incarnation: int
    """Of the supervisor that it had; 0: none in this host's life."""
    description: Description
    deadline: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaiting:
    """A deployment that is to be started, or was woken, and waits for a place."""

    spec: DeploymentSpec
    incarnation: int
    description: Description
    wishes: tuple[Wish, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A deployment that failed too often."""

    spec: DeploymentSpec
    incarnation: int
    description: Description


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """A deployment that is stopping, because ``one`` is to take its place; ``asker`` waits for that."""

    spec: DeploymentSpec
    incarnation: int
    description: Description
    supervisor: Ref
    courier: Ref
    one: Described
    asker: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Installing:
    """A deployment that has stopped, and whose code is being replaced. ``last`` is the supervisor that it had."""

    spec: DeploymentSpec
    incarnation: int
    description: Description
    last: Ref | None
    """None: it slept."""
    one: Described
    asker: int


Member: TypeAlias = Raised | Raising | Parting | Dormant | Awaiting | Lost | Leaving | Installing


@dataclass(frozen=True, slots=True)
class Dormancy:
    """Who may be awake; and when those that sleep are to be woken, soonest first (Unix ms)."""

    slots: Slots = field(default_factory=Slots)
    line: Line = field(default_factory=Line)
    """Those that mail has woken."""
    deadlines: tuple[tuple[int, Deployment], ...] = ()
    alarm: tuple[int, int] | None = None
    """Token and time of the wake-up that is under way."""
    ahead: Now | None = None
    """When the wall clock was furthest ahead, since it was set back last: what was judged, was by no later one."""
    last: int = 1
    """The last token that was given out."""


Lapses: TypeAlias = tuple[tuple[str, float], ...]
"""Who has failed lately, the bus, supervisors and whoever looks on: an actor's name, and when, in monotonic seconds."""
NO_LAPSES: Lapses = ()


def lapsed(lapses: Lapses, name: str, now: Now, limits: Limits) -> tuple[Lapses, int]:
    """An actor has failed: who has within the window, and how often this one did, which alone is what counts for it."""
    recent = (*((each, at) for each, at in lapses if at > now.mono - limits.actor_window), (name, now.mono))
    return recent, sum(each == name for each, _ in recent)


@dataclass(frozen=True, slots=True)
class Setup:
    """What doesn't change: bounds, and who watches all runs of all deployments."""

    limits: Limits
    seats: tuple[Seat, ...] = ()
    """Whoever looks on at all deployments, and is made anew where it fails."""


@dataclass(frozen=True, slots=True)
class Idle:
    """Not begun."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The bus is being made, at the start or anew."""

    members: Mapping[Deployment, Member]
    incarnation: int
    dormancy: Dormancy = field(default_factory=Dormancy)
    lapses: Lapses = NO_LAPSES


@dataclass(frozen=True, slots=True)
class Running:
    """The bus lives."""

    members: Mapping[Deployment, Member]
    bus: Ref
    incarnation: int
    dormancy: Dormancy = field(default_factory=Dormancy)
    lapses: Lapses = NO_LAPSES


@dataclass(frozen=True, slots=True)
class Stopping:
    """Supervisors are ending; ``askers`` wait for the last of them."""

    members: Mapping[Deployment, Member]
    left: frozenset[Deployment]
    askers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stopped:
    """Everything has ended."""

    members: Mapping[Deployment, Member]


State: TypeAlias = Idle | Opening | Running | Stopping | Stopped
