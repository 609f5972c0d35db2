"""The mail bus and the courier as real actors over a real disk; a scripted supervisor answers as it is told."""

import os
from collections.abc import Iterator
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import pykka
import pytest

from actors.messages import Forward, Woken
from substrate.messages import (
    Accepted,
    Done,
    Enqueue,
    MailDelivered,
    OutboxAdded,
    Outcome,
    Refused,
    Result,
    Snapshot,
    Withheld,
)
from waypost.acting import Ref
from waypost.host.datadir.directory import DataDir, lay_out, prepare
from waypost.host.errors import NoSuchAddress
from waypost.host.mail.bus import MailBusActor
from waypost.host.mail.courier import CourierActor
from waypost.host.mail.spool import leave, waiting
from waypost.host.messages import Deliver, Route, Routes, Serve, WorkerBroke
from waypost.model.ids import CallId, Deployment, Generation, RunId
from waypost.model.limits import Limits
from waypost.model.queue import Outgoing
from waypost.shell import ActorBroken, request
from waypost.testing.clock import ManualClock
from waypost.testing.patience import PATIENCE

RUN = RunId("run_1_0000000000000000")
RAW = b"From: ann@example.com\r\nSubject: x\r\n\r\nhello\r\n"
ACCEPTED = Done(1, Accepted("enqueued", RUN, 1))
NAME = Deployment("expenses")


class Scripted(pykka.ThreadingActor):
    """Tells the test what it is told, and answers each forwarded operation with the next result."""

    use_daemon_thread = True

    def __init__(self, seen: "SimpleQueue[Any]", results: "SimpleQueue[Result]") -> None:
        super().__init__()
        self._seen, self._results = seen, results

    def on_receive(self, message: Any) -> None:
        """Note it, answer it."""
        if isinstance(message, Forward):
            assert message.reply_to is not None
            self._seen.put(message.what)
            message.reply_to.tell(Outcome(message.correlation, self._results.get(timeout=PATIENCE)))
        elif message != "ping":
            self._seen.put(message)


class Stage:
    """A bus on a data directory; behind its one address sits the test."""

    def __init__(self, path: Path) -> None:
        self.data: DataDir = prepare(path / "data", mountinfo="")
        lay_out(self.data)
        self.spool = self.data.spool(NAME)
        self.clock = ManualClock()
        self.seen: SimpleQueue[Any] = SimpleQueue()
        self.results: SimpleQueue[Result] = SimpleQueue()
        self.ended: SimpleQueue[Any] = SimpleQueue()
        self.supervisor: Ref = Scripted.start(self.seen, self.results)
        self.parent: Ref = Scripted.start(self.ended, self.results)
        self.bus: Ref = MailBusActor.start(self.data, limits=Limits(), clock=self.clock, parent=self.parent)

    def route(self) -> None:
        """Let the bus know the address; its first look into the spool follows."""
        self.bus.tell(Routes({"expenses@example.com": Route(NAME, self.supervisor)}))

    def answer(self, *results: Result) -> list[Any]:
        """Let the next operations have these results; the operations. The bus has taken all answers by then."""
        for result in results:
            self.results.put(result)
        operations = [self.seen.get(timeout=PATIENCE) for _ in results]
        self.supervisor.ask("ping", timeout=PATIENCE)
        self.barrier()
        return operations

    def barrier(self) -> None:
        """Wait until the bus has dealt with all that it was told so far."""
        with pytest.raises(NoSuchAddress):
            request(self.bus, Deliver("nobody@example.com", RAW), timeout=PATIENCE)

    def look_again(self) -> None:
        """Let as much time pass as the bus leaves between two looks into the spool."""
        self.clock.advance(Limits().spool_poll)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    for ref in (made.bus, made.supervisor, made.parent):
        if ref.is_alive():
            ref.stop(timeout=PATIENCE)


def test_a_door_answers_after_the_supervisor(stage: Stage) -> None:
    """What the supervisor has made durable, and nothing else, is accepted."""
    stage.route()
    stage.results.put(ACCEPTED)
    assert request(stage.bus, Deliver("expenses@example.com", RAW), timeout=PATIENCE).run == RUN
    assert stage.seen.get(timeout=PATIENCE) == Enqueue(RAW)


def test_a_bus_that_fails_is_reported_once_and_keeps_nobody_waiting(stage: Stage) -> None:
    """Whoever knocks later is told at once; the root makes another one."""
    stage.route()
    stage.bus.tell(WorkerBroke("bug"))
    ended = stage.ended.get(timeout=PATIENCE)
    assert (ended.name, ended.failure) == ("mail-bus", "RuntimeError('bug')")
    with pytest.raises((ActorBroken, pykka.ActorDeadError)):
        request(stage.bus, Deliver("expenses@example.com", RAW), timeout=PATIENCE)
    with pytest.raises(Empty):
        stage.ended.get_nowait()


def test_a_spool_is_emptied_in_order_and_nothing_in_it_is_lost(stage: Stage) -> None:
    """Enqueued: gone. Withheld: found again. Refused, or no mail: kept aside with the reason."""
    second, third = RAW + b"2", RAW + b"3"
    for raw in (RAW, b"no mail at all", second):
        leave(stage.spool, raw)
    stage.route()
    assert stage.answer(ACCEPTED, Withheld("the disk is full")) == [Enqueue(RAW), Enqueue(second)]
    stage.look_again()
    assert stage.answer(Refused("never", "nobody wants it")) == [Enqueue(second)]
    leave(stage.spool, third)
    stage.look_again()
    # The worker takes its jobs in turn: by the time of this look the two before have been carried out.
    assert stage.answer(ACCEPTED) == [Enqueue(third)]
    kept = sorted((stage.spool / "cur").iterdir(), key=lambda path: path.name)
    assert [path.read_bytes() for path in kept if path.suffix != ".reason"] == [b"no mail at all", second]
    reasons = [path.read_text() for path in kept if path.suffix == ".reason"]
    assert "not a mail" in reasons[0]
    assert reasons[1] == "nobody wants it\n"
    assert [mail.path.read_bytes() for mail in waiting(stage.spool, NAME)] in ([], [third])


def test_what_is_no_file_in_a_spool_holds_up_no_mail(stage: Stage) -> None:
    """A pipe would keep its reader waiting for ever, a folder can't be read, a link may lead anywhere."""
    leave(stage.spool, RAW)
    new = stage.spool / "new"
    (new / "0-folder").mkdir()
    os.mkfifo(new / "0-pipe")
    (new / "0-link").symlink_to("/dev/zero")
    (new / "0-gone").symlink_to(new / "nowhere")
    stage.route()
    assert stage.answer(ACCEPTED) == [Enqueue(RAW)]
    aside = {path.name for path in (stage.spool / "cur").iterdir()}
    assert aside >= {f"0-{name}{end}" for name in ("folder", "pipe", "link", "gone") for end in ("", ".reason")}


def test_an_outbox_is_delivered_recorded_and_tried_again(stage: Stage) -> None:
    """A full disk at the recording is waited out; the Maildir has the mail once all the same."""
    stage.route()
    courier: Ref = CourierActor.start(NAME, limits=Limits(), clock=stage.clock, parent=stage.parent)
    outgoing = Outgoing(
        ordinal=3, run=RUN, call=CallId("r1#1"), message_id="<m@w>", to=("boss@example.com",), sha256="0" * 64
    )
    added = OutboxAdded(outgoing, RAW)
    try:
        courier.tell(Serve(stage.supervisor, stage.bus))
        courier.tell(Snapshot(position=4, repository="r", generation=Generation(1), runs=(), queue=(), outbox=(added,)))
        assert stage.answer(Withheld("the disk is full")) == [MailDelivered(3)]
        (there,) = (stage.data.out / "new").iterdir()
        assert there.read_bytes() == RAW
        there.rename(stage.data.out / "cur" / f"{there.name}:2,S")
        request_barrier(courier)
        stage.clock.advance(Limits().retry_first)
        assert stage.answer(Done(5)) == [MailDelivered(3)]
        assert list((stage.data.out / "new").iterdir()) == []
    finally:
        courier.stop(timeout=PATIENCE)


def request_barrier(ref: Ref) -> None:
    """Wait until an actor has dealt with all that it was told so far: a wake-up for nothing changes nothing."""
    ref.ask(Woken(999), timeout=PATIENCE)
