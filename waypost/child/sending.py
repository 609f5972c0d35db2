"""One message out on one descriptor: what a child can do before it has loaded anything else, so as to say ``ready``."""

import os
from typing import Protocol

from ipc.messages import Message


class Sender(Protocol):
    """The sending end of either channel, `ipc.control.Sender` or `ipc.events.Sender`."""

    def seal(self, payload: object) -> bytes:
        """Make the next frame."""
        ...


def send(fd: int, sender: Sender, message: Message) -> None:
    """Seal and write, waiting for room: the host always reads. Raises OSError, IpcError."""
    rest = memoryview(sender.seal(message))
    while rest:
        rest = rest[os.write(fd, rest) :]
