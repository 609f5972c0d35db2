"""Many lives of a testing host for the price of one import: a process that has everything loaded, and forks.

    python -m waypost.testing.nursery    with a socket as its stdin

An interpreter that loads a host takes longer than all else in a host's short life. Here it is loaded once; each host is
a process of its own all the same, with its pid, its memory, its exit status, and it may be killed at any moment. The
nursery has one thread and no host of its own, so what is forked is as fresh as what is started. It ends with whoever
has started it, and its hosts with it.
"""

import gc
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from ipc.prctl import PR_SET_PDEATHSIG, prctl
from waypost.model.errors import WaypostError
from waypost.testing import host
from waypost.testing.patience import PATIENCE

_MOST = 1 << 20
"""Bytes of a request: arguments and environment."""


class Order(msgspec.Struct, frozen=True):
    """What a host is forked with; three descriptors come along: its stdout, its stderr, where its owner is told."""

    arguments: tuple[str, ...]
    environment: dict[str, str]
    folder: str


class Infant:
    """A host's process, as its owner has it: what ``subprocess.Popen`` would be."""

    def __init__(self, pid: int, descriptor: int, told: socket.socket) -> None:
        self.pid = pid
        self._descriptor, self._told = descriptor, told
        # Open as long as anybody knows it, so that nobody can meet another's number.
        weakref.finalize(self, os.close, descriptor)
        weakref.finalize(self, told.close)

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return not self._ended(0.0)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptor, number)

    def wait(self, seconds: float) -> int | None:
        """Its exit status, negative for a signal, once it has ended; None if it hasn't by then. To be called once."""
        if not self._ended(seconds):
            return None
        return int(self._told.recv(_MOST))

    def _ended(self, seconds: float) -> bool:
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._descriptor, selectors.EVENT_READ)
            return bool(waiting.select(seconds))


def born(arguments: Sequence[str], environment: Mapping[str, str], *, stdout: int, stderr: int) -> Infant:
    """Fork ``python -m waypost.testing.host`` with these arguments, from the nursery of this process."""
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    order = Order(tuple(arguments), dict(environment), str(Path.cwd()))
    with theirs:
        socket.send_fds(_nursery(), [msgspec.json.encode(order)], [stdout, stderr, theirs.fileno()])
    mine.settimeout(PATIENCE)
    pid, (descriptor,), _, _ = socket.recv_fds(mine, _MOST, 1)
    return Infant(int(pid), descriptor, mine)


@cache
def _nursery() -> socket.socket:
    """The one of this process, started when it is wanted first; it sees its end when this process has ended."""
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_PROCESS_")}
    with theirs:
        started = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", __name__], stdin=theirs.fileno(), stdout=subprocess.DEVNULL, env=environment
        )
    weakref.finalize(mine, _leave, mine, started)
    return mine


def _leave(nursery: socket.socket, started: subprocess.Popen[bytes]) -> None:
    nursery.close()
    started.wait(PATIENCE)


# --- in the nursery ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Grown:
    """A host that was forked: its pid, a descriptor of its process, and where its owner is told of its end."""

    pid: int
    process: int
    owner: socket.socket

    def bury(self) -> None:
        """Reap it, and tell its owner how it ended."""
        _, status = os.waitpid(self.pid, 0)
        with suppress(BrokenPipeError, ConnectionResetError):  # nobody wants to know
            self.owner.send(str(os.waitstatus_to_exitcode(status)).encode())
        self.forget()

    def forget(self) -> None:
        """Let go of its descriptors."""
        os.close(self.process)
        self.owner.close()


def main() -> int:
    """Fork what is ordered, and tell of its end, until whoever orders has ended."""
    gc.freeze()  # so that no collection in a host touches, and copies, what it shares with the others
    with socket.socket(fileno=os.dup(0)) as orders, selectors.DefaultSelector() as waiting:
        waiting.register(orders, selectors.EVENT_READ)
        while True:
            for key, _ in waiting.select():
                if isinstance(key.data, Grown):
                    waiting.unregister(key.fileobj)
                    key.data.bury()
                    continue
                raw, descriptors, _, _ = socket.recv_fds(orders, _MOST, 3)
                if not raw:
                    return 0
                order = msgspec.json.decode(raw, type=Order)
                with suppress(WaypostError, OSError):  # the host itself will say what is wrong
                    host.described(host.files_of(order.arguments), order.environment)
                pid = os.fork()
                if not pid:
                    for other in waiting.get_map().values():
                        if isinstance(other.data, Grown):
                            other.data.forget()
                    waiting.close()
                    orders.close()
                    return _grow_up(order, descriptors)
                out, err, owner = descriptors
                os.close(out)
                os.close(err)
                grown = Grown(pid, os.pidfd_open(pid), socket.socket(fileno=owner))
                socket.send_fds(grown.owner, [str(pid).encode()], [grown.process])
                waiting.register(grown.process, selectors.EVENT_READ, grown)


def _grow_up(order: Order, descriptors: Sequence[int]) -> int:
    """Become the host that was ordered; its exit status."""
    assert threading.active_count() == 1, "what is forked has one thread, so its nursery must have no more"
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    out, err, owner = descriptors
    nothing = os.open(os.devnull, os.O_RDONLY)
    for mine, number in ((nothing, 0), (out, 1), (err, 2)):
        os.dup2(mine, number)
        os.close(mine)
    os.close(owner)
    os.chdir(order.folder)
    os.environ.clear()
    os.environ.update(order.environment)
    return host.main(order.arguments)


if __name__ == "__main__":
    sys.exit(main())
