"""The states that a child goes through, what its decision hears beside the mailbox's messages, and its effects.

Records only; ``actors.logic.child.decision`` moves between them.
"""

import signal
from dataclasses import dataclass, field
from typing import TypeAlias

from actors.draining import Weigh
from actors.logic.child.frames import Unfinished, Watch
from actors.logic.child.outbox import Outbox
from actors.logic.child.pace import Pace
from actors.logic.child.requests import Requests
from actors.messages import (
    BytesCame,
    Launch,
    Peers,
    ProcessEnded,
    ProgressCame,
    Send,
    Spawned,
    SpawnFailed,
    Stalled,
    Terminate,
    Woken,
    Written,
)
from ipc.messages import FromChild, Progress, RunLogCredit
from substrate.messages import Outcome
from waypost.model.ids import Generation
from waypost.model.limits import Limits

# --- what the ears make of bytes -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Heard:
    """An authentic message of the child."""

    message: FromChild | Progress


@dataclass(frozen=True, slots=True)
class Broke:
    """A frame failed a check; nothing more is listened to."""

    reason: str


@dataclass(frozen=True, slots=True)
class HungUp:
    """The child closed its control channel, or ended."""


Message: TypeAlias = (
    Launch
    | Send
    | Terminate
    | Weigh
    | Peers
    | Spawned
    | SpawnFailed
    | BytesCame
    | Heard
    | Broke
    | HungUp
    | Unfinished
    | ProcessEnded
    | Stalled
    | Written
    | Woken
    | Outcome
)


# --- states --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class New:
    """Nothing has been spawned yet."""


@dataclass(frozen=True, slots=True)
class Launching:
    """The spawn's outcome is on its way."""


@dataclass(frozen=True, slots=True)
class Doomed:
    """As Launching, but the child isn't wanted any more."""


@dataclass(frozen=True, slots=True)
class Greeting:
    """The process runs and hasn't said hello."""

    pid: int
    tail: bytes = field(default=b"", repr=False)
    watch: Watch | None = None


@dataclass(frozen=True, slots=True)
class Talking:
    """The process is served."""

    pid: int
    tail: bytes = field(default=b"", repr=False)
    requests: Requests = field(default_factory=Requests)
    outbox: Outbox = field(default_factory=Outbox)
    pace: Pace = field(default_factory=Pace)
    watch: Watch | None = None


@dataclass(frozen=True, slots=True)
class Leaving:
    """Asked to leave, or alone with a closed channel; killed when patience ends. What it still says is dropped.

    ``fault``: why, where nobody asked it to.
    """

    pid: int
    tail: bytes = field(default=b"", repr=False)
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Killed:
    """SIGKILL is out. For the exit's reason, ``why``: where the host was the cause; ``fault``: where the child was."""

    pid: int
    tail: bytes = field(default=b"", repr=False)
    why: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Gone:
    """Ended and reported."""


Alive: TypeAlias = Greeting | Talking | Leaving | Killed
State: TypeAlias = New | Launching | Doomed | Alive | Gone


# --- effects beside Transmit, Ask, ToSupervisor, WakeAt and Halt ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spawn:
    """Make keys and a process; the outcome comes back as Spawned or SpawnFailed."""


@dataclass(frozen=True, slots=True)
class Signal:
    """Signal the process; SIGKILL goes to its whole group."""

    number: signal.Signals


@dataclass(frozen=True, slots=True)
class Weighing:
    """Tell the supervisor whether the process group of ``pid`` is stopped, and how much it has, if that is asked."""

    pid: int
    memory: bool = True


@dataclass(frozen=True, slots=True)
class Log:
    """Append to the child's log file."""

    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ToDispatch:
    """Tell the DispatchActor."""

    message: RunLogCredit


@dataclass(frozen=True, slots=True)
class ToBroadcaster:
    """Tell the TerminalBroadcasterActor."""

    message: ProgressCame


@dataclass(frozen=True, slots=True)
class Meet:
    """From now on these are the peers."""

    peers: Peers


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What doesn't change in the life of a child."""

    generation: Generation
    limits: Limits
