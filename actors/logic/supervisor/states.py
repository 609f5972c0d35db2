"""The states of a deployment's supervisor, and how each is described to people.

Records only; ``actors.logic.supervisor.decision`` moves between them.
"""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, assert_never

from actors.draining import Executing
from actors.exits import ExitCounted
from actors.logic.supervisor.books import Books, Early, Goal, Leaving, Renewing
from actors.logic.supervisor.sleep import Asleep, Audit, Auditing, Dormant, Dozing, LettingGo, Sleepy
from actors.messages import ChildReady, Role
from substrate.messages import Latch
from waypost.model.ids import Generation

UNSUPERVISED = (Role.SUBSTRATE, Role.BROADCASTER, Role.DISPATCH, Role.SCHEDULER)
"""The crew without a child, in the order in which it is started; it is stopped the other way round."""
WHOLE = (*UNSUPERVISED, Role.CHILD)
HELD = (Role.SUBSTRATE, Role.BROADCASTER)
"""The crew of a deployment that is held."""


# --- states --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Idle:
    """Not started."""

    books: Books
    early: tuple[Early, ...] = ()


Lack: TypeAlias = Literal["full", "too-many-files"]
"""What ends by itself: the substrate's codes for it."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The substrate recovers its repository."""

    books: Books
    opened: int
    """Correlation of the answer; and token of the wake-up, where the next try waits for space."""
    early: tuple[Early, ...] = ()
    reason: str = ""
    """Why it isn't open yet, where that is known."""
    lacks: Lack = "full"
    """What that is for want of."""


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
    """The child is ready. ``broken``: why its code doesn't load. ``tick``: token of the next look at its bounds.

    ``look``: token of the next look at whether there is anything to do, or correlation of the answer.
    """

    books: Books
    pid: int
    since: float
    broken: str = ""
    tick: int | None = None
    look: int | None = None


@dataclass(frozen=True, slots=True)
class Draining:
    """Nothing is begun any more; ``executing`` (and ``more``) have still to come to rest. None: not known yet.

    ``limit``: token of the wake-up at which it is over all the same.
    """

    books: Books
    pid: int
    since: float
    goal: Goal
    limit: int | None = None
    executing: tuple[Executing, ...] | None = None
    more: int = 0
    over: int | None = field(default=None, compare=False)
    """When that wake-up is, in Unix ms, for people."""


@dataclass(frozen=True, slots=True)
class Retiring:
    """No run begins any more; it waits until all have ended.

    ``asked``: correlation of the answer that says who is left, or token of the wake-up at which it is asked for.
    ``counted``: up to when the clock has counted, in monotonic seconds; None while it stands still.
    ``halted``: somebody has stopped the child, in the middle of what it would count. The others are as of ``Running``.
    """

    books: Books
    pid: int
    since: float
    asked: int
    tick: int | None = None
    counted: float | None = None
    spent: float = 0.0
    """Seconds in which steps executed that may be cut short, since the drain began."""
    halted: bool = False
    executing: tuple[Executing, ...] = ()
    more: int = 0
    resting: int = 0
    broken: str = ""


@dataclass(frozen=True, slots=True)
class Shelving:
    """It is drained; that it is held is being made durable, beside whoever is left of the crew.

    ``shelved``: correlation of the answer; and token of the wake-up, where it couldn't be written and is tried again.
    """

    books: Books
    shelved: int
    crew: tuple[Role, ...]


@dataclass(frozen=True, slots=True)
class Superseding:
    """It is drained; that the next generation begins is being made durable, and the old child is still there.

    ``raised``: correlation of the answer.
    """

    books: Books
    goal: Renewing
    raised: int


@dataclass(frozen=True, slots=True)
class Bereft:
    """As Superseding, and the old child is gone already."""

    books: Books
    goal: Renewing
    raised: int


@dataclass(frozen=True, slots=True)
class Replacing:
    """The ``next`` generation has begun; the child of the one before has to go and is waited for."""

    books: Books
    goal: Renewing
    next: Generation


@dataclass(frozen=True, slots=True)
class Succeeding:
    """The child that follows was launched and hasn't said hello. ``deadline``: token of the wake-up."""

    books: Books
    goal: Renewing
    deadline: int


@dataclass(frozen=True, slots=True)
class Evicting:
    """The child has to go and will be followed by another one; waits for its exit.

    ``counted``: against whom that is, once dispatch has said so. ``goal``: the stop that follows, if one does.
    """

    books: Books
    reason: str
    counted: ExitCounted | None = None
    goal: Leaving | None = None


@dataclass(frozen=True, slots=True)
class Counting:
    """The child is gone, unasked. Dispatch is making durable against whom that counts; no other child before that."""

    books: Books
    reason: str
    life: float
    """Seconds from its launch to its end."""
    goal: Leaving | None = None
    """The stop that follows, if one does."""


@dataclass(frozen=True, slots=True)
class Dismissing:
    """The child has to go and no other may follow; waits for its exit."""

    books: Books
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class BackingOff:
    """The next child is a little way off. ``until``: Unix ms, for people.

    Its generation is made durable meanwhile: ``raised`` is the correlation of the answer, None where that can't be
    tried before the pause is over; ``next``: once it has begun. ``launch``: token of the wake-up at which the child is
    launched, a little before the end of the pause.
    """

    books: Books
    wake: int
    until: int
    reason: str
    raised: int | None = None
    next: Generation | None = None
    launch: int | None = None


@dataclass(frozen=True, slots=True)
class Preparing:
    """The pause is nearly over: the child was launched, and is given nothing before it is. ``hello``: once it is ready.

    ``wake``: token of the wake-up at the end of the pause; the rest as in BackingOff, and Starting.
    """

    books: Books
    deadline: int
    wake: int
    until: int
    reason: str
    hello: ChildReady | None = None


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
    """Afterwards everything is built anew, from the log. ``word``: what it is for people meanwhile."""

    reason: str
    early: tuple[Early, ...] = ()
    word: str = "starting"


@dataclass(frozen=True, slots=True)
class Over:
    """Afterwards it is stopped, and these are answered. ``reason``: why, where nobody wanted it."""

    askers: tuple[int, ...]
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Lost:
    """Afterwards it is down."""

    reason: str
    message: str


Then: TypeAlias = Again | Over | Lost | Audit | Asleep


@dataclass(frozen=True, slots=True)
class Ending:
    """The crew is being stopped, youngest first: the first of ``left`` was asked to end."""

    books: Books
    left: tuple[Role, ...]
    then: Then
    deadline: int
    """Token of the wake-up at which we stop waiting for it."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """Nothing runs: as was asked for, or for this ``reason``."""

    books: Books
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Down:
    """Nothing runs, and it isn't tried again."""

    books: Books
    reason: str
    message: str


Manned: TypeAlias = Preparing | Starting | Running | Evicting | Dismissing
Planned: TypeAlias = Draining | Retiring | Shelving | Superseding | Bereft | Replacing | Succeeding
Latched: TypeAlias = Latching | CrashLooping | Resetting
Open: TypeAlias = Raising | Manned | Planned | Counting | BackingOff | Latched | Unmanned | Held | Lifting
State: TypeAlias = Idle | Opening | Open | Sleepy | Dormant | Ending | Stopped | Down


def crew_of(state: State) -> tuple[Role, ...]:  # noqa: PLR0911 - one return per crew
    """Whom the supervisor has started and not yet seen end, in the order of their start."""
    match state:
        case Idle() | Stopped() | Down() | Dormant():
            return ()
        case Opening() | Auditing():
            return (Role.SUBSTRATE,)
        case Raising() | Counting() | BackingOff() | Latching() | CrashLooping() | Resetting() | Unmanned() | Bereft():
            return UNSUPERVISED
        case Shelving():
            return state.crew
        case Held() | Lifting():
            return HELD
        case (
            Preparing()
            | Starting()
            | Running()
            | Evicting()
            | Dismissing()
            | Draining()
            | Retiring()
            | Superseding()
            | Replacing()
            | Succeeding()
            | Dozing()
            | LettingGo()
        ):
            return WHOLE
        case Ending():
            return tuple(reversed(state.left))
        case _:
            assert_never(state)
