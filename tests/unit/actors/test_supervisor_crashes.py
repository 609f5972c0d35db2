"""Children that end too often: the pauses between them, the latch, and its reset, arrow by arrow."""

from dataclasses import replace
from typing import Any

import pytest

from actors.describing import ExitReason
from actors.exits import ExitCounted
from actors.logic.supervisor.books import Early, Renewing, Resting, Setup
from actors.logic.supervisor.crashes import NONE, Crashes, charge, excuse, loop, pause
from actors.logic.supervisor.effects import Announce, Hire, Pass, TellChild, TellDispatch, Up
from actors.logic.supervisor.states import (
    BackingOff,
    Counting,
    CrashLooping,
    Draining,
    Evicting,
    Latching,
    Preparing,
    Raising,
    Resetting,
    Retiring,
    Running,
    Starting,
)
from actors.logic.supervisor.words import describe
from actors.messages import ChannelViolated, ChildExited, ChildReady, Forward, GenerationDown, Launch, Role, Woken
from substrate.messages import (
    BeginGeneration,
    Done,
    Interrupted,
    LatchDeployment,
    Outcome,
    Refused,
    ResetDeployment,
    Withheld,
)
from waypost.acting import Asked, Next, Reply, WakeAt
from waypost.model.ids import Generation, RunId
from waypost.model.times import Now
from waypost.testing.supervision import (
    BOOKS,
    BRINK,
    CODE,
    COUNTED,
    COUNTING,
    CRASH_LOOPING,
    DIED,
    LATCHED,
    LATCHING,
    LIFTED,
    LIMITS,
    MAIL,
    NOW,
    OPEN,
    OPENING,
    RESETTING,
    RUNNING,
    SETUP,
    SNAPSHOT,
    STARTING,
    TOKEN,
    ended,
    step,
)

RUN = RunId("run_7_00112233445566aa")
RESET = ResetDeployment("ann")


def counted(*, suspect: bool, suspected: bool, beside: int = 0) -> ExitCounted:
    """One run was charged; before that it was ``suspected``, and now it is a ``suspect``."""
    run = Interrupted(run=RUN, attempt=1, then="resume", suspect=suspect, suspected=suspected)
    return ExitCounted(generation=Generation(3), runs=(run,), beside=beside)


def without_news(following: Next[Any]) -> tuple[Any, ...]:
    return tuple(effect for effect in following.effects if not isinstance(effect, Announce))


# --- the books -----------------------------------------------------------------------------------------------------


def lived(*lives: float) -> Crashes:
    """After exits of children that lived so long."""
    crashes = NONE
    for life in lives:
        crashes = charge(crashes, life, COUNTED)
    return crashes


@pytest.mark.parametrize(
    ("lives", "words"),
    [
        ((5.0, 5.0), ""),
        ((500.0, 30.0, 30.0), "3 exits within 60 s"),
        ((5.0, 30.0, 30.1), ""),
        ((1.0, 59.0, 0.5, 59.0), "3 exits within 60 s"),
        ((40.0,) * 9, ""),
        ((40.0,) * 10, "10 exits without a stable time of 60 s between them"),
    ],
)
def test_three_exits_in_a_minute_of_life_or_ten_without_a_stable_one_are_too_many(lives, words) -> None:
    """Only time with a child counts: how long the pauses were can't make a loop look like bad luck."""
    assert loop(lived(*lives), LIMITS) == words


def test_pauses_double_up_to_their_cap() -> None:
    """1, 2, 4, 8, 16, 30, 30 seconds: a child that can't live costs little."""
    crashes, pauses = NONE, list[float]()
    for _ in range(7):
        crashes = excuse(crashes)
        pauses.append(pause(crashes, LIMITS))
    assert pauses == [1, 2, 4, 8, 16, 30, 30]
    assert pause(replace(crashes, tries=10_000), LIMITS) == 30


@pytest.mark.parametrize(
    ("against", "charged"),
    [
        (COUNTED, True),
        (counted(suspect=False, suspected=False), True),
        (counted(suspect=True, suspected=False), False),
        (counted(suspect=True, suspected=True), False),
        (counted(suspect=True, suspected=True, beside=3), False),
    ],
    ids=["nobody was driven", "a first time", "it makes a suspect", "a suspect alone", "a suspect, others spared"],
)
def test_what_is_a_suspects_to_bear_is_not_the_deployments(against, charged) -> None:
    """Each such exit brings a run nearer to being set aside, so it ends by itself; the others needn't wait for that."""
    before = lived(10.0, 10.0)
    after = charge(before, 10.0, against)
    assert (len(after.ages) > len(before.ages)) == charged
    assert (after.tries > before.tries) == charged
    assert after.ages[:2] == (20.0, 10.0)
    assert pause(charge(NONE, 1.0, against), LIMITS) == 1.0


def test_bad_runs_that_come_one_after_the_other_do_not_latch() -> None:
    """Each ends two children before it is a suspect; the second exit takes back what was charged for the first."""
    first = Interrupted(run=RUN, attempt=1, then="resume", suspect=False, suspected=False)
    second = Interrupted(run=RUN, attempt=2, then="resume", suspect=True, suspected=False)
    crashes = NONE
    for _ in range(10):
        for run in (first, second):
            crashes = charge(crashes, 1.0, ExitCounted(generation=Generation(3), runs=(run,)))
            assert not loop(crashes, LIMITS)
            assert pause(crashes, LIMITS) <= 2 * LIMITS.backoff_first
    assert crashes.ages == ()


def test_what_no_run_explains_stays_charged() -> None:
    """Of three exits two were one bad run's: the other one still counts."""
    second = Interrupted(run=RUN, attempt=2, then="resume", suspect=True, suspected=False)
    crashes = charge(lived(5.0, 5.0), 7.0, ExitCounted(generation=Generation(3), runs=(second,)))
    assert crashes.ages == (12.0,)


def test_only_the_first_generation_of_a_crew_blames_the_mails_that_were_claimed() -> None:
    """What outlived a child was claimed by a host that lives: three bad runs mustn't put innocent mails on hold."""
    first = step(OPENING, Outcome(TOKEN, Done(0, SNAPSHOT)))
    assert BeginGeneration(blame=True) in [effect.what for effect in first.effects if isinstance(effect, Pass)]
    up = step(RUNNING, DIED, now=NOW).state
    again = step(replace(up, books=replace(up.books, raised=up.books.incarnation)), COUNTED)
    assert isinstance(again.state, BackingOff)
    assert [effect.what for effect in again.effects if isinstance(effect, Pass)] == [BeginGeneration(blame=False)]


# --- an exit -------------------------------------------------------------------------------------------------------


def test_an_exit_is_counted_before_anything_follows() -> None:
    """A host that is killed meanwhile finds it in the logs of the runs that were driven."""
    following = step(RUNNING, DIED)
    assert isinstance(following.state, Counting)
    assert without_news(following) == (
        TellDispatch(GenerationDown(Generation(3), unexpected=True, reason="ended by SIGKILL")),
    )
    assert step(following.state, ExitCounted(generation=Generation(2), runs=())) == Next(following.state)
    assert isinstance(step(following.state, COUNTED).state, BackingOff)


@pytest.mark.parametrize(("counted_at", "over"), [(95.4, 96.0), (97.0, 97.0)])
def test_a_pause_begins_with_the_exit_and_not_with_its_count(counted_at, over) -> None:
    """What has to be written meanwhile is written in the pause; where that takes longer, it alone is waited for."""
    exited = Now(wall=1_000_000, mono=95.0)
    counting = step(RUNNING, DIED, now=exited).state
    later = Now(wall=1_000_000 + round((counted_at - 95.0) * 1000), mono=counted_at)
    following = step(counting, COUNTED, now=later)
    assert following.state.until == 1_000_000 + round((over - 95.0) * 1000)
    assert without_news(following)[0] == WakeAt(Woken(following.state.wake), mono=over)


def pausing() -> BackingOff:
    """After an exit that was counted; the next generation is on its way to the disk."""
    state = step(COUNTING, COUNTED).state
    assert isinstance(state, BackingOff)
    assert state.raised is not None
    return state


def test_a_generation_begins_in_the_pause_and_its_child_after_it() -> None:
    """The disk isn't waited for when the pause is over; and a pause is one, however quick the disk was."""
    pause_ = pausing()
    raised = step(pause_, Outcome(pause_.raised or 0, Done(1, Generation(4))))
    assert raised.state == replace(pause_, next=Generation(4))
    assert without_news(raised) == ()
    over = step(raised.state, Woken(pause_.wake))
    assert isinstance(over.state, Starting)
    assert over.state.books.generation == Generation(4)
    assert over.state.books.renewed is not None
    assert without_news(over)[:2] == (Hire(Role.CHILD, 4), TellChild(Launch()))


def test_a_pause_that_is_over_before_the_generation_is_durable_waits_for_that_alone() -> None:
    """It was asked for once; no child exists before its generation does."""
    pause_ = pausing()
    over = step(pause_, Woken(pause_.wake))
    assert isinstance(over.state, Raising)
    assert without_news(over) == ()
    launched = step(over.state, Outcome(pause_.raised or 0, Done(1, Generation(4))))
    assert without_news(launched)[:2] == (Hire(Role.CHILD, 4), TellChild(Launch()))


@pytest.mark.parametrize("answer", [Withheld("no space"), Refused("x", "no")])
def test_a_generation_that_could_not_be_begun_in_the_pause_makes_it_longer(answer) -> None:
    """It is tried again when that one is over, and not before: a disk that is full isn't asked without a pause."""
    pause_ = pausing()
    longer = step(pause_, Outcome(pause_.raised or 0, answer))
    assert isinstance(longer.state, BackingOff)
    assert longer.state.raised is None
    assert without_news(longer) == (WakeAt(Woken(longer.state.wake), mono=NOW.mono + 2 * LIMITS.backoff_first),)
    assert without_news(step(longer.state, Woken(pause_.wake))) == ()
    again = step(longer.state, Woken(longer.state.wake))
    assert isinstance(again.state, Raising)
    assert [type(effect.what) for effect in again.effects if isinstance(effect, Pass)] == [BeginGeneration]


HELLO = ChildReady(Generation(4), 77, CODE, "")


@pytest.mark.parametrize(("readied", "launched"), [(0.2, 95.8), (7.0, 95.5), (0.0, None)])
def test_a_child_is_launched_so_early_that_it_is_ready_when_the_pause_is_over(readied, launched) -> None:
    """By what the last one took to start; in the first half of a pause there never is a child."""
    counting = replace(COUNTING, books=replace(BOOKS, readied=readied))
    following = step(counting, COUNTED, now=Now(1_000_000, 95.1))
    wakes = {each.message: each.mono for each in following.effects if isinstance(each, WakeAt)}
    assert wakes.pop(Woken(following.state.wake)) == 96.0
    assert wakes == ({} if launched is None else {Woken(following.state.launch): pytest.approx(launched)})


def prepared() -> Preparing:
    """Launched before the pause is over, after its generation was durable."""
    state = step(replace(COUNTING, books=replace(BOOKS, readied=0.2)), COUNTED, now=Now(1_000_000, 95.1)).state
    assert step(state, Woken(state.launch)).state == state, "no child before its generation"
    state = step(state, Outcome(state.raised, Done(1, Generation(4)))).state
    following = step(state, Woken(state.launch), now=Now(1_000_000, 95.8))
    assert without_news(following)[:2] == (Hire(Role.CHILD, 4), TellChild(Launch()))
    assert isinstance(following.state, Preparing)
    return following.state


def test_a_child_that_is_ready_early_is_given_to_nobody_before_the_pause_is_over() -> None:
    """Else a run that ends each child it is given to would do so without a pause."""
    state = prepared()
    ready = step(state, HELLO, now=Now(1_000_000, 95.9))
    assert without_news(ready) == ()
    assert describe(SETUP, ready.state).state == "backing-off"
    assert ready.state.books.readied == pytest.approx(0.1)
    over = step(ready.state, Woken(state.wake), now=Now(1_000_000, 96.0))
    assert isinstance(over.state, Running)
    assert over.state.since == 96.0
    assert without_news(over)[0] == Up(Generation(4))


def test_a_child_that_is_late_is_waited_for_as_ever() -> None:
    """The pause is over, and it starts still; its deadline is from its launch."""
    state = prepared()
    over = step(state, Woken(state.wake))
    assert over.state == Starting(state.books, state.deadline)
    assert isinstance(step(over.state, HELLO).state, Running)


@pytest.mark.parametrize(
    ("message", "follows"),
    [
        (ChildExited(Generation(4), ExitReason(status=1)), BackingOff),
        (ChannelViolated(Generation(4), "bad frame"), Evicting),
        (Woken(13), Evicting),
    ],
    ids=["it ends", "it breaks the protocol", "it is never ready"],
)
def test_what_a_child_does_in_the_pause_counts_as_if_that_were_over(message, follows) -> None:
    """It ended unasked like any other; the pause after it is longer."""
    state = replace(prepared(), deadline=13)
    assert isinstance(step(state, message).state, follows)


def test_the_last_exit_stays_on_record() -> None:
    """Also once the next child is up: whoever looks later is told how the one before ended."""
    exited = step(RUNNING, ChildExited(Generation(3), ExitReason(status=3, stderr=("boom",)))).state
    known = describe(SETUP, step(exited, COUNTED).state).exited
    assert known is not None
    assert (known.generation, known.at, known.why) == (3, 1_000_000, "exit status 3")
    assert known.reason.stderr == ("boom",)


def test_what_the_host_did_charges_nobody() -> None:
    """A full disk takes children away as often as it likes: it ends by itself, and latches nothing."""
    exited = ChildExited(Generation(3), ExitReason(blame="host", signal="SIGKILL", failure="the disk is full"))
    following = step(replace(RUNNING, books=BRINK.books), exited)
    assert isinstance(following.state, BackingOff)
    assert following.effects[0] == TellDispatch(
        GenerationDown(Generation(3), unexpected=False, reason="the disk is full")
    )
    assert len(following.state.books.crashes.ages) == 2


@pytest.mark.parametrize(("since", "known"), [(100.0 - 60.0, NONE), (100.0 - 59.9, BRINK.books.crashes)])
@pytest.mark.parametrize(
    "there",
    [
        lambda since: Running(BRINK.books, 77, since),
        lambda since: Draining(BRINK.books, 77, since, Resting()),
        lambda since: Draining(BRINK.books, 77, since, Renewing("operator", "x")),
        lambda since: Retiring(BRINK.books, 77, since, 0),
    ],
)
def test_a_stable_minute_forgives_earlier_exits(since, known, there) -> None:
    """60 s of running reset count and pause, whatever ends it then; a moment less doesn't. A drain may take hours."""
    assert step(there(since), Asked(1, Forward(MAIL))).state.books.crashes == known


# --- the latch -----------------------------------------------------------------------------------------------------


def test_one_exit_too_many_is_written_down_before_it_is_true() -> None:
    """The host may be killed at any moment: what it says is what the next one will find."""
    following = step(BRINK, COUNTED)
    detail = "3 exits within 60 s, the last one: ended by SIGKILL"
    assert following.state == Latching(replace(following.state.books, last=TOKEN + 1), TOKEN + 1, detail)
    assert without_news(following) == (Pass(TOKEN + 1, LatchDeployment(detail=detail)),)
    after = step(following.state, Outcome(TOKEN + 1, Done(1, LATCHED)))
    assert after.state == CrashLooping(following.state.books, LATCHED)
    described = describe(SETUP, after.state)
    assert (described.state, described.code) == ("down", "crash-looping")
    assert "`waypost reset orders`" in described.reason


def test_a_child_that_ends_before_it_is_ready_latches_as_well() -> None:
    """No run was given to it, so there is nobody to count it against, and nobody to wait for."""
    state = replace(STARTING, books=BRINK.books)
    assert isinstance(step(state, DIED).state, Latching)


def test_where_the_workflow_says_so_its_runs_fail_with_it() -> None:
    """A portion at a time: as long as the answer isn't the latch, it is asked for again."""
    setup = Setup(spec=replace(SETUP.spec, on_crash_loop="fail"), limits=LIMITS)
    asked = [each.what for each in step(BRINK, COUNTED, setup=setup).effects if isinstance(each, Pass)]
    assert [isinstance(each, LatchDeployment) and each.fail for each in asked] == [True]
    more = step(LATCHING, Outcome(TOKEN, Done(1, None)), setup=setup)
    assert isinstance(more.state, Latching)
    assert without_news(more) == (Pass(TOKEN + 1, LatchDeployment(detail=LATCHED.detail, fail=True)),)


@pytest.mark.parametrize("answer", [Withheld("no space"), Refused("x", "no")])
def test_a_latch_that_can_not_be_written_is_tried_again_and_no_child_started(answer) -> None:
    """A full disk must not let the loop go on."""
    waiting = step(LATCHING, Outcome(TOKEN, answer))
    assert isinstance(waiting.state, Latching)
    assert without_news(waiting) == (WakeAt(Woken(TOKEN + 1), mono=NOW.mono + LIMITS.backoff_first),)
    assert without_news(step(waiting.state, Woken(TOKEN))) == ()
    again = step(waiting.state, Woken(TOKEN + 1))
    assert without_news(again) == (Pass(TOKEN + 2, LatchDeployment(detail=LATCHED.detail)),)


def test_a_repository_that_is_latched_gets_its_crew_and_no_child() -> None:
    """Mail is accepted, timers fire, what is in the outbox goes out; a host restart is no reset."""
    following = step(OPENING, Outcome(TOKEN, Done(0, replace(SNAPSHOT, latch=LATCHED))))
    assert following.state == CrashLooping(replace(BOOKS, broadcaster=2), LATCHED)
    assert {effect.role for effect in following.effects if isinstance(effect, Hire)} == {
        Role.BROADCASTER,
        Role.DISPATCH,
        Role.SCHEDULER,
    }
    assert not [effect for effect in following.effects if isinstance(effect, Pass)]


def test_held_comes_before_latched() -> None:
    """Nothing may leave a restored deployment, whatever else is true of it."""
    following = step(OPENING, Outcome(TOKEN, Done(0, replace(SNAPSHOT, latch=LATCHED, held="restore"))))
    assert describe(SETUP, following.state).state == "held"


# --- the reset -----------------------------------------------------------------------------------------------------


def test_a_reset_brings_up_a_child_once_it_is_durable() -> None:
    """With clean books: another two exits may come before it is latched again."""
    asked = step(replace(CRASH_LOOPING, books=BRINK.books), Asked(5, Forward(RESET)))
    assert isinstance(asked.state, Resetting)
    assert without_news(asked) == (Pass(TOKEN + 1, RESET),)
    done = step(asked.state, Outcome(TOKEN + 1, Done(2)))
    assert isinstance(done.state, Raising)
    assert done.state.books.crashes == NONE
    assert without_news(done) == (Reply(5, Done(2)), Pass(TOKEN + 2, BeginGeneration()))


def test_a_reset_that_could_not_be_written_leaves_the_latch() -> None:
    """Whoever asked is told."""
    following = step(RESETTING, Outcome(LIFTED, Withheld("no space")))
    assert isinstance(following.state, CrashLooping)
    assert without_news(following) == (Reply(6, Withheld("no space")),)


def test_a_reset_that_comes_while_the_repository_opens_is_carried_out() -> None:
    """In the order in which it came, with the mail."""
    opening = replace(OPENING, early=(Early(1, MAIL), Early(2, RESET)))
    following = step(opening, Outcome(TOKEN, Done(0, replace(SNAPSHOT, latch=LATCHED))))
    assert isinstance(following.state, Resetting)
    assert [effect.what for effect in following.effects if isinstance(effect, Pass)] == [MAIL, RESET]
    assert isinstance(step(following.state, Outcome(following.state.reset, Done(2))).state, Raising)


def test_a_reset_in_the_very_moment_of_the_latch_is_asked_to_come_again() -> None:
    """Which of the two came first would depend on luck."""
    following = step(LATCHING, Asked(5, Forward(RESET)))
    assert following.state == LATCHING
    (reply,) = following.effects
    assert isinstance(reply.value, Withheld)


@pytest.mark.parametrize("state", [each for each in OPEN if not isinstance(each, CrashLooping | Latching)])
def test_where_there_is_no_latch_the_repository_says_so(state) -> None:
    """The rule is the repository's: nothing here has to know it."""
    assert Pass(TOKEN + 1, RESET) in step(state, Asked(5, Forward(RESET))).effects


def test_a_loop_is_not_forgotten_when_the_crew_is_made_anew() -> None:
    """An actor that fails between two exits must not let a child go on ending for ever."""
    assert step(replace(RUNNING, books=BRINK.books), ended(Role.DISPATCH)).state.books.crashes == BRINK.books.crashes
