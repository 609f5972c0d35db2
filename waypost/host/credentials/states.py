"""What the keeper of credentials knows: of each handle how its last reading went, of each deployment what it was given.

Records only; ``waypost.host.credentials.logic`` moves between them. No repr of any of them shows a value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from actors.credentials import AssembleCredentials
from ipc.deliveries import CredentialsUpdated, SourcesUpdated
from ipc.secret import Secret
from waypost.acting import Ref
from waypost.host.answers.credentials import Delivered
from waypost.host.credentials.file import Configured
from waypost.host.credentials.providers import Failed
from waypost.model.ids import Deployment

# --- one credential ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Unread:
    """Nobody has wanted it yet."""


@dataclass(frozen=True, slots=True)
class Kept:
    """It was read. ``since``: Unix ms; ``warning``: what somebody should see to all the same."""

    value: Secret
    since: int
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Stale:
    """It was read once, and can't be since (Unix ms): what there was stays in use."""

    value: Secret
    since: int
    why: str


@dataclass(frozen=True, slots=True)
class Missing:
    """It couldn't be read, since (Unix ms)."""

    since: int
    why: str


Entry: TypeAlias = Unread | Kept | Stale | Missing


# --- what a reading is for -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Earnest:
    """To be kept."""

    handle: str


@dataclass(frozen=True, slots=True)
class Trial:
    """To be told to whoever tries it, and forgotten. ``token``: of the one who asked."""

    handle: str
    token: int


Purpose: TypeAlias = Earnest | Trial


# --- who waits for an answer ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trying:
    """Somebody tries all of them; ``found``: by handle, of one that could be read what to see to all the same."""

    token: int
    left: frozenset[str]
    found: Mapping[str, str | Failed] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Settled:
    """Nobody reloads."""


@dataclass(frozen=True, slots=True)
class Loading:
    """The file is being read."""

    token: int
    supervisors: Mapping[str, Ref]


@dataclass(frozen=True, slots=True)
class Rereading:
    """What is in use is being read anew; ``left``: by handle."""

    token: int
    supervisors: Mapping[str, Ref]
    left: frozenset[str]


@dataclass(frozen=True, slots=True)
class Delivering:
    """It is being delivered. ``left``: deployments by correlation; ``delivered``: as ``Reloaded`` says it."""

    token: int
    left: Mapping[int, str]
    delivered: tuple[Delivered, ...] = ()


Reloading: TypeAlias = Settled | Loading | Rereading | Delivering


# --- one deployment ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Client:
    """A deployment that has asked: for what, by whom, and what it was given last."""

    bindings: Mapping[str, tuple[str, ...]]
    supervisor: Ref | None
    dispatch: Ref | None = None
    credentials: CredentialsUpdated | None = None
    sources: SourcesUpdated | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeper:
    """Everything; ``last``: the last correlation, token or serial that was given out: none is ever used twice."""

    configured: Configured
    last: int = 0
    entries: Mapping[str, Entry] = field(default_factory=dict)
    clients: Mapping[Deployment, Client] = field(default_factory=dict)
    reading: Mapping[int, Purpose] = field(default_factory=dict)
    """Under way, by correlation."""
    abandoned: Mapping[int, str] = field(default_factory=dict)
    """Readings that nobody waits for any more, and that haven't ended: their handles, by correlation."""
    queued: tuple[Purpose, ...] = ()
    """To be read once there is room."""
    waiting: tuple[AssembleCredentials, ...] = ()
    """Wants what is being read."""
    refreshes: Mapping[int, str] = field(default_factory=dict)
    """By token of the wake-up: whose time it is then."""
    trying: tuple[Trying, ...] = ()
    reloading: Reloading = Settled()
    deadlines: Mapping[int, int] = field(default_factory=dict)
    """By token of the wake-up: whose patience (token of an asker) ends then."""
