"""What reaches the workflow thread: frames, ends of step bodies, turns of ``def`` runs, progress.

One queue, one reader; whoever else has something to say puts a record into it.
"""

from collections.abc import Callable
from queue import SimpleQueue
from typing import TypeAlias

import msgspec

from ipc.messages import ToChild
from waypost.child.calls import Try
from waypost.child.effects import BodyEnd
from waypost.child.program import Turn
from waypost.model.ids import CallId, RunId


class Arrived(msgspec.Struct, frozen=True):
    """A frame of the host, verified."""

    message: ToChild


class BodyEnded(msgspec.Struct, frozen=True):
    """A step's body returned or raised."""

    run: RunId
    step: Try
    end: BodyEnd


class TurnEnded(msgspec.Struct, frozen=True):
    """A ``def`` run came to rest."""

    run: RunId
    turn: Turn


class Reported(msgspec.Struct, frozen=True):
    """A step's body has something to say to watchers."""

    run: RunId
    call: CallId
    text: str


class Wearied(msgspec.Struct, frozen=True):
    """A step's body wants a fresh process to follow this one."""

    reason: str


class Declined(msgspec.Struct, frozen=True):
    """What a run asked for holds a secret, so the host isn't asked; ``tell`` says that to the run."""

    run: RunId
    tell: Callable[[], None]


class ChannelClosed(msgspec.Struct, frozen=True):
    """Nothing more will come from the host. ``reason`` is empty where it simply closed."""

    reason: str


Note: TypeAlias = Arrived | BodyEnded | TurnEnded | Reported | Wearied | Declined | ChannelClosed
Mailbox: TypeAlias = SimpleQueue[Note]
