"""Dispatch while it drains: nothing is begun, who comes to rest is let go of, and who is at work is told."""

import pytest

from actors.draining import Executing, Quiesce, StillExecuting
from actors.errors import OutOfTurn
from actors.logic.dispatch.card import Waning
from actors.logic.dispatch.decision import advance
from actors.logic.dispatch.state import Open, Unopened
from actors.logic.dispatch.turn import Setup
from actors.messages import GenerationDown, Woken
from ipc.messages import EventsCommitted, RunLogCredit, RunStart
from substrate.messages import Claim, TakeUp
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import CallId, Generation
from waypost.model.limits import Limits
from waypost.testing.dispatch_bench import NOW, RUN, START, Bench, receiving, step, value

QUIESCE = Quiesce(Generation(1))


def working(limits: Limits | None = None) -> Bench:
    """A run with a step under way."""
    bench = Bench(limits)
    bench.up()
    bench.mail()
    bench.settle()
    bench.child(1, step("r1#1"))
    bench.flush()
    bench.sent.clear()
    return bench


def done(call: str) -> ev.StepCompleted:
    return ev.StepCompleted(call=CallId(call), output=value())


def state(bench: Bench) -> Open:
    assert isinstance(bench.state, Open)
    return bench.state


def test_who_is_at_work_is_told_at_once_and_again_when_that_changes() -> None:
    """With the step, and since when; and that nobody is, once."""
    bench = working()
    bench.tell(QUIESCE)
    (told,) = bench.draining
    (one,) = told.runs
    assert (one.run, one.step) == (RUN, "step pay")
    assert one.since.endswith("Z")
    bench.tell(Woken(-1))
    assert len(bench.draining) == 1, "what hasn't changed isn't told again"
    bench.child(1, done("r1#1"))
    assert bench.draining[-1].runs == (Executing(RUN, "between two steps", ""),)
    bench.child(1, receiving("r1#2", seen=3))
    bench.flush()
    assert bench.draining[-1] == StillExecuting(Generation(1), ())
    assert len(bench.draining) == 3


def test_a_run_that_rests_is_let_go_of_and_what_wakes_it_waits_for_the_next_child() -> None:
    """Else a deployment with busy timers would never come to rest."""
    bench = working()
    bench.child(1, done("r1#1"))
    bench.child(1, receiving("r1#2", seen=3))
    bench.flush()
    bench.tell(QUIESCE)
    assert bench.draining == [StillExecuting(Generation(1), ())]
    bench.sent.clear()
    bench.child(1, ev.SignalAwaitAbandoned(call=CallId("r1#2")))  # whatever makes it driven again
    bench.flush()
    assert isinstance(bench.paper.index.known(RUN).run, fold.Driven)
    assert not bench.sent
    assert len(bench.draining) == 1
    bench.tell(GenerationDown(Generation(1), unexpected=False))
    bench.up()
    bench.settle()
    assert any(isinstance(sent, RunStart) for sent in bench.sent), "the next child is given it"


def test_a_run_at_work_goes_on_being_told_of_its_events() -> None:
    """It couldn't come to rest otherwise."""
    bench = working()
    bench.tell(QUIESCE)
    bench.child(1, done("r1#1"))
    assert any(isinstance(sent, EventsCommitted) for sent in bench.sent)


def test_nothing_is_claimed_and_nothing_is_begun() -> None:
    """New mail stays in the inbox, a run that was just taken up stays in its log."""
    bench = working()
    bench.tell(QUIESCE)
    bench.mail(2)
    bench.settle()
    assert not bench.requests
    fresh = Bench()
    fresh.up()
    fresh.mail()
    assert isinstance(fresh.answer(), Claim)
    assert isinstance(fresh.answer(), TakeUp)
    fresh.tell(QUIESCE)
    fresh.flush()
    fresh.settle()
    assert not any(isinstance(sent, RunStart) for sent in fresh.sent)
    assert fresh.draining == [StillExecuting(Generation(1), ())]


def test_a_run_whose_log_is_on_its_way_to_the_child_goes_no_further() -> None:
    """It isn't at work before its log is whole, and nothing is begun any more."""
    bench = working(Limits(page=1, page_credit=1))
    bench.tell(GenerationDown(Generation(1), unexpected=False))
    bench.up()
    bench.answer()
    bench.flush()
    bench.answer()
    bench.sent.clear()
    bench.tell(Quiesce(Generation(2)))
    assert bench.draining == [StillExecuting(Generation(2), ())]
    bench.tell(RunLogCredit(run=RUN))
    bench.settle()
    assert not bench.sent


def test_a_child_whose_code_does_not_load_is_at_rest() -> None:
    """No run was given to it."""
    bench = working()
    bench.tell(GenerationDown(Generation(1), unexpected=False))
    bench.up(broken="SyntaxError")
    bench.tell(Quiesce(Generation(2)))
    assert bench.draining == [StillExecuting(Generation(2), ())]


def test_a_word_about_another_child_changes_nothing() -> None:
    """It was on its way when that one went."""
    bench = working()
    before = bench.state
    bench.tell(Quiesce(Generation(9)))
    assert bench.state == before
    bench.tell(GenerationDown(Generation(1), unexpected=False))
    before = bench.state
    bench.tell(QUIESCE)
    assert bench.state == before


def test_an_exit_that_nobody_expected_is_charged_to_who_was_at_work() -> None:
    """And to nobody who had come to rest before."""
    bench = working()
    bench.mail(2)
    bench.settle()
    bench.tell(QUIESCE)
    assert len(bench.draining[-1].runs) == 2
    bench.child(1, done("r1#1"))
    bench.child(1, receiving("r1#2", seen=3))
    bench.flush()
    counted = bench.crash()
    assert [each.run for each in counted.runs] == [run for run in bench.paper.runs() if run != RUN]


def test_many_are_counted_and_the_longest_at_work_are_named() -> None:
    """A line for each of a thousand would say nothing."""
    bench = Bench()
    bench.up()
    for number in range(25):
        bench.mail(number)
    bench.settle()
    bench.tell(QUIESCE)
    assert (len(bench.draining[0].runs), bench.draining[0].more) == (20, 5)
    assert isinstance(state(bench).child, Waning)


def test_it_can_not_drain_before_it_knows_the_repository() -> None:
    """A supervisor that asks for it is out of its mind: one for all."""
    with pytest.raises(OutOfTurn):
        advance(Unopened(Setup(start=START, limits=Limits())), QUIESCE, NOW)
