"""What the end of a run means to its parent and to its children: in the commit of that end, and nowhere else."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from substrate import layout, runlog
from substrate.errors import Damaged
from substrate.messages import (
    Append,
    BeginGeneration,
    Cancel,
    Claim,
    Consumed,
    Interrupt,
    MailDelivered,
    Pause,
    PutBlob,
    QueueMail,
    Reject,
    RejectHeld,
    ReleaseHeld,
    ResumeRuns,
    Supervisor,
    TakeUp,
    Tick,
)
from substrate.operations import buckets
from waypost.model import events as ev
from waypost.model.ids import Generation, RunId, message_key
from waypost.model.limits import Limits
from waypost.model.run import Driven, Ended, Parked, Paused
from waypost.model.schedule import schedule
from waypost.testing.clock import START as START_AT
from waypost.testing.desk import BOSS, call
from waypost.testing.families import FAILED, ONE, START, Family

FIRST = call(1)
LET_GO = ev.ChildCancelRequested(call=FIRST)


def ended(family: Family, run: RunId) -> str:
    """How a run has ended."""
    state = family.state(run)
    assert isinstance(state, Ended), state
    return state.outcome


def told(family: Family, run: RunId) -> ev.ChildCompleted:
    """The one thing that a run was told of its children, by the newest commit."""
    (only,) = family.outcomes(run)
    assert family.desk.events(run)[-1] == only
    family.check()
    return only


# --- to the parent ----------------------------------------------------------------------------------------------------


def test_what_a_child_returns_is_in_its_parents_log_by_the_same_commit() -> None:
    """A replay of the parent needs nothing of the child, which may be sealed, and forgotten, by then."""
    family = Family()
    run = family.root()
    child = family.child(run, FIRST, seen=1)
    assert isinstance(family.state(run), Parked)
    family.desk.append(child, ONE)
    event = told(family, run)
    assert (event.outcome, bytes(event.result.inline or b"")) == ("completed", b"1")  # type: ignore[union-attr]  # it has one
    assert set(family.desk.changes[-1].known) == {run, child}
    assert family.desk.changes[-1].author == "workflow-process"
    assert isinstance(family.state(run), Driven)


def test_a_large_result_lies_in_the_parents_own_files() -> None:
    """Also one that the child, against its own rules, has put into the event."""
    family = Family()
    run = family.root()
    large = b'"' + b"x" * 100_000 + b'"'
    name = message_key(large)
    first, second = family.child(run, call(1)), family.child(run, call(2))
    family.desk.must(PutBlob(by=family.by, run=first, sha256=name, data=large))
    family.desk.append(first, ev.RunCompleted(result=ev.Value(blob=name)))
    assert runlog.find_blob(family.desk.index, run, name) == large
    family.check()
    family.desk.append(second, ev.RunCompleted(result=ev.Value(inline=msgspec.Raw(large))))
    assert [event.result for event in family.outcomes(run)] == [ev.Value(blob=name)] * 2
    family.check()


def test_why_a_child_failed_is_told_and_where_it_did_is_in_its_own_log() -> None:
    """A traceback of 256 KiB for each of a thousand children would fill the parent's log."""
    family = Family()
    run = family.root()
    family.desk.append(family.child(run, FIRST), FAILED)
    event = told(family, run)
    assert (event.outcome, event.error) == ("failed", ev.Fault(type="ValueError", message="no"))


def _cancelled_by_an_operator(family: Family, child: RunId) -> None:
    family.desk.must(family.cancel(child))
    if isinstance(family.state(child), Driven):
        family.desk.append(child, ev.RunCancelled())


def _past_its_grace(family: Family, child: RunId) -> None:
    family.desk.must(family.cancel(child))
    family.desk.must(Append(by=Supervisor(), run=child, events=(ev.RunCancelled(code="past-grace"),)))


def _paused_and_cancelled(family: Family, child: RunId) -> None:
    family.desk.must(Pause(run=child, code="operator", detail=""))
    family.desk.must(family.cancel(child))


def _cancelled_and_paused(family: Family, child: RunId) -> None:
    family.desk.must(family.cancel(child))
    family.desk.must(Pause(run=child, code="code-changed", detail="it differs"))


@pytest.mark.parametrize(
    "end",
    [_cancelled_by_an_operator, _past_its_grace, _paused_and_cancelled, _cancelled_and_paused],
    ids=lambda end: end.__name__.strip("_"),
)
def test_a_child_that_was_cancelled_is_told_so_in_whatever_way_it_ended(end: Callable[[Family, RunId], None]) -> None:
    """Whoever asked for it, the parent's call has its outcome, with the reason."""
    family = Family()
    run = family.root()
    child = family.child(run, FIRST)
    end(family, child)
    event = told(family, run)
    assert (event.outcome, event.error) == ("cancelled", ev.Fault(type="RunCancelled", message="enough"))


def test_a_child_that_never_began_is_an_outcome_too() -> None:
    """Cancelled by an operator while it is queued, turned away by the barrier, rejected, rejected from hold."""
    family = Family(limits=Limits(attempts=1))
    run = family.root()
    queued = family.spawn(run, call(1))
    family.desk.must(family.cancel(queued))
    assert ended(family, queued) == "cancelled"
    family.spawn(run, call(2))
    barred = ev.Fault(type="CredentialMissing", message="github")
    family.desk.must(TakeUp(arrival=family.claim(run, call(2)), start=START, barred=barred))
    family.spawn(run, call(3))
    family.desk.must(Reject(family.claim(run, call(3)), "no-room"))
    family.spawn(run, call(4))
    arrival = family.claim(run, call(4))
    family.desk.must(BeginGeneration(blame=True))
    assert arrival in family.desk.index.on_hold
    family.check()
    family.desk.must(RejectHeld(arrival))
    family.check()
    assert [(each.outcome, each.error.type) for each in family.outcomes(run) if each.error] == [
        ("cancelled", "RunCancelled"),
        ("failed", "CredentialMissing"),
        ("failed", "ChildRejected"),
        ("failed", "ChildRejected"),
    ]
    assert [each.error.message for each in family.outcomes(run)[2:] if each.error] == [
        f"its mail {arrival - 1} was rejected: no-room",
        f"its mail {arrival} was rejected: poison",
    ]
    assert not family.ledger(run).children


def test_a_child_that_was_let_in_from_hold_begins_as_it_would_have() -> None:
    """An operator may think that it wasn't to blame."""
    family = Family(limits=Limits(attempts=1))
    run = family.root()
    child = family.spawn(run, FIRST)
    arrival = family.claim(run, FIRST)
    family.desk.must(BeginGeneration(blame=True))
    family.desk.must(ReleaseHeld(arrival))
    assert family.take_up(run, FIRST) == child
    family.desk.append(child, ONE)
    assert told(family, run).outcome == "completed"


def test_a_paused_parent_is_told_and_stays_paused() -> None:
    """What a child came to can't wait for an operator: it would be nowhere meanwhile."""
    family = Family()
    run = family.root()
    child = family.child(run, FIRST)
    family.desk.must(Pause(run=run, code="operator", detail=""))
    family.desk.append(child, ONE)
    assert told(family, run).outcome == "completed"
    assert isinstance(family.state(run), Paused)


def test_the_end_of_a_process_that_ends_a_child_is_told_to_its_parent_which_it_drove_as_well() -> None:
    """Both logs have the count of the exit, and what followed from it, in one commit."""
    family = Family(limits=Limits(attempts=1))
    run = family.root()
    child = family.child(run, FIRST)
    family.desk.must(family.cancel(child))
    generation = family.desk.index.state.generation
    family.desk.must(Interrupt(generation=Generation(generation), runs=(run, child), reason="ended by SIGKILL"))
    kinds = [ev.kind(event) for event in family.desk.events(run)]
    assert kinds == ["RunStarted", "ChildSpawned", "RunInterrupted", "RunPaused", "ChildCompleted"]
    assert ended(family, child) == "cancelled"
    family.check()


def test_a_log_that_is_folded_away_by_what_follows_is_folded_once() -> None:
    """64 events to a segment, whoever of the two writers fills it."""
    for before in range(56, 64):
        family = Family()
        run = family.root()
        family.spawn(run, FIRST)
        rest = tuple(ev.CodeRested(seen=0) for _ in range(before))
        family.desk.append(run, *rest, LET_GO)
        assert family.outcomes(run)[-1].outcome == "cancelled"
        family.check()


# --- to the children --------------------------------------------------------------------------------------------------


def test_a_child_that_is_no_longer_awaited_is_told_to_end_by_the_same_commit() -> None:
    """Its parent's code goes on at once; the outcome comes when there is one, and drives nobody."""
    family = Family()
    run = family.root()
    child = family.child(run, FIRST)
    family.child(run, call(2), seen=1)
    family.desk.append(run, LET_GO)
    asked = family.desk.events(child)[-1]
    assert isinstance(asked, ev.CancelRequested)
    assert (asked.origin, asked.reason) == ("parent", f"its parent {run} no longer awaits it")
    assert isinstance(family.state(run), Parked)
    family.desk.append(child, ev.RunCancelled())
    assert told(family, run).outcome == "cancelled"
    assert isinstance(family.state(run), Parked)


def test_a_child_that_is_only_queued_begins_and_ends_by_that_commit() -> None:
    """No child process is ever to see it; claimed or not."""
    for claimed in (False, True):
        family = Family()
        run = family.root()
        child = family.spawn(run, FIRST)
        if claimed:
            family.claim(run, FIRST)
        family.desk.append(run, LET_GO)
        assert ended(family, child) == "cancelled"
        change = family.desk.changes[-1]
        assert any(isinstance(fact, Consumed) for fact in change.facts)
        assert not family.desk.index.queue
        assert told(family, run).outcome == "cancelled"


def test_to_let_go_of_a_child_that_was_quicker_changes_nothing() -> None:
    """As with a timer: the code decided before it could know."""
    family = Family()
    run = family.root()
    family.desk.append(family.child(run, FIRST), ONE)
    family.desk.append(run, LET_GO)
    assert len(family.outcomes(run)) == 1
    assert len(family.desk.changes[-1].known) == 1
    family.check()


@pytest.mark.parametrize("end", [ONE, FAILED], ids=["completed", "failed"])
def test_no_child_outlives_its_parent_unasked(end: ev.AnyEvent) -> None:
    """At work, parked, paused, queued, claimed, on hold, being cancelled already: each in its way."""
    family = Family(limits=Limits(attempts=1))
    run = family.root()
    family.spawn(run, call(7))
    held = family.claim(run, call(7))
    family.desk.must(BeginGeneration(blame=True))
    family.desk.must(ResumeRuns(generation=Generation(2), runs=(run,)))
    at_work, parked, paused, asked = (family.child(run, call(n)) for n in range(1, 5))
    family.desk.append(parked, ev.SignalAwaited(call=FIRST, park="input", seen=1))
    family.desk.must(Pause(run=paused, code="operator", detail=""))
    family.desk.must(family.cancel(asked))
    queued, claimed = family.spawn(run, call(5)), family.spawn(run, call(6))
    family.claim(run, call(6))
    family.desk.append(run, end)
    family.check()
    for child in (at_work, parked):
        cancel = family.ledger(child).cancel
        assert cancel is not None
        assert cancel.reason == f"its parent {run} has ended ({ended(family, run)})"
    assert family.ledger(asked).cancel.reason == "enough"  # type: ignore[union-attr]  # it is being cancelled
    assert [ended(family, child) for child in (paused, queued, claimed)] == ["cancelled"] * 3
    assert held not in family.desk.index.on_hold
    assert not family.outcomes(run)
    for child in (at_work, parked, asked):
        family.desk.append(child, ev.RunCancelled())
    family.check()
    while family.desk.fold_away():
        pass
    family.check()


def test_a_paused_child_takes_its_own_children_along() -> None:
    """It ends by the commit that its parent ends in; so that commit tells its children, too, however deep."""
    family = Family()
    run = family.root()
    child = family.child(run, FIRST)
    below = family.child(child, FIRST)
    deep = family.child(below, FIRST)
    queued = family.spawn(below, call(2))
    family.desk.must(Pause(run=child, code="operator", detail=""))
    family.desk.must(Pause(run=below, code="operator", detail=""))
    family.desk.append(run, ONE)
    assert [ended(family, each) for each in (child, below, queued)] == ["cancelled"] * 3
    assert family.ledger(deep).cancel is not None
    family.check()


def test_a_cancel_of_the_parent_leaves_its_children_to_its_code() -> None:
    """Its clean-up may need them; they go with it at the latest."""
    family = Family()
    run = family.root()
    child = family.child(run, FIRST)
    family.desk.must(Cancel(run=run, reason="enough", origin="supervisor-operator"))
    assert family.ledger(child).cancel is None
    family.desk.append(run, ev.RunCancelled())
    assert family.ledger(child).cancel is not None
    family.check()


def test_a_tick_that_takes_the_place_of_a_paused_run_ends_its_children_in_the_same_commit() -> None:
    """Beside the tick's own mail, which is queued by it."""
    family = Family()
    daily = schedule("* * * * *", name="daily", overlap="cancel")
    family.deploy("pay", schedules=(daily,))

    def tick(minute: int) -> Any:
        due = family.desk.wall = START_AT + minute * 60_000
        return family.desk.must(Tick(schedule="daily", after=due - 60_000, last=due, due=due))

    first = tick(1)
    family.desk.must(Claim(first.arrival))
    family.desk.must(TakeUp(arrival=first.arrival, start=START))
    at_work, queued = family.child(first.run, call(1)), family.spawn(first.run, call(2))
    family.desk.must(Pause(run=first.run, code="operator", detail=""))
    second = tick(2)
    assert [ended(family, each) for each in (first.run, queued)] == ["cancelled"] * 2
    assert family.ledger(at_work).cancel is not None
    assert family.desk.index.queued_for(second.run)
    family.check()


def test_an_administrators_cancel_takes_children_along_in_their_name() -> None:
    """The commit has one author; the children's logs say that it was their parent."""
    family = Family()
    run = family.root()
    child = family.child(run, FIRST)
    family.desk.must(Pause(run=run, code="operator", detail=""))
    family.desk.must(Cancel(run=run, reason="enough", origin="hub-admin", by="root"))
    assert family.desk.changes[-1].author == "hub"
    assert family.ledger(child).cancel.origin == "parent"  # type: ignore[union-attr]  # it is being cancelled
    family.check()


def test_many_children_are_told_by_one_commit_and_no_bucket_overflows() -> None:
    """All of them queued: each consumed entry has its place and its count."""
    family = Family()
    run = family.root()
    for number in range(1, 41):
        family.spawn(run, call(number))
    family.desk.append(run, ONE)
    assert not family.desk.index.queue
    assert family.desk.index.state.bucket_entries == 41
    family.check()


@pytest.mark.parametrize("left", [1, 2, 3])
def test_what_one_commit_consumes_lies_in_one_bucket(left: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of it in the bucket that it fills would be refused, each time again: the parent could never end."""
    family = Family()
    run = family.root()
    for number in (1, 2):
        family.spawn(run, call(number))
    monkeypatch.setattr(buckets, "BUCKET_ENTRIES", family.desk.index.state.bucket_entries + left)
    before = family.desk.index.state.bucket
    family.desk.append(run, ONE)
    after = family.desk.index.state
    assert (after.bucket, after.bucket_entries) == ((before, 3) if left > 1 else (before + 1, 2))
    family.check()


def test_a_bucket_that_is_a_day_old_closes_before_what_a_commit_consumes() -> None:
    """With the watermark that says so."""
    family = Family()
    run = family.root()
    for number in (1, 2):
        family.spawn(run, call(number))
    before = family.desk.index.state.bucket
    family.desk.wall += buckets.BUCKET_AGE
    family.desk.append(run, ONE)
    assert (family.desk.index.state.bucket, family.desk.index.state.bucket_entries) == (before + 1, 2)
    family.check()


def test_a_parent_that_cannot_be_read_is_nobody_elses_fault(caplog: pytest.LogCaptureFixture) -> None:
    """Its child ends all the same; `fsck` says what is wrong."""
    family = Family(limits=Limits(folds=0))
    run = family.root()
    child = family.child(run, FIRST)
    family.desk.settle()
    family.files.files[layout.event_path(run, 1)] = b"{"
    family.desk.append(child, ONE)
    assert ended(family, child) == "completed"
    assert f"{run}, a child of" not in caplog.text
    assert f"{child}, a child of {run}, has ended" in caplog.text


def test_a_child_that_cannot_be_read_keeps_its_parent_from_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """Nor does one whose mail is lost: what is damaged is said by `fsck`, and stays as it is."""
    family = Family(limits=Limits(folds=0))
    run = family.root()
    child = family.child(run, call(1))
    lost = family.spawn(run, call(2))
    family.desk.settle()
    for path in [path for path in family.files.files if "/inbox/" in path]:
        del family.files.files[path]
    family.desk.reopen(family.desk.tree)
    family.desk.settle()
    family.files.files[layout.event_path(child, 1)] = b"{"
    family.desk.append(run, ONE)
    assert ended(family, run) == "completed"
    assert f"{child}, a child of {run}, isn't told to end" in caplog.text
    assert family.desk.index.standing(lost) == "absent"


def test_a_child_that_never_began_names_the_code_that_its_parent_began_on_where_none_is_deployed() -> None:
    """In a history of before code was deployed there is no other to name; a record that can't be read is damage."""
    family = Family(coded=False)
    run = family.root()
    child = family.spawn(run, FIRST, workflow="anything")
    family.desk.append(run, LET_GO)
    state = family.state(child)
    assert isinstance(state, Ended)
    assert (state.started.code, state.started.definition) == (START.code, START.definition)
    family.check()
    spoilt = Family()
    run = spoilt.root()
    spoilt.spawn(run, FIRST)
    spoilt.files.files[layout.DEPLOYED] = b"{}"
    with pytest.raises(Damaged):
        spoilt.desk.append(run, LET_GO)


def test_the_fate_of_a_childs_last_mail_tells_nobody_a_second_time() -> None:
    """It may follow the end, and by then the parent has the outcome, or has ended itself."""
    family = Family()
    run = family.root()
    child = family.child(run, FIRST)
    family.desk.must(QueueMail(by=family.by, run=child, call=FIRST, to=(BOSS,), subject="s", text="t"))
    family.desk.append(child, ONE)
    family.desk.must(MailDelivered(1))
    assert len(family.outcomes(run)) == 1
    assert list(family.desk.changes[-1].known) == [child]
    family.check()
