"""What a deployment's five actors say to each other: frozen records, one union per recipient.

Wishes are imperatives, facts are past. The substrate's own words are in ``substrate.messages``, the wire's in
``ipc.messages``; what the shell adds (Asked, Reply, Tell, ActorEnded) is in ``waypost.acting``.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

from actors import draining
from actors.credentials import AskAgain, Assembled, Barred, Deliver, NotAssembled
from actors.crew import Crew as Crew  # noqa: PLC0414 - whoever wants messages finds all of them here
from actors.crew import DeploymentSpec as DeploymentSpec  # noqa: PLC0414 - the same
from actors.crew import Peers as Peers  # noqa: PLC0414 - the same
from actors.crew import Role as Role  # noqa: PLC0414 - the same
from actors.describing import Description, ExitReason
from actors.exits import ExitCounted
from ipc.messages import RunLogCredit, ToChild
from substrate.effects import SpaceShort
from substrate.messages import Committed, Durable, Operation, Outcome, Question, Recorded, Ref, Snapshot
from waypost.acting import ActorEnded, Asked
from waypost.model.ids import CallId, Deployment, Generation, RunId

# --- supervisor ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Start:
    """Begin: open the repository, then bring up a child.

    ``line``: ``waits`` where mail has woken it; then none is taken up before ``GoAhead``; ``called``: that was said
    already, to one that has failed. ``again``: whether its host has had it open, or asleep, before; then it waits for
    space on a full disk.
    """

    line: draining.Line = ""
    again: bool = False


@dataclass(frozen=True, slots=True)
class Stop:
    """End: shutdown frame, SIGTERM, grace, SIGKILL; runs stay live. Asked: answered when everything has ended.

    ``patience``: seconds that runs which execute have to come to rest before that; nothing new is begun meanwhile.
    """

    patience: float = 0.0


@dataclass(frozen=True, slots=True)
class Forward:
    """Hand an operation or a question to the substrate. Asked: the answer is its ``Result``.

    Told, by an actor, which never asks: ``Outcome(correlation, result)`` goes to ``reply_to``.
    """

    what: Operation | Question
    reply_to: Ref | None = None
    correlation: int = 0


@dataclass(frozen=True, slots=True)
class Describe:
    """Asked: the answer is ``Description``."""


@dataclass(frozen=True, slots=True)
class ChildReady:
    """The child said hello, signed. ``error``: its workflow file doesn't load, and why; then ``code`` is empty."""

    generation: Generation
    pid: int
    code: str
    error: str


@dataclass(frozen=True, slots=True)
class ChildExited:
    """The child is gone, with its process group; once in a generation."""

    generation: Generation
    reason: ExitReason


@dataclass(frozen=True, slots=True)
class ChannelViolated:
    """The child broke the protocol; its end follows as ChildExited."""

    generation: Generation
    reason: str


@dataclass(frozen=True, slots=True)
class WatchRun:
    """Pass a watcher on to the broadcaster (and again to a new one when that was replaced).

    ``run``: None for all of them, or ``actors.watching.APPROVALS``.
    """

    run: RunId | None
    watcher: Ref


@dataclass(frozen=True, slots=True)
class Woken:
    """A wake-up that an actor asked the clock for; a token that no longer fits is ignored."""

    token: int


NewsOfChild: TypeAlias = ChildReady | ChildExited | ChannelViolated | draining.RecycleRequested | draining.ChildWeighed
NewsOfDispatch: TypeAlias = ExitCounted | draining.StillExecuting | draining.Rested | draining.TookUp
"""What its states are told of; ``Barred`` changes none of them."""
NewsOfHost: TypeAlias = draining.GiveWay | draining.Depart | draining.GoAhead
Wish: TypeAlias = Start | Stop | Forward | Deliver | WatchRun
News: TypeAlias = NewsOfChild | NewsOfDispatch | NewsOfHost | Barred | SpaceShort
SupervisorMessage: TypeAlias = Wish | News | Asked | Woken | Outcome | ActorEnded
Begun: TypeAlias = draining.Recycle
"""Asked of a supervisor; answered once it has begun, or refused."""


# --- child process -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Launch:
    """Spawn the child. First message of every ChildProcessActor."""


@dataclass(frozen=True, slots=True)
class Send:
    """Send this to the child, signed, in the order of the mailbox; ``more`` follows it."""

    payload: ToChild
    more: tuple[ToChild, ...] = ()

    @property
    def payloads(self) -> tuple[ToChild, ...]:
        """All of it, in order."""
        return (self.payload, *self.more)


@dataclass(frozen=True, slots=True)
class Terminate:
    """Down the ladder: shutdown frame, SIGTERM, grace, SIGKILL to the whole group."""

    reason: str


@dataclass(frozen=True, slots=True)
class Spawned:
    """The process exists."""

    pid: int


@dataclass(frozen=True, slots=True)
class SpawnFailed:
    """The process couldn't be made."""

    reason: str


@dataclass(frozen=True, slots=True)
class BytesCame:
    """Bytes from the child. ``channel``: ``control``, ``events``, ``stdout`` or ``stderr``; empty at its end."""

    channel: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ProcessEnded:
    """The pidfd became readable and the process was reaped, its group killed before.

    ``status`` as of waitid: exit code, or signal number; None when somebody else took it (SIGCHLD is ignored).
    """

    status: int | None
    signalled: bool
    starved: bool = False
    """Whether the kernel says that, since the spawn, it has ended somebody of the child's group for want of memory."""


@dataclass(frozen=True, slots=True)
class Stalled:
    """More than the limit lies unsent because the child doesn't read."""

    unsent: int


@dataclass(frozen=True, slots=True)
class Written:
    """A frame whose departure was to be reported has left for the child."""


NewsOfProcess: TypeAlias = Spawned | SpawnFailed | BytesCame | ProcessEnded | Stalled | Written
ChildProcessMessage: TypeAlias = Launch | Send | Terminate | draining.Weigh | Peers | NewsOfProcess | Woken | Outcome


# --- dispatch ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GenerationUp:
    """A child is ready and may be given runs. ``broken``: why its code doesn't load; then runs are paused instead.

    ``takes``: which mail it is to take up.
    """

    generation: Generation
    child: Ref
    broken: str = ""
    takes: draining.Takes = "all"


@dataclass(frozen=True, slots=True)
class GenerationDown:
    """The child is gone. ``unexpected``: an exit that counts against the runs it was driving, and ``reason`` says why.

    An unexpected one is answered with ``ExitCounted``.
    """

    generation: Generation
    unexpected: bool
    reason: str = ""


Stream: TypeAlias = Snapshot | Committed | Durable
Ending: TypeAlias = draining.Quiesce | draining.Close | draining.Doze
ToDispatch: TypeAlias = GenerationUp | GenerationDown | draining.TakeUpMail | Ending
OfKeeper: TypeAlias = Assembled | NotAssembled | AskAgain
DispatchMessage: TypeAlias = Stream | ToDispatch | RunLogCredit | Outcome | Woken | OfKeeper


# --- scheduler -----------------------------------------------------------------------------------------------------

SchedulerMessage: TypeAlias = Stream | Woken | Outcome


# --- terminal broadcaster ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Watch:
    """Tell ``watcher`` of every event of this run (None: of all runs), once, in order, from now on."""

    run: RunId | None
    watcher: Ref


@dataclass(frozen=True, slots=True)
class Unwatch:
    """No more of it."""

    run: RunId | None
    watcher: Ref


@dataclass(frozen=True, slots=True)
class ProgressCame:
    """A step says how far it is; held back until ``seq`` of its run is durable, dropped when the run has ended."""

    run: RunId
    call: CallId
    seq: int
    text: str


BroadcasterMessage: TypeAlias = Stream | Watch | Unwatch | ProgressCame


@dataclass(frozen=True, slots=True)
class Kin:
    """A child run, and the name of its function."""

    child: RunId
    workflow: str


@dataclass(frozen=True, slots=True)
class Seen:
    """To a watcher: a durable event. After a terminal one, nothing more comes of this run.

    ``child``: the child run that it is about, which may have been spawned before anybody was told of events.
    """

    deployment: Deployment
    run: RunId
    recorded: Recorded
    child: Kin | None = None


@dataclass(frozen=True, slots=True)
class SeenProgress:
    """To a watcher: progress of a step."""

    deployment: Deployment
    run: RunId
    call: CallId
    text: str


@dataclass(frozen=True, slots=True)
class SeenQueued:
    """To a watcher of all runs: a mail was accepted (durably) for this run."""

    deployment: Deployment
    run: RunId
    arrival: int
    sender: str
    subject: str


@dataclass(frozen=True, slots=True)
class StateChanged:
    """To the host's sink: a deployment's state has changed."""

    description: Description
