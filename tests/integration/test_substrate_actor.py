"""The SubstrateActor by messages, on a real repository: stages, the stream, failures, the end."""

import errno
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pykka
import pytest

from substrate import Reader, Settings, SigningKey, SubstrateActor, message_ids, verify
from substrate.effects import SpaceShort
from substrate.files.disk import Disk
from substrate.messages import (
    Append,
    BeginGeneration,
    Cancel,
    Claim,
    Committed,
    Done,
    Durable,
    Enqueue,
    Flush,
    Idle,
    Open,
    Outcome,
    Pause,
    ReadRuns,
    Refused,
    Seal,
    Signal,
    Snapshot,
    Stage,
    Submit,
    Subscribe,
    TakeUp,
    Withheld,
    WorkflowProcess,
)
from substrate.storage.heads import Heads
from substrate.storage.store import Store
from waypost.cli.running import warnings
from waypost.model import events as ev
from waypost.model.event_parts import Fault
from waypost.model.ids import Generation, RunId
from waypost.model.limits import Limits
from waypost.shell import ActorEnded, Ref, request
from waypost.testing.clock import ManualClock
from waypost.testing.desk import ADDRESS, STARTED, call, message
from waypost.testing.listener import Listener
from waypost.testing.patience import PATIENCE
from waypost.testing.stores import fsck, git

FAST = Limits(seal_idle=2.0, seal_age=5.0)


class Ears(pykka.ThreadingActor):
    """Keeps what it is told; an ask gives all of it back."""

    use_daemon_thread = True

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Any] = []

    def on_receive(self, message: Any) -> Any:
        """Keep it, or tell what was kept."""
        if message == "heard":
            return list(self.heard)
        self.heard.append(message)
        return None


def heard(ears: Ref) -> list[Any]:
    answer = ears.ask("heard", timeout=PATIENCE)
    assert isinstance(answer, list)
    return answer


def heard_of(ears: Ref, kind: type) -> list[Any]:
    """What it was told of this kind, as soon as there is something."""
    while not (found := [each for each in heard(ears) if isinstance(each, kind)]):
        pass
    return found


class Deployment:
    """One repository's path and key, and the actors that were started on it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "expenses.git"
        self.key = SigningKey.generate()
        self.clock = ManualClock()
        self.refs: list[Ref] = []
        self.ref: Ref

    def launch(
        self, *, disk: Disk | None = None, limits: Limits = FAST, parent: Ref | None = None, **other: str
    ) -> Ref:
        """An actor on this repository, not opened yet."""
        settings = Settings(
            deployment=other.get("deployment", "expenses"),
            address=other.get("address", ADDRESS),
            message_id=message_ids(b"k" * 32, ADDRESS),
            heads=Path(other["heads"]) if "heads" in other else None,
        )
        self.ref = SubstrateActor.start(
            self.path, settings, self.key, clock=self.clock, disk=disk, limits=limits, parent=parent
        )
        self.refs.append(self.ref)
        return self.ref

    def open(self, **how: Any) -> Snapshot:
        """An actor that is open; what it found."""
        self.launch(**how)
        snapshot = self.ask(Open()).value
        assert isinstance(snapshot, Snapshot)
        return snapshot

    def ask(self, body: Any) -> Any:
        """One question from outside."""
        return request(self.ref, body, timeout=PATIENCE)

    def submit(self, what: Any, stage: Stage = Stage.DURABLE) -> Any:
        """One operation that must succeed; its value."""
        result = self.ask(Submit(what=what, stage=stage))
        assert isinstance(result, Done), result
        return result.value

    def begin(self) -> RunId:
        """A generation, and a run of it."""
        self.submit(BeginGeneration())
        arrival = self.submit(Enqueue(message("m1@x"))).arrival
        self.submit(Claim(arrival))
        run: RunId = self.submit(TakeUp(arrival=arrival, start=STARTED))
        return run


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    made = Deployment(tmp_path)
    yield made
    for ref in made.refs:
        ref.stop()


@pytest.fixture
def ears() -> Iterator[Ref]:
    ref = Ears.start()
    yield ref
    ref.stop()


def step(run: RunId, number: int = 1, generation: int = 1) -> Append:
    event = ev.StepStarted(call=call(number), step="extract", arguments="0" * 64)
    return Append(by=WorkflowProcess(Generation(generation)), run=run, events=(event,))


def test_what_was_acknowledged_is_there_after_a_restart(deployment: Deployment) -> None:
    """Accepted means durable; a new actor on the same repository knows the run, its state and its queue."""
    deployment.open()
    run = deployment.begin()
    deployment.submit(step(run))
    deployment.submit(Enqueue(message("m2@x")))
    deployment.ref.stop()
    snapshot = deployment.open()
    assert [state.ledger.seq for state in snapshot.runs] == [2]
    assert [queued.entry.id for queued in snapshot.queue] == ["<m2@x>"]
    assert snapshot.generation == 1


def test_a_killed_writer_loses_nothing_that_it_acknowledged(deployment: Deployment) -> None:
    """No stop, no seal: what is on disk is a journal, and the next one recovers it."""
    deployment.open()
    run = deployment.begin()
    dead = deployment.path.with_name("dead.git")
    shutil.copytree(deployment.path, dead)
    deployment.path = dead
    snapshot = deployment.open()
    assert [state.ledger.run for state in snapshot.runs] == [run]


def test_the_stream_tells_visible_then_durable_in_one_order(deployment: Deployment, ears: Ref) -> None:
    """Every subscriber hears each position once as Committed, and Durable only for what it has heard of."""
    deployment.open()
    deployment.ask(Subscribe(ears))
    run = deployment.begin()
    for number in range(1, 40):
        deployment.ref.tell(Submit(what=step(run, number)))
    deployment.submit(ReadRuns())
    told = heard(ears)
    assert isinstance(told[0], Snapshot)
    position, durable = told[0].position, told[0].position
    for each in told[1:]:
        match each:
            case Committed():
                assert each.first == position + 1
                position = each.last
                assert each.facts
            case Durable():
                assert durable < each.up_to <= position
                durable = each.up_to
            case _:
                raise AssertionError(each)
    assert position == durable == 4 + 39


def test_a_visible_answer_comes_before_the_durable_one(deployment: Deployment, ears: Ref) -> None:
    """The child goes on after Committed; whatever leaves waits for the disk."""
    hold = threading.Event()

    class Slow(Disk):
        def sync_data(self, descriptor: int, path: str, size: int) -> None:
            assert hold.wait(PATIENCE)
            super().sync_data(descriptor, path, size)

    hold.set()
    deployment.open(disk=Slow())
    run = deployment.begin()
    hold.clear()
    deployment.ref.tell(Submit(what=step(run, 1), stage=Stage.DURABLE, reply_to=ears, correlation=1))
    deployment.ref.tell(Submit(what=step(run, 2), stage=Stage.COMMITTED, reply_to=ears, correlation=2))
    deployment.ref.tell(Submit(what=step(run, 2), stage=Stage.COMMITTED, reply_to=ears, correlation=3))
    later = deployment.ref.ask(Flush(), block=False)
    # The visible answer comes while the disk is still at work, the durable one doesn't.
    assert all(outcome.correlation != 1 for outcome in heard_of(ears, Outcome))
    hold.set()
    later.get(timeout=PATIENCE)
    by_number = {outcome.correlation: outcome.result for outcome in heard(ears)}
    assert isinstance(by_number[1], Done)
    assert by_number[2] == Done(by_number[1].position + 1, 3)
    assert isinstance(by_number[3], Refused)


def test_sixty_four_pending_operations_are_flushed_without_waiting(deployment: Deployment) -> None:
    """A batch has an end even if the mailbox never does."""
    deployment.open(limits=Limits(flush_operations=4))
    run = deployment.begin()
    before = deployment.submit(ReadRuns())
    assert before
    flush_number = deployment.ask(Seal()).value
    for number in range(1, 9):
        deployment.ref.tell(Submit(what=step(run, number), stage=Stage.COMMITTED))
    assert deployment.ask(Seal()).value >= flush_number + 2


@pytest.mark.parametrize(("fails", "found"), [("write", {1}), ("sync", {1, 2})])
def test_a_failed_flush_withholds_the_batch_and_ends_the_actor(
    deployment: Deployment, ears: Ref, caplog: pytest.LogCaptureFixture, fails: str, found: set[int]
) -> None:
    """Never retried on the same file: who waited is told, the parent starts another from what is durable.

    After a sync that failed, what was written may be there or not, as after any crash: withheld promises neither. And
    an operator reads in the log what the disk did, not where in our code that was noticed.
    """

    class Failing(Disk):
        armed = False

        def point(self, operation: str, path: str) -> None:
            if self.armed and operation == fails:
                raise OSError(errno.EIO, "broken", path)
            super().point(operation, path)

    disk = Failing()
    deployment.open(disk=disk, parent=ears)
    run = deployment.begin()
    disk.armed = True
    deployment.ref.tell(Submit(what=step(run), reply_to=ears, correlation=7))
    (ended,) = heard_of(ears, ActorEnded)
    assert (ended.failure or "").endswith("writing failed: broken")
    (outcome,) = heard_of(ears, Outcome)
    told = [record for record in caplog.records if warnings().filter(record)]
    assert [(record.getMessage().endswith("writing failed: broken"), record.exc_info) for record in told] == [
        (True, None)
    ]
    assert (outcome.correlation, type(outcome.result)) == (7, Withheld)
    snapshot = deployment.open()
    assert {state.ledger.seq for state in snapshot.runs} <= found


def test_a_full_disk_withholds_new_mail_first_and_ends_by_itself(deployment: Deployment) -> None:
    """Running runs go on in what is left; no run starts; when there is space again, mail is taken again."""

    class Full(Disk):
        full = False

        def reserve(self, descriptor: int, path: str, size: int) -> None:
            if self.full:
                raise OSError(errno.ENOSPC, "No space left on device", path)
            super().reserve(descriptor, path, size)

    disk = Full()
    limits = Limits(seal_bytes=4 * 2**20, seal_idle=2.0)
    host = Listener()
    deployment.open(disk=disk, limits=limits, parent=host.ref)
    run = deployment.begin()
    disk.full = True
    big = message("big@x", text="x" * 3_500_000)
    assert deployment.submit(Enqueue(big)).outcome == "enqueued"
    withheld = deployment.ask(Submit(what=Enqueue(message("m2@x"))))
    assert isinstance(withheld, Withheld)
    assert "disk is full" in withheld.reason
    assert host.next(SpaceShort) == SpaceShort(withheld.reason, 1)
    assert isinstance(deployment.ask(Submit(what=Enqueue(message("m2@x")))), Withheld)
    deployment.submit(step(run))
    deployment.submit(Pause(run=run, code="operator", detail=""))
    disk.full = False
    deployment.clock.advance(10.0)
    assert host.next(SpaceShort) == SpaceShort("", 1), "told once that it began, and once that it is over"
    host.stop()
    assert deployment.submit(Enqueue(message("m2@x"))).outcome == "enqueued"


def test_the_last_of_a_full_disk_is_for_what_ends_a_run(deployment: Deployment) -> None:
    """A run that fills the disk must be there to be cancelled; a signal can wait for space."""

    class Full(Disk):
        full = False

        def reserve(self, descriptor: int, path: str, size: int) -> None:
            if self.full:
                raise OSError(errno.ENOSPC, "No space left on device", path)
            super().reserve(descriptor, path, size)

    disk = Full()
    deployment.open(disk=disk, limits=Limits(seal_bytes=4 * 2**20, seal_idle=2.0, reserve=1_700_000))
    run = deployment.begin()
    disk.full = True
    assert deployment.submit(Enqueue(message("big@x", text="x" * 3_500_000))).outcome == "enqueued"
    for late in (Signal(run=run, name="paid", id=f"s{size}", payload=b"1" * size) for size in (10**6, 10**5)):
        assert isinstance(deployment.ask(Submit(what=late)), Withheld), "what is kept for ends is not for these"
    assert deployment.submit(Cancel(run=run, reason="enough", origin="supervisor-operator")).fresh
    deployment.submit(Append(by=WorkflowProcess(Generation(1)), run=run, events=(ev.RunCancelled(),)))


def test_stop_flushes_and_answers_before_it_lets_go(deployment: Deployment, ears: Ref) -> None:
    """A polite stop loses nothing, and stock git sees all of it."""
    deployment.open()
    run = deployment.begin()
    deployment.ref.tell(Submit(what=step(run), reply_to=ears, correlation=1))
    deployment.ref.stop(timeout=PATIENCE)
    (outcome,) = heard(ears)
    assert isinstance(outcome.result, Done)
    assert f"append StepStarted extract r1#1 to {run}" in git(deployment.path, "log", "--format=%s")
    assert fsck(deployment.path) == ""
    assert verify(deployment.path, deployment.key.public).sound


@pytest.mark.parametrize("limits", [Limits(seal_objects=1), FAST], ids=["a seal is due", "a run has ended"])
def test_a_stop_comes_to_its_end_whatever_was_still_to_be_done(
    deployment: Deployment, ears: Ref, caplog: pytest.LogCaptureFixture, limits: Limits
) -> None:
    """The batch is flushed by the end itself, and nobody is there any more who could take up what follows it."""

    class Stopper:
        """Ends it in the middle of a batch: what it is told is told by the actor itself, before it asks for a flush."""

        def tell(self, message: Any) -> None:
            if isinstance(message, Committed):
                deployment.ref.stop(block=False)

        def is_alive(self) -> bool:
            return True

    deployment.open(limits=limits, parent=ears)
    run = deployment.begin()
    subscribed: Any = Stopper()
    deployment.ref.tell(Subscribe(subscribed))
    failed = ev.RunFailed(error=Fault(type="ValueError", message="no"))
    deployment.ref.tell(Submit(what=Append(by=WorkflowProcess(Generation(1)), run=run, events=(failed,))))
    assert heard_of(ears, ActorEnded) == [ActorEnded("expenses/substrate", 1, None)]
    assert "failed while it let go" not in caplog.text
    assert f"append RunFailed to {run}" in git(deployment.path, "log", "--format=%s"), "a clean stop seals"
    assert verify(deployment.path, deployment.key.public).sound


def test_idle_time_seals(deployment: Deployment) -> None:
    """Two quiet seconds after the last flush stock git sees what happened."""
    deployment.open()
    deployment.begin()
    deployment.clock.advance(2.0)
    deployment.clock.advance(2.0)
    deployment.submit(ReadRuns())
    assert "take up mail 1" in git(deployment.path, "log", "--format=%s")
    deployment.ref.tell(Idle())
    deployment.submit(ReadRuns())


@pytest.mark.parametrize(
    ("case", "code"),
    [
        ("damaged", "damaged"),
        ("newer", "newer-format"),
        ("other address", "foreign"),
        ("no repository", "unreadable"),
        ("gone", "rolled-back"),
    ],
)
def test_a_repository_that_can_not_be_opened_is_refused_in_words(deployment: Deployment, case: str, code: str) -> None:
    """Never guessed at, never taken for a new and empty one; nothing else is accepted meanwhile."""
    deployment.open()
    deployment.begin()
    deployment.ref.stop(timeout=PATIENCE)
    other: dict[str, Any] = {}
    match case:
        case "damaged":
            (deployment.path / "refs/heads/log").write_text("")
        case "newer":
            deployment.path = newer(deployment.path, deployment.key)
        case "other address":
            other["address"] = "claims@example.com"
        case "no repository":
            deployment.path = deployment.path.with_name("plain")
            deployment.path.mkdir()
        case "gone":
            note = deployment.path.with_name("heads") / "r.json"
            Store.open(deployment.path, key=deployment.key, heads=Heads(note, Disk())).close()
            deployment.path.rename(deployment.path.with_name("away"))
            other["heads"] = str(note)
        case _:
            raise AssertionError(case)
    deployment.launch(**other)
    refused = deployment.ask(Open())
    assert isinstance(refused, Refused)
    assert refused.code == code
    assert str(deployment.path) in refused.why
    assert refused.hint
    assert isinstance(deployment.ask(Submit(what=BeginGeneration())), Withheld)


def newer(path: Path, key: SigningKey) -> Path:
    """A repository that says it was written by a later version."""
    store = Store.open(path, key=key)
    raw = store.read("format.json") or b""
    store.commit(
        author="supervisor <supervisor@deployment.waypost>",
        subject="come from the future",
        puts={"format.json": raw.replace(b'"format":1', b'"format":99')},
        at=0,
    )
    store.close()
    return path


def test_a_reader_sees_every_acknowledged_write_and_touches_nothing(deployment: Deployment) -> None:
    """With a host at work and after it was killed: `waypost show` needs nobody's permission."""
    deployment.open()
    run = deployment.begin()
    deployment.submit(step(run))
    before = {path: path.stat().st_mtime_ns for path in deployment.path.rglob("*") if path.is_file()}
    reader = Reader.open(deployment.path, deployment.key.public)
    assert reader.run(run).seq == 2
    assert [line.state for line in reader.runs()] == ["running"]
    assert len(list(reader.log(run, after=1))) == 1
    assert reader.page(run, limit=1).last == 2
    assert reader.mail(1) == message("m1@x")
    assert [(line.place, line.entry.arrival) for line in reader.queue(consumed=True)] == [("consumed", 1)]
    facts = reader.facts()
    assert (facts.deployment, facts.address, facts.generation) == ("expenses", ADDRESS, 1)
    assert facts.sealed < facts.flush
    assert before == {path: path.stat().st_mtime_ns for path in deployment.path.rglob("*") if path.is_file()}
