"""When a timer fires, arrow by arrow, over the substrate's real rules on paper."""

import msgspec
import pytest

from actors.errors import OutOfTurn
from actors.logic.scheduler.decision import Unopened, advance
from actors.messages import Woken
from substrate.messages import (
    Append,
    Done,
    Durable,
    Outcome,
    Pause,
    Supervisor,
    Withheld,
    WorkflowProcess,
)
from waypost.model import events as ev
from waypost.model.ids import CallId, Generation
from waypost.model.limits import DEFAULT, Limits
from waypost.model.times import Now
from waypost.testing.clock import START as MORNING
from waypost.testing.scheduler_bench import HASH, HOUR, TimeBench, timer

CHILD = WorkflowProcess(Generation(1))


def test_a_timer_is_waited_for_by_its_wall_time_and_fired_by_the_supervisor():
    """Deadlines that are recorded are wall times; only the host may say that one has come."""
    bench = TimeBench()
    bench.open()
    bench.child(timer("r1#1", 3600))
    assert [wake.wall for wake in bench.wakes] == [MORNING + HOUR]
    bench.at(HOUR)
    bench.wake()
    (request,) = bench.requests
    fired = ev.TimerFired(call=CallId("r1#1"), timer="r1#1")
    assert request.what == Append(by=Supervisor(), run=bench.runs[0], events=(fired,))
    assert isinstance(bench.answer(), Done)
    assert not bench.requests


def test_a_restart_keeps_the_deadline():
    """An hour's sleep of which half has passed ends in half an hour."""
    bench = TimeBench()
    bench.do(Append(by=WorkflowProcess(Generation(1)), run=bench.runs[0], events=(timer("r1#1", 3600),)))
    bench.at(HOUR // 2)
    bench.open()
    assert [wake.wall for wake in bench.wakes] == [MORNING + HOUR]
    assert not bench.requests


def test_what_is_overdue_at_the_start_fires_at_once_in_order():
    """By deadline, then run, then call: the same order on every host."""
    bench = TimeBench(runs=2)
    for run, call, delay in ((1, "r1#2", 5), (0, "r1#3", 5), (0, "r1#1", 7), (1, "r1#4", 1), (0, "r1#2", 5)):
        bench.do(Append(by=WorkflowProcess(Generation(1)), run=bench.runs[run], events=(timer(call, delay),)))
    bench.at(HOUR)
    bench.open()
    assert bench.fired() == [("2", "r1#4"), ("1", "r1#2"), ("1", "r1#3"), ("2", "r1#2"), ("1", "r1#1")]
    while bench.requests:
        assert isinstance(bench.answer(), Done)
    assert not bench.wakes


def test_the_deadline_of_a_wait_is_a_timer_named_like_its_call():
    """TimerFired naming the wait closes it (storage §5)."""
    bench = TimeBench()
    bench.open()
    bench.child(ev.SignalAwaited(call=CallId("r1#1"), park="input", seen=1, timeout=60.0))
    bench.at(60_000)
    bench.wake()
    assert bench.fired() == [("1", "r1#1")]
    assert isinstance(bench.answer(), Done)


def test_a_retry_timer_has_its_own_name():
    """The call's back-off isn't the call."""
    bench = TimeBench()
    bench.open()
    call = CallId("r1#1")
    bench.child(ev.StepStarted(call=call, step="pay", arguments=HASH))
    failed = ev.StepFailed(call=call, error=ev.Fault(type="X", message="x"), final=False)
    bench.child(failed, timer("r1#1", 1, "r1#1/2"), ev.AttemptScheduled(call=call, attempt=2, timer="r1#1/2"))
    bench.at(1000)
    bench.wake()
    assert bench.fired() == [("1", "r1#1/2")]
    assert isinstance(bench.answer(), Done)


def test_a_timer_that_was_cancelled_in_time_never_fires():
    """The block was left; nothing is asked for when its time comes."""
    bench = TimeBench()
    bench.open()
    bench.child(timer("r1#1", 60))
    bench.child(ev.TimerCancelled(call=CallId("r1#1"), timer="r1#1"))
    bench.at(HOUR)
    bench.wake()
    assert not bench.requests


def test_a_cancellation_that_was_quicker_makes_a_refusal_and_nothing_else():
    """Log order decides who was first; the loser is dropped, not repeated."""
    bench = TimeBench()
    bench.open()
    bench.child(timer("r1#1", 60))
    bench.at(60_000)
    bench.wake()
    cancelled = ev.TimerCancelled(call=CallId("r1#1"), timer="r1#1")
    bench.do(Append(by=WorkflowProcess(Generation(1)), run=bench.runs[0], events=(cancelled,)))
    assert not isinstance(bench.answer(), Done)
    bench.at(HOUR)
    bench.tell(Durable(9))
    assert not bench.requests


def test_each_timer_is_asked_for_once():
    """Facts about the run that come before the answer don't bring it back."""
    bench = TimeBench()
    bench.open()
    bench.child(timer("r1#1", 60))
    bench.at(60_000)
    bench.wake()
    bench.child(timer("r1#2", 3600))
    bench.tell(bench.wakes[0].message)
    assert bench.fired() == [("1", "r1#1")]


def test_a_wait_without_a_deadline_is_no_deadline():
    """A run may wait for a mail for years; it moves nobody's alarm."""
    bench = TimeBench()
    bench.open()
    bench.child(timer("r1#1", 60))
    before = bench.state
    bench.child(ev.SignalAwaited(call=CallId("r1#2"), park="input", seen=1))
    assert bench.state == before
    assert len(bench.wakes) == 1


def test_timers_of_a_paused_run_fire():
    """Time passes for a run that waits for an operator, too (storage §4)."""
    bench = TimeBench()
    bench.open()
    bench.child(timer("r1#1", 60))
    bench.do(Pause(run=bench.runs[0], code="operator", detail=""))
    bench.stream()
    bench.at(60_000)
    bench.wake()
    assert isinstance(bench.answer(), Done)


def test_the_end_of_a_run_ends_its_timers():
    """Nobody is there to hear them."""
    bench = TimeBench()
    bench.open()
    bench.child(timer("r1#1", 60))
    bench.child(ev.RunCompleted(result=ev.Value(inline=msgspec.Raw(b"1"))))
    bench.at(HOUR)
    bench.wake()
    assert not bench.requests


def test_an_earlier_deadline_gets_a_wake_up_of_its_own_and_a_later_one_waits():
    """One wake-up is enough: it is the earliest, and when it has come the next is asked for."""
    bench = TimeBench()
    bench.open()
    bench.child(timer("r1#1", 60))
    bench.child(timer("r1#2", 90))
    bench.child(timer("r1#3", 30))
    assert [wake.wall for wake in bench.wakes] == [MORNING + 60_000, MORNING + 30_000]
    bench.at(30_000)
    bench.wake()
    assert [wake.wall for wake in bench.wakes[2:]] == [MORNING + 60_000]


def test_a_clock_that_went_back_delays_a_timer_and_fires_it_once():
    """Absolute deadlines rule: no arithmetic on differences, no catching up."""
    bench = TimeBench()
    bench.open()
    bench.child(timer("r1#1", 60))
    bench.at(-HOUR)
    bench.wake()
    assert not bench.requests
    assert bench.wakes[-1].wall == MORNING + 60_000
    bench.at(60_000)
    bench.wake()
    assert isinstance(bench.answer(), Done)
    bench.at(-HOUR)
    bench.tell(Durable(9))
    bench.at(HOUR)
    bench.tell(Durable(10))
    assert not bench.requests


def test_a_clock_that_went_forward_fires_what_it_passed():
    """The same rule; what fires early by it is what the wall clock says is due."""
    bench = TimeBench()
    bench.open()
    bench.child(timer("r1#1", 60))
    bench.at(HOUR)
    bench.tell(Durable(9))
    assert bench.fired() == [("1", "r1#1")]


def test_what_could_not_be_written_is_tried_again_later():
    """A full disk holds a timer up; it doesn't lose it."""
    bench = TimeBench()
    bench.open()
    bench.child(timer("r1#1", 60), timer("r1#2", 60))
    bench.at(60_000)
    bench.wake()
    bench.answer(Withheld("the disk is full"))
    bench.answer(Withheld("the disk is full"))
    assert not bench.requests
    assert [wake.mono for wake in bench.wakes if wake.mono is not None] == [1000.0 + DEFAULT.backoff_first]
    bench.wake()
    assert bench.fired() == [("1", "r1#1"), ("1", "r1#2")]


def test_a_withheld_timer_that_was_cancelled_meanwhile_is_forgotten():
    """Nothing is left to try."""
    bench = TimeBench()
    bench.open()
    bench.child(timer("r1#1", 60))
    bench.at(60_000)
    bench.wake()
    bench.child(ev.TimerCancelled(call=CallId("r1#1"), timer="r1#1"))
    bench.answer(Withheld("the disk is full"))
    bench.at(HOUR)
    bench.tell(Durable(9))
    assert not bench.requests
    bench.tell(Outcome(999, Done(1)))
    assert not bench.requests


def test_only_so_many_timers_are_under_way_at_once():
    """A host that was down for a day may find all of its timers due: what one answer costs must not grow with them."""
    bench = TimeBench(limits=Limits(deadlines=2))
    bench.do(Append(by=CHILD, run=bench.runs[0], events=tuple(timer(f"r1#{n}", n) for n in range(1, 8))))
    bench.at(HOUR)
    bench.open()
    asked: list[str] = []
    while bench.requests:
        assert len(bench.requests) <= 2
        asked.append(bench.fired()[0][1])
        assert isinstance(bench.answer(), Done)
    assert asked == [f"r1#{n}" for n in range(1, 8)]


def test_while_nothing_can_be_written_nothing_more_is_tried():
    """A full disk under a thousand due timers is asked again a second later, not a thousand times at once."""
    bench = TimeBench(limits=Limits(deadlines=2))
    bench.do(Append(by=CHILD, run=bench.runs[0], events=tuple(timer(f"r1#{n}", n) for n in range(1, 8))))
    bench.at(HOUR)
    bench.open()
    bench.answer(Withheld("the disk is full"))
    bench.answer(Withheld("the disk is full"))
    assert not bench.requests
    bench.wake()
    assert bench.fired() == [("1", "r1#1"), ("1", "r1#2")]


@pytest.mark.parametrize("message", [Durable(1), Woken(1), Outcome(1, Done(1))])
def test_a_message_before_the_snapshot_is_an_error(message):
    """Nobody sends one; guessing would hide a broken host."""
    with pytest.raises(OutOfTurn):
        advance(Unopened(DEFAULT), message, Now(0, 0.0))


def test_a_second_snapshot_is_an_error():
    """A scheduler is subscribed once."""
    bench = TimeBench()
    bench.open()
    with pytest.raises(OutOfTurn):
        bench.tell(bench.paper.snapshot())


def test_of_many_deadlines_the_nearest_are_kept_in_mind_and_none_is_lost():
    """A hundred thousand may be pending: the log has them, and those that are far are asked for when they are near."""
    bench = TimeBench(limits=Limits(deadlines=2))
    bench.open()
    for number in range(9, 0, -1):  # each is nearer than all before it
        bench.child(timer(f"r1#{number}", 60 * number))
    fired: list[str] = []
    for minute in range(1, 10):
        bench.at(minute * 60_000)
        for wake in tuple(bench.wakes):
            bench.tell(wake.message)
        bench.stream()
        while bench.requests:
            fired += [timer for _run, timer in bench.fired()[:1]]
            assert isinstance(bench.answer(), Done)
    assert fired == [f"r1#{number}" for number in range(1, 10)]


def test_deadlines_that_cannot_be_read_are_asked_for_again():
    """Before a second has passed nobody is asked again, and then all are there."""
    bench = TimeBench(limits=Limits(deadlines=2), prompt=False)
    bench.do(Append(by=CHILD, run=bench.runs[0], events=tuple(timer(f"r1#{n}", n) for n in range(1, 5))))
    bench.at(HOUR)
    bench.open()
    bench.look(Withheld("the repository is being opened"))
    assert (len(bench.requests), len(bench.looks)) == (0, 0)
    assert bench.wakes[-1].mono == 1000.0 + DEFAULT.backoff_first
    bench.wake()
    bench.look()
    assert bench.fired() == [("1", "r1#1"), ("1", "r1#2")]
