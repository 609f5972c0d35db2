"""The supervisor's decision on its way up and back up, arrow by arrow: no thread, no process, no clock."""

from dataclasses import replace
from typing import Any

import pytest

from actors.describing import Description, ExitReason
from actors.errors import ActorsError
from actors.logic.supervisor.books import Books, Early
from actors.logic.supervisor.effects import (
    Announce,
    Attend,
    AttendAll,
    Dismiss,
    Enlist,
    EnlistOutsiders,
    Hire,
    OpenRepository,
    Pass,
    TellChild,
    TellDispatch,
    Up,
)
from actors.logic.supervisor.forwards import EARLY
from actors.logic.supervisor.states import (
    Again,
    BackingOff,
    Dismissing,
    Down,
    Ending,
    Evicting,
    Idle,
    Lost,
    Opening,
    Over,
    Raising,
    Running,
    Starting,
    Unmanned,
)
from actors.logic.supervisor.why import sentence
from actors.logic.supervisor.words import describe
from actors.messages import (
    ChannelViolated,
    ChildExited,
    ChildReady,
    Describe,
    Forward,
    GenerationDown,
    Launch,
    Role,
    Start,
    Terminate,
    WatchRun,
    Woken,
)
from substrate.errors import TOO_MANY_FILES
from substrate.messages import BeginGeneration, Done, Outcome, ReadRuns, Refused, Withheld
from waypost.acting import Asked, Next, Reply, Tell, WakeAt
from waypost.model.ids import Generation
from waypost.testing.listener import Listener
from waypost.testing.supervision import (
    BACKING_OFF,
    BOOKS,
    CODE,
    COUNTED,
    DIED,
    DISMISSING,
    DOWN,
    EVICTING,
    LIMITS,
    MAIL,
    NOW,
    OPEN,
    OPENING,
    RAISED,
    RAISING,
    RUNNING,
    SETUP,
    SNAPSHOT,
    STARTING,
    STATES,
    STOPPED,
    ended,
    ending,
    step,
)


def without_news(following: Next[Any]) -> tuple[Any, ...]:
    return tuple(effect for effect in following.effects if not isinstance(effect, Announce))


# --- the way up ----------------------------------------------------------------------------------------------------


def test_a_start_has_a_substrate_open_its_repository() -> None:
    """Nothing else may be started before it is known what the log holds."""
    following = step(Idle(Books()), Start())
    assert following.state == Opening(Books(last=1, incarnation=1), 1)
    assert without_news(following) == (Hire(Role.SUBSTRATE, 1), OpenRepository(1))


def test_an_open_repository_gets_its_crew_and_a_generation_before_any_child() -> None:
    """The generation must be durable before a child of it exists (decision 8)."""
    following = step(OPENING, Outcome(10, Done(0, SNAPSHOT)))
    assert without_news(following) == (
        Hire(Role.BROADCASTER, 2),
        Hire(Role.DISPATCH, 1),
        Hire(Role.SCHEDULER, 1),
        Enlist(Role.BROADCASTER),
        Enlist(Role.DISPATCH),
        Enlist(Role.SCHEDULER),
        EnlistOutsiders(),
        AttendAll(),
        Pass(11, BeginGeneration()),
    )
    assert isinstance(following.state, Raising)


def test_a_durable_generation_is_followed_by_its_child() -> None:
    """It is launched with a deadline by which it has to say hello."""
    following = step(RAISING, Outcome(RAISED, Done(1, Generation(4))))
    assert following.state == Starting(replace(BOOKS, last=11, raised=1, generation=Generation(4), launched=100.0), 11)
    assert without_news(following) == (
        Hire(Role.CHILD, 4),
        TellChild(Launch()),
        WakeAt(Woken(11), mono=100.0 + LIMITS.ready_deadline),
    )


def test_a_ready_child_of_the_right_code_gets_runs() -> None:
    """Dispatch learns of it, and the host sees a pid."""
    following = step(STARTING, ChildReady(Generation(3), 77, CODE, ""))
    assert following.state == Running(BOOKS, 77, 100.0)
    assert following.effects[0] == Up(Generation(3))
    assert following.effects[-1] == Announce(describe(SETUP, following.state))


def test_a_child_whose_file_does_not_load_is_up_but_broken() -> None:
    """Its runs are paused with the reason; a child that can't load is no crash loop."""
    following = step(STARTING, ChildReady(Generation(3), 77, "", "SyntaxError in line 3"))
    assert without_news(following) == (Up(Generation(3), "SyntaxError in line 3"),)
    assert describe(SETUP, following.state).reason == "SyntaxError in line 3"


def test_a_child_of_other_code_is_dismissed_for_good() -> None:
    """Its runs were described, and will be compared, with the file as it was when the host started."""
    following = step(STARTING, ChildReady(Generation(3), 77, "e" * 64, ""))
    assert isinstance(following.state, Dismissing)
    assert "start the host again" in following.state.message
    assert isinstance(following.effects[0].message, Terminate)
    after = step(following.state, DIED)
    assert isinstance(after.state, Unmanned)
    assert describe(SETUP, after.state).state == "down"


def test_a_child_that_is_not_ready_in_time_is_evicted() -> None:
    """A child that hangs while it starts may not hang the deployment."""
    following = step(STARTING, Woken(10))
    assert isinstance(following.state, Evicting)
    assert without_news(following) == (TellChild(Terminate("not ready within 30 s")),)


# --- the child goes ------------------------------------------------------------------------------------------------


def test_an_exit_is_told_to_dispatch_and_followed_by_a_back_off() -> None:
    """Exit code 0 is no success either: nobody asked the child to leave."""
    exited = step(RUNNING, ChildExited(Generation(3), ExitReason(status=0)))
    assert without_news(exited) == (
        TellDispatch(GenerationDown(Generation(3), unexpected=True, reason="exit status 0")),
    )
    following = step(exited.state, COUNTED)
    assert isinstance(following.state, BackingOff)
    assert WakeAt(Woken(following.state.wake), mono=101.0) in following.effects
    assert following.state.until == 1_001_000


def test_an_exit_before_ready_says_nothing_to_dispatch() -> None:
    """No run was given to that child, so no run may be charged with its exit."""
    following = step(STARTING, DIED)
    assert isinstance(following.state, BackingOff)
    assert not [effect for effect in following.effects if isinstance(effect, TellDispatch)]


def test_after_the_back_off_comes_a_new_generation() -> None:
    """And only after it: the wake-up's token must fit."""
    assert step(BACKING_OFF, Woken(9)).state == BACKING_OFF
    following = step(BACKING_OFF, Woken(10))
    assert without_news(following) == (Pass(11, BeginGeneration()),)


def test_a_violation_takes_the_child_out_of_use_at_once() -> None:
    """Dispatch stops relying on it before the process is gone; the next child waits for its exit."""
    following = step(RUNNING, ChannelViolated(Generation(3), "frame 7: it isn't authentic"))
    why = "frame 7: it isn't authentic"
    assert without_news(following) == (TellDispatch(GenerationDown(Generation(3), unexpected=True, reason=why)),)
    assert following.state == Evicting(BOOKS, why)
    one, other = step(step(following.state, DIED).state, COUNTED), step(step(following.state, COUNTED).state, DIED)
    assert one.state == other.state
    assert isinstance(one.state, BackingOff)
    assert one.state.reason == why


@pytest.mark.parametrize("state", [STARTING, RUNNING, EVICTING, DISMISSING], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize(
    "message",
    [
        ChildReady(Generation(2), 5, CODE, ""),
        ChildExited(Generation(2), ExitReason(status=1)),
        ChannelViolated(Generation(2), "late"),
        ended(Role.CHILD, incarnation=2, failure=None),
    ],
    ids=lambda m: type(m).__name__,
)
def test_what_an_older_generation_says_is_ignored(state, message) -> None:
    """Its end was dealt with when it came."""
    assert step(state, message) == Next(state)


def test_a_generation_that_can_not_be_begun_is_tried_again() -> None:
    """A full disk ends by itself; until then no child may run."""
    for result in (Withheld("no space"), Refused("x", "no space")):
        following = step(RAISING, Outcome(RAISED, result))
        assert isinstance(following.state, BackingOff)
        assert "no space" in following.state.reason


# --- a repository that doesn't open --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (Refused("damaged", "flush 7 is missing", "see fsck"), "damaged"),
        (Refused("foreign", "another history"), "damaged"),
        (Refused("newer-format", "format 9"), "newer-format"),
        (Refused("disk", "EIO"), "storage-failed"),
        (Refused("full", "no space"), "storage-failed"),
        (Withheld("EIO"), "storage-failed"),
    ],
)
def test_a_repository_that_can_not_be_opened_is_down_with_the_reason(result, reason) -> None:
    """It is said in words and never guessed at; what waited is withheld, not lost in silence."""
    following = step(replace(OPENING, early=(Early(5, MAIL),)), Outcome(10, result))
    (reply,) = [effect for effect in following.effects if isinstance(effect, Reply)]
    assert reply.token == 5
    assert isinstance(reply.value, Withheld)
    assert Dismiss(Role.SUBSTRATE) in following.effects
    after = step(following.state, ended(Role.SUBSTRATE, failure=None))
    assert isinstance(after.state, Down)
    assert after.state.reason == reason


def test_files_that_may_not_be_opened_are_waited_for_and_are_nobodys_fault() -> None:
    """The disk is well, and others that fall asleep make room: also one that wakes goes on by itself."""
    waiting = step(OPENING, Outcome(10, Refused(TOO_MANY_FILES, "Too many open files", "ulimit -n")))
    assert isinstance(waiting.state, Opening)
    said = sentence(SETUP, waiting.state)
    assert said.waits_for == "files that its host may open (Too many open files)"
    assert "ulimit -n" in said.then
    assert step(waiting.state, Woken(11)).effects == (OpenRepository(11),)
    failed = replace(ended(Role.SUBSTRATE, failure="FlushFailed"), fault=TOO_MANY_FILES)
    state: Any = RUNNING
    for _ in range(LIMITS.actor_failures):
        following = step(replace(RUNNING, books=state.books), failed)
        state = following.state
        assert isinstance(state, Ending)
        assert isinstance(state.then, Again)
    assert (state.books.faults, state.books.disk_faults) == ((), 0)


@pytest.mark.parametrize("before", [{"incarnation": 2}, {"again": True}], ids=["open", "asleep"])
def test_a_full_disk_is_waited_for_by_a_repository_that_was_there_before(before) -> None:
    """It ends by itself when there is space (storage §2); meanwhile mail is withheld, and the reason is shown."""
    books = replace(OPENING.books, **before)
    state = replace(OPENING, books=books, early=(Early(5, MAIL),))
    waiting = step(state, Outcome(10, Refused("full", "no space")))
    assert isinstance(waiting.state, Opening)
    assert describe(SETUP, waiting.state).reason == "no space"
    assert without_news(waiting) == (
        Reply(5, Withheld("no space")),
        WakeAt(Woken(11), mono=NOW.mono + LIMITS.backoff_first),
    )
    again = step(waiting.state, Woken(11))
    assert again.effects == (OpenRepository(11),)
    assert isinstance(step(again.state, Outcome(11, Done(0, SNAPSHOT))).state, Raising)
    assert step(waiting.state, Woken(10)).effects == (), "a wake-up of something earlier"


# --- forwards ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", OPEN, ids=lambda s: type(s).__name__)
def test_mail_is_accepted_whenever_the_repository_is_open(state) -> None:
    """A child that is down, or not up yet, is no reason to send mail away."""
    following = step(state, Asked(5, Forward(MAIL)))
    assert following.effects == (Pass(11, MAIL),)
    answer = step(following.state, Outcome(11, Done(4, "accepted")))
    assert answer.effects == (Reply(5, Done(4, "accepted")),)
    assert answer.state.books.asked == state.books.asked
    assert step(answer.state, Outcome(11, Done(4, "accepted"))).effects == ()


def test_a_forward_that_was_told_is_answered_by_a_message() -> None:
    """Actors don't ask; the mail bus gets an Outcome under its own correlation."""
    listener = Listener()
    try:
        following = step(RUNNING, Forward(MAIL, listener.ref, 42))
        answer = step(following.state, Outcome(11, Done(4)))
        assert answer.effects == (Tell(listener.ref, Outcome(42, Done(4))),)
        assert step(STOPPED, Forward(MAIL, listener.ref, 42)).effects == (
            Tell(listener.ref, Outcome(42, Withheld("the deployment is stopped"))),
        )
    finally:
        listener.stop()


def test_a_forward_for_nobody_is_answered_to_nobody() -> None:
    """Told without an address to answer to."""
    following = step(RUNNING, Forward(MAIL))
    assert step(following.state, Outcome(11, Done(4))).effects == ()
    assert step(STOPPED, Forward(MAIL)).effects == ()


def test_what_comes_early_is_kept_in_order() -> None:
    """The order of mail is the order in which it came, whatever the repository was doing."""
    state = step(Idle(Books()), Asked(1, Forward(MAIL))).state
    state = step(state, Start()).state
    state = step(state, Asked(2, Forward(ReadRuns()))).state
    following = step(state, Outcome(1, Done(0, SNAPSHOT)))
    passed = [effect.what for effect in following.effects if isinstance(effect, Pass)]
    assert passed == [MAIL, ReadRuns(), BeginGeneration()]
    assert list(following.state.books.asked.values()) == [1, 2]


def test_what_comes_while_everything_is_rebuilt_is_kept_too() -> None:
    """One for all takes a moment; nobody outside has to know."""
    state = ending(Again("the dispatch failed"), Role.SUBSTRATE)
    state = step(state, Asked(1, Forward(MAIL))).state
    following = step(state, ended(Role.SUBSTRATE, failure=None))
    assert following.state.early == (Early(1, MAIL),)


@pytest.mark.parametrize(
    "state",
    [
        replace(OPENING, early=(Early(1, MAIL),) * EARLY),
        ending(Again("x", (Early(1, MAIL),) * EARLY)),
        ending(Over(())),
        ending(Lost("damaged", "flush 7 is missing")),
        STOPPED,
        DOWN,
    ],
    ids=["opening, full", "rebuilding, full", "stopping", "going down", "stopped", "down"],
)
def test_what_can_not_be_done_is_withheld_at_once(state) -> None:
    """A sender that is told so tries again; one that waits for ever doesn't."""
    following = step(state, Asked(9, Forward(MAIL)))
    (reply,) = following.effects
    assert reply.token == 9
    assert isinstance(reply.value, Withheld)
    assert following.state == state


def test_down_says_why() -> None:
    """The reason travels to whoever asks, not only to the log."""
    (reply,) = step(DOWN, Asked(9, Forward(MAIL))).effects
    assert reply.value == Withheld("the deployment is down (damaged): flush 7 is missing")


# --- the rest ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", STATES, ids=lambda s: type(s).__name__)
def test_every_state_can_be_described(state) -> None:
    """`why` and `status` must have words for each."""
    (reply,) = step(state, Asked(7, Describe())).effects
    assert isinstance(reply.value, Description)
    assert reply.value.state


def test_watchers_are_passed_on() -> None:
    """In any state: one who came before the start is attended to later."""
    listener = Listener()
    watch = WatchRun(None, listener.ref)
    listener.stop()
    assert step(RUNNING, watch).effects == (Attend(watch),)
    assert step(Idle(BOOKS), watch).effects == (Attend(watch),)


def test_a_question_of_another_kind_is_refused() -> None:
    """The asker gets an error instead of silence; the actor lives on."""
    (reply,) = step(RUNNING, Asked(7, "what?")).effects
    assert isinstance(reply.value, ActorsError)


@pytest.mark.parametrize("state", STATES[1:], ids=lambda s: type(s).__name__)
def test_a_second_start_changes_nothing(state) -> None:
    """It is asked for by the host once, but messages may repeat."""
    assert step(state, Start()) == Next(state)
