"""What the host's own actors are told and what they answer: frozen records, one union per recipient."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from actors.describing import Description
from actors.messages import DeploymentSpec, StateChanged, Woken
from substrate.messages import Outcome, Ref, Stream
from waypost.acting import ActorEnded, Asked, Tell
from waypost.host.described import Described, Sleep
from waypost.host.mail.spool import Spooled
from waypost.host.mail.stuck import Stuck
from waypost.model.errors import WaypostError
from waypost.model.ids import Deployment
from waypost.model.queue import Outgoing

# --- mail bus ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Route:
    """Whose mail goes where: a deployment, and the supervisor that takes it in.

    None: it has none, because it sleeps or wasn't started yet; the root wakes it.
    """

    name: Deployment
    supervisor: Ref | None


@dataclass(frozen=True, slots=True)
class Routes:
    """Every address of this host as of now, with its route. Replaces what was told before."""

    by_address: dict[str, Route]


@dataclass(frozen=True, slots=True)
class Reroute:
    """One address has another route: its deployment falls asleep, or is awake. What is under way isn't lost.

    ``behind``: what is told behind all that was handed to a supervisor: to begin, or to go.
    """

    address: str
    route: Route
    behind: Tell | None = None


@dataclass(frozen=True, slots=True)
class Deliver:
    """Asked: accept this mail for an address. The answer, durable, is ``MailTaken``.

    Raises NoSuchAddress, MalformedMail, NotNow, RefusedByRule at the asker.
    """

    address: str
    raw: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Carry:
    """Take a durable mail of a deployment to whom it is for; ``Carried`` comes back to ``courier``.

    ``again``: an earlier attempt may have left it in the outgoing Maildir.
    """

    deployment: Deployment
    outgoing: Outgoing
    message: bytes = field(repr=False)
    courier: Ref
    again: bool


@dataclass(frozen=True, slots=True)
class Shelved:
    """The disk worker put an outgoing mail into the Maildir, or why not."""

    correlation: int
    failure: str = ""


@dataclass(frozen=True, slots=True)
class SpoolFound:
    """What the disk worker found in the spools, with the raw mails; oldest first within a deployment.

    ``faults``: what it could not read, and why, in words.
    """

    mails: tuple[tuple[Spooled, bytes], ...]
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkerBroke:
    """The disk worker met something that it has no word for."""

    reason: str


BusMessage: TypeAlias = Asked | Routes | Reroute | Carry | Outcome | Shelved | SpoolFound | WorkerBroke | Woken


# --- courier (one for each deployment) -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Serve:
    """Whose outbox it empties, and through whom: told at the start, and again when one of them is new."""

    supervisor: Ref
    bus: Ref


@dataclass(frozen=True, slots=True)
class Carried:
    """A mail has reached everybody it is for; or ``failure``: why it has not, and whether that is for good."""

    ordinal: int
    failure: str = ""
    final: bool = False
    blocked: Deployment | None = None
    """The deployment of this host that didn't take it, where it was one."""


@dataclass(frozen=True, slots=True)
class OutboxStuck:
    """How a deployment's outbox is, told to the root when it is another way: ``stuck`` None where all goes out."""

    name: Deployment
    incarnation: int
    stuck: Stuck | None


CourierMessage: TypeAlias = Stream | Serve | Carried | Outcome | Woken


# --- root ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Begin:
    """Start everything: the bus, then one supervisor for each deployment, in this order.

    ``dormant``: those that sleep.
    """

    specs: tuple[DeploymentSpec, ...]
    dormant: Mapping[Deployment, Sleep] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class End:
    """Asked: stop everything, youngest first. The answer comes when every deployment has stopped: None.

    ``patience``: seconds that runs which execute have to come to rest before that.
    """

    patience: float = 0.0


@dataclass(frozen=True, slots=True)
class Deployments:
    """Asked: the answer is a tuple of ``Deployed``, in the order of the specs."""


@dataclass(frozen=True, slots=True)
class Deployed:
    """A deployment as the root knows it; ``supervisor`` is None while it is made anew."""

    spec: DeploymentSpec
    description: Description
    supervisor: Ref | None
    stuck: Stuck | None = None
    """A mail of it that can't leave."""


@dataclass(frozen=True, slots=True)
class BusStarted:
    """The mail bus lives."""

    incarnation: int
    bus: Ref


@dataclass(frozen=True, slots=True)
class DeploymentStarted:
    """A deployment's supervisor and courier live."""

    name: Deployment
    incarnation: int
    supervisor: Ref
    courier: Ref


@dataclass(frozen=True, slots=True)
class Rouse:
    """Start a deployment that sleeps: the bus keeps what is for it. One that is awake needs nothing."""

    name: Deployment


@dataclass(frozen=True, slots=True)
class Awaken:
    """Asked: wake a deployment that sleeps. The answer is ``Deployed``, with its supervisor.

    Raises NotNow at the asker.
    """

    name: Deployment


@dataclass(frozen=True, slots=True)
class Redeploy:
    """Asked: run this from now on in the place of the deployment of its name. The answer, when it starts: None.

    Raises NotNow, RefusedByRule, NotWritable, SubstrateError at the asker.
    """

    one: Described


@dataclass(frozen=True, slots=True)
class Deposit:
    """Asked: deploy this, of a deployment that this host doesn't run: the next one will. Whether it was another code.

    Raises as ``Redeploy``.
    """

    one: Described


@dataclass(frozen=True, slots=True)
class Installed:
    """The code is in the repository, or why it isn't."""

    name: Deployment
    failure: WaypostError | None


NewsOfActors: TypeAlias = StateChanged | ActorEnded | BusStarted | DeploymentStarted | OutboxStuck
RootMessage: TypeAlias = Begin | Installed | Rouse | Asked | NewsOfActors | Woken
