"""The sinks of approvals: what is told to the SinkActor and by it, its states and effects (``sink_logic``). Records."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from actors.messages import Seen
from actors.watching import Asking, Sleeps
from substrate.messages import Approval, Outcome, ReadApprovals
from waypost.acting import Ref
from waypost.model.ids import CallId, Deployment, RunId


class Sink(Protocol):
    """Something that takes lines; told apart by identity."""

    def say(self, line: "Line") -> None:
        """Take a line, without waiting; when it has none left to write, the hub is told ``Ready``."""
        ...

    def end(self) -> None:
        """No more lines will come."""
        ...


# --- what it is told -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Connect:
    """A sink is there."""

    sink: Sink


@dataclass(frozen=True, slots=True)
class Ready:
    """A sink has written all that it was told, and can take more."""

    sink: Sink


@dataclass(frozen=True, slots=True)
class Disconnect:
    """A sink is gone."""

    sink: Sink


@dataclass(frozen=True, slots=True)
class HangUp:
    """The host ends: no sink is told anything more."""


SinkMessage: TypeAlias = Connect | Ready | Disconnect | HangUp | Asking | Sleeps | Seen | Outcome


# --- what a sink is told ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Announced:
    """An approval is open."""

    deployment: Deployment
    address: str
    approval: Approval


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """It is open no more: ``answered``, ``deadline``, ``abandoned`` by the code, the run has ``ended``, or ``gone``."""

    deployment: Deployment
    run: RunId
    call: CallId
    why: str


@dataclass(frozen=True, slots=True)
class Listed:
    """All that was open in a deployment when the sink came has been announced."""

    deployment: Deployment


@dataclass(frozen=True, slots=True)
class Unread:
    """What is open in a deployment can't be read, and why."""

    deployment: Deployment
    why: str


Line: TypeAlias = Announced | Withdrawn | Listed | Unread


# --- the state -------------------------------------------------------------------------------------------------------

Key: TypeAlias = tuple[RunId, CallId]


@dataclass(frozen=True, slots=True)
class View:
    """What one sink was told of one deployment."""

    told: frozenset[Key] = frozenset()
    """Announced and not withdrawn."""
    reading: bool = True
    after: RunId | None = None
    """Where the reading stands."""
    found: frozenset[Key] = frozenset()
    """Seen to be open since the reading began."""
    closed: frozenset[Key] = frozenset()
    """Seen to be closed since the reading began: a page that is on its way may still show it."""
    ended: frozenset[RunId] = frozenset()
    """Runs that have ended since then."""


@dataclass(frozen=True, slots=True)
class Peer:
    """One sink. ``room``: it has written all that it was told. ``asked``: correlation of the page that is awaited."""

    views: Mapping[Deployment, View]
    room: bool = True
    asked: int | None = None


@dataclass(frozen=True, slots=True)
class Hub:
    """The deployments that may be asked, and the sinks."""

    deployments: Mapping[Deployment, Asking | Sleeps] = field(default_factory=dict)
    peers: Mapping[Sink, Peer] = field(default_factory=dict)
    pages: Mapping[int, tuple[Sink, Deployment]] = field(default_factory=dict)
    counter: int = 0


@dataclass(frozen=True, slots=True)
class Over:
    """Nobody is told anything any more."""


State: TypeAlias = Hub | Over


@dataclass(frozen=True, slots=True)
class End:
    """Effect: end a sink."""

    sink: Sink


@dataclass(frozen=True, slots=True)
class Say:
    """Effect: tell a sink."""

    sink: Sink
    line: Line


@dataclass(frozen=True, slots=True)
class Inquire:
    """Effect: ask a deployment's repository, through its supervisor; the answer is an ``Outcome``.

    None: it sleeps, and is read from the disk.
    """

    deployment: Deployment
    supervisor: Ref | None
    correlation: int
    question: ReadApprovals
