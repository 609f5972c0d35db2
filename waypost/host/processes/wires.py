"""The one I/O thread: a selector over the descriptors and pidfds of all children of a host.

It reads, writes, signals and reaps, so that a signal can never meet a pid that was reaped a moment before: both are
done here, in turn. What it owns nobody else touches; everybody else posts commands and is told what happened. A
child that doesn't read, floods its output or hands its pipes to a grandchild costs bounded memory and nobody's time.
"""

import logging
import os
import queue
import selectors
import signal
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import assert_never

from actors.messages import BytesCame, ProcessEnded, Stalled, Written
from ipc.spawn import Spawned
from waypost.acting import ActorEnded, Ref
from waypost.host.processes.child_wire import (
    AHEAD,
    PER_READ,
    Adopt,
    ChildWire,
    Close,
    Command,
    Release,
    Send,
    Signal,
    Taken,
)
from waypost.host.processes.guardian import Guardian
from waypost.host.processes.guarding import Guarding
from waypost.host.processes.sweeping import Sweeping, end_strays
from waypost.model.limits import DEFAULT
from waypost.shell import tell

READ = 64 * 1024
LAST_WORDS = 1024 * 1024
"""What is read of a channel after its process has ended; a pipe or a socket holds less."""
CLOSE_DEADLINE = 10.0

log = logging.getLogger(__name__)


class Wires:
    """The thread. ``unsent``: bytes that a child may leave unread; ``guardians`` are told of each child's group.

    ``sweeping``: ends all that runs as a child's own user, where each has one.
    """

    def __init__(
        self, *, unsent: int = DEFAULT.unsent, guardians: Sequence[Guardian] = (), sweeping: Sweeping | None = None
    ) -> None:
        self._limit, self._sweeping = unsent, sweeping
        self._left: list[tuple[ChildWire, ProcessEnded]] = []
        """Children that have ended and whose strays haven't been looked for: their owners aren't told yet."""
        self._parent: Ref | None = None
        self._commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._wake, self._woken = socket.socketpair()
        self._wake.settimeout(0)
        self._woken.settimeout(0)
        self._selector = selectors.DefaultSelector()
        self._guarding = Guarding(guardians, self._selector)
        self._children: dict[int, ChildWire] = {}
        self._pids: frozenset[int] = frozenset()
        self._thread = threading.Thread(target=self._run, name="wires", daemon=True)

    @property
    def pids(self) -> frozenset[int]:
        """Children that have not been reaped; each also leads a session of this number."""
        return self._pids

    def start(self, parent: Ref | None = None) -> "Wires":
        """Begin; ``parent`` is told when the thread has ended, and why should it ever fail."""
        self._parent = parent
        self._thread.start()
        return self

    def expect(self, uid: int) -> None:
        """A child will run as this user: to be said before it is spawned, from any thread."""
        if self._sweeping is not None:
            self._sweeping.expect(uid)

    def adopt(self, spawned: Spawned, owner: Ref) -> ChildWire:
        """Take over a child's descriptors; they are closed here, after ``ProcessEnded``."""
        wire = ChildWire(self.post, spawned, owner)
        self.post(Adopt(wire))
        return wire

    def close(self, timeout: float = CLOSE_DEADLINE) -> bool:
        """Kill and reap what still runs, and end; whether that was done within ``timeout`` seconds."""
        if self._thread.ident is None:
            return True  # it never began
        self.post(Close())
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def post(self, command: Command) -> None:
        """Hand over a command, from any thread."""
        self._commands.put(command)
        with suppress(OSError):  # full: it is awake already; closed: there is nobody to wake
            self._wake.send(b"\0")

    # --- in the thread -------------------------------------------------------------------------------------------

    def _run(self) -> None:
        failure: str | None = None
        try:
            self._selector.register(self._woken, selectors.EVENT_READ)
            self._guarding.look()
            self._serve()
        except BaseException as broken:  # told to the parent: without this thread no child can be served
            log.exception("the I/O thread failed")
            failure = repr(broken)
        finally:
            for wire in tuple(self._children.values()):
                self._kill(wire)
            self._guarding.close()
            self._selector.close()
            self._wake.close()
            self._woken.close()
            tell(self._parent, ActorEnded("wires", 1, failure))

    def _serve(self) -> None:
        serving = True
        while serving or self._children:
            self._guarding.again()
            for key, mask in self._selector.select(self._guarding.patience()):
                if key.fileobj is self._woken:
                    with suppress(BlockingIOError):
                        self._woken.recv(4096)
                    continue
                if key.data is self._guarding:
                    self._guarding.ended(key.fd)
                    continue
                wire, channel = key.data
                if not self._has(wire):
                    continue  # ended earlier in this round
                if channel == "pidfd":
                    self._ended(wire)
                    continue
                if mask & selectors.EVENT_WRITE:
                    self._write(wire)
                if mask & selectors.EVENT_READ:
                    self._read(wire, channel)
            serving = self._obey() and serving
            if serving or not self._children:  # at the end once for all: whoever looks for one looks at every process
                self._end_strays()

    def _obey(self) -> bool:
        """Carry out what was posted; False after a Close."""
        serving = True
        while True:
            try:
                command = self._commands.get_nowait()
            except queue.Empty:
                return serving
            match command:
                case Close():
                    serving = False
                    for wire in self._children.values():
                        self._kill(wire)
                case Adopt(wire):
                    self._adopted(wire)
                case Send() | Signal() | Taken() | Release():
                    if self._has(command.wire):  # else it came too late
                        self._about(command)
                case _:
                    assert_never(command)

    def _has(self, wire: ChildWire) -> bool:
        # By identity: the same pid may be another child's by now.
        return self._children.get(wire.spawned.pid) is wire

    def _about(self, command: Send | Signal | Taken | Release) -> None:
        wire = command.wire
        match command:
            case Send():
                wire.unsent.append((memoryview(command.frame), command.report))
                wire.unsent_bytes += len(command.frame)
                self._write(wire)
            case Signal(number=signal.SIGKILL):
                self._kill(wire)
            case Signal():
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(wire.spawned.pidfd, command.number)
            case Taken():
                wire.ahead[command.channel] -= command.size
                self._watch(wire, command.channel)
            case Release():
                wire.owner = None
                self._kill(wire)
            case _:
                assert_never(command)

    def _adopted(self, wire: ChildWire) -> None:
        self._children[wire.spawned.pid] = wire
        self._pids = frozenset(self._children)
        self._guarding.watch(wire.spawned.pid)
        self._guarding.watch_user(wire.spawned.mark.uid)
        self._selector.register(wire.spawned.pidfd, selectors.EVENT_READ, (wire, "pidfd"))
        for channel in wire.open:
            self._watch(wire, channel)

    def _watch(self, wire: ChildWire, channel: str) -> None:
        """Have the selector wait for what this channel can do at this moment, and for nothing else."""
        fd = wire.open.get(channel)
        if fd is None:
            return
        mask = selectors.EVENT_READ if wire.ahead[channel] < AHEAD else 0
        if channel == "control" and wire.unsent:
            mask |= selectors.EVENT_WRITE
        known = self._selector.get_map().get(fd)
        if known is None and mask:
            self._selector.register(fd, mask, (wire, channel))
        elif known is not None and not mask:
            self._selector.unregister(fd)
        elif known is not None and known.events != mask:
            self._selector.modify(fd, mask, known.data)

    def _read(self, wire: ChildWire, channel: str) -> bool:
        """Read once; False when there is nothing more at this moment, or for ever."""
        fd = wire.open.get(channel)
        if fd is None:
            return False
        try:
            data = os.read(fd, READ)
        except BlockingIOError:
            return False
        except ConnectionError:
            data = b""  # closed with something of ours unread: an end like any other
        if not data:
            self._shut(wire, channel)
        wire.ahead[channel] += len(data) + PER_READ
        tell(wire.owner, BytesCame(channel, data))
        self._watch(wire, channel)
        return bool(data)

    def _shut(self, wire: ChildWire, channel: str) -> None:
        """A channel came to its end; a closed control channel takes nothing more, either."""
        fd = wire.open.pop(channel)
        if fd in self._selector.get_map():
            self._selector.unregister(fd)
        os.close(fd)
        if channel == "control":
            self._drop(wire)

    def _write(self, wire: ChildWire) -> None:
        fd = wire.open.get("control")
        if fd is None:
            self._drop(wire)
            return
        try:
            while wire.unsent:
                frame, report = wire.unsent[0]
                count = os.write(fd, frame)
                wire.unsent_bytes -= count
                if count < len(frame):
                    wire.unsent[0] = (frame[count:], report)
                    continue
                wire.unsent.popleft()
                if report:
                    tell(wire.owner, Written())
        except BlockingIOError:
            pass
        except ConnectionError:
            self._drop(wire)  # it reads no more; reading shows how far it got
        if wire.unsent_bytes > self._limit:
            tell(wire.owner, Stalled(wire.unsent_bytes))
            self._drop(wire)
        self._watch(wire, "control")

    @staticmethod
    def _drop(wire: ChildWire) -> None:
        wire.unsent.clear()
        wire.unsent_bytes = 0

    # --- the end of a child --------------------------------------------------------------------------------------

    @staticmethod
    def _kill(wire: ChildWire) -> None:
        """SIGKILL to the group. Its number can't have passed to others: its leader isn't reaped yet."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(wire.spawned.pid, signal.SIGKILL)

    def _ended(self, wire: ChildWire) -> None:
        """The process is gone: end its group, take in its last words, then reap it, in this order."""
        try:
            os.waitid(os.P_PIDFD, wire.spawned.pidfd, os.WEXITED | os.WNOWAIT | os.WNOHANG)
            self._kill(wire)
        except ChildProcessError:
            pass  # reaped by somebody else, so its number may be anybody's by now
        for channel in tuple(wire.open):
            self._last_words(wire, channel)
        del self._children[wire.spawned.pid]
        self._guarding.forget(wire.spawned.pid)
        self._left.append((wire, _reap(wire.spawned.pidfd)))
        self._pids = frozenset(self._children)
        self._selector.unregister(wire.spawned.pidfd)
        for channel in tuple(wire.open):
            self._shut(wire, channel)
        os.close(wire.spawned.pidfd)

    def _end_strays(self) -> None:
        """Then tell the owners: a next child has the same user as the last one."""
        left, self._left = self._left, []
        alive = [wire.spawned.mark for wire in self._children.values()]
        end_strays([wire.spawned.mark for wire, _ in left], alive, self._sweeping)
        for uid in {wire.spawned.mark.uid for wire, _ in left} - {mark.uid for mark in alive}:
            self._guarding.forget_user(uid)
        for wire, ended in left:
            tell(wire.owner, ended)

    def _last_words(self, wire: ChildWire, channel: str) -> None:
        # Not to the end of the pipe: a grandchild may hold it open, or go on writing.
        for _ in range(LAST_WORDS // READ):
            if not self._read(wire, channel):
                return


def _reap(pidfd: int) -> ProcessEnded:
    try:
        result = os.waitid(os.P_PIDFD, pidfd, os.WEXITED)
    except ChildProcessError:
        return ProcessEnded(None, signalled=False)
    if result is None:
        return ProcessEnded(None, signalled=False)
    return ProcessEnded(result.si_status, signalled=result.si_code != os.CLD_EXITED)
