"""The workflow thread: takes one note after another from the mailbox, drives the runs, performs their effects.

Frames for a run that this child doesn't have, or has left, are ignored: they were on their way when it was left. A
second ``run.start`` of one run is ignored, too. Anything else that the host shouldn't say ends the child (HostBroke).
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from queue import Empty
from typing import assert_never

import msgspec

from ipc.messages import (
    AppendRequest,
    AppendResponse,
    BlobChunk,
    BlobGet,
    BlobStored,
    CancelResult,
    CredentialsUpdated,
    EventsCommitted,
    GrantsUpdated,
    OutboundResult,
    PauseRequest,
    PauseResult,
    Progress,
    RecycleRequest,
    RunLive,
    RunLog,
    RunLogCredit,
    RunStart,
    Shutdown,
    SourcesUpdated,
    SpawnResult,
    ToChild,
)
from waypost.authoring.workflow import Workflow
from waypost.child import effects as fx
from waypost.child.asking import asked, puts
from waypost.child.bodies import Bodies
from waypost.child.drive import Drive, MakeProgram
from waypost.child.entry import Entry
from waypost.child.errors import HostBroke
from waypost.child.keeping import Keeping
from waypost.child.mailbox import (
    Arrived,
    BodyEnded,
    ChannelClosed,
    Declined,
    Mailbox,
    Note,
    Reported,
    TurnEnded,
    Wearied,
)
from waypost.child.program import Program, Turn
from waypost.child.starved import Starved
from waypost.child.vault import Vault
from waypost.child.wire import Answer, Heard, Make, Wire, optional
from waypost.model import events as ev
from waypost.model.errors import Invalid
from waypost.model.grants import read_snapshot
from waypost.model.ids import RunId
from waypost.model.limits import Limits

FRAME_ROOM = 1024 * 1024
"""Bytes of events that one append carries."""
FRAME_EVENTS = 1000
NOTES_AT_ONCE = 256
TEXT = 262_144
EX_PROTOCOL = 76
"""Exit code (sysexits.h): the other side broke the protocol."""


class Leaving(msgspec.Struct, frozen=True):
    """Why the child ends: its exit code and a line for its log (empty: as it should)."""

    code: int
    reason: str


class Runtime:
    """All runs of one child. ``workflow`` is None where the user's file didn't load: then every run is left alone."""

    def __init__(
        self,
        workflow: Workflow | None,
        *,
        wire: Wire,
        bodies: Bodies,
        mailbox: Mailbox,
        limits: Limits,
        vault: Vault | None = None,
    ) -> None:
        self._workflow = workflow
        self._wire = wire
        self._bodies = bodies
        self._mailbox = mailbox
        self._limits = limits
        self._vault = vault or Vault()
        self._keeping = Keeping(limits.unreferenced_blobs)
        self._drives: dict[RunId, Drive] = {}
        self._touched: dict[RunId, Drive] = {}
        """Runs that something happened to: their effects come next. Others may be parked in their thousands."""
        self._starved = Starved()
        self._seen: set[RunId] = set()
        self._granted = ""
        """Hash of the grants that it was told of last."""

    def serve(self) -> Leaving:
        """Take notes until there is a reason to leave. Raises OSError, IpcError when the host can't be written to."""
        while True:
            for note in self._notes():
                try:
                    leaving = self._take(note)
                except (HostBroke, Invalid) as broken:
                    return Leaving(EX_PROTOCOL, f"{broken}")
                if leaving is not None:
                    return leaving
            for drive in self._starved.take():
                self._touch(drive.run).begin()
            touched, self._touched = tuple(self._touched.values()), {}
            for drive in touched:
                for effect in _merged(drive.effects()):
                    if not self._declined(drive, effect):
                        self._perform(drive, effect)

    def _notes(self) -> Iterator[Note]:
        """At least one note, and those that are there already: what they lead to can then travel together.

        None after a while, where a run waits for a thread.
        """
        with suppress(Empty):
            yield self._mailbox.get(timeout=self._starved.patience)
        for _ in range(NOTES_AT_ONCE):
            try:
                yield self._mailbox.get_nowait()
            except Empty:
                return

    # --- in --------------------------------------------------------------------------------------------------------

    def _take(self, note: Note) -> Leaving | None:  # noqa: C901 - one arm per kind of note
        match note:
            case Arrived(message):
                return self._hear(message)
            case BodyEnded(run, step, end):
                self._bodies.ended(run, step.call)
                if run in self._drives:
                    self._touch(run).body_ended(step, end)
            case TurnEnded(run, turn):
                if run in self._drives:
                    self._touch(run).turned(turn)
            case Reported(run, call, text):
                if run in self._drives:
                    self._wire.report(Progress(run=run, call=call, seq=self._drives[run].seq, text=text))
            case Declined(run, tell):
                if run in self._drives:
                    self._touch(run)
                    tell()
            case Wearied(reason):
                self._wire.send(RecycleRequest(reason=reason))
            case ChannelClosed(reason):
                return Leaving(EX_PROTOCOL if reason else 0, reason)
            case _:
                assert_never(note)
        return None

    def _hear(self, message: ToChild) -> Leaving | None:
        match message:
            case GrantsUpdated():
                # What doesn't match ends this child.
                self._vault.told(read_snapshot(message.grants, message.sha256))
                self._granted = message.sha256
            case CredentialsUpdated() | SourcesUpdated():
                self._vault.take(message)
            case RunStart():
                self._start(message)
            case RunLog() | RunLive() | EventsCommitted():
                self._grow(message)
            case AppendResponse() | BlobChunk() | BlobStored() | OutboundResult() | PauseResult() | CancelResult():
                self._wire.answered(message)
            case SpawnResult():
                self._wire.answered(message)
            case Shutdown():
                return Leaving(0, "")
            case _:
                assert_never(message)
        return None

    def _start(self, start: RunStart) -> None:
        run = RunId(start.run)
        if run in self._seen or self._workflow is None:
            return
        if self._granted != start.grants:
            raise HostBroke(f"{run} was started under grants that this child wasn't told of")
        self._seen.add(run)
        self._drives[run] = Drive(
            run,
            last_seq=start.last_seq,
            repository=start.repository,
            workflow=self._workflow,
            limits=self._limits,
            program=self._program_maker(run),
        )

    def _grow(self, message: RunLog | RunLive | EventsCommitted) -> None:
        run = RunId(message.run)
        if run not in self._drives:
            return
        drive = self._touch(run)
        match message:
            case RunLog():
                drive.page(map(ev.decode, message.events), message.mails)
            case RunLive():
                drive.live()
            case EventsCommitted():
                drive.committed(map(ev.decode, message.events))

    def _touch(self, run: RunId) -> Drive:
        drive = self._touched[run] = self._drives[run]
        return drive

    def _program_maker(self, run: RunId) -> MakeProgram:
        def make(entry: Entry, on_turn: Callable[[Turn], None]) -> Program:
            if entry.asynchronous:
                from waypost.child.loop import WorkflowLoop  # asyncio costs a child that only waits

                return WorkflowLoop.create(entry, on_turn)
            from waypost.child.thread_run import ThreadRun

            return ThreadRun(f"waypost-{run}", entry, lambda turn: self._mailbox.put(TurnEnded(run, turn)))

        return make

    # --- out -------------------------------------------------------------------------------------------------------

    def _declined(self, drive: Drive, effect: fx.Effect) -> bool:
        """Whether it would take a secret along; then the host isn't asked, and the run is told so in its turn."""
        match effect:
            case fx.Ask(call, request) if held := self._vault.held_by(request):
                why = f"it holds the secret {held}"
                self._mailbox.put(Declined(drive.run, lambda: drive.answered(call, request, why)))
            case fx.Keep(sha256, raw) if held := self._vault.held_in(raw):
                why = f"it holds the secret {held}"
                self._mailbox.put(Declined(drive.run, lambda: drive.kept(sha256, why)))
            case fx.Append(events) if held := self._vault.held_by_any(events):
                why = f"it holds the secret {held}"
                self._mailbox.put(Declined(drive.run, lambda: drive.appended(events, why, "")))
            case _:
                return False
        return True

    def _perform(self, drive: Drive, effect: fx.Effect) -> None:  # noqa: C901 - one arm per kind of effect
        run = drive.run
        match effect:
            case fx.Append(events):
                for part in _parts(events):
                    self._append(drive, part)
            case fx.Ask(call, request):
                self._ask(
                    drive,
                    lambda id_: (asked(id_, run, effect, self._vault),),
                    _told(lambda why: drive.answered(call, request, why)),
                )
            case fx.Fetch(sha256):
                self._ask(
                    drive,
                    lambda id_: (BlobGet(id=id_, run=run, sha256=sha256),),
                    lambda answer: drive.fetched(sha256, _blob(answer)),
                )
            case fx.Keep(sha256, raw):
                self._keeping.keep(run, sha256, len(raw), lambda: self._keep(drive, sha256, raw))
            case fx.Body():
                self._bodies.start(run, effect)
            case fx.CallOff(call):
                self._bodies.call_off(run, call)
            case fx.Pause(detail, code):
                detail = self._vault.hidden(detail)[:TEXT]
                self._ask(
                    drive,
                    lambda id_: (PauseRequest(id=id_, run=run, code=code, detail=detail),),
                    lambda _: None,
                )
            case fx.Starve():
                self._starved.add(drive)
            case fx.Credit():
                self._wire.send(RunLogCredit(run=run))
            case fx.Leave(reason):
                print(f"waypost.child: left {run}: {reason}", file=sys.stderr)  # noqa: T201 - the child's log
                self._drives.pop(run, None)
                self._starved.forget(run)
                self._keeping.forget(run)
            case _:
                assert_never(effect)

    def _ask(self, drive: Drive, make: Make, heard: Heard) -> None:
        def touching(answer: Answer) -> None:
            self._touched[drive.run] = drive
            heard(answer)

        self._wire.ask(make, touching)

    def _keep(self, drive: Drive, sha256: str, raw: bytes) -> None:
        def told(why: str | None) -> None:
            if why is not None:
                self._keeping.let_go(drive.run, (sha256,))
            drive.kept(sha256, why)

        self._ask(drive, lambda id_: tuple(puts(id_, drive.run, sha256, raw, self._limits.chunk)), _told(told))

    def _append(self, drive: Drive, events: tuple[ev.AnyEvent, ...]) -> None:
        events = tuple(map(self._vault.clean, events))
        raw = tuple(map(ev.proposed, events))

        def heard(answer: Answer) -> None:
            if not isinstance(answer, AppendResponse):
                raise HostBroke(f"an append was answered by {type(answer).__name__}")
            refused = optional(answer.refused)
            if refused is None:
                self._keeping.let_go(drive.run, ev.blobs(events))
            drive.appended(events, refused, optional(answer.code) or "")

        self._ask(drive, lambda id_: (AppendRequest(id=id_, run=drive.run, events=raw),), heard)


def _merged(effects: Iterable[fx.Effect]) -> Iterator[fx.Effect]:
    """Let results that are recorded one after another travel together. They are legal whenever each one is."""
    results: list[ev.AnyEvent] = []
    for effect in effects:
        if isinstance(effect, fx.Append) and isinstance(effect.events[0], ev.StepCompleted | ev.StepFailed):
            results.extend(effect.events)
            continue
        if results:
            yield fx.Append(tuple(results))
            results = []
        yield effect
    if results:
        yield fx.Append(tuple(results))


def _parts(events: tuple[ev.AnyEvent, ...]) -> Iterator[tuple[ev.AnyEvent, ...]]:
    """Cut a batch where it wouldn't fit into a frame."""
    part: list[ev.AnyEvent] = []
    room = FRAME_ROOM
    for event in events:
        size = len(ev.proposed(event))
        if part and (size > room or len(part) == FRAME_EVENTS):
            yield tuple(part)
            part, room = [], FRAME_ROOM
        part.append(event)
        room -= size
    yield tuple(part)


def _blob(answer: Answer) -> bytes:
    if isinstance(answer, bytes):
        return answer
    raise HostBroke(f"a blob that an event names was not given: {optional(answer.refused)}")


def _told(heard: Callable[[str | None], None]) -> Callable[[Answer], None]:
    """For requests that are taken or refused."""

    def take(answer: Answer) -> None:
        if not isinstance(answer, BlobStored | OutboundResult | CancelResult | SpawnResult):
            raise HostBroke(f"a request was answered by {type(answer).__name__}")
        heard(optional(answer.refused))

    return take
