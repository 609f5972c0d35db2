"""Draining and recycling, arrow by arrow: what is told to whom, in which order, and what each misfortune leads to."""

from dataclasses import replace
from typing import Any

import pytest

from actors.describing import ExitReason
from actors.draining import ChildWeighed, Quiesce, Recycle, RecycleRequested, Renewed, StillExecuting, Weigh
from actors.logic.supervisor.books import Leaving, Renewing, Resting
from actors.logic.supervisor.effects import (
    Announce,
    Dismiss,
    Hire,
    OpenRepository,
    Pass,
    TellChild,
    TellDispatch,
    Up,
)
from actors.logic.supervisor.states import (
    Again,
    BackingOff,
    Bereft,
    Counting,
    CrashLooping,
    Draining,
    Ending,
    Evicting,
    Latching,
    Opening,
    Over,
    Raising,
    Replacing,
    Retiring,
    Running,
    Shelving,
    Stopped,
    Succeeding,
    Superseding,
)
from actors.logic.supervisor.words import describe
from actors.messages import (
    ChannelViolated,
    ChildExited,
    ChildReady,
    Forward,
    GenerationDown,
    Launch,
    Role,
    Stop,
    Terminate,
    Woken,
)
from substrate.messages import BeginGeneration, Done, HoldDeployment, Outcome, Refused, ResumeDeployment, Withheld
from waypost.acting import Asked, Next, Reply, WakeAt
from waypost.model.ids import Generation
from waypost.model.limits import Limits
from waypost.model.times import Now
from waypost.testing import supervision
from waypost.testing.supervision import (
    BACKING_OFF,
    BEREFT,
    BOOKS,
    BRINK,
    CODE,
    COUNTED,
    COUNTING,
    COUNTING_TO_REST,
    DIED,
    DRAINING,
    DRAINING_TO_REST,
    DRAINING_TO_STOP,
    EVICTING,
    EVICTING_TO_STOP,
    EXECUTING,
    FAILED,
    LATCHED,
    LIMITS,
    MAIL,
    NOW,
    OPEN,
    RAISED,
    RENEWING,
    REPLACING,
    REST,
    RUNNING,
    SETUP,
    SHELVING,
    STARTING,
    STATES,
    SUCCEEDING,
    SUPERSEDING,
    TOKEN,
    ended,
    ending,
    step,
)

NOBODY = StillExecuting(Generation(3), ())
SOMEBODY = StillExecuting(Generation(3), (EXECUTING,))


def done(following: Next[Any]) -> tuple[Any, ...]:
    return tuple(effect for effect in following.effects if not isinstance(effect, Announce))


# --- a fresh process, step by step ---------------------------------------------------------------------------------


def test_a_recycle_begins_with_a_drain_that_has_a_limit() -> None:
    """Nothing is killed yet: dispatch begins nothing more, and says who still executes."""
    following = step(RUNNING, Asked(6, Recycle("leaks")))
    assert following.state == Draining(replace(BOOKS, last=11), 77, 90.0, RENEWING, 11)
    assert done(following) == (
        TellDispatch(Quiesce(Generation(3))),
        WakeAt(Woken(11), mono=100.0 + LIMITS.drain),
        Reply(6, Done(0, Generation(3))),
    )
    assert describe(SETUP, following.state).state == "draining"


def test_what_it_waits_for_is_said() -> None:
    """An operator sees the run, its step and since when, not a bar that doesn't move."""
    state = step(DRAINING, SOMEBODY).state
    assert isinstance(state, Draining)
    shown = describe(SETUP, state)
    assert shown.executing == (EXECUTING,)
    assert "run_3_00112233445566aa (step pay, since 2026-11-29T08:00:00.000Z)" in shown.reason
    many = step(DRAINING, StillExecuting(Generation(3), (EXECUTING,) * 3, more=4)).state
    assert "and 5 more" in describe(SETUP, many).reason


@pytest.mark.parametrize("over", [NOBODY, Woken(TOKEN)], ids=["all at rest", "limit"])
def test_a_drain_is_followed_by_the_end_of_the_generation_while_the_child_is_still_there(over: Any) -> None:
    """What it still says is refused from that commit on, and claims are back before anybody could take them again."""
    following = step(DRAINING, over)
    assert following.state == Superseding(replace(BOOKS, last=11), RENEWING, 11)
    assert done(following) == (
        TellDispatch(GenerationDown(Generation(3), unexpected=False)),
        Pass(11, BeginGeneration(blame=False)),
    )
    assert describe(SETUP, following.state).state == "recycling"


def test_only_then_the_child_has_to_go_and_only_when_it_is_gone_the_next_one_comes() -> None:
    """Never two children at once."""
    begun = step(SUPERSEDING, Outcome(RAISED, Done(1, Generation(4))))
    assert begun.state == Replacing(BOOKS, RENEWING, Generation(4))
    assert done(begun) == (TellChild(Terminate("a fresh process follows: leaks")),)
    gone = step(REPLACING, DIED)
    assert isinstance(gone.state, Succeeding)
    assert gone.state.books.generation == 4
    assert done(gone) == (
        Hire(Role.CHILD, 4),
        TellChild(Launch()),
        WakeAt(Woken(11), mono=100.0 + LIMITS.ready_deadline),
    )
    late = step(gone.state, ended(Role.CHILD, failure=None, incarnation=3))
    assert late.state == gone.state, "the end of the old child's actor is no end of the new one's"


def test_a_child_that_ends_before_it_has_to_is_not_waited_for() -> None:
    """Its end is neither lost nor counted: the drain was over, and it had to go anyway."""
    gone = step(SUPERSEDING, DIED)
    assert gone.state == Bereft(BOOKS, RENEWING, RAISED)
    assert not done(gone)
    begun = step(BEREFT, Outcome(RAISED, Done(1, Generation(4))))
    assert isinstance(begun.state, Succeeding)
    assert Hire(Role.CHILD, 4) in begun.effects


def test_the_new_child_resumes_and_it_is_told_how_it_came() -> None:
    """Dispatch gives it what it left, and the description says who wanted it and why."""
    following = step(SUCCEEDING, ChildReady(Generation(3), 78, CODE, ""))
    assert isinstance(following.state, Running)
    assert done(following) == (Up(Generation(3)),)
    assert describe(SETUP, following.state).renewed == Renewed("operator", "leaks", NOW.wall, Generation(2))


@pytest.mark.parametrize(
    ("message", "why", "first"),
    [
        (ChildReady(Generation(3), 78, "e" * 64, ""), "other code", Role.CHILD),
        (ChildReady(Generation(3), 78, "", "SyntaxError"), "SyntaxError", Role.CHILD),
        (ChildExited(Generation(3), ExitReason(status=1)), "exit status 1", Role.SCHEDULER),
        (ChannelViolated(Generation(3), "bad frame"), "bad frame", Role.CHILD),
        (Woken(TOKEN), "not ready within 30 s", Role.CHILD),
    ],
    ids=["other code", "broken", "exits", "violates", "hangs"],
)
def test_a_recycle_that_fails_ends_stopped_with_the_reason_and_without_a_process(
    message: Any, why: str, first: Role
) -> None:
    """It ran before, so somebody has to look; a back-off would hide it."""
    failed = step(SUCCEEDING, message)
    assert isinstance(failed.state, Ending)
    assert failed.state.left[0] is first
    assert any(isinstance(effect, TellChild | Dismiss) for effect in failed.effects)
    state: Any = failed.state
    for role in failed.state.left:
        incarnation = 3 if role is Role.CHILD else 1
        state = step(state, ended(role, failure=None, incarnation=incarnation)).state
    assert isinstance(state, Stopped)
    shown = describe(SETUP, state)
    assert (shown.state, shown.code) == ("stopped", "recycle-failed")
    assert why in shown.reason
    assert "`waypost resume orders`" in shown.reason


@pytest.mark.parametrize("state", [SUPERSEDING, BEREFT])
@pytest.mark.parametrize("result", [Refused("x", "no"), Withheld("no space")])
def test_a_generation_that_can_not_begin_fails_the_recycle(state: Any, result: Any) -> None:
    """The same end, with or without a child to end first."""
    failed = step(state, Outcome(RAISED, result))
    assert isinstance(failed.state, Ending)
    assert failed.state.then == Over((), f"the recycle failed: no new generation could be begun: {_why(result)}")
    assert (Role.CHILD in failed.state.left) == (state is SUPERSEDING)


def _why(result: Any) -> str:
    return str(result.why if isinstance(result, Refused) else result.reason)


def test_what_a_recycle_has_stopped_an_operator_starts_again() -> None:
    """The repository is opened anew; mail is withheld until then, with the reason."""
    assert step(FAILED, Asked(9, Forward(MAIL))).effects == (
        Reply(9, Withheld("the deployment is stopped: the recycle failed: not ready within 30 s")),
    )
    again = step(FAILED, Asked(9, Forward(ResumeDeployment("ann"))))
    assert isinstance(again.state, Opening)
    assert done(again)[0] == Reply(9, Done(0, None))
    assert any(isinstance(effect, OpenRepository) for effect in again.effects)


# --- two at once ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [DRAINING, SUPERSEDING, BEREFT, REPLACING, SUCCEEDING])
def test_the_second_one_is_refused_while_a_recycle_is_under_way(state: Any) -> None:
    """By a code, for programs; and nothing changes."""
    following = step(state, Asked(6, Recycle("again")))
    (reply,) = following.effects
    assert reply.value.code == "recycling"
    assert following.state == state


@pytest.mark.parametrize("state", [DRAINING_TO_REST, SHELVING])
def test_the_second_one_is_refused_while_a_drain_is_under_way(state: Any) -> None:
    """The same."""
    (reply,) = step(state, Asked(6, Recycle("again"))).effects
    assert reply.value.code == "draining"


@pytest.mark.parametrize("state", [state for state in STATES if not isinstance(state, Running)])
def test_everywhere_else_it_is_refused_or_begun_and_never_left_unanswered(state: Any) -> None:
    """Each public message has an answer in each state."""
    effects = step(state, Asked(6, Recycle("x"))).effects
    answers = [each for each in effects if isinstance(each, Reply) and each.token == 6]
    assert len(answers) == 1
    assert isinstance(answers[0].value, Done | Refused)


@pytest.mark.parametrize("state", OPEN)
def test_mail_is_accepted_throughout(state: Any) -> None:
    """Whoever sends doesn't notice any of it."""
    assert any(isinstance(effect, Pass) for effect in step(state, Asked(9, Forward(MAIL))).effects)


# --- who else wants one --------------------------------------------------------------------------------------------


def test_a_child_may_ask_for_its_successor() -> None:
    """And is only heard of its own generation, and once."""
    asked = step(RUNNING, RecycleRequested(Generation(3), "leaks"))
    assert isinstance(asked.state, Draining)
    assert asked.state.goal == Renewing("self", "leaks")
    assert step(RUNNING, RecycleRequested(Generation(2), "leaks")).state == RUNNING
    assert step(DRAINING, RecycleRequested(Generation(3), "again")) == Next(DRAINING)


@pytest.mark.parametrize(
    "limits", [Limits(idle=0.0, recycle_age=30.0), Limits(idle=0.0, recycle_grants=30.0)], ids=["age", "grants"]
)
def test_a_child_that_has_run_for_long_enough_is_replaced(limits: Limits) -> None:
    """It is looked at at the very moment, and not before."""
    setup = replace(SETUP, limits=limits)
    up = step(STARTING, ChildReady(Generation(3), 77, CODE, ""), setup=setup)
    assert WakeAt(Woken(11), mono=130.0) in up.effects
    young = step(up.state, Woken(11), setup=setup, now=Now(NOW.wall, 120.0))
    assert isinstance(young.state, Running)
    assert WakeAt(Woken(12), mono=130.0) in young.effects
    due = step(young.state, Woken(12), setup=setup, now=Now(NOW.wall, 130.0))
    assert isinstance(due.state, Draining)
    assert isinstance(due.state.goal, Renewing)
    assert due.state.goal.origin == "policy"
    assert "30 s" in due.state.goal.reason


def test_a_child_that_has_grown_is_replaced() -> None:
    """It is weighed at each look; what it weighs is the whole group's."""
    setup = replace(SETUP, limits=Limits(idle=0.0, recycle_memory=1000))
    up = step(STARTING, ChildReady(Generation(3), 77, CODE, ""), setup=setup).state
    look = step(up, Woken(11), setup=setup)
    assert TellChild(Weigh()) in look.effects
    assert WakeAt(Woken(12), mono=100.0 + LIMITS.recycle_look) in look.effects
    assert isinstance(step(look.state, ChildWeighed(Generation(3), 1000), setup=setup).state, Running)
    heavy = step(look.state, ChildWeighed(Generation(3), 1001), setup=setup)
    assert isinstance(heavy.state, Draining)
    assert heavy.state.goal == Renewing("policy", "max-memory: it has 1,001 bytes, of 1,000")
    assert isinstance(step(look.state, ChildWeighed(Generation(2), 9999), setup=setup).state, Running)


def test_without_bounds_nobody_is_looked_at() -> None:
    """Not by a clock that ticks for nothing, either."""
    assert not any(isinstance(e, WakeAt) for e in step(STARTING, ChildReady(Generation(3), 77, CODE, "")).effects)


def test_a_process_after_a_crash_says_so() -> None:
    """The fourth origin is the end that nobody wanted."""
    following = step(BACKING_OFF, Woken(TOKEN))
    assert isinstance(following.state, Raising)
    assert describe(SETUP, following.state).renewed == Renewed("crash", "ended by SIGKILL", NOW.wall, Generation(3))


# --- a stop that waits a little ------------------------------------------------------------------------------------


def test_a_patient_stop_drains_first_and_asks_again_for_nothing() -> None:
    """At its limit, or when nobody executes, it is a stop like any other, and no exit is charged."""
    begun = step(RUNNING, Asked(8, Stop(20.0)))
    assert begun.state == Draining(replace(BOOKS, last=11), 77, 90.0, Leaving((8,)), 11)
    for over in (NOBODY, Woken(TOKEN)):
        following = step(DRAINING_TO_STOP, over)
        assert isinstance(following.state, Ending)
        assert following.state.then == Over((4,))
        assert done(following)[0] == TellDispatch(GenerationDown(Generation(3), unexpected=False))


def test_a_second_stop_is_at_once_and_answers_both() -> None:
    """Who asks twice means it."""
    following = step(DRAINING_TO_STOP, Asked(8, Stop()))
    assert isinstance(following.state, Ending)
    assert following.state.then == Over((4, 8))


@pytest.mark.parametrize("state", [DRAINING, DRAINING_TO_REST])
def test_a_patient_stop_goes_before_whatever_is_under_way(state: Any) -> None:
    """The host ends: a fresh process, or a rest, is what its next start gives."""
    following = step(state, Asked(8, Stop(20.0)))
    assert isinstance(following.state, Draining)
    assert following.state.goal == Leaving((8,))
    assert TellDispatch(Quiesce(Generation(3))) not in following.effects, "dispatch drains already"


@pytest.mark.parametrize("state", [state for state in STATES if not isinstance(state, Running | Draining | Retiring)])
def test_where_nothing_executes_a_patient_stop_is_at_once_or_waits_for_a_count(state: Any) -> None:
    """There is nothing to be patient for; but an exit that is being counted is counted."""
    following = step(state, Asked(8, Stop(20.0)))
    assert isinstance(following.state, Ending | Stopped | Evicting | Counting)
    if isinstance(following.state, Evicting | Counting):
        assert isinstance(following.state.goal, Leaving)
        assert 8 in following.state.goal.askers


# --- a crash on the way: not lost, and not counted twice -----------------------------------------------------------


@pytest.mark.parametrize("state", [DRAINING, DRAINING_TO_REST, DRAINING_TO_STOP])
def test_a_crash_while_it_drains_is_told_to_dispatch_as_one(state: Any) -> None:
    """It counts against the runs that were at work, once, and what the drain was for is kept."""
    died = step(state, DIED)
    assert isinstance(died.state, Counting)
    assert died.state.goal == (state.goal if isinstance(state.goal, Leaving) else None)
    gone = [effect for effect in died.effects if isinstance(effect, TellDispatch)]
    assert gone == [TellDispatch(GenerationDown(Generation(3), unexpected=True, reason="ended by SIGKILL"))]
    violated = step(state, ChannelViolated(Generation(3), "bad frame"))
    assert isinstance(violated.state, Evicting)
    assert violated.state.goal == died.state.goal
    assert step(state, ChildExited(Generation(2), ExitReason(status=1))).state == state


def test_after_a_crash_a_fresh_process_follows_by_itself() -> None:
    """Which is what a recycle was to bring."""
    counted = step(COUNTING, COUNTED)
    assert isinstance(counted.state, BackingOff)
    assert len(counted.state.books.crashes.ages) == 1


def test_after_a_crash_a_deployment_that_is_to_rest_is_held() -> None:
    """There is nothing more to wait for."""
    counted = step(COUNTING_TO_REST, COUNTED)
    assert isinstance(counted.state, Shelving)
    assert len(counted.state.books.crashes.ages) == 1
    assert any(isinstance(e, Pass) and e.what == HoldDeployment() for e in counted.effects)


def test_after_a_crash_a_stop_goes_on_when_it_is_counted() -> None:
    """Not before: the next start would find fewer exits than there were."""
    exited = step(EVICTING_TO_STOP, DIED)
    assert isinstance(exited.state, Counting)
    counted = step(exited.state, COUNTED)
    assert isinstance(counted.state, Ending)
    assert counted.state.then == Over((4,))


def test_a_crash_that_latches_does_so_under_a_stop_too() -> None:
    """The latch is on its way to the repository before that is closed; whoever waits for the stop is answered."""
    counted = step(replace(BRINK, goal=Leaving((4,))), COUNTED)
    assert isinstance(counted.state, Ending)
    assert counted.state.then == Over((4,))
    assert any(isinstance(effect, Pass) for effect in counted.effects)
    resting = step(replace(BRINK, books=replace(BRINK.books, drain=REST)), COUNTED)
    assert isinstance(resting.state, Latching)
    assert isinstance(step(resting.state, Outcome(resting.state.latched, Done(1, LATCHED))).state, CrashLooping)


@pytest.mark.parametrize("state", [DRAINING_TO_STOP, EVICTING_TO_STOP, replace(COUNTING, goal=Leaving((4,)))])
def test_an_actor_that_fails_while_it_drains_for_a_stop_ends_in_that_stop(state: Any) -> None:
    """Not in a new beginning, under a host that ends."""
    following = step(state, ended(Role.DISPATCH))
    assert isinstance(following.state, Ending)
    assert following.state.then == Over((4,))


def test_an_actor_that_fails_during_a_recycle_gives_a_fresh_process_too() -> None:
    """One for all: everything is made anew, the child among it."""
    for state in (DRAINING, SUPERSEDING, REPLACING, SUCCEEDING):
        following = step(state, ended(Role.SUBSTRATE))
        assert isinstance(following.state, Ending)
        assert isinstance(following.state.then, Again)


def test_late_news_of_a_drain_changes_nothing() -> None:
    """Of an older generation, or when it is over."""
    assert step(DRAINING, StillExecuting(Generation(2), ())) == Next(DRAINING)
    for state in (RUNNING, SUPERSEDING, EVICTING, ending(Over(()))):
        assert step(state, NOBODY).state == state


def test_resting_is_said() -> None:
    """Who wanted it, for whoever comes next."""
    assert "to be held, as ann wants it" in describe(SETUP, DRAINING_TO_REST).reason
    assert isinstance(DRAINING_TO_REST.goal, Resting)
    assert "to be stopped" in describe(supervision.SETUP, DRAINING_TO_STOP).reason
