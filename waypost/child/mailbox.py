"""What reaches the workflow thread: frames, ends of step bodies, turns of ``def`` runs, progress.

One queue, one reader; whoever else has something to say puts a record into it.
"""

from dataclasses import dataclass
from queue import SimpleQueue
from typing import TypeAlias

from ipc.messages import ToChild
from waypost.child.calls import Try
from waypost.child.effects import BodyEnd
from waypost.child.program import Turn
from waypost.model.ids import CallId, RunId


@dataclass(frozen=True, slots=True)
class Arrived:
    """A frame of the host, verified."""

    message: ToChild


@dataclass(frozen=True, slots=True)
class BodyEnded:
    """A step's body returned or raised."""

    run: RunId
    step: Try
    end: BodyEnd


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """A ``def`` run came to rest."""

    run: RunId
    turn: Turn


@dataclass(frozen=True, slots=True)
class Reported:
    """A step's body has something to say to watchers."""

    run: RunId
    call: CallId
    text: str


@dataclass(frozen=True, slots=True)
class ChannelClosed:
    """Nothing more will come from the host. ``reason`` is empty where it simply closed."""

    reason: str


Note: TypeAlias = Arrived | BodyEnded | TurnEnded | Reported | ChannelClosed
Mailbox: TypeAlias = SimpleQueue[Note]
