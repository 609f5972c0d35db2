"""A host for one child and one run: the real process, descriptors, keys and frames, and a log in memory.

For tests of the child as a process, without actors and without git. It answers as a host answers, in one thread, and
stops where the test says: after so many events, when the run is parked, when it has ended.
"""

import contextlib
import os
import select
import selectors
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, assert_never

import msgspec

from ipc import control, events, keys, spawn
from ipc.environment import Anchors, child_environment
from ipc.frames import FrameReader
from ipc.messages import (
    AppendRequest,
    AppendResponse,
    BlobChunk,
    BlobGet,
    BlobPut,
    BlobStored,
    CancelRequest,
    CancelResult,
    EventsCommitted,
    FromChild,
    GrantsUpdated,
    Message,
    OutboundMessage,
    OutboundResult,
    PauseRequest,
    PauseResult,
    Progress,
    Ready,
    RecycleRequest,
    RunLive,
    RunLog,
    RunLogCredit,
    RunStart,
    Shutdown,
    SpawnRequest,
    SpawnResult,
)
from ipc.parse import from_child, from_child_events
from ipc.sealed import Direction
from waypost.child.load import place_of
from waypost.model import events as ev
from waypost.model.ids import CallId
from waypost.model.run import Illegal, Parked
from waypost.testing.memory_log import GRANTED, MemoryLog
from waypost.testing.patience import PATIENCE

GRACE = 5.0
"""Seconds for a child to end in, once the test has what it wanted."""
CHUNK = 256 * 1024
MEASURED = ("COVERAGE_PROCESS_CONFIG",)
"""Passed on to the child where a test run measures coverage, so that the child's own lines count."""


class ChildSilent(AssertionError):
    """The child didn't get to where the test wants it."""


@dataclass
class ScriptedHost:
    """A child process and its host's side. Use as a context manager: at the end the child is gone."""

    file: Path
    log: MemoryLog
    arguments: Sequence[str] = ("--retry-first", "0.02")
    sha256: str | None = None
    page: int = 3
    """Events to a page of the log: small, so that paging is used."""
    ready: Ready | None = None
    progress: list[Progress] = field(default_factory=list)
    pauses: list[str] = field(default_factory=list)
    spawned: list[SpawnRequest] = field(default_factory=list)
    """Child runs that were asked for; how they end is the test's to say (``MemoryLog.child_ended``)."""
    recycles: list[str] = field(default_factory=list)
    """Why the child wants a successor."""
    output: bytearray = field(default_factory=bytearray)
    exit_code: int | None = None

    def __enter__(self) -> Self:
        place = place_of(self.file)
        self._keys = keys.mint()
        anchors = Anchors(
            channel_id=self._keys.channel_id,
            host_key=self._keys.public_key,
            deployment="orders",
            definition="0" * 64,
            address="orders@example.com",
        )
        code = () if self.sha256 is None else ("--sha256", self.sha256)
        argv = spawn.command(
            sys.executable,
            ("--root", place.root, "--module", place.module, *code, *self.arguments),
            parent=os.getpid(),
        )
        environment = child_environment(os.environ, anchors, listed=MEASURED)
        self._child = spawn.spawn(argv, environment, self._keys.for_child())
        self._sender = control.Sender(self._keys.signing, self._keys.channel_id, Direction.DOWN)
        self._receiver = control.Receiver(None, self._keys.channel_id, Direction.UP, parse=from_child)
        self._events = events.Receiver(self._keys.events, self._keys.channel_id, parse=from_child_events)
        self._frames = FrameReader("control up")
        self._event_frames = FrameReader("events up")
        self._parts: dict[int, bytearray] = {}
        self._selector = selectors.DefaultSelector()
        hear = {
            self._child.control: self._hear_control,
            self._child.events: self._hear_events,
            self._child.stdout: self.output.extend,
            self._child.stderr: self.output.extend,
        }
        for fd, take in hear.items():
            self._selector.register(fd, selectors.EVENT_READ, take)
        os.set_blocking(self._child.control, True)
        self._live = False
        self._deaf_from: int | None = None
        return self

    def __exit__(self, *_: object) -> None:
        self._let_end()
        self.kill()
        self._selector.close()
        for fd in (
            self._child.pidfd,
            self._child.control,
            self._child.events,
            self._child.stdout,
            self._child.stderr,
        ):
            os.close(fd)

    # --- what a test does ------------------------------------------------------------------------------------------

    def drive(self) -> None:
        """Wait for ``ready`` and give the child the run, with the log as it is."""
        self.until(lambda: self.ready is not None)
        self.send(GrantsUpdated(grants=GRANTED, sha256=ev.digest(GRANTED)))
        self.send(
            RunStart(
                run=self.log.run,
                definition="0" * 64,
                last_seq=len(self.log.stored),
                grants=ev.digest(GRANTED),
                repository=self.log.repository,
            )
        )
        raw = self.log.raw
        for first in range(0, len(raw), self.page):
            self.send(RunLog(run=self.log.run, events=raw[first : first + self.page]))
        self.send(RunLive(run=self.log.run))
        self._live = True

    def commit(self, raw: tuple[bytes, ...]) -> None:
        """Tell the child of events that were put into the log."""
        if self._live:
            self.send(EventsCommitted(run=self.log.run, events=raw))

    def until(self, reached: Callable[[], bool], *, patience: float = PATIENCE) -> None:
        """Serve the child until something is true. Raises ChildSilent with what the child has printed."""
        deadline = time.monotonic() + patience
        while not reached():
            left = deadline - time.monotonic()
            if left <= 0 or not self._selector.get_map():
                raise ChildSilent(f"gave up; the log is {self.kinds()}\n{self.output.decode(errors='replace')}")
            self._serve(left)

    def to_the_end(self, *, events: int | None = None) -> None:
        """Serve until the run has ended.

        Whenever it is parked, the boss approves, or a child run ends (one called ``fails…`` without a result, and
        ``never…`` not before it is let go), or a signal comes that may wait for ever, or a deadline passes.

        ``events``: stop when the log has at least so many; the host answers nothing after that, as if it were killed.
        """
        self._deaf_from = events
        self.until(lambda: self._over() or isinstance(self.log.state, Parked))
        while not self._over():
            waits = self.log.ledger.waits.values()
            signal = next((wait.name for wait in waits if wait.park == "signal" and wait.timeout_at is None), "")
            if any(wait.park == "approval" for wait in waits):
                self.commit(self.log.decide(approved=True, text="fine"))
            else:
                ended = self._child_ends()
                self.commit(ended or (self.log.signal(signal, b'{"n":20}') if signal else self.log.fire()))
            self.until(lambda: self._over() or isinstance(self.log.state, Parked))

    def _child_ends(self) -> tuple[bytes, ...]:
        """The oldest of the child runs that may end now does; nothing where there is none."""
        for call, child in self.log.ledger.children.items():
            if child.cancelling:
                gone = ev.Fault(type="RunCancelled", message="nobody awaits it")
                return self.log.child_ended(call, outcome="cancelled", error=gone)
            if child.workflow.startswith("fails"):
                return self.log.child_ended(call, error=ev.Fault(type="ValueError", message="no such thing"))
            if not child.workflow.startswith("never"):
                return self.log.child_ended(call, result=b'{"n":20}')
        return ()

    def until_parked(self) -> None:
        """Serve until the run waits for something outside."""
        self.until(lambda: isinstance(self.log.state, Parked))

    def until_ended(self) -> None:
        """Serve until the run has ended."""
        self.until(lambda: self.log.ended)

    def kill(self) -> None:
        """Kill with -9, and take what the child had printed."""
        if self.exit_code is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._reap()

    def _let_end(self) -> None:
        """Have a child that is still there end by itself: of one that is killed nobody learns which lines it ran."""
        if self.exit_code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._child.pid, signal.SIGTERM)
            select.select([self._child.pidfd], [], [], GRACE)

    def terminate(self) -> int:
        """SIGTERM; gives the exit code."""
        os.kill(self._child.pid, signal.SIGTERM)
        return self._reap()

    def shut_down(self) -> int:
        """The shutdown frame; gives the exit code."""
        self.send(Shutdown(reason="the test is over"))
        return self._reap()

    def wait_for_exit(self) -> int:
        """Serve until the child is gone; gives the exit code."""
        self.until(lambda: not self._selector.get_map())
        return self._reap()

    def send(self, message: Message) -> None:
        """Say something to the child, whatever it is."""
        self.send_raw(self._sender.seal(msgspec.to_builtins(message, builtin_types=(bytes,))))

    def send_raw(self, frame: bytes) -> None:
        """Put bytes on the control channel."""
        rest = memoryview(frame)
        while rest:
            rest = rest[os.write(self._child.control, rest) :]

    def kinds(self) -> list[str]:
        """The log as names."""
        return [ev.kind(event) for event in self.log.events]

    @property
    def pid(self) -> int:
        """The child's."""
        return self._child.pid

    # --- serving ---------------------------------------------------------------------------------------------------

    def _serve(self, patience: float) -> None:
        for key, _ in self._selector.select(patience):
            try:
                data = os.read(key.fd, 1 << 20)
            except ConnectionResetError:
                data = b""  # it ended with something of ours unread
            if data:
                key.data(data)
            else:
                self._selector.unregister(key.fd)

    def _hear_events(self, data: bytes) -> None:
        self.progress.extend(map(self._events.open, self._event_frames.feed(data)))

    def _hear_control(self, data: bytes) -> None:
        for body in self._frames.feed(data):
            self._answer(self._receiver.open(body))

    def _answer(self, message: FromChild) -> None:  # noqa: C901 - one case per message
        if self._deaf_from is not None and len(self.log.stored) >= self._deaf_from:
            return
        match message:
            case Ready():
                self.ready = message
            case RunLogCredit():
                pass
            case RecycleRequest():
                self.recycles.append(message.reason)
            case AppendRequest():
                self._append(message)
            case BlobPut():
                self._keep(message)
            case BlobGet():
                self._give(message)
            case OutboundMessage():
                self.commit(self.log.queue_mail(CallId(message.call), message.to))
                self.send(OutboundResult(id=message.id))
            case PauseRequest():
                self.pauses.append(message.detail)
                paused: Any = message.code  # one of the event's own
                self.commit(self.log.append([ev.RunPaused(code=paused, detail=message.detail)]))
                self.send(PauseResult(id=message.id))
            case CancelRequest():
                asked = ev.CancelRequested(origin="self", reason=message.reason, call=CallId(message.call))
                self.commit(self.log.append([asked]))
                self.send(CancelResult(id=message.id))
            case SpawnRequest():
                self.spawned.append(message)
                call, raw = CallId(message.call), message.input
                self.commit(self.log.spawn(call, message.workflow, raw, seen=message.seen))
                self.send(SpawnResult(id=message.id))
            case _:
                assert_never(message)

    def _append(self, request: AppendRequest) -> None:
        try:
            raw = self.log.append(map(ev.decode, request.events))
        except Illegal as refused:
            self.send(AppendResponse(id=request.id, refused=str(refused), code=refused.code))
            return
        self.commit(raw)
        self.send(AppendResponse(id=request.id))
        retries = [e for e in map(ev.decode, raw) if isinstance(e, ev.TimerSet) and e.timer != e.call]
        for _ in retries:  # nobody waits for a back-off in a test
            self.commit(self.log.fire())

    def _keep(self, part: BlobPut) -> None:
        value = self._parts.setdefault(part.id, bytearray())
        assert part.offset == len(value)
        value += part.data
        if part.last:
            self.log.blobs[part.sha256] = bytes(self._parts.pop(part.id))
            self.send(BlobStored(id=part.id))

    def _give(self, request: BlobGet) -> None:
        raw = self.log.blobs[request.sha256]
        for offset in range(0, max(1, len(raw)), CHUNK):
            self.send(BlobChunk(id=request.id, offset=offset, size=len(raw), data=raw[offset : offset + CHUNK]))

    def _over(self) -> bool:
        return self.log.ended or (self._deaf_from is not None and len(self.log.stored) >= self._deaf_from)

    # --- the end ---------------------------------------------------------------------------------------------------

    def _reap(self) -> int:
        _, status = os.waitpid(self._child.pid, 0)
        self.exit_code = os.waitstatus_to_exitcode(status)
        for fd in (self._child.stdout, self._child.stderr):
            with contextlib.suppress(BlockingIOError):
                while data := os.read(fd, 1 << 16):
                    self.output += data
        return self.exit_code
