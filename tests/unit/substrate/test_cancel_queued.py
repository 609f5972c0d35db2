"""Asking for the end of a run that is only queued: it begins and ends in one commit; and what that races with."""

from dataclasses import replace
from typing import Any

import pytest

from substrate import runlog
from substrate.messages import (
    Append,
    Cancel,
    CancelTaken,
    Claim,
    Consumed,
    Enqueue,
    Refused,
    Release,
    Signal,
    TakeUp,
    WorkflowProcess,
)
from substrate.operations import Settled
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.event_parts import Origin
from waypost.model.ids import Generation, RunId
from waypost.testing.desk import STARTED, Desk, message


def cancelled(run: RunId, origin: Origin = "supervisor-operator") -> Cancel:
    return Cancel(run=run, reason="enough", origin=origin, by="ann", start=STARTED)


def queued(desk: Desk, number: int = 1, *, answers: str | None = None) -> tuple[int, RunId]:
    """A mail that waits, and the run that it is for."""
    arrival = desk.enqueue(message(f"m{number}@x", answers=answers))
    return arrival, desk.index.queue[arrival].queued.entry.run


def log(desk: Desk, run: RunId) -> list[Any]:
    return [ev.decode(raw) for raw in runlog.events(desk.index, run)]


PLACES = {
    "in the inbox": (),
    "claimed": (Claim(1),),
    "claimed a second time": (Claim(1), Release(1), Claim(1)),
    "put back": (Claim(1), Release(1)),
}


@pytest.mark.parametrize("origin", ["supervisor-operator", "hub-admin"])
@pytest.mark.parametrize("before", PLACES.values(), ids=PLACES)
def test_a_queued_run_begins_and_ends_and_its_mail_is_consumed_by_one_commit(before: Any, origin: Origin) -> None:
    """Wherever its mail lies; the history says who asked, and that no code was run."""
    desk = Desk()
    desk.begin()
    arrival, run = queued(desk)
    for step in before:
        desk.must(step)
    commits = len(desk.changes)
    taken = desk.must(cancelled(run, origin))
    assert isinstance(taken, CancelTaken)
    assert (taken.fresh, taken.origin, taken.by) == (True, origin, "ann")
    started, asked, end = log(desk, run)
    assert isinstance(started, ev.RunStarted)
    assert isinstance(asked, ev.CancelRequested)
    assert isinstance(end, ev.RunCancelled)
    assert (end.code, end.detail) == ("not-run", "it had not begun: its mail was queued")
    (change,) = desk.changes[commits:]
    assert change.subject == f"cancel {run}, which had not begun: {origin}"
    assert Consumed(arrival, run) in change.facts
    assert not desk.index.queue
    assert desk.index.known(run).run.outcome == "cancelled"  # type: ignore[union-attr] # it has ended
    assert desk.do(cancelled(run)) == Settled(
        CancelTaken(fresh=False, at=desk.index.known(run).changed, origin="", by="")
    )
    desk.check()


def test_it_is_cancelled_before_the_first_child_too() -> None:
    """A deployment that is held, or has never had one, has mail that waits."""
    desk = Desk()
    _, run = queued(desk)
    desk.must(cancelled(run))
    assert desk.index.known(run).run.outcome == "cancelled"  # type: ignore[union-attr] # it has ended
    desk.check()


def test_a_reason_that_no_log_can_hold_cancels_nothing_and_loses_no_mail() -> None:
    """The run is as it was: queued, and to be cancelled with fewer words."""
    desk = Desk()
    desk.begin()
    arrival, run = queued(desk)
    assert desk.code(replace(cancelled(run), reason="x" * desk.limits.event)) == "too-large"
    assert list(desk.index.queue) == [arrival]
    assert isinstance(desk.index.known(run).run, fold.Absent)
    desk.must(cancelled(run))
    desk.check()


def test_whoever_is_second_is_refused_or_asks_a_run_that_has_begun() -> None:
    """The log's order decides, and every reader sees the same winner."""
    first = Desk()
    first.begin()
    arrival, run = queued(first)
    first.must(Claim(arrival))
    first.must(cancelled(run))
    assert first.code(TakeUp(arrival=arrival, start=STARTED)) == "not-claimed"
    assert isinstance(first.do(Claim(arrival)), Refused)
    assert isinstance(first.do(Release(arrival)), Refused)
    child = WorkflowProcess(Generation(1))
    assert isinstance(first.do(Append(by=child, run=run, events=(ev.RunCancelled(),))), Refused)
    assert first.code(Signal(run=run, name="paid", id="s1", payload=b"1")) == "ended"
    second = Desk()
    second.begin()
    arrival, run = queued(second)
    second.must(Claim(arrival))
    second.must(TakeUp(arrival=arrival, start=STARTED))
    assert second.must(cancelled(run)).fresh
    assert [type(each) for each in log(second, run)] == [ev.RunStarted, ev.CancelRequested]
    assert isinstance(second.index.known(run).run, fold.Driven), "its code may clean up"
    second.check()


def test_what_else_waited_for_it_goes_to_a_run_that_names_it() -> None:
    """As after the end of any run: a mail of its thread is not lost, and says what it follows."""
    desk = Desk()
    desk.begin()
    _, run = queued(desk)
    reply, same = queued(desk, 2, answers="m1@x")
    assert same == run
    desk.must(cancelled(run))
    assert list(desk.index.queue) == [reply]
    desk.must(Claim(reply))
    other = desk.must(TakeUp(arrival=reply, start=STARTED, reroute=True))
    (started,) = log(desk, other)
    assert started.after == run
    _, later = queued(desk, 3, answers="m1@x")
    assert later == other, "the thread goes on there"
    desk.check()


def test_a_reply_to_it_begins_a_run_that_names_it() -> None:
    """The thread is known, though no code has seen it."""
    desk = Desk()
    desk.begin()
    _, run = queued(desk)
    desk.must(cancelled(run))
    arrival, other = queued(desk, 2, answers="m1@x")
    entry = desk.index.queue[arrival].queued.entry
    assert (entry.starts, entry.old, other == run) == (True, run, False)
    assert desk.must(Enqueue(message("m1@x"))).outcome == "already-present", "it isn't begun by a redelivery either"
