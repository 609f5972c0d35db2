"""How long a cancelled run has: told or not, with a child or without one, it ends."""

from typing import Any

import pytest

from actors.draining import Quiesce
from actors.logic.dispatch.state import Open
from ipc.messages import EventsCommitted, RunStart
from substrate.messages import Append, Cancel, Pause, Supervisor, Withheld
from waypost.model import events as ev
from waypost.model.ids import CallId, Generation
from waypost.model.limits import DEFAULT
from waypost.testing.dispatch_bench import RUN, Bench, receiving, started, step

GRACE = DEFAULT.cancel_grace


def cancel(bench: Bench) -> None:
    """An operator asks for the run's end."""
    bench.do(Cancel(run=RUN, reason="enough", origin="supervisor-operator", by="ann"))
    bench.flush()


def end(bench: Bench) -> ev.RunCancelled | None:
    """How the run has ended."""
    last = bench.paper.log(RUN)[-1]
    return last if isinstance(last, ev.RunCancelled) else None


def graces(bench: Bench) -> Any:
    """Who has how much time."""
    assert isinstance(bench.state, Open)
    return bench.state.graces


def test_a_parked_run_that_the_child_follows_is_told_at_once() -> None:
    """Nothing has to be resumed for that."""
    bench = started()
    bench.sent.clear()
    cancel(bench)
    (told,) = bench.sent
    assert isinstance(told, EventsCommitted)
    assert isinstance(ev.decode(told.events[0]), ev.CancelRequested)


def test_a_parked_run_of_an_earlier_child_is_given_to_the_present_one() -> None:
    """It is woken in order to be cancelled."""
    bench = started()
    bench.up()
    bench.settle()
    bench.sent.clear()
    cancel(bench)
    bench.settle()
    assert [payload.run for payload in bench.sent if isinstance(payload, RunStart)] == [RUN]


def test_code_that_does_not_end_in_time_is_not_waited_for() -> None:
    """The host ends the run; what it says is why."""
    bench = started()
    cancel(bench)
    bench.later(GRACE - 1)
    bench.settle()
    assert end(bench) is None
    bench.later(1)
    bench.settle()
    assert end(bench) == bench.paper.log(RUN)[-1]
    assert "its code had not ended 30 s after it was told" in str(end(bench))
    assert not graces(bench)


def test_a_child_that_comes_late_is_given_its_time() -> None:
    """The clean-up isn't cut because a host or a child was away."""
    bench = started()
    bench.crash()
    cancel(bench)
    bench.later(GRACE - 1)
    bench.up()
    bench.settle()
    bench.later(GRACE - 1)
    bench.settle()
    assert end(bench) is None
    bench.later(1)
    bench.settle()
    assert end(bench) is not None


def test_a_child_that_never_comes_holds_up_nobody() -> None:
    """A deployment that crash-loops has runs, too, that somebody wants to be over."""
    bench = started()
    bench.crash()
    cancel(bench)
    bench.later(GRACE)
    bench.settle()
    assert "no process took it up within 30 s" in str(end(bench))


def test_a_drain_takes_no_time_from_a_clean_up() -> None:
    """A process is there, and another one follows: what was parked is told by that, however long the drain takes."""
    bench = started()
    bench.tell(Quiesce(Generation(1)))
    cancel(bench)
    for _ in range(3):
        bench.later(GRACE)
        bench.settle()
    assert end(bench) is None
    bench.crash()
    bench.later(GRACE - 1)
    bench.up()
    bench.settle()
    bench.later(GRACE - 1)
    bench.settle()
    assert end(bench) is None, "it is told now, and has its time"
    bench.later(1)
    bench.settle()
    assert "its code had not ended 30 s after it was told" in str(end(bench))


def test_time_is_given_again_once_and_not_by_every_child() -> None:
    """A clean-up that ends its child each time ends all the same."""
    bench = started()
    cancel(bench)
    for _ in range(2):
        bench.later(GRACE / 2)
        if end(bench) is None:
            bench.crash()
            bench.up()
            bench.settle()
    bench.settle()
    assert end(bench) is not None


def test_time_in_which_the_host_stood_still_is_taken_from_nobody() -> None:
    """Its clock puts the first wake-up off; whose time would be up later is put off by as much."""
    bench = started()
    bench.mail(2)
    bench.settle()
    (other,) = bench.started(generation=1)
    bench.child(1, receiving("r1#1"), run=other)
    cancel(bench)
    bench.later(GRACE - 10)
    bench.do(Cancel(run=other, reason="enough", origin="supervisor-operator", by="ann"))
    bench.flush()
    bench.later(5)
    bench.stood_still(1000)
    bench.settle()
    assert end(bench) is not None, "the clock has put that off"
    assert list(graces(bench)) == [other]
    bench.later(GRACE - 11)  # as from the wake-up's own time on
    bench.settle()
    assert list(graces(bench)) == [other]
    bench.later(1)
    bench.settle()
    assert not graces(bench)


def test_an_end_that_is_asked_for_is_not_asked_for_again() -> None:
    """The disk takes its time, and meanwhile another run's is up."""
    bench = started()
    bench.mail(2)
    bench.settle()
    (other,) = bench.started(generation=1)
    bench.child(1, receiving("r1#1"), run=other)
    cancel(bench)
    bench.later(1)
    bench.do(Cancel(run=other, reason="enough", origin="supervisor-operator", by="ann"))
    bench.flush()
    bench.later(GRACE - 1)
    bench.later(1)
    ends = [what.run for what in bench.asked if isinstance(what, Append) and isinstance(what.by, Supervisor)]
    assert sorted(ends) == sorted([RUN, other])
    bench.settle()
    assert not graces(bench)


def test_a_cancel_that_an_earlier_dispatch_knew_is_known_from_the_log() -> None:
    """What was under way is found by its runs; nothing has to be remembered."""
    bench = started()
    bench.crash()
    cancel(bench)
    again = Bench(paper=bench.paper)
    assert list(graces(again)) == [RUN]
    again.later(GRACE)
    again.settle()
    assert end(again) is not None


def test_code_that_ends_in_time_ends_by_itself() -> None:
    """Then there is nothing to be done, and no wake-up has a say any more."""
    bench = started()
    cancel(bench)
    bench.child(1, ev.SignalAwaitAbandoned(call=CallId("r1#1")), ev.RunCancelled())
    bench.settle()
    assert not graces(bench)
    bench.later(GRACE)
    assert not bench.asked


def test_a_step_that_still_works_ends_with_its_process() -> None:
    """It can't be stopped from outside; a fresh process takes over, after a drain, and no run is charged for that."""
    bench = started()
    bench.child(1, ev.SignalAwaitAbandoned(call=CallId("r1#1")), step("r1#2"))
    cancel(bench)
    bench.later(GRACE)
    bench.settle()
    (wish,) = bench.recycles
    assert (wish.generation, wish.reason) == (1, f"{RUN} was cancelled, and still works 30 s later")


def test_code_that_only_waits_needs_no_fresh_process() -> None:
    """Nothing of it works: the child lets go of it."""
    bench = started()
    cancel(bench)
    bench.child(1, ev.SignalAwaitAbandoned(call=CallId("r1#1")), receiving("r1#2", seen=4))
    bench.later(GRACE)
    bench.settle()
    assert end(bench) is not None
    assert not bench.recycles


def test_a_full_disk_is_tried_again() -> None:
    """The end is what the disk has a reserve for; but it may be broken."""
    bench = started()
    cancel(bench)
    bench.later(GRACE)
    bench.answer(Withheld("no space"))
    assert end(bench) is None
    bench.later(DEFAULT.backoff_first)
    bench.settle()
    assert end(bench) is not None


def test_an_end_that_comes_in_the_same_moment_wins() -> None:
    """The refusal is an answer like any other."""
    bench = started()
    cancel(bench)
    bench.later(GRACE)
    bench.child(1, ev.RunCancelled())
    bench.settle()
    last = end(bench)
    assert last is not None
    assert last.code == "ended"


@pytest.mark.parametrize("broken", [True, False])
def test_a_run_whose_code_is_gone_ends_without_it(broken: bool) -> None:  # noqa: FBT001 - a case
    """Nobody has to correct a file so that a run can be cancelled."""
    bench = started()
    bench.child(1, ev.SignalAwaitAbandoned(call=CallId("r1#1")), step("r1#2"))
    bench.crash()
    cancel(bench)
    bench.up(broken="no such module" if broken else "")
    bench.settle()
    last = end(bench)
    assert (last is not None and last.code == "not-run") == broken


def test_a_run_that_is_being_cancelled_is_never_at_rest() -> None:
    """A clean-up that waits for mail has its time, and no more."""
    bench = started()
    cancel(bench)
    bench.child(1, ev.SignalAwaitAbandoned(call=CallId("r1#1")), receiving("r1#2", seen=4))
    bench.settle()
    assert isinstance(bench.state, Open)
    assert RUN in bench.state.cards
    bench.later(GRACE)
    bench.settle()
    assert end(bench) is not None


def test_a_paused_run_is_ended_by_the_cancel_itself() -> None:
    """There is no moment at which somebody would have to end it later."""
    bench = started()
    bench.do(Pause(run=RUN, code="operator", detail=""))
    cancel(bench)
    assert end(bench) is not None
    assert not graces(bench)


def test_only_the_host_ends_a_run_so() -> None:
    """By the table of who may write what."""
    bench = started()
    cancel(bench)
    bench.do(Append(by=Supervisor(), run=RUN, events=(ev.RunCancelled(code="past-grace"),)))
