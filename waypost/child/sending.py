"""One message out on one descriptor: what a child can do before it has loaded anything else, so as to say ``ready``."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipc import control, events
    from ipc.ready import Message


def send(fd: int, sender: "control.Sender | events.Sender", message: "Message") -> None:
    """Seal and write, waiting for room: the host always reads. Raises OSError, IpcError."""
    rest = memoryview(sender.seal(message))
    while rest:
        rest = rest[os.write(fd, rest) :]
