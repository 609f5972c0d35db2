"""Both channels, from this child's end: frames out, requests and their answers, frames in by a thread of its own.

Everything is sent by the workflow thread, so that the numbers on the frames follow the order of its decisions. At most
``WINDOW`` requests are under way; further ones wait here and get their number when they leave.
"""

import os
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from msgspec import UNSET

from ipc import control, events
from ipc.errors import IpcError, PeerError
from ipc.frames import FrameReader
from ipc.messages import (
    AppendResponse,
    BlobChunk,
    BlobStored,
    CancelResult,
    FromHost,
    Message,
    OutboundResult,
    PauseResult,
    SpawnResult,
    single,
)
from waypost.child.errors import HostBroke
from waypost.child.mailbox import Arrived, ChannelClosed, Mailbox
from waypost.child.sending import send

WINDOW = 200
READ = 256 * 1024

Said: TypeAlias = AppendResponse | BlobStored | OutboundResult | PauseResult | CancelResult | SpawnResult
Answer: TypeAlias = Said | bytes
"""Bytes: the whole of a blob."""
Make: TypeAlias = Callable[[int], tuple[Message, ...]]
Heard: TypeAlias = Callable[[Answer], None]


class _UnderWay:
    def __init__(self, heard: Heard) -> None:
        self.heard = heard
        self.parts = bytearray()


class Wire:
    """The way to the host; for the workflow thread alone."""

    def __init__(
        self, control_fd: int, events_fd: int, *, control_sender: control.Sender, events_sender: events.Sender
    ) -> None:
        self._control_fd = control_fd
        self._events_fd = events_fd
        self._control = control_sender
        self._events = events_sender
        self._last = 0
        self._under_way: dict[int, _UnderWay] = {}
        self._waiting: deque[tuple[Make, Heard]] = deque()

    def send(self, message: Message) -> None:
        """Send a message on the control channel; waits for room, as the host always reads. Raises OSError, IpcError."""
        send(self._control_fd, self._control, message)

    def report(self, message: Message) -> None:
        """Send a message on the events channel. Raises OSError, IpcError."""
        send(self._events_fd, self._events, message)

    def ask(self, make: Make, heard: Heard) -> None:
        """Send a request, made with its number, now or when there is room; ``heard`` is called with its answer."""
        self._waiting.append((make, heard))
        self._let_out()

    def answered(self, message: Said | BlobChunk) -> None:
        """Hand an answer to whoever asked. Raises HostBroke for an answer to nothing, or parts out of order."""
        request = self._under_way.get(message.id)
        if request is None:
            raise HostBroke(f"the host answers request {message.id}, which isn't under way")
        answer: Answer
        if isinstance(message, BlobChunk):
            if message.offset != len(request.parts):
                raise HostBroke(f"a part of a blob at {message.offset} follows {len(request.parts)} bytes")
            request.parts += message.data
            if len(request.parts) < message.size:
                return
            answer = bytes(request.parts)
        else:
            answer = message
        del self._under_way[message.id]
        request.heard(answer)
        self._let_out()

    def _let_out(self) -> None:
        while self._waiting and len(self._under_way) < WINDOW:
            make, heard = self._waiting.popleft()
            self._last += 1
            self._under_way[self._last] = _UnderWay(heard)
            for message in make(self._last):
                self.send(message)


def listen(fd: int, receiver: control.Receiver[FromHost], mailbox: Mailbox) -> None:
    """Read frames until the channel ends, and put what they say into the mailbox. The body of the reader's thread."""
    reader = FrameReader("control down")
    try:
        while data := os.read(fd, READ):
            for body in reader.feed(data):
                for message in single(receiver.open(body)):
                    mailbox.put(Arrived(message))
        reader.finish()
    except PeerError as broken:
        mailbox.put(ChannelClosed(f"{broken}"))
    except (OSError, IpcError) as failure:
        mailbox.put(ChannelClosed(f"the control channel can't be read: {failure}"))
    else:
        why = "nothing comes from the host any more: it is gone, or the workflow's code has shut it"
        mailbox.put(ChannelClosed(why))


def optional(text: object) -> str | None:
    """A field that may be unset, as text or None."""
    return None if text is UNSET else str(text)
