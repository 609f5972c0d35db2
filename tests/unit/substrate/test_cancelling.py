"""Asking for a run's end, and named signals, as operations: who was first, what is kept, what is refused."""

import hashlib
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from substrate import layout, runlog
from substrate.messages import (
    Append,
    Approval,
    BeginGeneration,
    Cancel,
    CancelTaken,
    Operation,
    Pause,
    QueueMail,
    ReadApprovals,
    Refused,
    Signal,
    SignalTaken,
    Supervisor,
    WorkflowProcess,
)
from substrate.operations import Change, Settled
from substrate.questions import read_approvals
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.errors import Invalid
from waypost.model.event_parts import SNAPSHOT, Origin
from waypost.model.ids import Generation, RunId
from waypost.model.limits import Limits
from waypost.model.signals import payload, signal_name
from waypost.testing.desk import BOSS, Desk, call, message

NULL = ev.Value(inline=msgspec.Raw(b"null"))
CHILD = WorkflowProcess(Generation(1))


@pytest.fixture(name="desk")
def _desk() -> Desk:
    made = Desk()
    made.begin()
    return made


@pytest.fixture(name="run")
def _run(desk: Desk) -> RunId:
    return desk.start(message("m1@x"))


def cancelled(run: RunId, origin: Origin = "supervisor-operator", reason: str = "enough") -> Cancel:
    """Somebody asks for its end."""
    return Cancel(run=run, reason=reason, origin=origin, by="ann")


def done(desk: Desk, operation: Operation) -> object:
    """Its value; it must pass."""
    made = desk.do(operation)
    assert isinstance(made, Change | Settled), made
    return made.value


def log(desk: Desk, run: RunId) -> list[ev.AnyEvent]:
    """The run's events."""
    return [ev.decode(raw) for raw in runlog.events(desk.index, run)]


# --- cancel -----------------------------------------------------------------------------------------------------------


def test_of_two_that_ask_for_the_end_the_first_is_recorded(desk: Desk, run: RunId) -> None:
    """The second is told who was first, and changes nothing."""
    first = done(desk, cancelled(run, "self"))
    again = done(desk, cancelled(run))
    assert isinstance(first, CancelTaken)
    assert isinstance(again, CancelTaken)
    assert (first.fresh, again.fresh, again.origin) == (True, False, "self")
    assert [event.origin for event in log(desk, run) if isinstance(event, ev.CancelRequested)] == ["self"]


@pytest.mark.parametrize("cancel_first", [True, False])
def test_a_cancel_that_races_the_end_has_one_winner(desk: Desk, run: RunId, cancel_first: bool) -> None:  # noqa: FBT001 - which is first
    """The log's order says who was first, and everybody reads the same log."""
    end = Append(by=CHILD, run=run, events=(ev.RunCompleted(result=NULL),))
    if cancel_first:
        done(desk, cancelled(run))
        assert desk.code(end) == "cancelling"
        desk.must(Append(by=CHILD, run=run, events=(ev.RunCancelled(),)))
    else:
        desk.must(end)
        assert desk.code(cancelled(run)) == "ended"
    state = desk.index.known(run).run
    assert isinstance(state, fold.Ended)
    assert state.outcome == ("cancelled" if cancel_first else "completed")
    assert state == desk.folded().known(run).run


def test_a_run_that_was_cancelled_may_be_cancelled_again_without_effect(desk: Desk, run: RunId) -> None:
    """Whoever repeats a command must not be told that it failed."""
    done(desk, cancelled(run))
    desk.must(Append(by=CHILD, run=run, events=(ev.RunCancelled(),)))
    again = done(desk, cancelled(run))
    assert isinstance(again, CancelTaken)
    assert not again.fresh


def test_a_paused_run_is_cancelled_at_once(desk: Desk, run: RunId) -> None:
    """No code of it may be started, so there is nothing to wait for; both events are one commit."""
    desk.must(Pause(run=run, code="operator", detail=""))
    commits = len(desk.changes)
    done(desk, cancelled(run))
    assert len(desk.changes) == commits + 1
    end = log(desk, run)[-1]
    assert isinstance(end, ev.RunCancelled)
    assert (end.code, end.detail) == ("not-run", "it was paused (operator), so its code could not clean up")


def test_a_run_that_is_being_cancelled_ends_where_another_would_be_paused(desk: Desk, run: RunId) -> None:
    """Its code doesn't fit, or is gone: it can't clean up, and nobody should have to let it go on for that."""
    done(desk, cancelled(run))
    desk.must(Pause(run=run, code="code-missing", detail="no such module"))
    end = log(desk, run)[-1]
    assert isinstance(end, ev.RunCancelled)
    assert end.code == "not-run"


def test_nobody_begins_a_run_to_end_it_who_does_not_know_what_runs_here(desk: Desk) -> None:
    """And a name that was never given is none at all."""
    assert desk.code(cancelled(RunId("run_9_00112233445566aa"))) == "no-run"
    arrival = desk.enqueue(message("m2@x"))
    assert desk.code(cancelled(desk.index.queue[arrival].queued.entry.run)) == "not-begun"


def test_a_reason_that_no_event_can_hold_is_refused_and_nothing_is_recorded(desk: Desk, run: RunId) -> None:
    """Who asks is told so; the run goes on, and can be cancelled with fewer words."""
    before = log(desk, run)
    assert desk.code(cancelled(run, reason="x" * desk.limits.event)) == "too-large"
    assert log(desk, run) == before
    taken = done(desk, cancelled(run))
    assert isinstance(taken, CancelTaken)
    assert taken.fresh


def test_a_child_cancels_the_runs_that_it_was_given(desk: Desk, run: RunId) -> None:
    """The fence is that of its appends."""
    ask = Cancel(run=run, reason="enough", origin="self", call=call(1), generation=Generation(1))
    desk.must(BeginGeneration())
    assert desk.code(ask) == "generation"
    assert desk.code(msgspec_replaced(ask, Generation(2))) == "not-given"
    desk.must(Append(by=Supervisor(), run=run, events=(ev.RunResumed(generation=Generation(2)),)))
    done(desk, msgspec_replaced(ask, Generation(2)))
    asked = log(desk, run)[-1]
    assert isinstance(asked, ev.CancelRequested)
    assert (asked.origin, asked.call) == ("self", call(1))


def msgspec_replaced(ask: Cancel, generation: Generation) -> Cancel:
    """The same of another generation."""
    return Cancel(run=ask.run, reason=ask.reason, origin=ask.origin, call=ask.call, generation=generation)


def test_an_administrators_cancel_is_an_administrators_commit(desk: Desk, run: RunId) -> None:
    """Who wrote it is in the commit, not only in what it says."""
    done(desk, cancelled(run, "hub-admin"))
    assert desk.changes[-1].author == "hub"
    assert desk.changes[-1].subject == f"cancel {run}: hub-admin"


# --- signals ----------------------------------------------------------------------------------------------------------


def signalled(run: RunId, identity: str = "s1", raw: bytes = b"1", name: str = "paid") -> Signal:
    """A signal comes."""
    return Signal(run=run, name=name, id=identity, payload=raw)


def awaited(number: int, seen: int, name: str = "paid") -> ev.SignalAwaited:
    """The code waits for one."""
    return ev.SignalAwaited(call=call(number), park="signal", name=name, seen=seen)


def test_a_signal_goes_to_the_oldest_wait_for_it(desk: Desk, run: RunId) -> None:
    """Two wait, one comes: the first one has it."""
    desk.append(run, awaited(1, 1, "other"), awaited(2, 1), awaited(3, 1))
    assert done(desk, signalled(run)) == SignalTaken(outcome="received", call=call(2))
    assert done(desk, signalled(run, "s2")) == SignalTaken(outcome="received", call=call(3))
    assert done(desk, signalled(run, "s3")) == SignalTaken(outcome="kept")


def test_a_signal_that_comes_before_the_wait_is_kept_for_it(desk: Desk, run: RunId) -> None:
    """The wait is over as soon as it is recorded, and the run has something to do."""
    assert done(desk, signalled(run)) == SignalTaken(outcome="kept")
    desk.append(run, awaited(1, 2))
    state = desk.index.known(run).run
    assert isinstance(state, fold.Driven)
    assert not state.ledger.waits
    assert not state.ledger.signals


def test_the_same_signal_twice_is_one(desk: Desk, run: RunId) -> None:
    """Whoever isn't sure whether it arrived sends it again."""
    desk.append(run, awaited(1, 1), awaited(2, 1))
    done(desk, signalled(run))
    assert done(desk, signalled(run)) == SignalTaken(outcome="already-present")
    assert sum(isinstance(event, ev.SignalReceived) for event in log(desk, run)) == 1


@pytest.mark.parametrize("inline", [64 * 1024, 4])
@pytest.mark.parametrize("over", [False, True])
def test_another_signal_under_a_known_identity_is_refused(*, over: bool, inline: int) -> None:
    """It would be lost, and its sender told that all is well; wherever the first one's payload lies."""
    desk = Desk(limits=Limits(inline=inline))
    desk.begin()
    run = desk.start(message("m1@x"))
    desk.append(run, awaited(1, 1))
    first = signalled(run, raw=b'{"paid":420}')
    done(desk, first)
    if over:
        desk.must(Append(by=CHILD, run=run, events=(ev.RunCompleted(result=NULL),)))
    before = log(desk, run)
    assert desk.code(signalled(run, raw=b'{"paid":421}')) == "clash"
    assert desk.code(replace(first, name="shipped")) == "clash"
    assert done(desk, first) == SignalTaken(outcome="already-present")
    assert log(desk, run) == before


def test_a_large_payload_lies_beside_the_log(desk: Desk, run: RunId) -> None:
    """As every value over the inline limit does."""
    raw = b'"' + b"x" * 70_000 + b'"'
    done(desk, signalled(run, raw=raw))
    name = hashlib.sha256(raw).hexdigest()
    event = log(desk, run)[-1]
    assert isinstance(event, ev.SignalReceived)
    assert event.payload == ev.Value(blob=name)
    assert desk.index.read(layout.blob_path(run, name)) == raw


def test_what_nobody_waits_for_is_kept_up_to_a_limit() -> None:
    """A run that never asks must not become a heap."""
    desk = Desk(limits=Limits(signals=2, signal=8))
    desk.begin()
    run = desk.start(message("m1@x"))
    done(desk, signalled(run, "s1"))
    done(desk, signalled(run, "s2"))
    assert desk.code(signalled(run, "s3")) == "signals"
    desk.append(run, awaited(1, 1))
    assert desk.code(signalled(run, "s4", b"123456789")) == "too-large"
    done(desk, signalled(run, "s5"))


def test_a_run_that_cannot_read_it_refuses_a_signal(desk: Desk, run: RunId) -> None:
    """It is the sender's to try again, or to know that it is too late."""
    desk.must(Pause(run=run, code="operator", detail=""))
    assert desk.code(signalled(run)) == "paused"
    desk.must(Append(by=CHILD, run=run, events=(ev.RunFailed(error=ev.Fault(type="X", message="x")),)))
    assert desk.code(signalled(run)) == "ended"


def test_only_what_has_begun_takes_signals(desk: Desk) -> None:
    """It isn't kept for a run that may never begin; whoever sends it is told which of the two it is."""
    assert desk.code(signalled(RunId("run_9_00112233445566aa"))) == "no-run"
    arrival = desk.enqueue(message("m2@x"))
    assert desk.code(signalled(desk.index.queue[arrival].queued.entry.run)) == "not-begun"


def test_a_signal_that_no_event_can_hold_is_refused_with_its_payload(desk: Desk, run: RunId) -> None:
    """Where a payload is within its own limit and the event around it isn't: neither is kept."""
    desk.limits = Limits(event=desk.limits.inline)
    before = log(desk, run)
    assert desk.code(signalled(run, raw=b'"' + b"x" * (desk.limits.inline - 2) + b'"')) == "too-large"
    assert log(desk, run) == before


def test_a_repetition_is_known_after_the_end(desk: Desk, run: RunId) -> None:
    """The sender may have been slower than the run; what it sent was read."""
    desk.append(run, awaited(1, 1))
    done(desk, signalled(run))
    desk.must(Append(by=CHILD, run=run, events=(ev.RunCompleted(result=NULL),)))
    assert done(desk, signalled(run)) == SignalTaken(outcome="already-present")
    assert desk.code(signalled(run, "s2")) == "ended"


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=9))
def test_any_json_is_a_payload_of_one_line(value: object) -> None:
    """However it is indented."""
    raw = msgspec.json.format(msgspec.json.encode(value), indent=2) if _small(value) else b"null"
    line = payload(raw, len(raw))
    assert b"\n" not in line
    assert msgspec.json.decode(line) == msgspec.json.decode(raw)


def _small(value: object) -> bool:
    try:
        msgspec.json.encode(value)
    except (OverflowError, UnicodeEncodeError):
        return False
    return True


@pytest.mark.parametrize("raw", [b"", b"NaN", b"{", b"1 2", b'"\xff"', b'"\\ud800"', b"[" * 100_000])
def test_what_is_no_json_is_no_payload(raw: bytes) -> None:
    """It is refused where it comes in, with the place."""
    with pytest.raises(Invalid, match="payload"):
        payload(raw, 1 << 20)


@pytest.mark.parametrize(("raw", "why"), [(b'"' + b"a" * 9, "more than 9 bytes"), (b" \n ", "is empty")])
def test_a_payload_is_refused_for_what_is_wrong_with_it(raw: bytes, why: str) -> None:
    """One that is too long was cut before it is looked at, and would be told that it is truncated."""
    with pytest.raises(Invalid, match=why):
        payload(raw, 9)


@pytest.mark.parametrize("name", ["", "  ", "x" * 201, "a\nb", "a\x1b[2J"])
def test_a_signals_name_is_a_short_printable_line(name: str) -> None:
    """It is shown in terminals and looked for in logs."""
    with pytest.raises(Invalid):
        signal_name(name)


# --- what runs ask of people ------------------------------------------------------------------------------------------


def asking(desk: Desk, number: int, snapshot: bytes | None = None) -> RunId:
    """A run that waits for the boss."""
    run = desk.start(message(f"a{number}@x"))
    desk.must(QueueMail(by=CHILD, run=run, call=call(1), to=(BOSS,), subject="?", text="?"))
    known = fold.ledger(desk.index.known(run).run)
    assert known is not None
    (request,) = known.sent
    wait = ev.SignalAwaited(call=call(2), park="approval", seen=2, title="Pay?", who=(BOSS,), request=request)
    if snapshot is not None:
        wait = msgspec.structs.replace(wait, snapshot=msgspec.Raw(snapshot))
    desk.append(run, wait)
    return run


def approvals(desk: Desk, limit: int = 1) -> list[Approval]:
    """All that are open, read in portions."""
    found: list[Approval] = []
    after = None
    while True:
        page = read_approvals(desk.index, ReadApprovals(after=after, limit=limit))
        found += page.found
        after = page.next
        if after is None:
            return found


@pytest.mark.parametrize("settled", [True, False])
def test_open_approvals_are_read_in_portions_from_states(desk: Desk, settled: bool) -> None:  # noqa: FBT001 - a case
    """Whether the index on disk has them already, or not yet; those of ended runs are none."""
    runs = [asking(desk, number, b'{"amount":420}') for number in range(3)]
    desk.start(message("other@x"))
    done(desk, cancelled(runs[1]))
    desk.must(Append(by=CHILD, run=runs[1], events=(ev.RunCancelled(),)))
    if settled:
        desk.settle()
    found = approvals(desk)
    assert [each.run for each in found] == [runs[0], runs[2]]
    assert {(each.call, each.title, each.who, each.snapshot) for each in found} == {
        (call(2), "Pay?", (BOSS,), b'{"amount":420}')
    }


def test_a_snapshot_has_a_limit(desk: Desk) -> None:
    """It travels with every announcement."""
    run = asking(desk, 1)
    wait = ev.SignalAwaited(call=call(3), park="approval", seen=2, title="?", who=(BOSS,), request="<x>")
    large = msgspec.structs.replace(wait, snapshot=msgspec.Raw(b'"' + b"x" * SNAPSHOT + b'"'))
    refused = desk.do(Append(by=CHILD, run=run, events=(large,)))
    assert isinstance(refused, Refused)
    assert refused.code == "too-large"
