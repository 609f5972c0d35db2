"""The states of a deployment's supervisor, and how each is described to people.

Records only; ``actors.logic.supervisor`` moves between them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from actors.describing import Exited
from actors.logic.supervisor_crashes import NONE, Crashes
from actors.messages import DeploymentSpec, ExitCounted, Role
from substrate.messages import Latch, Operation, Question, Ref
from waypost.model.ids import Generation
from waypost.model.limits import Limits

UNSUPERVISED = (Role.SUBSTRATE, Role.BROADCASTER, Role.DISPATCH, Role.SCHEDULER)
"""The crew without a child, in the order in which it is started; it is stopped the other way round."""
WHOLE = (*UNSUPERVISED, Role.CHILD)
HELD = (Role.SUBSTRATE, Role.BROADCASTER)
"""The crew of a deployment that is held."""


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
    exited: Exited | None = None
    """The last child that ended unasked."""


@dataclass(frozen=True, slots=True)
class Early:
    """A ``Forward`` that came before the repository was open; kept in order."""

    asker: Asker
    what: Operation | Question


# --- states --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Idle:
    """Not started."""

    books: Books
    early: tuple[Early, ...] = ()


@dataclass(frozen=True, slots=True)
class Opening:
    """The substrate recovers its repository."""

    books: Books
    opened: int
    """Correlation of the answer; and token of the wake-up, where the next try waits for space."""
    early: tuple[Early, ...] = ()
    reason: str = ""
    """Why it isn't open yet, where that is known."""


@dataclass(frozen=True, slots=True)
class Raising:
    """The next generation is being made durable, before a child of it may exist."""

    books: Books
    raised: int
    """Correlation of the answer."""


@dataclass(frozen=True, slots=True)
class Starting:
    """A child was launched and hasn't said hello."""

    books: Books
    deadline: int
    """Token of the wake-up."""


@dataclass(frozen=True, slots=True)
class Running:
    """The child is ready. ``broken``: why its code doesn't load."""

    books: Books
    pid: int
    since: float
    broken: str = ""


@dataclass(frozen=True, slots=True)
class Evicting:
    """The child has to go and will be followed by another one; waits for its exit.

    ``counted``: against whom that is, once dispatch has said so.
    """

    books: Books
    reason: str
    counted: ExitCounted | None = None


@dataclass(frozen=True, slots=True)
class Counting:
    """The child is gone, unasked. Dispatch is making durable against whom that counts; no other child before that."""

    books: Books
    reason: str
    life: float
    """Seconds from its launch to its end."""


@dataclass(frozen=True, slots=True)
class Dismissing:
    """The child has to go and no other may follow; waits for its exit."""

    books: Books
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class BackingOff:
    """The next child is a little way off. ``until``: Unix ms, for people."""

    books: Books
    wake: int
    until: int
    reason: str


@dataclass(frozen=True, slots=True)
class Latching:
    """Children end again and again; that there shall be no other one is being made durable.

    ``latched``: correlation of the answer; and token of the wake-up, where it couldn't be written and is tried again.
    """

    books: Books
    latched: int
    detail: str


@dataclass(frozen=True, slots=True)
class CrashLooping:
    """The repository says so, and that mail is accepted; no host starts a child until an operator resets it."""

    books: Books
    latch: Latch


@dataclass(frozen=True, slots=True)
class Resetting:
    """An operator has reset it; that is being made durable."""

    books: Books
    latch: Latch
    reset: int
    """Correlation of the answer."""


@dataclass(frozen=True, slots=True)
class Unmanned:
    """The repository is open and mail is accepted, but no child may run until the host is started again."""

    books: Books
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Held:
    """The repository is open and mail is accepted; nothing may leave and no child may run until an operator says so.

    ``why``: what held it, as ``state/deployment.json`` has it.
    """

    books: Books
    why: str


@dataclass(frozen=True, slots=True)
class Lifting:
    """An operator has said so; it is being made durable."""

    books: Books
    why: str
    lifted: int
    """Correlation of the answer."""


@dataclass(frozen=True, slots=True)
class Again:
    """Afterwards everything is built anew, from the log."""

    reason: str
    early: tuple[Early, ...] = ()


@dataclass(frozen=True, slots=True)
class Over:
    """Afterwards it is stopped, and these are answered."""

    askers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Lost:
    """Afterwards it is down."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Ending:
    """The crew is being stopped, youngest first: the first of ``left`` was asked to end."""

    books: Books
    left: tuple[Role, ...]
    then: Again | Over | Lost
    deadline: int
    """Token of the wake-up at which we stop waiting for it."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """Nothing runs, as was asked for."""

    books: Books


@dataclass(frozen=True, slots=True)
class Down:
    """Nothing runs, and it isn't tried again."""

    books: Books
    reason: str
    message: str


Manned: TypeAlias = Starting | Running | Evicting | Dismissing
Latched: TypeAlias = Latching | CrashLooping | Resetting
Open: TypeAlias = Raising | Manned | Counting | BackingOff | Latched | Unmanned | Held | Lifting
State: TypeAlias = Idle | Opening | Open | Ending | Stopped | Down


def crew_of(state: State) -> tuple[Role, ...]:
    """Whom the supervisor has started and not yet seen end, in the order of their start."""
    match state:
        case Idle() | Stopped() | Down():
            return ()
        case Opening():
            return (Role.SUBSTRATE,)
        case Raising() | Counting() | BackingOff() | Latching() | CrashLooping() | Resetting() | Unmanned():
            return UNSUPERVISED
        case Held() | Lifting():
            return HELD
        case Starting() | Running() | Evicting() | Dismissing():
            return WHOLE
        case Ending():
            return tuple(reversed(state.left))
        case _:
            assert_never(state)
