"""Everything around one real child: the host's clock and I/O thread, and listeners in place of other actors."""

import os
import queue
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path

from actors.child_process import ChildCommand, ChildProcessActor
from actors.messages import ChildExited, Launch, Peers
from ipc.spawn import Spawned
from ipc.strays import Mark
from waypost.acting import Ref
from waypost.host.clock import SystemClock
from waypost.host.processes.child_wire import ChildWire
from waypost.host.processes.wires import Wires
from waypost.model.ids import Generation
from waypost.model.limits import Limits
from waypost.testing.listener import Listener
from waypost.testing.patience import PATIENCE
from waypost.testing.supervision import a_spec

LIMITS = Limits(kill_grace=0.3)


def alive(pid: int) -> bool:
    """Whether a process exists and isn't a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class ChildStage:
    """Everything around one child: listeners in place of its peers and its supervisor."""

    def __init__(self) -> None:
        self.clock = SystemClock().start()
        self.wires = Wires().start()
        self.parent, self.substrate, self.dispatch, self.broadcaster = (Listener() for _ in range(4))
        self.output: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.children: list[Ref] = []
        self.adopted: list[ChildWire] = []

    def child(
        self, prefix: tuple[str, ...], *, limits: Limits = LIMITS, environment: Mapping[str, str] = os.environ
    ) -> Ref:
        """Start one, and launch it."""
        command = ChildCommand(
            python=sys.executable,
            arguments=(),
            environment=environment,
            output=self.output.put,
            argv_prefix=prefix,
            mark=Mark(f"{secrets.token_hex(16)}."),
        )
        ref = ChildProcessActor.start(
            a_spec(),
            Generation(len(self.children) + 1),
            Peers(self.substrate.ref, self.dispatch.ref, self.broadcaster.ref),
            command=command,
            wires=self,
            clock=self.clock,
            parent=self.parent.ref,
            limits=limits,
        )
        self.children.append(ref)
        ref.tell(Launch())
        return ref

    def adopt(self, spawned: Spawned, owner: Ref) -> ChildWire:
        """As the I/O thread does it, and the wire is kept for tests that know too much."""
        wire = self.wires.adopt(spawned, owner)
        self.adopted.append(wire)
        return wire

    def printed(self, *, until: bytes) -> bytes:
        """What children wrote, up to and including these bytes."""
        text = b""
        while until not in text:
            text += self.output.get(timeout=PATIENCE)
        return text

    def exit(self) -> ChildExited:
        """The next exit that is told."""
        exited: ChildExited = self.parent.next(ChildExited)
        return exited

    def close(self) -> None:
        """End what is left, youngest first."""
        for ref in self.children:
            ref.stop(timeout=PATIENCE)
        assert self.wires.close()
        self.clock.stop()
        for listener in (self.parent, self.substrate, self.dispatch, self.broadcaster):
            listener.stop()
