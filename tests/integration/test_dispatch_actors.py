"""Dispatch, scheduler and broadcaster as actors, on a real SubstrateActor and a real repository.

The child is a listener that keeps what it is sent; what a child would ask for, the test submits as that child.
"""

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors.dispatch import DispatchActor
from actors.exits import ExitCounted
from actors.messages import DeploymentSpec, GenerationDown, GenerationUp, Seen, SeenQueued, Send, Watch
from actors.scheduler import SchedulerActor
from actors.terminal import TerminalBroadcasterActor
from ipc.messages import EventsCommitted, RunLive, RunStart
from substrate import Reader, Settings, SigningKey, SubstrateActor, message_ids
from substrate.messages import (
    Append,
    BeginGeneration,
    Done,
    Enqueue,
    Open,
    Stage,
    Submit,
    Subscribe,
    WorkflowProcess,
)
from waypost.model import events as ev
from waypost.model.ids import CallId, Deployment, Generation, RunId
from waypost.model.limits import Limits
from waypost.shell import ActorEnded, Ref, request
from waypost.testing.clock import ManualClock
from waypost.testing.listener import Listener
from waypost.testing.patience import PATIENCE

HASH = "a" * 64
ADDRESS = "expenses@example.com"
SPEC = DeploymentSpec(
    name=Deployment("expenses"),
    address=ADDRESS,
    definition=HASH,
    code=HASH,
    file="expenses.py",
    steps=(),
    mail_to=(),
    runs="thread",
    env=(),
    python="3.11",
    waypost="0",
)


class Place:
    """A deployment without a supervisor: the test plays it, and the child."""

    def __init__(self, folder: Path) -> None:
        self.path, self.key, self.clock = folder / "expenses.git", SigningKey.generate(), ManualClock()
        self.child, self.watcher, self.parent = Listener(), Listener(), Listener()
        self.refs: list[Ref] = []
        self.heard: deque[Any] = deque()
        self.generation = Generation(0)
        self.begin()

    def begin(self) -> None:
        """All four actors, from what is on disk."""
        settings = Settings(deployment="expenses", address=ADDRESS, message_id=message_ids(b"k" * 32, ADDRESS))
        limits = Limits(page=900, page_credit=100)
        self.substrate = SubstrateActor.start(self.path, settings, self.key, clock=self.clock)
        assert isinstance(request(self.substrate, Open(), timeout=PATIENCE), Done)
        self.broadcaster = TerminalBroadcasterActor.start(SPEC.name, clock=self.clock)
        parent = self.parent.ref
        self.dispatch = DispatchActor.start(SPEC, self.substrate, clock=self.clock, limits=limits, parent=parent)
        self.scheduler = SchedulerActor.start(SPEC.name, self.substrate, clock=self.clock)
        self.refs = [self.scheduler, self.dispatch, self.broadcaster, self.substrate]
        self.broadcaster.tell(Watch(None, self.watcher.ref))
        for subscriber in (self.broadcaster, self.dispatch, self.scheduler):
            self.substrate.tell(Subscribe(subscriber))

    def end(self) -> None:
        """Youngest first."""
        for ref in self.refs:
            ref.stop(timeout=PATIENCE)
        self.refs = []

    def submit(self, what: Any) -> Any:
        """One operation, durable; its value."""
        result = request(self.substrate, Submit(what=what, stage=Stage.DURABLE), timeout=PATIENCE)
        assert isinstance(result, Done), result
        return result.value

    def up(self) -> None:
        """The next generation's child is ready."""
        self.generation = self.submit(BeginGeneration())
        self.dispatch.tell(GenerationUp(self.generation, self.child.ref))

    def append(self, run: RunId, *events: ev.AnyEvent) -> None:
        """The child appends."""
        self.submit(Append(by=WorkflowProcess(self.generation), run=run, events=events))

    def mail(self, name: str, answers: str = "") -> None:
        """A mail comes."""
        thread = f"In-Reply-To: <{answers}>\r\n" if answers else ""
        self.submit(Enqueue(f"Message-ID: <{name}>\r\nFrom: bob@example.com\r\n{thread}\r\ntext\r\n".encode()))

    def sent(self, kind: type) -> Any:
        """The next message of this kind to the child."""
        while True:
            if not self.heard:
                self.heard.extend(self.child.next(Send).payloads)
            if isinstance(payload := self.heard.popleft(), kind):
                return payload

    def seen(self, kind: str) -> ev.AnyEvent:
        """The next event of this kind that the watcher sees."""
        while ev.kind((seen := self.watcher.next(Seen)).recorded.event) != kind:
            pass
        event: ev.AnyEvent = seen.recorded.event
        return event


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A deployment, ended after the test."""
    found = Place(tmp_path)
    yield found
    found.end()
    for listener in (found.child, found.watcher, found.parent):
        listener.stop()


def result() -> ev.Value:
    return ev.Value(inline=msgspec.Raw(b"1"))


def test_a_mail_becomes_a_run_that_the_child_is_given_and_that_a_second_mail_resumes(place):
    """The whole way of a mail through dispatch, with real commits under it."""
    place.up()
    place.mail("claim@x")
    run = RunId(place.sent(RunStart).run)
    place.sent(RunLive)
    place.append(run, ev.SignalAwaited(call=CallId("r1#1"), park="input", seen=1))
    place.mail("answer@x", answers="claim@x")
    events: list[str] = []
    while "SignalReceived" not in events:
        events += [ev.kind(ev.decode(raw)) for raw in place.sent(EventsCommitted).events]
    assert events == ["SignalAwaited", "SignalReceived"]
    place.append(run, ev.RunCompleted(result=result()))
    assert place.watcher.next(SeenQueued).sender == "bob@example.com"
    assert isinstance(place.seen("RunCompleted"), ev.RunCompleted)


def test_a_run_is_resumed_in_the_next_generation_and_after_a_restart_of_all_actors(place):
    """What happens next follows from the log, and so does the count: no end of the host counts, none forgets one."""
    place.up()
    place.mail("claim@x")
    run = RunId(place.sent(RunLive).run)
    place.append(run, ev.StepStarted(call=CallId("r1#1"), step="pay", arguments=HASH))
    place.dispatch.tell(GenerationDown(place.generation, unexpected=True, reason="ended by SIGSEGV"))
    assert [each.run for each in place.parent.next(ExitCounted).runs] == [run]
    place.end()
    place.begin()
    place.up()
    assert place.sent(RunStart).last_seq == 4
    place.end()
    place.begin()
    place.up()
    assert place.sent(RunStart).last_seq == 5
    place.sent(RunLive)
    place.end()
    log = [ev.decode(raw) for raw in Reader.open(place.path, place.key.public).log(run)]
    attempts = [event.attempt for event in log if isinstance(event, ev.RunResumed)]
    assert attempts == [1, 1]


def test_a_timer_fires_when_the_clock_is_turned_and_after_a_restart(place):
    """Absolute wall time: of an hour's sleep, half passes while nobody is there."""
    place.up()
    place.mail("claim@x")
    run = RunId(place.sent(RunLive).run)
    place.append(run, ev.TimerSet(call=CallId("r1#1"), timer="r1#1", delay=3600.0, seen=1))
    place.append(run, ev.TimerSet(call=CallId("r1#2"), timer="r1#2", delay=60.0, seen=1))
    place.clock.advance(60)
    fired = place.seen("TimerFired")
    assert isinstance(fired, ev.TimerFired)
    assert fired.timer == "r1#2"
    place.end()
    place.clock.advance(3600)
    place.begin()
    later = place.seen("TimerFired")
    assert isinstance(later, ev.TimerFired)
    assert later.timer == "r1#1"


def test_a_watcher_that_has_gone_is_forgotten_and_harms_nobody(place):
    """Somebody closed a terminal: the broadcaster goes on for the others."""
    gone = Listener()
    place.broadcaster.tell(Watch(None, gone.ref))
    gone.stop()
    place.up()
    place.mail("claim@x")
    assert isinstance(place.seen("RunStarted"), ev.RunStarted)


def test_a_message_out_of_turn_ends_the_dispatch_and_its_parent_is_told(place):
    """Let it crash: everything is made anew from the log, nothing is guessed."""
    place.dispatch.tell("nonsense")
    ended = place.parent.next(ActorEnded)
    assert ended.name == "expenses/dispatch"
    assert ended.failure is not None
