"""One child's descriptors as its actor has them, and what is posted about them to the I/O thread (``wires``)."""

import signal
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from ipc.spawn import Spawned
from waypost.acting import Ref

AHEAD = 512 * 1024
"""What may be on its way to a child's actor, for each channel, before that channel is left alone for a while."""
PER_READ = 1024
"""What a message costs beside its bytes: a child that writes single bytes fills the mailbox no faster."""
SETTLE = AHEAD // 8
"""So much is dealt with before the I/O thread is told: not every small frame wakes it twice."""


@dataclass(frozen=True, slots=True)
class Adopt:
    """Read, write and watch a new child's descriptors."""

    wire: "ChildWire"


@dataclass(frozen=True, slots=True)
class Send:
    """Write to the control channel, in order."""

    wire: "ChildWire"
    frame: bytes = field(repr=False)
    report: bool


@dataclass(frozen=True, slots=True)
class Signal:
    """Signal the process, if it hasn't been reaped."""

    wire: "ChildWire"
    number: signal.Signals


@dataclass(frozen=True, slots=True)
class Taken:
    """So much of a channel has been dealt with: more of it may be read."""

    wire: "ChildWire"
    channel: str
    size: int


@dataclass(frozen=True, slots=True)
class Release:
    """The owner is gone."""

    wire: "ChildWire"


@dataclass(frozen=True, slots=True)
class Close:
    """Kill and reap all children, then end."""


Command: TypeAlias = Adopt | Send | Signal | Taken | Release | Close


class ChildWire:
    """One child's descriptors. Its methods post; its public fields are the I/O thread's alone."""

    def __init__(self, post: Callable[["Command"], None], spawned: Spawned, owner: Ref) -> None:
        self._post = post
        self.spawned = spawned
        self.owner: Ref | None = owner
        self.open = {
            "control": spawned.control,
            "events": spawned.events,
            "stdout": spawned.stdout,
            "stderr": spawned.stderr,
        }
        """Channels that haven't come to their end, with their descriptors."""
        self.ahead = dict.fromkeys(self.open, 0)
        self._owed = dict.fromkeys(self.open, 0)
        self.unsent: deque[tuple[memoryview, bool]] = deque()
        self.unsent_bytes = 0

    def send(self, frame: bytes, *, report: bool) -> None:
        """Write to the control channel; with ``report`` the owner is told ``Written`` once all of it has left."""
        self._post(Send(self, frame, report))

    def signal(self, number: signal.Signals) -> None:
        """Signal the process, SIGKILL its whole group; nothing happens when it has been reaped."""
        self._post(Signal(self, number))

    def taken(self, channel: str, size: int) -> None:
        """One ``BytesCame`` of this size has been dealt with; for the owner alone."""
        owed = self._owed[channel] + size + PER_READ
        self._owed[channel] = 0 if owed >= SETTLE else owed
        if owed >= SETTLE:
            self._post(Taken(self, channel, owed))

    def release(self) -> None:
        """The owner is gone: kill what still runs, reap it, close everything."""
        self._post(Release(self))
