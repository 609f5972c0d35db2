"""Taking a deployment out of service, arrow by arrow: who is waited for, when the clock runs, whom its limit ends."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from actors.draining import ChildWeighed, Close, Quiesce, Recycle, RecycleRequested, Weigh
from actors.logic.supervisor.books import Renewing
from actors.logic.supervisor.crashes import NONE, Crashes
from actors.logic.supervisor.effects import Announce, Pass, TellChild, TellDispatch, Up
from actors.logic.supervisor.retiring import LOOKS
from actors.logic.supervisor.states import (
    BackingOff,
    Counting,
    Draining,
    Ending,
    Opening,
    Raising,
    Retiring,
    Running,
    Shelving,
)
from actors.logic.supervisor.words import describe
from actors.messages import ChildReady, Forward, GenerationDown, Role, Stop, Woken
from substrate.messages import (
    Cancel,
    Done,
    DrainDeployment,
    GoesOn,
    HoldDeployment,
    LiveRuns,
    Outcome,
    ReadLive,
    ResumeDeployment,
    Withheld,
)
from waypost.acting import Asked, Reply, WakeAt
from waypost.model.ids import Generation, RunId
from waypost.model.limits import Limits
from waypost.model.run import Cancel as Cancelled
from waypost.model.run import Driven
from waypost.model.times import Now
from waypost.testing.dispatch_bench import Bench, receiving
from waypost.testing.supervision import (
    BOOKS,
    CODE,
    COUNTED,
    DIED,
    DRAINED,
    END,
    LEFT,
    LIMITS,
    NOW,
    RETIRING,
    RUNNING,
    SETUP,
    SNAPSHOT,
    STARTING_TO_END,
    SUCCEEDING,
    TO_END,
    TOKEN,
    TOLD,
    ended,
    step,
)

CUT = replace(SETUP, spec=replace(SETUP.spec, cut_short=("check",)))


def left(*driven: Driven, resting: int = 0) -> LiveRuns:
    return LiveRuns(driven, resting)


def told(state: Any, runs: LiveRuns, at: float, setup: Any = CUT) -> Any:
    """The repository says who is left, at this time."""
    return step(state, Outcome(state.asked, Done(1, runs)), setup=setup, now=Now(NOW.wall, at))


def after_a_look(state: Any, runs: LiveRuns, at: float, setup: Any = CUT) -> Any:
    """And it is asked again."""
    later = told(state, runs, at, setup).state
    return step(later, Woken(later.asked), setup=setup, now=Now(NOW.wall, at)).state


def test_nothing_begins_any_more_and_it_is_asked_who_is_left() -> None:
    """Those that have begun go on, with their mail."""
    asked = step(RUNNING, Asked(6, Forward(DrainDeployment("ann", end=True))))
    assert isinstance(asked.state, Running), "nothing has begun that isn't durable"
    assert asked.effects == (Pass(11, DrainDeployment("ann", end=True)),)
    begun = step(asked.state, Outcome(11, Done(1, END)))
    assert isinstance(begun.state, Retiring)
    effects = [effect for effect in begun.effects if not isinstance(effect, Announce)]
    assert effects == [Reply(6, Done(1, END)), TellDispatch(Close(Generation(3))), Pass(12, ReadLive())]
    assert describe(SETUP, begun.state).state == "draining"


def test_who_is_left_is_said() -> None:
    """Those that execute with their step, those that rest as a number."""
    following = told(RETIRING, left(LEFT, resting=2), 100.0)
    shown = describe(SETUP, following.state)
    assert shown.executing[0].step == "step check"
    assert "step check, since 2026-11-29T08:00:00.000Z" in shown.reason
    assert "2 of its runs rest" in shown.reason
    assert WakeAt(Woken(11), mono=100.0 + LIMITS.drain_look) in following.effects


def test_when_all_have_ended_it_rests() -> None:
    """By the same word as after any drain."""
    following = told(RETIRING, left(), 100.0)
    assert isinstance(following.state, Shelving)
    assert TellDispatch(GenerationDown(Generation(3), unexpected=False)) in following.effects
    assert Pass(11, HoldDeployment()) in following.effects


def test_the_clock_counts_what_may_be_cut_short_and_nothing_else() -> None:
    """Not while people or timers are waited for, not while other steps execute: those are waited for, for ever."""
    state = after_a_look(RETIRING, left(LEFT), 100.0)
    assert state.spent == 0.0
    state = after_a_look(state, left(LEFT), 101.5)
    assert state.spent == 1.5
    state = after_a_look(state, left(resting=1), 102.5)
    assert state.spent == 2.5
    state = after_a_look(state, left(resting=1), 5000.0)
    assert state.spent == 2.5
    other = after_a_look(RETIRING, left(LEFT), 100.0, SETUP)
    assert after_a_look(other, left(LEFT), 9999.0, SETUP).spent == 0.0


def test_the_clock_does_not_count_that_the_host_stood_still() -> None:
    """A step may have ended a moment after it was stopped: only from look to look is known what executes."""
    state = after_a_look(RETIRING, left(LEFT), 100.0)
    late = told(state, left(LEFT), 100.0 + 2 * LIMITS.drain_end)
    assert late.state.spent == LOOKS * LIMITS.drain_look
    assert not [effect for effect in late.effects if isinstance(effect, Pass) and isinstance(effect.what, Cancel)]


def test_at_its_limit_those_runs_are_asked_to_end_and_no_others() -> None:
    """By name of the drain, once: who is being cancelled is waited for."""
    parked_too = Driven(LEFT.ledger)
    other = _ledger(LEFT, RunId("run_9_00112233445566aa"), "pay")
    state = after_a_look(RETIRING, left(parked_too, other), 100.0)
    state = replace(state, spent=LIMITS.drain_end - 1)
    over = told(state, left(parked_too, other), 101.0)
    (cancel,) = (each.what for each in over.effects if isinstance(each, Pass) and isinstance(each.what, Cancel))
    assert (cancel.run, cancel.origin, cancel.by) == (LEFT.ledger.run, "supervisor-drain", "ann")
    asked = step(over.state, Woken(over.state.asked), setup=CUT).state
    going = _cancelled(LEFT)
    again = told(asked, left(going, other), 102.0)
    assert not [effect for effect in again.effects if isinstance(effect, Pass)]
    assert step(asked, Outcome(12, Done(1, None)), setup=CUT).state == asked, "how a cancel was answered is in the log"


def _ledger(run: Driven, name: RunId, named: str) -> Driven:
    (call, open_step) = next(iter(run.ledger.steps.items()))
    steps = {call: msgspec.structs.replace(open_step, step=named)}
    return Driven(msgspec.structs.replace(run.ledger, run=name, steps=steps))


def _cancelled(run: Driven) -> Driven:
    cancel = Cancelled("supervisor-drain", "x", "ann", "", 3)
    return Driven(msgspec.structs.replace(run.ledger, cancel=cancel))


def test_a_process_that_wants_another_one_in_its_place_has_it_and_that_goes_on() -> None:
    """Who is left may wait for people for weeks, beside a step that was cancelled and still works."""
    state = replace(RETIRING, spent=7.0, counted=99.0)
    state = after_a_look(state, left(LEFT), 100.0)
    wish = RecycleRequested(Generation(3), "run_9 was cancelled, and still works 30 s later")
    renewing = step(state, wish, setup=CUT)
    assert isinstance(renewing.state, Draining)
    assert renewing.state.goal == Renewing("self", wish.reason)
    assert TellDispatch(Quiesce(Generation(3))) in renewing.effects
    again = step(replace(SUCCEEDING, books=renewing.state.books), ChildReady(Generation(3), 78, CODE, ""), setup=CUT)
    assert isinstance(again.state, Retiring)
    assert again.state.spent == 8.0
    assert Up(Generation(3), takes="begun") in again.effects
    assert step(state, replace(wish, generation=Generation(2)), setup=CUT).state == state


def test_the_bounds_that_want_a_fresh_process_are_looked_at_as_ever() -> None:
    """It may wait for weeks: a process that grows is replaced, and that goes on with the next one."""
    setup = replace(CUT, limits=Limits(idle=0.0, recycle_age=86_400.0, recycle_memory=1000))
    state = step(STARTING_TO_END, ChildReady(Generation(3), 77, CODE, ""), setup=setup).state
    assert isinstance(state, Retiring)
    assert state.tick is not None
    look = step(state, Woken(state.tick), setup=setup)
    assert isinstance(look.state, Retiring)
    assert look.state.tick is not None
    assert TellChild(Weigh()) in look.effects
    assert WakeAt(Woken(look.state.tick), mono=NOW.mono + LIMITS.recycle_look) in look.effects
    assert step(look.state, ChildWeighed(Generation(3), 1000), setup=setup).state == look.state
    heavy = step(look.state, ChildWeighed(Generation(3), 1001), setup=setup)
    assert isinstance(heavy.state, Draining)
    assert heavy.state.goal == Renewing("policy", "max-memory: it has 1,001 bytes, of 1,000")
    old = step(look.state, Woken(look.state.tick), setup=setup, now=Now(NOW.wall, 86_500.0))
    assert isinstance(old.state, Draining)
    assert isinstance(old.state.goal, Renewing)
    assert old.state.goal.origin == "policy"
    assert TellDispatch(Quiesce(Generation(3))) in old.effects
    again = step(replace(SUCCEEDING, books=old.state.books), ChildReady(Generation(3), 78, CODE, ""), setup=setup)
    assert isinstance(again.state, Retiring)
    assert again.state.tick is not None


def test_memory_is_looked_at_no_more_often_than_ever_while_the_clock_counts() -> None:
    """Each look at who is left asks whether the child is stopped, once a second; a bound has a look of its own."""
    setup = replace(CUT, limits=Limits(idle=0.0, recycle_memory=1000))
    state = step(STARTING_TO_END, ChildReady(Generation(3), 77, CODE, ""), setup=setup).state
    state = after_a_look(state, left(LEFT), 100.0)
    state = step(state, Woken(state.asked), setup=setup)
    assert TellChild(Weigh(memory=False)) in state.effects
    assert TellChild(Weigh()) not in state.effects


def test_a_wait_for_bounds_goes_on_where_a_drain_begins() -> None:
    """The child was asked to be looked at while it ran."""
    running = replace(RUNNING, tick=5, books=TO_END)
    assert step(running, Woken(1)).state.tick == 5


def test_a_repository_that_can_not_say_is_asked_again() -> None:
    """A full disk, say."""
    following = step(RETIRING, Outcome(TOKEN, Withheld("no space")))
    assert isinstance(following.state, Retiring)
    assert WakeAt(Woken(11), mono=100.0 + LIMITS.drain_look) in following.effects


def test_a_child_that_ends_meanwhile_is_counted_and_the_next_one_begins_nothing_either() -> None:
    """What was asked for outlives every child, and an actor that fails."""
    died = step(RETIRING, DIED)
    assert isinstance(died.state, Counting)
    backing = step(died.state, COUNTED)
    assert isinstance(backing.state, BackingOff)
    up = step(STARTING_TO_END, ChildReady(Generation(3), 78, CODE, ""))
    assert isinstance(up.state, Retiring)
    assert up.state.spent == 0.0, "as much as was counted before"
    assert Up(Generation(3), takes="begun") in up.effects
    late = step(replace(RETIRING, books=replace(RETIRING.books, crashes=Crashes((1.0,), 1))), DIED, now=Now(0, 9999.0))
    assert late.state.books.crashes == NONE, "after a stable time earlier exits are forgotten, as ever"
    failed = step(RETIRING, ended(Role.DISPATCH))
    assert isinstance(failed.state, Ending)
    assert failed.state.books.drain == END


def test_an_operator_may_think_better_of_it() -> None:
    """By a fresh process, which takes what has come meanwhile."""
    asked = step(RETIRING, Asked(9, Forward(ResumeDeployment("ann")))).state
    following = step(asked, Outcome(11, Done(1, GoesOn("draining"))))
    assert isinstance(following.state, Draining)
    assert isinstance(following.state.goal, Renewing)
    assert following.state.books.drain is None
    assert TellDispatch(Quiesce(Generation(3))) in following.effects


@pytest.mark.parametrize(
    ("patience", "state", "first"),
    [
        (0.0, Ending, TellDispatch(GenerationDown(Generation(3), unexpected=False))),
        (20.0, Draining, TellDispatch(Quiesce(Generation(3)))),
    ],
)
def test_a_stop_goes_before_it(patience: float, state: type, first: Any) -> None:
    """The next start goes on with it: the repository says so."""
    following = step(RETIRING, Asked(8, Stop(patience)))
    assert isinstance(following.state, state)
    assert following.effects[0] == first


def test_one_thing_at_a_time() -> None:
    """A recycle is told by a code of its own what is under way; a second drain is the repository's to refuse."""
    (reply,) = step(RETIRING, Asked(6, Recycle("leaks"))).effects
    assert reply.value.code == "retiring"


def test_it_may_be_asked_for_where_no_child_runs() -> None:
    """Somebody must be there to bring runs to their end: the next child does."""
    for state in TOLD:
        if not isinstance(state, Running | Retiring | Draining):
            following = step(state, Outcome(DRAINED, Done(1, END)))
            assert type(following.state) is type(state)
            assert following.state.books.drain == END
    early = step(Opening(BOOKS, TOKEN), Asked(6, Forward(DrainDeployment("ann", end=True)))).state
    opened = step(early, Outcome(TOKEN, Done(0, SNAPSHOT)))
    assert Pass(11, DrainDeployment("ann", end=True)) in opened.effects


def test_a_host_that_starts_goes_on_with_it() -> None:
    """By a child that is given no run that hasn't begun, from its first moment on; and says so meanwhile."""
    opened = step(Opening(BOOKS, TOKEN), Outcome(TOKEN, Done(0, replace(SNAPSHOT, drain=END))))
    assert isinstance(opened.state, Raising)
    shown = describe(SETUP, opened.state)
    assert shown.state == "starting"
    assert "it is being drained, by ann since 2026-11-29 08:00:00 UTC" in shown.reason
    assert "no run begins" in shown.why.then


# --- dispatch ------------------------------------------------------------------------------------------------------


def test_dispatch_begins_no_run_and_takes_up_what_belongs_to_one() -> None:
    """The mail that would begin one stays queued; an answer to a run that waits reaches it."""
    bench = Bench()
    bench.up()
    bench.mail()
    bench.settle()
    bench.child(1, receiving("r1#1"))
    bench.settle()
    bench.tell(Close(Generation(1)))
    bench.mail(2)
    bench.settle()
    assert len(bench.paper.runs()) == 1
    bench.mail(3, to="<m1@x>")
    bench.settle()
    (run,) = bench.paper.runs()
    assert isinstance(bench.paper.index.known(run).run, Driven)
    before = bench.state
    bench.tell(Close(Generation(9)))
    assert bench.state == before
