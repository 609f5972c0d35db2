"""A deployment with nothing to do lets its child go, then everything; and what comes on the way is never lost."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from actors.describing import ExitReason
from actors.draining import Depart, Doze, GiveWay, Recycle, RecycleRequested, Rested
from actors.logic.supervisor.books import Renewing
from actors.logic.supervisor.crashes import Crashes
from actors.logic.supervisor.dozing import NAP, PRESSED, SELDOM
from actors.logic.supervisor.effects import Dismiss, OpenRepository, Pass, TellChild, TellDispatch
from actors.logic.supervisor.sleep import Asleep, Audit, Auditing, Dormant, Dozing, LettingGo
from actors.logic.supervisor.states import Again, Counting, Draining, Ending, Evicting, Opening, Over, Running, Stopped
from actors.logic.supervisor.words import describe
from actors.messages import ChannelViolated, ChildExited, ChildReady, Forward, Role, Stop, Woken
from substrate.messages import Done, Outcome, ReadRest, ReadRuns, ReadSealed, Refused, Rest, Withheld
from waypost.acting import Asked, Halt, Next, Reply, WakeAt
from waypost.model.ids import Generation, RunId
from waypost.model.times import Now
from waypost.testing.supervision import (
    AUDITING,
    AUDITING_IN_VAIN,
    BOOKS,
    CODE,
    DORMANT,
    DOZING,
    LETTING_GO,
    LOOKING,
    MAIL,
    NOW,
    RUNNING,
    SETUP,
    SLEEPY,
    SLEEPY_SETUP,
    STARTING,
    TOKEN,
    ended,
    ending,
    step,
)

QUIET = Rest(5, 0.0, "", None)
RUN = RunId("run_1_00112233445566aa")
READY = ChildReady(Generation(3), 77, CODE, "")
WARM = replace(SLEEPY_SETUP, spec=replace(SLEEPY_SETUP.spec, warm=True))
SOON = NOW.wall + round(NAP * 1000)


def kind(value: object) -> str:
    """For pytest's names."""
    return type(value).__name__


def told(state: Any, message: Any, *, now: Now = NOW) -> Next[Any]:
    """Advance a supervisor that may let its child go."""
    return step(state, message, now=now, setup=SLEEPY_SETUP)


def rest(state: Any, found: Rest = QUIET) -> Next[Any]:
    """The repository says how it is."""
    return told(state, Outcome(TOKEN, Done(found.position, found)))


# --- when ----------------------------------------------------------------------------------------------------------


def test_a_child_that_comes_up_is_looked_at_after_the_idle_time() -> None:
    """Whatever brought it up."""
    up = told(STARTING, READY)
    assert isinstance(up.state, Running)
    assert up.state.look is not None
    assert WakeAt(Woken(up.state.look), mono=NOW.mono + SLEEPY.idle) in up.effects
    looking = told(up.state, Woken(up.state.look))
    assert looking.effects == (Pass(looking.state.look, ReadRest()),)


@pytest.mark.parametrize("setup", [SETUP, WARM], ids=["no idle time", "warm"])
def test_what_is_to_stay_up_is_never_looked_at(setup: Any) -> None:
    """Neither by itself nor when others want its place."""
    up = step(STARTING, READY, setup=setup)
    assert up.state.look is None
    assert step(up.state, GiveWay(), setup=setup).effects == ()


def test_where_nothing_is_to_be_done_dispatch_is_asked() -> None:
    """It alone knows the mail."""
    dozing = rest(LOOKING)
    assert isinstance(dozing.state, Dozing)
    assert TellDispatch(Doze(Generation(3))) in dozing.effects


@pytest.mark.parametrize(
    ("found", "at"),
    [
        (replace(QUIET, busy="a run executes"), NOW.mono + SLEEPY.idle),
        (replace(QUIET, quiet=90.0), 90.0 + SLEEPY.idle),
        (replace(QUIET, deadline=SOON), NOW.mono + SLEEPY.idle),
    ],
    ids=["busy", "not quiet for long", "a timer is near"],
)
def test_where_something_is_or_was_to_be_done_it_looks_again(found: Rest, at: float) -> None:
    """At the moment at which it may be over."""
    awake = rest(LOOKING, found)
    assert isinstance(awake.state, Running)
    assert awake.state.look is not None
    assert awake.effects == (WakeAt(Woken(awake.state.look), mono=at),)


def test_what_can_not_be_read_is_looked_at_again() -> None:
    """The repository's own words are for those who read it."""
    awake = told(LOOKING, Outcome(TOKEN, Refused("damaged", "it can't be read")))
    assert isinstance(awake.state, Running)
    assert awake.state.look != LOOKING.look


def test_exits_that_still_count_are_not_slept_away() -> None:
    """Else a child that ends each time soon after it was woken would never be latched."""
    shaky = replace(LOOKING, since=90.0, books=replace(BOOKS, crashes=Crashes((10.0,), 1)))
    assert isinstance(rest(shaky).state, Running)


def test_whoever_has_to_give_way_looks_at_once_and_then_often() -> None:
    """Without its idle time, and with the same care."""
    pressed = told(RUNNING, GiveWay())
    assert pressed.effects == (Pass(pressed.state.look, ReadRest()),)
    assert isinstance(
        told(pressed.state, Outcome(pressed.state.look, Done(5, replace(QUIET, quiet=99.9)))).state, Dozing
    )


@pytest.mark.parametrize(("age", "pause"), [(0.0, PRESSED), (0.4, 0.4), (9.0, SELDOM)])
def test_who_is_at_work_and_has_to_give_way_is_asked_more_seldom_the_longer_it_has_been(
    age: float, pause: float
) -> None:
    """Soon after it came, so that a place is free soon; but dozens that are asked often would keep all from working."""
    pressed = told(replace(RUNNING, since=NOW.mono - age), GiveWay())
    busy = told(pressed.state, Outcome(pressed.state.look, Done(5, replace(QUIET, busy="a run executes"))))
    (wake,) = busy.effects
    assert isinstance(wake, WakeAt)
    assert wake.message == Woken(busy.state.look)
    assert wake.mono == pytest.approx(NOW.mono + pause)


def test_who_is_still_starting_gives_way_when_it_is_up() -> None:
    """It is remembered."""
    pressed = told(STARTING, GiveWay())
    up = told(pressed.state, READY)
    assert WakeAt(Woken(up.state.look), mono=NOW.mono + PRESSED) in up.effects


# --- the way -------------------------------------------------------------------------------------------------------


def test_the_whole_way_down_is_in_order() -> None:
    """Seal, leave, wait for the exit; then everybody who could write; then ask; then the repository itself."""
    going = told(DOZING, Rested(Generation(3), 5))
    assert isinstance(going.state, LettingGo)
    assert [type(each) for each in going.effects[:3]] == [type(going.effects[0]), Pass, TellChild]
    assert isinstance(going.effects[1], Pass)
    assert going.effects[1].what == ReadSealed()
    now = told(going.state, ChildExited(Generation(3), ExitReason(signal="SIGKILL")))
    for role in (Role.SCHEDULER, Role.DISPATCH, Role.BROADCASTER):
        assert isinstance(now.state, Ending)
        assert now.state.then == Audit(5)
        assert Dismiss(role) in now.effects
        now = told(now.state, ended(role, failure=None))
    assert isinstance(now.state, Auditing)
    assert Pass(now.state.audited, ReadRest()) in now.effects
    found = replace(QUIET, deadline=2_000_000, live=(RUN,), judged=NOW)
    sleeping = told(now.state, Outcome(now.state.audited, Done(5, found)))
    assert isinstance(sleeping.state, Ending)
    assert sleeping.state.then == Asleep(2_000_000, live=(RUN,), judged=NOW)
    assert Dismiss(Role.SUBSTRATE) in sleeping.effects
    dormant = told(sleeping.state, ended(Role.SUBSTRATE, failure=None))
    assert isinstance(dormant.state, Dormant)
    assert dormant.state.deadline == 2_000_000
    assert describe(SLEEPY_SETUP, dormant.state).live == (RUN,)
    assert describe(SLEEPY_SETUP, dormant.state).judged == NOW
    assert dormant.state.books.crashes == BOOKS.crashes


def test_dispatch_may_have_something_to_do() -> None:
    """Then it goes on as ever, and is looked at again."""
    awake = told(DOZING, Rested(Generation(3), None))
    assert isinstance(awake.state, Running)
    assert awake.state.look is not None


def test_a_wish_for_another_process_is_kept_until_dispatch_has_said_whether_it_goes_on() -> None:
    """A signal may have come after the last look, and the step that it led to may ask for one at once."""
    wishing = told(DOZING, RecycleRequested(Generation(3), "leaks"))
    assert wishing.state == replace(DOZING, wish="leaks")
    renewing = told(wishing.state, Rested(Generation(3), None))
    assert isinstance(renewing.state, Draining)
    assert renewing.state.goal == Renewing("self", "leaks")
    assert isinstance(told(wishing.state, Rested(Generation(3), 5)).state, LettingGo), "the next one is a fresh one"
    assert told(DOZING, RecycleRequested(Generation(2), "leaks")).state == DOZING


def test_who_goes_on_after_all_is_looked_at_for_its_bounds_as_before() -> None:
    """What was to wake its supervisor for that may have come while dispatch was asked."""
    setup = replace(SLEEPY_SETUP, limits=msgspec.structs.replace(SLEEPY_SETUP.limits, recycle_age=95.0))
    awake = step(DOZING, Rested(Generation(3), None), setup=setup)
    assert isinstance(awake.state, Running)
    assert awake.state.tick is not None
    assert WakeAt(Woken(awake.state.tick), mono=DOZING.since + 95.0) in awake.effects


@pytest.mark.parametrize(
    "found",
    [
        replace(QUIET, position=6),
        replace(QUIET, busy="mail is to go out"),
        replace(QUIET, deadline=SOON),
    ],
    ids=["a commit", "the outbox", "a timer"],
)
def test_what_came_meanwhile_opens_it_again(found: Rest) -> None:
    """Computed from log and queue, whatever it was."""
    again = rest(AUDITING, found)
    assert isinstance(again.state, Ending)
    assert isinstance(again.state.then, Again)
    opened = told(again.state, ended(Role.SUBSTRATE, failure=None))
    assert isinstance(opened.state, Opening)
    assert OpenRepository(opened.state.opened) in opened.effects


@pytest.mark.parametrize(
    "outcome", [Refused("damaged", "it can't be read"), Withheld("the disk failed")], ids=["refused", "withheld"]
)
def test_a_repository_that_does_not_say_is_opened_again(outcome: Any) -> None:
    """In doubt somebody is there."""
    again = told(AUDITING, Outcome(TOKEN, outcome))
    assert isinstance(again.state.then, Again)


def test_a_mail_before_the_exit_goes_to_the_repository() -> None:
    """It is accepted as ever, and the position tells of it."""
    for state in (DOZING, LETTING_GO):
        passed = told(state, Asked(9, Forward(MAIL)))
        assert type(passed.state) is type(state)
        assert passed.effects == (Pass(passed.state.books.last, MAIL),)


@pytest.mark.parametrize(
    "state",
    [ending(Audit(5)), AUDITING, ending(Asleep(None), Role.SUBSTRATE)],
    ids=["the others end", "audited", "the repository is closed"],
)
def test_a_mail_after_the_exit_is_kept_and_wakes_it(state: Any) -> None:
    """Answered when it is durable, in the repository that is opened again; not withheld, not lost."""
    kept = told(state, Asked(9, Forward(MAIL)))
    assert kept.effects == ()
    now = kept
    while not isinstance(now.state, Opening):
        if isinstance(now.state, Auditing):
            now = told(now.state, Outcome(now.state.audited, Done(5, QUIET)))
        else:
            now = told(now.state, ended(now.state.left[0], failure=None))
    assert [early.what for early in now.state.early] == [MAIL]


def test_a_mail_to_a_dormant_one_wakes_it() -> None:
    """Also while the host hasn't taken it off its list yet."""
    awake = told(DORMANT, Asked(9, Forward(MAIL)))
    assert isinstance(awake.state, Opening)
    assert [early.what for early in awake.state.early] == [MAIL]


@pytest.mark.parametrize("state", [ending(Audit(5)), AUDITING, ending(Asleep(None), Role.SUBSTRATE), DORMANT], ids=kind)
def test_a_question_is_no_reason_to_wake_it(state: Any) -> None:
    """What is in the repository can be read without it: else whoever looks on would keep it from sleeping."""
    following = told(state, Asked(9, Forward(ReadRuns())))
    assert following.state == state
    (reply,) = following.effects
    assert isinstance(reply, Reply)
    assert isinstance(reply.value, Refused)
    assert reply.value.code == "asleep"


# --- what else may happen ------------------------------------------------------------------------------------------


def test_a_child_that_ends_before_it_was_asked_to_is_a_crash() -> None:
    """Nobody had told it to."""
    assert isinstance(told(DOZING, ChildExited(Generation(3), ExitReason(signal="SIGSEGV"))).state, Counting)
    assert isinstance(told(DOZING, ChannelViolated(Generation(3), "bad frame")).state, Evicting)


def test_a_child_that_ends_badly_when_it_was_asked_to_leave_is_none() -> None:
    """It was to end; nobody is charged."""
    gone = told(LETTING_GO, ChildExited(Generation(3), ExitReason(signal="SIGSEGV")))
    assert gone.state.books.crashes == BOOKS.crashes
    assert gone.state.books.exited is None


@pytest.mark.parametrize("state", [DOZING, LETTING_GO, AUDITING, DORMANT, ending(Audit(5))], ids=kind)
def test_a_stop_is_answered_from_everywhere(state: Any) -> None:
    """It goes before sleep."""
    stopping = told(state, Asked(4, Stop()))
    now = stopping
    while isinstance(now.state, Ending):
        assert now.state.then == Over((4,))
        head = now.state.left[0]
        now = told(now.state, ended(head, failure=None, incarnation=3 if head is Role.CHILD else 1))
        stopping = Next(now.state, (*stopping.effects, *now.effects))
    assert isinstance(now.state, Stopped)
    assert Reply(4, None) in stopping.effects


def test_a_stop_withholds_what_was_kept() -> None:
    """Its sender tries again."""
    stopping = told(AUDITING_IN_VAIN, Asked(4, Stop()))
    assert any(isinstance(each, Reply) and isinstance(each.value, Withheld) for each in stopping.effects)


@pytest.mark.parametrize("state", [DOZING, LETTING_GO, AUDITING, DORMANT], ids=kind)
def test_a_wish_for_one_that_sleeps_says_so(state: Any) -> None:
    """By a code, so that whoever asks wakes it first."""
    refused = told(state, Asked(6, Recycle("leaks")))
    (value,) = (each.value for each in refused.effects if isinstance(each, Reply))
    assert isinstance(value, Refused)
    assert value.code == "asleep"
    assert isinstance(refused.state, Opening) == isinstance(state, Dormant)


def test_a_repository_that_fails_on_the_way_is_opened_again() -> None:
    """One for all, as ever; what was kept is not lost."""
    failed = told(AUDITING_IN_VAIN, ended(Role.SUBSTRATE))
    assert isinstance(failed.state, Opening)
    assert failed.state.early == AUDITING_IN_VAIN.early


def test_only_a_dormant_one_departs() -> None:
    """One that was woken has something to do."""
    assert told(DORMANT, Depart()).effects == (Halt(),)
    for state in (RUNNING, DOZING, LETTING_GO, AUDITING, STARTING):
        assert Halt() not in told(state, Depart()).effects
