"""A decision of ours that breaks a rule never reaches the disk, and its neighbours are none the worse."""

import itertools
import logging
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from substrate import Settings, SigningKey, deciding, layout, message_ids, writer
from substrate.checking.fsck import Looked, fsck
from substrate.effects import Again, Effect, To
from substrate.files.disk import Disk
from substrate.messages import (
    Append,
    BeginGeneration,
    Claim,
    Done,
    Enqueue,
    Operation,
    Recorded,
    Reject,
    Submit,
    Supervisor,
    TakeUp,
    WorkflowProcess,
)
from substrate.operations import Change, Context, Decided, View, decide
from substrate.operations.buckets import BUCKET_AGE
from substrate.operations.sealing import seal_run
from substrate.rules import BrokenRule, Commit, Ground, proposed
from substrate.rules.judge import judge, judge_all
from substrate.rules.plain import plain_append
from substrate.writer import Writer
from waypost.acting import Reply
from waypost.model import events as ev
from waypost.model.ids import Generation, RunId
from waypost.model.limits import Limits
from waypost.model.times import Now
from waypost.testing.clock import START
from waypost.testing.corrupted import NULL, started
from waypost.testing.desk import ADDRESS, REPOSITORY, STARTED, Desk, call, message

KEY = SigningKey.generate()
SETTINGS = Settings(deployment="expenses", address=ADDRESS, message_id=message_ids(b"k" * 32, ADDRESS))


class Mailbox:
    """A writer with its mailbox, in one thread."""

    def __init__(self, path: Path) -> None:
        self.path, self.now = path, Now(START, 0.0)
        self.writer = Writer.open(path, SETTINGS, key=KEY, disk=Disk(), limits=Limits(), now=self.now)
        self.own: deque[Any] = deque()
        self.answers: dict[int, Any] = {}
        self.tokens = itertools.count(1)

    def hear(self, effects: Iterator[Effect]) -> None:
        """Take down what comes of a turn."""
        for effect in effects:
            if isinstance(effect, Reply):
                self.answers[effect.token] = effect.value
            elif isinstance(effect, Again):
                self.own.append(effect.message)

    def submit(self, operation: Operation) -> int:
        """The token of the answer to come."""
        token = next(self.tokens)
        self.hear(self.writer.submit(Submit(what=operation), To(token=token), self.now))
        return token

    def settle(self) -> None:
        """Whatever it tells itself, until there is nothing more."""
        while self.own:
            match type(self.own.popleft()).__name__:
                case "Flush":
                    self.hear(self.writer.flush(self.now))
                case "FoldAway":
                    self.hear(self.writer.fold_away(self.now))
                case _:
                    pass

    def ask(self, operation: Operation) -> Any:
        """Carry it out; the answer."""
        token = self.submit(operation)
        self.settle()
        return self.answers[token]

    def finished(self, name: str) -> RunId:
        """A run that has ended."""
        arrival = self.ask(Enqueue(message(name))).value.arrival
        self.ask(Claim(arrival))
        run: RunId = self.ask(TakeUp(arrival=arrival, start=STARTED)).value
        by = WorkflowProcess(Generation(1))
        self.submit(Append(by=by, run=run, events=(ev.RunCompleted(result=NULL),)))
        return run


@pytest.fixture(name="host")
def _host(tmp_path: Path) -> Iterator[Mailbox]:
    host = Mailbox(tmp_path / "r.git")
    host.ask(BeginGeneration())
    yield host
    host.hear(host.writer.close(host.now))
    assert list(fsck(tmp_path / "r.git", Looked())) == []


def misdeciding(spoil: Callable[[Change], Change]) -> Callable[[View, Operation, Context], Decided]:
    """The real decisions, but a claim comes out spoilt: what a bug in an operation would do."""

    def wrong(view: View, operation: Operation, context: Context) -> Decided:
        decided = decide(view, operation, context)
        return spoil(decided) if isinstance(operation, Claim) and isinstance(decided, Change) else decided

    return wrong


def test_a_decision_that_breaks_a_rule_is_refused_alone(
    host: Mailbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In one batch with others: they are committed and durable, it is answered by the rule, the path and the value."""
    monkeypatch.setattr(deciding, "decide", misdeciding(lambda change: msgspec.structs.replace(change, deletes=())))
    with caplog.at_level(logging.ERROR):
        first = host.submit(Enqueue(message("a@x")))
        bad = host.submit(Claim(1))
        last = host.submit(Enqueue(message("b@x")))
        assert bad not in host.answers, "a refusal waits for the flush, too"
        host.settle()
    assert isinstance(host.answers[first], Done)
    assert isinstance(host.answers[last], Done)
    refused = host.answers[bad]
    assert isinstance(refused, BrokenRule)
    assert (refused.code, refused.rule) == ("rule", "one-place")
    assert refused.path.startswith("queue/")
    assert refused.value in refused.why
    assert "was not committed" in caplog.text
    monkeypatch.undo()
    assert host.ask(Claim(1)).value == 1, "the mail is where it was"


def test_a_refused_seal_leaves_the_run_as_it_is_and_the_next_one_is_sealed(
    host: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one run's seal can't do mustn't hold up all others; the next start tries again."""
    bad_run: list[RunId] = []

    def wrong(view: View, run: RunId, log: bytes | None = None) -> Any:
        decided = seal_run(view, run, log)
        assert isinstance(decided, Change)
        bad_run.append(run)
        spoilt = {path: raw.replace(b"{", b"[", 1) for path, raw in decided.puts.items()}
        return decided if run != bad_run[0] else msgspec.structs.replace(decided, puts=spoilt)

    monkeypatch.setattr(writer, "seal_run", wrong)
    one, two = host.finished("a@x"), host.finished("b@x")
    host.settle()
    assert bad_run[0] in {one, two}
    store = host.writer._store
    assert store.entries(layout.run_dir(bad_run[0]))
    assert not store.entries(layout.sealed_dir(bad_run[0]))
    assert [run for run in (one, two) if store.entries(layout.sealed_dir(run))] == [
        r for r in (one, two) if r != bad_run[0]
    ]


def test_a_refused_drop_is_left_to_the_next_look(host: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """It must not come round with every flush."""
    for name in ("a@x", "b@x"):
        arrival = host.ask(Enqueue(message(name))).value.arrival
        host.ask(Claim(arrival))
        host.ask(Reject(arrival, "test"))
        host.now = Now(host.now.wall + 8 * BUCKET_AGE, host.now.mono + 8 * BUCKET_AGE / 1000)
    drops = host.writer._drops
    real = drops.next
    asked: list[int] = []

    def wrong(view: View, context: Context) -> Change | None:
        asked.append(1)
        change = real(view, context)
        return None if change is None else msgspec.structs.replace(change, puts={})

    monkeypatch.setattr(drops, "next", wrong)
    assert host.ask(Enqueue(message("c@x"))).value.outcome == "enqueued"
    assert host.ask(Enqueue(message("d@x"))).value.outcome == "enqueued"
    assert asked == [1]


# --- the short way of plain appends ----------------------------------------------------------------------------------

EVENTS = st.sampled_from(
    [
        started(1),
        started(2),
        started(2, attempt=2),
        ev.StepCompleted(call=call(1), output=NULL),
        ev.StepCompleted(call=call(1), output=ev.Value(blob="ab" * 32)),
        ev.StepFailed(call=call(1), error=ev.Fault(type="E", message="m"), final=True),
        ev.StepFailed(call=call(1), error=ev.Fault(type="E", message="m"), final=True, code="child-crashed"),
        ev.TimerSet(call=call(3), timer="r1#3", delay=1.0, seen=1, fire_at=1),
        ev.TimerFired(call=call(3), timer="r1#3"),
        ev.SignalAwaited(call=call(4), park="input", seen=1),
        ev.RunPaused(code="operator"),
        ev.RunUnpaused(by="x"),
        ev.RunResumed(generation=Generation(1)),
        ev.RunResumed(generation=Generation(2)),
        ev.RunFailed(error=ev.Fault(type="E", message="m")),
        ev.MailFailed(call=call(5), reason="no grant"),
    ]
)
SPOILT = st.sampled_from(["", "seq", "prev", "path", "bytes", "delete"])


@given(
    before=st.lists(EVENTS, max_size=4),
    after=st.lists(EVENTS, min_size=1, max_size=4),
    author=st.sampled_from(["supervisor", "workflow-process", "hub", "reader"]),
    spoilt=SPOILT,
)
def test_the_short_way_says_what_all_rules_say(
    before: list[ev.AnyEvent], after: list[ev.AnyEvent], author: str, spoilt: str
) -> None:
    """Where it gives an answer, it is the full one; and whatever a rule refuses, it leaves to the rules."""
    desk = Desk()
    desk.begin()
    run = desk.start(message("a@x"))
    for event in before:
        _add(desk, run, event)
    commit = _spoil(_next(desk, run, after, author), spoilt)
    ground = Ground(repository=REPOSITORY, address=ADDRESS, limits=desk.limits)
    full = judge_all(desk.index, commit, ground)
    assert judge(desk.index, commit, ground) == full
    short = plain_append(desk.index, commit, ground)
    if short is not None:
        assert (full.broken, full.known) == ((), {short[0]: short[1]})


def test_most_appends_go_the_short_way() -> None:
    """It would be right to never take it, and slow."""
    desk = Desk()
    desk.begin()
    run = desk.start(message("a@x"))
    commit = _next(desk, run, [started(1)], "workflow-process")
    ground = Ground(repository=REPOSITORY, address=ADDRESS, limits=desk.limits)
    assert plain_append(desk.index, commit, ground) is not None
    by = WorkflowProcess(Generation(1))
    decided = desk.decide(Append(by=by, run=run, events=(started(1), ev.StepCompleted(call=call(1), output=NULL))))
    assert isinstance(decided, Change)
    assert plain_append(desk.index, proposed(decided), ground) is not None


def test_what_was_followed_once_counts_only_for_the_run_as_it_was_and_for_these_bytes() -> None:
    """An extension spares the second look at its events; of another moment, or beside other events, it spares none."""
    desk = Desk()
    desk.begin()
    run = desk.start(message("a@x"))
    by = WorkflowProcess(Generation(1))
    ground = Ground(repository=REPOSITORY, address=ADDRESS, limits=desk.limits)
    first = desk.decide(Append(by=by, run=run, events=(started(1),)))
    other = desk.decide(Append(by=by, run=run, events=(started(2),)))
    assert isinstance(first, Change)
    assert isinstance(other, Change)
    assert first.extension is not None
    assert other.extension is not None
    lent = msgspec.structs.replace(proposed(first), extension=other.extension)
    assert judge(desk.index, lent, ground).known == {run: first.extension.known}, "not the run after other events"
    desk.append(run, started(3))
    late = judge(desk.index, proposed(first), ground)
    assert "append-only" in {broken.rule for broken in late.broken}, "the run has gone on meanwhile"


def _add(desk: Desk, run: RunId, event: ev.AnyEvent) -> None:
    """If the run takes it."""
    for by in (WorkflowProcess(Generation(1)), Supervisor()):
        if isinstance(desk.do(Append(by=by, run=run, events=(event,))), Change):
            return


def _next(desk: Desk, run: RunId, events: list[ev.AnyEvent], author: str) -> Commit:
    """What would follow in the run's tail, legal or not."""
    known = desk.index.known(run)
    seq, prev = known.seq, known.prev
    recorded: list[Recorded] = []
    for event in events:
        _, raw = ev.stored(event, seq=seq + 1, at=known.changed, prev=prev)
        recorded.append(Recorded(ev.decode(raw), raw))
        seq, prev = seq + 1, ev.digest(raw)
    puts = {layout.event_path(run, each.event.seq): each.raw for each in recorded}
    return Commit(author=author, puts=puts, recorded=tuple(recorded))


def _spoil(commit: Commit, how: str) -> Commit:
    (path, raw), *rest = commit.puts.items()
    first = commit.recorded[0]
    match how:
        case "seq" | "prev":
            event = msgspec.structs.replace(first.event, **({"seq": 99} if how == "seq" else {"prev": "0" * 64}))
            other = msgspec.structs.replace(first, event=event)
            return msgspec.structs.replace(commit, recorded=(other, *commit.recorded[1:]))
        case "path":
            return msgspec.structs.replace(commit, puts={path.replace("/events/", "/other/"): raw, **dict(rest)})
        case "bytes":
            return msgspec.structs.replace(commit, puts={path: raw + b" ", **dict(rest)})
        case "delete":
            return msgspec.structs.replace(commit, deletes=(layout.event_path(RunId(path.split("/")[-3]), 1),))
        case _:
            return commit
