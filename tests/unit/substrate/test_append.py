"""Appending to a run: who may, what is refused, how the log is filed."""

import hashlib
import math

import msgspec
import pytest

from substrate import layout, principals, runlog
from substrate.messages import (
    Append,
    BeginGeneration,
    Cancel,
    Hub,
    Pause,
    Principal,
    PutBlob,
    ReadBlob,
    ReadLog,
    ReadRuns,
    Refused,
    Supervisor,
    WorkflowProcess,
)
from substrate.questions import answer
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.event_parts import LATEST
from waypost.model.ids import Generation, RunId
from waypost.model.limits import Limits
from waypost.model.times import LONGEST
from waypost.testing.desk import BOSS, Desk, Files, call, message
from waypost.testing.samples import BEGAN, NULL

CHILD = WorkflowProcess(Generation(1))
FAULT = ev.Fault(type="ValueError", message="no")


def begun(limits: Limits | None = None) -> tuple[Desk, RunId]:
    desk = Desk(limits=limits or Limits())
    desk.begin()
    return desk, desk.start(message("m1@x"))


def started(number: int = 1, step: str = "extract") -> ev.StepStarted:
    return ev.StepStarted(call=call(number), step=step, arguments="0" * 64)


def completed(number: int = 1, output: ev.Value = NULL) -> ev.StepCompleted:
    return ev.StepCompleted(call=call(number), output=output)


def samples() -> list[ev.AnyEvent]:
    """One event of each kind."""
    mailed = ev.Mailed(arrival=1, id="<x>", sha256="0" * 64)
    h = "0" * 64
    return [
        msgspec.structs.replace(BEGAN, mail=mailed),
        ev.RunResumed(generation=Generation(1)),
        ev.RunInterrupted(generation=Generation(1), attempt=1, reason="ended by SIGSEGV"),
        ev.RunPaused(code="operator"),
        ev.RunUnpaused(by="me"),
        ev.CancelRequested(origin="self", reason="enough"),
        ev.RunCompleted(result=NULL),
        ev.RunFailed(error=FAULT),
        ev.RunCancelled(),
        ev.CancelPropagated(call=call(1)),
        started(),
        completed(),
        ev.StepFailed(call=call(1), error=FAULT, final=True),
        ev.AttemptScheduled(call=call(1), attempt=2, timer="r1#1/2"),
        ev.TimerSet(call=call(1), timer="r1#1", delay=1.0, seen=0),
        ev.TimerFired(call=call(1), timer="r1#1"),
        ev.TimerCancelled(call=call(1), timer="r1#1"),
        ev.SignalAwaited(call=call(1), park="input", seen=0),
        ev.SignalReceived(call=call(1), signal="s", mail=mailed),
        ev.SignalAwaitAbandoned(call=call(1)),
        ev.MailQueued(call=call(1), message_id="<x>", to=(BOSS,), ordinal=1, sha256=h),
        ev.MailSent(call=call(1), ordinal=1),
        ev.MailFailed(call=call(1), reason="no"),
        ev.Foreign(was="CancelRequested"),
        ev.ChildSpawned(call=call(1), child=RunId("run_2_0000000000000002"), workflow="pay", arguments=h, seen=0),
        ev.ChildRefused(call=call(1), workflow="pay", reason="no"),
        ev.ChildCompleted(call=call(1), outcome="completed", result=NULL),
        ev.ChildCancelRequested(call=call(1)),
        ev.CodeRested(seen=0),
    ]


APPENDS = {
    "supervisor": {"RunResumed", "RunFailed", "TimerFired"},
    "workflow-process": {
        "RunCompleted",
        "RunFailed",
        "RunCancelled",
        "CancelPropagated",
        "StepStarted",
        "StepCompleted",
        "StepFailed",
        "AttemptScheduled",
        "TimerSet",
        "TimerCancelled",
        "SignalAwaited",
        "SignalAwaitAbandoned",
        "ChildCancelRequested",
        "CodeRested",
    },
}
APPENDS["hub"] = APPENDS["supervisor"] | APPENDS["workflow-process"]


@pytest.mark.parametrize("by", [Supervisor(), CHILD, Hub("root")], ids=["supervisor", "workflow-process", "hub"])
def test_who_may_append_what(by: Principal) -> None:
    """Storage §4, event by event: a child can't forge a timer, a decision, a mail or another run's beginning."""
    allowed = {ev.kind(event) for event in samples() if not principals.forbids(by, event, "append")}
    assert allowed == APPENDS[principals.name_of(by)]


def test_a_run_that_is_cancelled_from_outside_is_cancelled_by_the_host() -> None:
    """That its code has ended is the child's word, that it hasn't in time is the host's."""
    overdue, ended = ev.RunCancelled(code="past-grace"), ev.RunCancelled()
    desk, run = begun()
    desk.must(Cancel(run=run, reason="enough", origin="supervisor-operator"))
    assert desk.code(Append(by=CHILD, run=run, events=(overdue,))) == "principal"
    assert desk.code(Append(by=Supervisor(), run=run, events=(ended,))) == "principal"
    desk.must(Append(by=Supervisor(), run=run, events=(overdue,)))


def test_every_kind_of_event_is_in_the_table() -> None:
    """A new event can't be written by anybody before somebody has decided who may."""
    assert {type(event) for event in samples()} == set(principals.TABLE) == set(ev.AnyEvent.__args__)


def test_a_crash_is_the_hosts_word_and_a_raise_is_the_childs() -> None:
    """Neither may put its word into the other's mouth."""
    crashed = ev.StepFailed(call=call(1), error=FAULT, final=True, code="child-crashed")
    raised = ev.StepFailed(call=call(1), error=FAULT, final=True)
    desk, run = begun()
    desk.append(run, started())
    assert desk.code(Append(by=CHILD, run=run, events=(crashed,))) == "principal"
    assert desk.code(Append(by=Supervisor(), run=run, events=(raised,))) == "principal"
    assert desk.code(Append(by=Supervisor(), run=run, events=(crashed,))) == "principal"  # it comes with a count only
    assert desk.code(Pause(run=run, code="poison", detail="")) == "principal"


def test_a_batch_is_appended_whole_or_not_at_all() -> None:
    """A turn of the run's loop travels together; half of it would be a state that the code never was in."""
    desk, run = begun()
    assert desk.code(Append(by=CHILD, run=run, events=(started(1), started(1)))) == "step-already-started"
    assert desk.index.known(run).seq == 1
    assert desk.append(run, started(1), completed(1), started(2)) == 4
    assert (
        desk.changes[-1].subject
        == f"append StepStarted extract r1#1, StepCompleted r1#1, StepStarted extract r1#2 to {run}"
    )
    desk.append(run, completed(2))
    assert desk.changes[-1].subject == f"append StepCompleted extract r1#2 to {run}"
    desk.check()


def test_the_chain_binds_each_event_to_the_one_before() -> None:
    """`prev` is the hash of stored bytes: nothing in a log can be moved or changed unseen."""
    desk, run = begun()
    desk.append(run, started(), completed())
    raws = list(runlog.events(desk.index, run))
    assert [ev.decode(raw).prev for raw in raws[1:]] == [ev.digest(raw) for raw in raws[:-1]]
    assert [ev.decode(raw).seq for raw in raws] == [1, 2, 3]


def test_an_older_generation_and_one_that_was_not_given_the_run_are_shut_out() -> None:
    """What a killed child still had in its pipe must not be recorded as if it were alive."""
    desk, run = begun()
    desk.must(BeginGeneration())
    assert desk.code(Append(by=CHILD, run=run, events=(started(),))) == "generation"
    newer = WorkflowProcess(Generation(2))
    assert desk.code(Append(by=newer, run=run, events=(started(),))) == "not-given"
    desk.must(Append(by=Supervisor(), run=run, events=(ev.RunResumed(generation=Generation(2)),)))
    desk.must(Append(by=newer, run=run, events=(started(),)))
    stranger = RunId("run_9_0000000000000009")
    assert desk.code(Append(by=newer, run=stranger, events=(started(),))) == "not-given"
    assert desk.code(PutBlob(by=newer, run=stranger, sha256="0" * 64, data=b"")) == "not-given"


def test_a_resume_names_the_generation_that_is_at_work() -> None:
    """RunResumed is what gives a run to a child; an invented generation would shut the child out."""
    desk, run = begun()
    resumed = ev.RunResumed(generation=Generation(7))
    assert desk.code(Append(by=Supervisor(), run=run, events=(resumed,))) == "generation"


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (msgspec.structs.replace(started(), seq=2), "substrate-sets"),
        (msgspec.structs.replace(started(), at="2026-11-29T08:00:00.000Z"), "substrate-sets"),
        (msgspec.structs.replace(started(), prev="0" * 64), "substrate-sets"),
        (msgspec.structs.replace(started(), original="0" * 64), "substrate-sets"),
        (ev.Foreign(was="CancelRequested"), "principal"),
        (ev.TimerSet(call=call(1), timer="r1#1", delay=1.0, seen=0, fire_at=5), "substrate-sets"),
        (ev.SignalAwaited(call=call(1), park="input", seen=0, timeout_at=5), "substrate-sets"),
        (ev.TimerSet(call=call(1), timer="r1#2", delay=1.0, seen=0), "timer"),
        (ev.TimerSet(call=call(1), timer="r1#1", delay=math.nan, seen=0), "invalid"),
        (ev.TimerSet(call=call(1), timer="r1#1", delay=-1.0, seen=0), "invalid"),
        (ev.TimerSet(call=call(1), timer="r1#1", delay=1.0, seen=9), "seen"),
        (msgspec.structs.replace(started(), call="../../etc"), "call"),
        (msgspec.structs.replace(started(), call="r1#1\nevil"), "call"),
        (msgspec.structs.replace(started(), arguments="short"), "invalid"),
        (msgspec.structs.replace(started(), attempt=2), "attempt"),
        (completed(), "unknown-step"),
        (ev.SignalAwaited(call=call(1), park="approval", seen=0, who=("x@evil.example",)), "grants"),
        (ev.SignalAwaited(call=call(1), park="approval", seen=0, who=(BOSS,)), "request"),
        (ev.RunCompleted(result=ev.Value(blob="0" * 64)), "blob"),
        (ev.RunCompleted(result=ev.Value()), "invalid"),
        (ev.RunCompleted(result=ev.Value(inline=msgspec.Raw(b"1\n"))), "invalid"),
        (ev.RunCompleted(result=ev.Value(inline=msgspec.Raw(b"}{"))), "invalid"),
        (ev.RunCompleted(result=ev.Value(inline=msgspec.Raw(b'"' + b"x" * 2**20 + b'"'))), "too-large"),
    ],
)
def test_what_a_child_may_not_say_is_refused_and_changes_nothing(event: ev.AnyEvent, code: str) -> None:
    """The child is untrusted: every field that the host must set, every size, every name is checked here."""
    desk, run = begun()
    assert desk.code(Append(by=CHILD, run=run, events=(event,))) == code
    assert desk.index.known(run).seq == 1
    desk.check()


def test_nothing_follows_a_terminal_event() -> None:
    """A run that has ended stays as it ended."""
    desk, run = begun()
    desk.append(run, ev.RunCompleted(result=NULL))
    assert desk.code(Append(by=CHILD, run=run, events=(started(),))) == "terminal"
    assert desk.code(Append(by=Supervisor(), run=run, events=(ev.RunFailed(error=FAULT),))) == "terminal"
    assert desk.code(Append(by=CHILD, run=run, events=())) == "empty"


def test_deadlines_are_the_hosts_clock_plus_what_the_child_asked_for() -> None:
    """The child sends durations; one that no calendar holds is the calendar's end, and a century is a century."""
    desk, run = begun()
    desk.append(run, ev.TimerSet(call=call(1), timer="r1#1", delay=1.5, seen=1))
    desk.append(run, ev.TimerSet(call=call(2), timer="r1#2", delay=LONGEST, seen=1))
    desk.append(run, ev.TimerSet(call=call(4), timer="r1#4", delay=1e15, seen=1))
    desk.append(run, ev.SignalAwaited(call=call(3), park="input", seen=1, timeout=60.0))
    ledger = fold.ledger(desk.index.known(run).run)
    assert ledger is not None
    assert [timer.fire_at for timer in ledger.timers.values()] == [desk.wall + 1500, desk.wall + LONGEST * 1000, LATEST]
    assert ledger.waits[call(3)].timeout_at == desk.wall + 60_000


def test_quotas_stop_a_run_that_opens_too_much() -> None:
    """Without them one run could fill the host's memory."""
    desk, run = begun(Limits(timers=2, open_calls=3))
    timers = [ev.TimerSet(call=call(n), timer=f"r1#{n}", delay=1.0, seen=1) for n in range(1, 4)]
    assert desk.code(Append(by=CHILD, run=run, events=tuple(timers))) == "timers"
    desk.append(run, *timers[:2], started(3))
    assert desk.code(Append(by=CHILD, run=run, events=(started(4),))) == "open-calls"


def test_a_blob_enters_the_tree_with_the_event_that_names_it() -> None:
    """A value that no event names is forgotten with its child; one that is named is there, once."""
    desk, run = begun()
    data = b'"' + b"x" * 100_000 + b'"'
    sha256 = hashlib.sha256(data).hexdigest()
    desk.append(run, started())
    done = completed(output=ev.Value(blob=sha256))
    assert desk.code(PutBlob(by=CHILD, run=run, sha256="0" * 64, data=data)) == "blob"
    desk.must(PutBlob(by=CHILD, run=run, sha256=sha256, data=data))
    desk.must(PutBlob(by=CHILD, run=run, sha256=sha256, data=data))
    assert desk.index.held_bytes == len(data)
    assert desk.tree.read(layout.blob_path(run, sha256)) is None
    desk.append(run, done)
    assert desk.tree.read(layout.blob_path(run, sha256)) == data
    assert desk.index.held_bytes == 0
    desk.append(run, started(2), completed(2, ev.Value(blob=sha256)))  # named again: there already
    assert answer(desk.index, ReadBlob(run=run, sha256=sha256, by=CHILD)) == data
    desk.check()


def test_blobs_that_nothing_names_have_a_limit_and_go_with_their_generation() -> None:
    """Otherwise a child could fill the host's memory with values that lead nowhere."""
    desk, run = begun(Limits(unreferenced_blobs=10, value=8))

    def put(data: bytes) -> PutBlob:
        return PutBlob(by=CHILD, run=run, sha256=hashlib.sha256(data).hexdigest(), data=data)

    assert desk.code(put(b"123456789")) == "too-large"
    desk.must(put(b"12345678"))
    assert desk.code(put(b"123")) == "blobs"
    desk.must(BeginGeneration())
    assert desk.index.held_bytes == 0


def test_a_blob_that_nothing_named_goes_with_its_run() -> None:
    """A run that fails with a value in hand must not take the room of the others for the life of the child."""
    desk, run = begun()
    data = b"12345678"
    desk.must(PutBlob(by=CHILD, run=run, sha256=hashlib.sha256(data).hexdigest(), data=data))
    desk.append(run, ev.RunFailed(error=ev.Fault(type="X", message="")))
    assert desk.index.held_bytes == 0


def test_a_log_is_folded_64_by_64_and_reads_the_same() -> None:
    """The tail stays at 64 files, so that the millionth event costs what the first one did."""
    desk, run = begun()
    for number in range(1, 101):
        desk.append(run, started(number), completed(number))
        assert len(desk.tree.entries(layout.events_dir(run))) <= 64
    raws = list(runlog.events(desk.index, run))
    assert [ev.decode(raw).seq for raw in raws] == list(range(1, 202))
    assert desk.index.known(run).folded == 192
    for after in (0, 1, 63, 64, 65, 127, 128, 129, 200, 201):
        assert list(runlog.events(desk.index, run, after=after)) == raws[after:]
    desk.check()


def test_a_batch_larger_than_a_tail_goes_straight_into_segments() -> None:
    """What never was a file of its own must not be left in git as an object without a name."""
    desk, run = begun()
    events = [each for n in range(1, 101) for each in (started(n), completed(n))]
    assert desk.append(run, *events) == 201
    change = desk.changes[-1]
    assert min(change.puts).endswith("0000000193.json")
    assert sum("/segments/" in path for path in change.puts) == 3
    assert change.deletes == (layout.event_path(run, 1),)
    desk.check()


def test_pages_of_a_log_take_what_fits_and_at_least_one_event() -> None:
    """A page over the wire is bounded; a single large event still has to get through."""
    desk, run = begun()
    desk.append(run, started(), completed())
    raws = list(runlog.events(desk.index, run))
    page = answer(desk.index, ReadLog(run=run, after=1, limit=1))
    assert not isinstance(page, Refused | bytes | tuple)
    assert (page.events, page.last) == ((raws[1],), 3)
    assert page.grants == desk.tree.read(layout.grants_path(run))
    everything = answer(desk.index, ReadLog(run=run, limit=2**20))
    assert not isinstance(everything, Refused | bytes | tuple)
    assert everything.events == tuple(raws)
    assert isinstance(answer(desk.index, ReadLog(run=RunId("run_9_0000000000000009"), limit=1)), Refused)


def test_a_run_reads_the_mails_it_was_given_and_no_others() -> None:
    """A child may not read another run's mail by guessing a hash."""
    desk, run = begun()
    mine, other = message("m1@x"), message("other@x", sender="carol@example.com")
    desk.enqueue(other)

    def read(raw: bytes, by: Principal = CHILD) -> object:
        return answer(desk.index, ReadBlob(run=run, sha256=hashlib.sha256(raw).hexdigest(), by=by))

    assert read(mine) == mine
    assert isinstance(read(other), Refused)
    assert isinstance(read(mine, WorkflowProcess(Generation(2))), Refused)
    desk.append(run, ev.RunCompleted(result=NULL))
    assert read(mine, Hub("root")) == mine


def test_runs_are_listed_newest_first_with_the_subject_of_their_mail() -> None:
    """What `waypost runs` shows, queued ones included."""
    desk, first = begun()
    second = desk.start(message("m2@x"))
    desk.append(first, ev.RunCompleted(result=NULL))
    desk.append(second, ev.SignalAwaited(call=call(1), park="input", seen=1))
    desk.enqueue(message("m3@x"))
    lines = answer(desk.index, ReadRuns())
    assert isinstance(lines, tuple)
    assert [(line.state, line.subject, line.seq) for line in lines] == [
        ("queued", "about m3@x", 0),
        ("parked", "about m2@x", 2),
        ("completed", "about m1@x", 2),
    ]
    assert [[each.kind for each in line.waiting] for line in lines] == [["dispatch"], ["mail"], []]
    assert answer(desk.index, ReadRuns(limit=1)) == lines[:1]


def test_a_step_name_that_user_code_chose_is_plain_in_the_commit() -> None:
    """`git log` in a terminal is a reader, too: no control character and no e-mail address gets into it."""
    desk, run = begun()
    desk.append(run, started(step="päy\x1b[31m bob@example.com"))
    assert desk.changes[-1].subject == f"append StepStarted p-y-31m-bob-example.com r1#1 to {run}"


def test_an_ended_run_that_fell_out_of_memory_is_read_from_its_log() -> None:
    """Memory is bounded; what isn't in it is in the tree."""
    desk = Desk(limits=Limits(folds=1))
    desk.begin()
    runs = [desk.start(message(f"m{n}@x")) for n in range(3)]
    for run in runs:
        desk.append(run, ev.RunCompleted(result=NULL))
    assert [desk.index.known(run).seq for run in runs] == [2, 2, 2]
    assert isinstance(desk.tree, Files)
    desk.check()
