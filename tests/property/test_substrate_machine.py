"""Random operations on a real store, with crashes, power cuts and restarts between any two, against plain dicts.

What was visible and not durable is gone after a death, in the repository and in the dicts alike; the rest stays.
"""

import tempfile
from pathlib import Path

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from substrate import Reader, SigningKey, layout, runlog, verify
from substrate.messages import (
    Append,
    BeginGeneration,
    Claim,
    Enqueue,
    MailDelivered,
    QueueMail,
    Refused,
    Reject,
    RejectHeld,
    Release,
    ReleaseHeld,
    Supervisor,
    TakeUp,
    WorkflowProcess,
)
from substrate.operations import Change, Settled
from substrate.operations.buckets import BUCKET_AGE
from substrate.storage.readview import open_readonly
from substrate.storage.store import Store
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import Generation, RunId, message_key
from waypost.testing.desk import ADDRESS, BOSS, REPOSITORY, STARTED, Desk, call, first_files, message
from waypost.testing.disks import RecordingDisk, power_cut
from waypost.testing.stores import AT, fsck

KEY = SigningKey.generate()
NULL = ev.Value(inline=msgspec.Raw(b"null"))
DICTS = ("places", "raws", "clashes", "consumed", "seqs")
"""What a death takes back to where it was durable."""


class Substrate(RuleBasedStateMachine):
    """The queue as a dict of places, the runs as dicts of how many events they have."""

    @initialize()
    def create(self) -> None:
        """A new repository."""
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "r.git"
        self.record = Path(self.folder.name) / "durable"
        self.disk = RecordingDisk(self.record)
        self.store = Store.create(
            self.path, repository_id=REPOSITORY, key=KEY, first=first_files(), at=AT, disk=self.disk
        )
        self.file = Path(self.folder.name) / "derived" / "runs.sqlite"
        self.older: bytes | None = None
        self.desk = Desk(self.store)
        self.desk.reopen(self.store, self.file)
        self.places: dict[int, str] = {}
        self.raws: dict[str, bytes] = {}
        self.clashes: dict[bytes, int] = {}
        self.consumed: dict[int, int] = {}
        self.seqs: dict[RunId, int] = {}
        self.calls = self.cuts = 0
        self.desk.begin()
        self.flush()

    def at(self, place: str) -> list[int]:
        """The mails that are here."""
        return [arrival for arrival, where in self.places.items() if where == place]

    def live(self) -> list[RunId]:
        """Runs that haven't ended."""
        return [run for run in self.seqs if self.desk.index.standing(run) == "live"]

    @rule(name=st.integers(0, 12), answers=st.integers(0, 12) | st.none())
    def enqueue(self, name: int, answers: int | None) -> None:
        """A mail, perhaps again, perhaps in a thread."""
        raw = message(f"m{name}@x", answers=None if answers is None else f"m{answers}@x")
        waiting = (*self.at("inbox"), *self.at("processing"))
        before = {self.desk.index.queue[arrival].queued.entry.key for arrival in waiting}
        decided = self.desk.do(Enqueue(raw))
        key = message_key(f"<m{name}@x>".encode())
        match decided:
            case Change():
                assert key not in before or decided.value.place == "hold"
                assert decided.value.arrival not in self.places
                self.places[decided.value.arrival] = decided.value.place
                if decided.value.place == "hold":
                    assert self.raws[key] != raw
                    assert raw not in self.clashes or self.places[self.clashes[raw]] == "forgotten"
                    self.clashes[raw] = decided.value.arrival
                else:
                    self.raws[key] = raw
            case Settled():
                place = self.places[decided.value.arrival]
                if place == "forgotten":  # and known all the same, as long as its run lives
                    assert self.desk.index.standing(decided.value.run) == "live"
                    place = "consumed"
                assert place == decided.value.place
                assert self.raws[key] == raw or raw in self.clashes
            case _:
                raise AssertionError(decided)

    @precondition(lambda self: self.at("inbox"))
    @rule(data=st.data())
    def claim(self, data: st.DataObject) -> None:
        """Any mail of the inbox."""
        arrival = data.draw(st.sampled_from(self.at("inbox")))
        self.desk.must(Claim(arrival))
        self.places[arrival] = "processing"

    @precondition(lambda self: self.at("processing"))
    @rule(data=st.data(), what=st.sampled_from(["start", "wait", "reject", "release"]))
    def settle(self, data: st.DataObject, what: str) -> None:
        """Whatever may be done with a claim; some of it is refused."""
        arrival = data.draw(st.sampled_from(self.at("processing")))
        run = self.desk.index.queue[arrival].queued.entry.run
        match what:
            case "start":
                ended = self.desk.index.standing(run) == "ended"
                decided = self.desk.do(TakeUp(arrival=arrival, start=STARTED, reroute=ended))
            case "wait":
                ledger = fold.ledger(self.desk.index.known(run).run)
                waits = list(ledger.waits) if ledger is not None else []
                decided = self.desk.do(TakeUp(arrival=arrival, wait=waits[0] if waits else call(99_999)))
            case "reject":
                decided = self.desk.do(Reject(arrival, "test"))
            case _:
                decided = self.desk.do(Release(arrival))
        if isinstance(decided, Refused):
            return
        self.places[arrival] = "inbox" if what == "release" else "consumed"
        self.consumed[arrival] = self.desk.wall
        if what in {"start", "wait"}:
            assert isinstance(decided, Change)
            self.seqs[decided.value] = self.seqs.get(decided.value, 0) + 1
            # A reroute takes other claims of the ended run back to the inbox.
            for other in self.at("processing"):
                if not self.desk.index.queue[other].claimed:
                    self.places[other] = "inbox"

    @precondition(lambda self: self.at("hold"))
    @rule(data=st.data(), let_in=st.booleans())
    def decide_on_hold(self, data: st.DataObject, *, let_in: bool) -> None:
        """The operator lets a mail in, or rejects it."""
        arrival = data.draw(st.sampled_from(self.at("hold")))
        self.desk.must(ReleaseHeld(arrival) if let_in else RejectHeld(arrival))
        self.places[arrival] = "inbox" if let_in else "consumed"
        self.consumed[arrival] = self.desk.wall

    @precondition(lambda self: self.live())
    @rule(data=st.data(), what=st.sampled_from(["step", "many", "wait", "mail", "end"]))
    def work(self, data: st.DataObject, what: str) -> None:
        """The child does something in a run that it was given."""
        run = data.draw(st.sampled_from(self.live()))
        generation = Generation(self.desk.index.state.generation)
        by = WorkflowProcess(generation)
        ledger = fold.ledger(self.desk.index.known(run).run)
        assert ledger is not None
        if ledger.generation != generation:
            resumed = ev.RunResumed(generation=generation)
            self.desk.must(Append(by=Supervisor(), run=run, events=(resumed,)))
            self.seqs[run] += 1
        self.calls += 1
        name = call(self.calls)
        begun = ev.StepStarted(call=name, step="s", arguments="0" * 64)
        done = ev.StepCompleted(call=name, output=NULL)
        seen = self.seqs[run]
        match what:
            case "step":
                self.append(by, run, begun, done)
            case "many":
                self.append(by, run, *[each for _ in range(35) for each in self.one_step()])
            case "wait":
                self.append(by, run, ev.SignalAwaited(call=name, park="input", seen=seen))
            case "mail":
                self.desk.must(QueueMail(by=by, run=run, call=name, to=(BOSS,), subject="s", text="t"))
                self.seqs[run] += 1
            case _:
                self.append(by, run, ev.RunCompleted(result=NULL))

    def one_step(self) -> tuple[ev.AnyEvent, ev.AnyEvent]:
        """A new call that begins and returns."""
        self.calls += 1
        name = call(self.calls)
        return (
            ev.StepStarted(call=name, step="s", arguments="0" * 64),
            ev.StepCompleted(call=name, output=NULL),
        )

    def append(self, by: WorkflowProcess, run: RunId, *events: ev.AnyEvent) -> None:
        """Append as the child."""
        self.desk.must(Append(by=by, run=run, events=events))
        self.seqs[run] += len(events)

    @precondition(lambda self: self.desk.index.outbox)
    @rule()
    def deliver(self) -> None:
        """The oldest outgoing mail is sent."""
        ordinal, added = next(iter(self.desk.index.outbox.items()))
        self.desk.must(MailDelivered(ordinal))
        if not added.outgoing.about:  # a notice belongs to no run
            self.seqs[added.outgoing.run] += 1

    @rule()
    def fold_away(self) -> None:
        """The run that has been finished longest is sealed; it reads as before."""
        self.desk.fold_away()

    @rule(days=st.sampled_from([1, 8]), through=st.booleans())
    def days_pass(self, days: int, *, through: bool) -> None:
        """What may be forgotten is, and nothing else; a mail that goes ``through`` on the way may close a bucket."""
        self.desk.wall += days * BUCKET_AGE
        if through:
            arrival = self.desk.enqueue(message(f"through{len(self.places)}@x"))
            self.desk.must(Claim(arrival))
            self.desk.must(Reject(arrival, "test"))
            self.places[arrival], self.consumed[arrival] = "consumed", self.desk.wall
        self.desk.drop_old()
        self.flush()
        lines = Reader(open_readonly(self.path, KEY.public)).queue(consumed=True)
        kept = {line.entry.arrival for line in lines if line.place == "consumed"}
        for arrival in self.at("consumed"):
            if arrival not in kept:
                self.places[arrival] = "forgotten"
                assert self.desk.wall >= self.consumed[arrival] + 7 * BUCKET_AGE

    @rule()
    def crash(self) -> None:
        """The child dies: claims go back, and those that ended so three times go on hold."""
        for arrival in self.at("processing"):
            third = self.desk.index.queue[arrival].queued.attempt == self.desk.limits.attempts
            self.places[arrival] = "hold" if third else "inbox"
        self.desk.must(BeginGeneration())

    @rule()
    def flush(self) -> None:
        """All that is visible becomes durable."""
        self.store.flush()
        self.durable = {name: dict(getattr(self, name)) for name in DICTS}

    @rule(portions=st.integers(0, 3))
    def write_index(self, portions: int) -> None:
        """What is durable goes into the derived index, or some of it; an older copy of the file is kept by somebody."""
        self.flush()
        if self.file.exists():
            self.older = self.file.read_bytes()
        more = self.desk.index.runs.begin_to_settle(REPOSITORY)
        while more and portions:
            more, portions = self.desk.index.runs.settle(1), portions - 1

    @rule(how=st.sampled_from(["gone", "older", "cut"]))
    def spoil_index(self, how: str) -> None:
        """The machine dies, and with it the derived index: it is lost, set back, or torn."""
        self.store.abandon()
        self.desk.index.close()
        if how == "older" and self.older is not None:
            self.file.write_bytes(self.older)
        elif how == "cut":
            self.file.write_bytes(self.file.read_bytes()[:5000])
        else:
            self.file.unlink()
        self.start()

    @rule()
    def stop(self) -> None:
        """The host stops, sealing all it has, and starts again."""
        self.flush()
        self.desk.settle()
        self.store.close()
        self.durable = {name: dict(getattr(self, name)) for name in DICTS}
        self.start()

    @rule()
    def kill(self) -> None:
        """The host is killed and starts again: what no flush made durable never was."""
        self.store.abandon()
        self.start()

    @rule()
    def cut_power(self) -> None:
        """The machine loses its power: of each journal there is what a sync has returned for, and no more."""
        self.store.abandon()
        self.cuts += 1
        after = Path(self.folder.name) / f"cut{self.cuts}.git"
        power_cut(self.path, self.record, after)
        self.path = after
        self.start()

    def start(self) -> None:
        """Recover, and go on from what was durable."""
        self.die()
        self.store = Store.open(self.path, key=KEY, disk=self.disk)
        for name, was in self.durable.items():
            setattr(self, name, dict(was))
        self.desk.reopen(self.store, self.file)

    def die(self) -> None:
        """Leave the derived index as a killed process leaves it: what SQLite would tidy away at its end stays."""
        files = [self.file.with_name(self.file.name + suffix) for suffix in ("", "-wal")]
        left = {file: file.read_bytes() for file in files if file.exists()}
        self.desk.index.close()
        for file, data in left.items():
            file.write_bytes(data)

    @invariant()
    def memory_is_what_the_tree_says(self) -> None:
        """Also after every single operation; and no directory grows without limit."""
        self.desk.check()

    @invariant()
    def every_mail_is_in_one_place(self) -> None:
        """And in the one that the plain dict says."""
        for place in ("inbox", "processing", "hold"):
            found = [
                layout.place_of(f"{directory}/{name}").number
                for directory, name in runlog.leaves(self.store, layout.queue_dir(ADDRESS, place))
            ]
            assert sorted(self.at(place)) == sorted(number for number in found if number is not None)

    @invariant()
    def every_run_has_its_events(self) -> None:
        """Without a gap, wherever they are filed."""
        for run, seq in self.seqs.items():
            assert [ev.decode(raw).seq for raw in runlog.events(self.store, run)] == list(range(1, seq + 1))

    def teardown(self) -> None:
        """What came of it is sound for git and for us."""
        if hasattr(self, "store"):
            self.store.close()
            self.disk.close()
            assert fsck(self.path) == ""
            assert verify(self.path, KEY.public).faults == ()
            self.folder.cleanup()


TestSubstrate = Substrate.TestCase
TestSubstrate.settings = settings(max_examples=5, stateful_step_count=25)
