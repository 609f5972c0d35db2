"""The mail bus's states and effects: what its decision (``bus_logic``) is about. Records only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from substrate.messages import Enqueue
from waypost.acting import Asked, Ref
from waypost.host.mail.spool import Spooled
from waypost.host.messages import Route
from waypost.model.ids import Deployment
from waypost.model.limits import Limits

# --- effects -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hand:
    """Have a mail enqueued; the Outcome has this correlation."""

    supervisor: Ref
    what: Enqueue
    correlation: int


@dataclass(frozen=True, slots=True)
class Wake:
    """Have a deployment started that has no supervisor now; ``Reroute`` follows."""

    name: Deployment


@dataclass(frozen=True, slots=True)
class GiveBack:
    """Too much waits for the same deployment already: a withheld Outcome with this correlation follows."""

    correlation: int


@dataclass(frozen=True, slots=True)
class Shelve:
    """Put an outgoing mail into the Maildir; ``Shelved`` follows."""

    correlation: int
    key: str
    message: bytes = field(repr=False)
    again: bool


@dataclass(frozen=True, slots=True)
class LookIntoSpools:
    """Read what lies in the spools of these deployments; ``SpoolFound`` follows."""

    names: tuple[Deployment, ...]


@dataclass(frozen=True, slots=True)
class Discard:
    """The mail is durably enqueued: its file may go."""

    mail: Spooled


@dataclass(frozen=True, slots=True)
class SetAside:
    """The mail will never be enqueued: keep it with the reason."""

    mail: Spooled
    reason: str


@dataclass(frozen=True, slots=True)
class Complain:
    """Have the log say what could not be read."""

    fault: str


# --- state ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AtTheDoor:
    """Somebody waits for the answer."""

    token: int
    route: Route


@dataclass(frozen=True, slots=True)
class FromSpool:
    """A spooled mail is being enqueued."""

    mail: Spooled
    route: Route


@dataclass(frozen=True, slots=True)
class Leg:
    """A part of an outgoing mail's way: into one local deployment, or (no route) into the Maildir."""

    letter: int
    route: Route | None


Open: TypeAlias = AtTheDoor | FromSpool | Leg


@dataclass(frozen=True, slots=True)
class Letter:
    """An outgoing mail, until all of its legs are answered."""

    courier: Ref
    ordinal: int
    legs: int
    failures: tuple[str, ...] = ()
    final: bool = False
    blocked: Deployment | None = None
    """The first deployment that didn't take it."""


@dataclass(frozen=True, slots=True)
class Unrouted:
    """No address is known yet; who knocks waits a moment."""

    limits: Limits
    early: tuple[Asked, ...] = ()


@dataclass(frozen=True, slots=True)
class Bus:
    """``open`` by correlation; ``letters`` by a number of their own. A spool is looked into again when it is quiet."""

    limits: Limits
    routes: Mapping[str, Route] = field(default_factory=dict)
    open: Mapping[int, Open] = field(default_factory=dict)
    letters: Mapping[int, Letter] = field(default_factory=dict)
    issued: int = 0
    kept: Mapping[Deployment, tuple[tuple[int, Enqueue], ...]] = field(default_factory=dict)
    """What waits for deployments that were woken, in order, by correlation."""
    faults: frozenset[str] = frozenset()
    """What could not be read at the last look into the spools: said once, and again only when it comes back."""


@dataclass(frozen=True, slots=True)
class Looking:
    """The first look into the spools is under way; who knocks waits for it, as what lies there was there before."""

    bus: Bus
    early: tuple[Asked, ...]


State: TypeAlias = Unrouted | Looking | Bus
