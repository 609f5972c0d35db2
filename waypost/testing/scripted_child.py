"""A child that does what a test's script says, over the real descriptors: the other end of a ChildProcessActor.

``scripted(code)`` is an ``argv_prefix`` that runs the code in place of the child runtime, with ``child`` being a
``ScriptedChild``; everything else of the spawn is as in earnest.
"""

import os
import sys
from collections.abc import Iterator

from ipc import control, events
from ipc.environment import read_anchors
from ipc.frames import FrameReader
from ipc.keys import read_secrets
from ipc.messages import FromChild, Progress, Ready, ToChild, single
from ipc.parent import CONTROL_FD, EVENTS_FD, settle
from ipc.parse import to_child
from ipc.sealed import Direction
from waypost.ed25519 import PrivateKey

_PRELUDE = """
from waypost.testing.scripted_child import ScriptedChild
child = ScriptedChild()
"""


def scripted(code: str) -> tuple[str, ...]:
    """The command of a scripted child; what follows it on the command line is ignored but for ``--parent``."""
    return (sys.executable, "-P", "-c", _PRELUDE + code)


def plain(code: str) -> tuple[str, ...]:
    """The command of any Python program, which needn't speak the protocol."""
    return (sys.executable, "-I", "-S", "-c", code)


class ScriptedChild:
    """Keys and channels of a child, as the environment and descriptor 5 bring them."""

    def __init__(self) -> None:
        settle(int(sys.argv[sys.argv.index("--parent") + 1]))
        anchors = read_anchors(os.environ)
        self.key = PrivateKey.generate()
        self.up = control.Sender(self.key, anchors.channel_id, Direction.UP)
        self.told = events.Sender(read_secrets(), anchors.channel_id)
        self._down = control.Receiver(anchors.host_key, anchors.channel_id, Direction.DOWN, parse=to_child)
        self._heard = self._hear()

    def say(self, message: FromChild) -> None:
        """Send a message on the control channel."""
        _write(CONTROL_FD, self.up.seal(message))

    def ready(self, code: str) -> None:
        """Say hello."""
        self.say(Ready(key=self.key.public, pid=os.getpid(), code=code))

    def broken(self, error: str) -> None:
        """Say hello, without code."""
        self.say(Ready(key=self.key.public, pid=os.getpid(), error=error))

    def progress(self, message: Progress) -> None:
        """Send a message on the events channel."""
        _write(EVENTS_FD, self.told.seal(message))

    def raw(self, data: bytes) -> None:
        """Write anything at all to the control channel."""
        _write(CONTROL_FD, data)

    def hear(self) -> ToChild:
        """The next message of the host; waits for it. Raises StopIteration when the host has hung up."""
        return next(self._heard)

    def serve(self) -> None:
        """Listen to the host until it hangs up, and do nothing."""
        for _ in self._heard:
            pass

    def _hear(self) -> Iterator[ToChild]:
        reader = FrameReader("control down")
        while data := os.read(CONTROL_FD, 65536):
            for body in reader.feed(data):
                yield from single(self._down.open(body))


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
