"""What every state of a deployment's supervisor keeps, and what a drain is for.

Records only; the states are in ``supervisor_states``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from actors.credentials import Barred
from actors.describing import Exited
from actors.draining import Line, Origin, Renewed
from actors.logic.supervisor.crashes import NONE, Crashes
from actors.messages import DeploymentSpec
from ipc.deliveries import CredentialsUpdated, SourcesUpdated
from substrate.messages import Drain, Operation, Question, Ref
from waypost.model.ids import Generation
from waypost.model.limits import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What doesn't change in the life of a supervisor."""

    spec: DeploymentSpec
    limits: Limits


# --- what every state keeps ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Told:
    """Somebody who told us a ``Forward`` and wants an ``Outcome``."""

    reply_to: Ref
    correlation: int


@dataclass(frozen=True, slots=True)
class Unheard:
    """Somebody who told us a ``Forward`` and wants nothing."""


Asker: TypeAlias = int | Told | Unheard
"""An int is the token of an ``Asked``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """What outlives a change of state."""

    last: int = 0
    """The last correlation, or wake-up's token, that was given out: none is ever used twice."""
    incarnation: int = 0
    """Of the crew."""
    again: bool = False
    """Whether it was open, or asleep, before this supervisor was there."""
    broadcaster: int = 0
    """Of the broadcaster, which is also replaced alone."""
    generation: Generation = Generation(0)  # noqa: RUF009 - NewType is the identity
    asked: Mapping[int, Asker] = field(default_factory=dict)
    """Forwarded and not answered yet, by correlation."""
    faults: tuple[float, ...] = ()
    """When actors failed lately, in monotonic seconds."""
    disk_faults: int = 0
    """How often the disk has failed the repository's writer, in this supervisor's life."""
    crashes: Crashes = NONE
    """Of children, since the last stable time."""
    raised: int = 0
    """The incarnation of the crew that has begun a generation last."""
    launched: float = 0.0
    """When the newest child was launched, in monotonic seconds."""
    readied: float = field(default=0.0, compare=False)
    """How many seconds the last one took to be ready that was."""
    exited: Exited | None = None
    """The last child that ended unasked."""
    renewed: Renewed | None = None
    """How the newest child came to follow another one."""
    drain: Drain | None = None
    """Whether its repository says that it is to come to rest, whatever happens to its children meanwhile."""
    watching: tuple[int, ...] = ()
    """Who is to be told of the next change."""
    entered: int = field(default=0, compare=False)
    """When it came into the state that it is in, in Unix ms; told to people, and nothing is decided by it."""
    held: str = field(default="", compare=False)
    """Since when the deployment is held (ISO 8601), as far as its repository says so; the same."""
    pressed: bool = False
    """Whether others wait for its place, so that it is let go as soon as there is nothing to do."""
    line: Line = ""
    """Where it stands in the line of those that mail has woken (``supervisor_line``)."""
    credentials: CredentialsUpdated | None = None
    """What was delivered last, for the next child, too; its repr shows no value."""
    sources: SourcesUpdated | None = None
    """The same of the model sources."""
    scarce: str = ""
    """Why its disk takes no new mail, in words; empty as a rule."""
    barred: Barred | None = None
    """Why no run is given to the child that is there, or begins there but to fail; None as a rule."""

    def numbered(self) -> "Books":
        """The same with one more number given out, ``last``: a correlation, or a wake-up's token."""
        return replace(self, last=self.last + 1)

    def asked_by(self, asker: Asker) -> "Books":
        """The same with somebody's question to the repository under way, whose correlation is ``last``."""
        return replace(self, last=self.last + 1, asked={**self.asked, self.last + 1: asker})


@dataclass(frozen=True, slots=True)
class Early:
    """A ``Forward`` that came before the repository was open; kept in order."""

    asker: Asker
    what: Operation | Question


# --- what a drain is for -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Renewing:
    """A fresh process."""

    origin: Origin
    reason: str


@dataclass(frozen=True, slots=True)
class Resting:
    """The deployment is held, as an operator wants it: its repository says who (``Books.drain``)."""


@dataclass(frozen=True, slots=True)
class Leaving:
    """It is stopped, and these are answered."""

    askers: tuple[int, ...]


Goal: TypeAlias = Renewing | Resting | Leaving
