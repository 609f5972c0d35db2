"""The root keeps those that sleep as records, and wakes them: for mail, for whoever wants one, at their deadlines."""

from dataclasses import replace
from typing import cast

import pytest

from actors.describing import Description
from actors.draining import Depart, GiveWay, GoAhead
from actors.logic.supervisor.words import BARRED, BROKEN
from actors.logic.supervisor.words import FULL as FULL_DISK
from actors.messages import Start, StateChanged, Woken
from actors.watching import APPROVALS, FOLLOWED, Sleeps
from substrate.messages import Ref
from waypost.acting import ActorEnded, Asked, Next, Reply, Tell, WakeAt
from waypost.host.described import Sleep
from waypost.host.errors import NotNow
from waypost.host.messages import (
    Awaken,
    Begin,
    BusStarted,
    Deployed,
    Deployments,
    DeploymentStarted,
    End,
    Reroute,
    RootMessage,
    Rouse,
    Route,
    Routes,
    Serve,
)
from waypost.host.root.line import PATIENCE as LINE_PATIENCE
from waypost.host.root.logic import advance
from waypost.host.root.redeploying import described
from waypost.host.root.seats import Seat
from waypost.host.root.slots import HOST, ONE, PATIENCE
from waypost.host.root.states import (
    Dismiss,
    Dormant,
    Forget,
    Idle,
    Note,
    Report,
    Running,
    Setup,
    StartBus,
    StartDeployment,
    State,
    Stopped,
)
from waypost.model.ids import Deployment, Generation
from waypost.model.limits import Limits
from waypost.model.times import Now
from waypost.testing.supervision import a_spec

BUS, BUS_2 = (cast(Ref, name) for name in ("bus", "bus 2"))
A, B, C, D = (a_spec(name) for name in "abcd")
NOW = Now(wall=1_000_000, mono=50.0)
LATER = NOW.wall + 60_000
DUE = Now(wall=LATER, mono=110.0)
SINKS = Seat("sinks", APPROVALS, lambda parent, _incarnation: parent)
FOLLOWERS = Seat("followers", FOLLOWED, lambda parent, _incarnation: parent)
TIMELINE = Seat("timeline", None, lambda parent, _incarnation: parent)
DEPART = Tell(cast(Ref, "supervisor a 1"), Depart())
SETUP = Setup(Limits(threads=HOST + 2 * ONE), seats=(SINKS, FOLLOWERS, TIMELINE))
SLEEPING = (Begin((A, B), {A.name: Sleep(LATER), B.name: Sleep(None)}), BusStarted(1, BUS))


def ref(text: str) -> Ref:
    return cast(Ref, text)


def started(name: Deployment, incarnation: int = 1) -> DeploymentStarted:
    return DeploymentStarted(name, incarnation, ref(f"supervisor {name} {incarnation}"), ref(f"courier {name}"))


def says(name: Deployment, state: str, until: int | None = None, judged: Now = NOW) -> StateChanged:
    shown: Description = described(a_spec(str(name)), state, "")
    return StateChanged(replace(shown, generation=Generation(1), until=until, judged=judged))


def after(*messages: RootMessage, now: Now = NOW) -> Next[State]:
    """The state after these messages, and the effects of the last one, which comes at ``now``."""
    following: Next[State] = Next(Idle())
    for message in messages[:-1]:
        following = advance(SETUP, following.state, message, NOW)
    return advance(SETUP, following.state, messages[-1], now)


def kinds(following: Next[State]) -> list[str]:
    return [type(each).__name__ for each in following.effects]


# --- asleep --------------------------------------------------------------------------------------------------------


def test_those_that_sleep_at_the_start_are_only_noted() -> None:
    """No supervisor; the bus knows their addresses, whoever shows approvals knows of them, one wake-up for all."""
    assert after(SLEEPING[0]).effects == (
        StartBus(1),
        Tell(SINKS, Sleeps(A.name, A.address)),
        Tell(FOLLOWERS, Sleeps(A.name, A.address)),
        Tell(SINKS, Sleeps(B.name, B.address)),
        Tell(FOLLOWERS, Sleeps(B.name, B.address)),
    )
    following = after(*SLEEPING)
    routes = Routes({A.address: Route(A.name, None), B.address: Route(B.name, None)})
    assert following.effects == (Tell(BUS, routes), WakeAt(Woken(2), wall=LATER))
    (reply,) = after(*SLEEPING, Asked(5, Deployments())).effects
    assert isinstance(reply, Reply)
    shown = cast("tuple[Deployed, ...]", reply.value)
    assert [(each.description.state, each.description.until, each.supervisor) for each in shown] == [
        ("dormant", LATER, None),
        ("dormant", None, None),
    ]


def test_whoever_says_that_it_sleeps_is_told_to_go_behind_its_mail() -> None:
    """By the bus, which hands nothing more to it from then on."""
    up = (Begin((A,)), BusStarted(1, BUS), started(A.name), says(A.name, "running"))
    following = after(*up, says(A.name, "dormant", LATER))
    assert following.effects[1:] == (Tell(BUS, Reroute(A.address, Route(A.name, None), DEPART)),)
    gone = after(*up, says(A.name, "dormant", LATER), ActorEnded("a/supervisor", 1, None))
    assert gone.effects == (
        Dismiss(ref("courier a")),
        Note(A.name, Sleep(LATER)),
        Forget(A.name),
        Tell(SINKS, Sleeps(A.name, A.address)),
        Tell(FOLLOWERS, Sleeps(A.name, A.address)),
        WakeAt(Woken(2), wall=LATER),
    )
    assert after(*up, says(A.name, "dormant"), ActorEnded("a/courier", 1, None)).effects == ()


def test_one_that_wakes_by_itself_before_it_goes_is_up_again() -> None:
    """Mail had reached it before the bus knew."""
    up = (Begin((A,)), BusStarted(1, BUS), started(A.name), says(A.name, "dormant"))
    following = after(*up, says(A.name, "starting"))
    assert following.effects[1:] == (Tell(BUS, Reroute(A.address, Route(A.name, ref("supervisor a 1")))),)
    asked = after(*up, Asked(7, Awaken(A.name)), says(A.name, "starting"))
    (reply,) = (each for each in asked.effects if isinstance(each, Reply))
    assert cast(Deployed, reply.value).supervisor == ref("supervisor a 1")


# --- waking --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "now"),
    [(Rouse(A.name), NOW), (Asked(7, Awaken(A.name)), NOW), (Woken(2), DUE)],
    ids=["mail", "a word", "its deadline"],
)
def test_one_that_sleeps_is_started_when_it_is_wanted(message: RootMessage, now: Now) -> None:
    """It is counted as nothing but a start."""
    following = after(*SLEEPING, message, now=now)
    assert following.effects == (StartDeployment(A, 1),)
    up = advance(SETUP, following.state, started(A.name), now)
    start = Tell(ref("supervisor a 1"), Start("waits" if isinstance(message, Rouse) else "", again=True))
    assert Tell(BUS, Reroute(A.address, Route(A.name, ref("supervisor a 1")), start)) in up.effects
    assert Tell(ref("courier a"), Serve(ref("supervisor a 1"), BUS)) in up.effects
    assert ("Reply" in kinds(up)) == isinstance(message, Asked)


def test_one_that_is_made_anew_while_it_is_its_turn_takes_its_mail_up() -> None:
    """Whose turn it is, is told so once: the supervisor that was told may fail before it has a process."""
    failed = (*SLEEPING, Rouse(A.name), started(A.name), ActorEnded("a/supervisor", 1, "bug"))
    assert Tell(ref("supervisor a 2"), Start("called", again=True)) in after(*failed, started(A.name, 2)).effects


def test_whoever_wants_one_that_is_up_is_told_at_once() -> None:
    """It may have been woken meanwhile."""
    (reply,) = after(Begin((A,)), BusStarted(1, BUS), started(A.name), Asked(7, Awaken(A.name))).effects
    assert isinstance(reply, Reply)
    assert cast(Deployed, reply.value).supervisor == ref("supervisor a 1")


def test_wanted_twice_it_is_started_once() -> None:
    """And both are answered."""
    twice = (*SLEEPING, Asked(7, Awaken(A.name)), Rouse(A.name), Asked(8, Awaken(A.name)))
    assert after(*twice).effects == ()
    replies = [each.token for each in after(*twice, started(A.name)).effects if isinstance(each, Reply)]
    assert replies == [7, 8]


def test_what_is_wanted_while_it_goes_is_started_when_it_has_gone() -> None:
    """Another one, with another number: what still comes from the old one isn't its."""
    going = (Begin((A,)), BusStarted(1, BUS), started(A.name), says(A.name, "dormant"), Rouse(A.name))
    assert after(*going).effects == ()
    gone = after(*going, ActorEnded("a/supervisor", 1, None))
    assert StartDeployment(A, 2) in gone.effects


def test_a_clock_that_was_set_back_wakes_nobody_early() -> None:
    """The wake-up comes, and is asked for anew."""
    following = after(*SLEEPING, Woken(2))
    assert following.effects == (WakeAt(Woken(3), wall=LATER),)


def test_a_clock_that_was_set_back_by_more_than_a_minute_wakes_whoever_has_a_deadline() -> None:
    """A schedule's next tick may be tomorrow by the clock that is right, and was a year ahead by the other."""
    asleep = after(*SLEEPING)
    earlier = Now(NOW.wall - 61_000, NOW.mono)
    assert advance(SETUP, asleep.state, Woken(2), earlier).effects == (StartDeployment(A, 1),)
    little = Now(NOW.wall - 59_000, NOW.mono)
    assert advance(SETUP, asleep.state, Woken(2), little).effects == (WakeAt(Woken(3), wall=LATER),)


def test_one_that_falls_asleep_as_the_clock_is_set_back_hides_that_from_nobody() -> None:
    """Its deadline is the soonest by the clock that is right, and it is asked for anew: the others slept on."""
    parting = after(
        Begin((A, B), {A.name: Sleep(LATER)}),
        BusStarted(1, BUS),
        started(B.name),
        says(B.name, "dormant", LATER - 1000),
    )
    right = Now(NOW.wall - 3_600_000, NOW.mono)
    gone = advance(SETUP, parting.state, ActorEnded("b/supervisor", 1, None), right)
    assert [each for each in gone.effects if isinstance(each, StartDeployment)] == [
        StartDeployment(B, 2),
        StartDeployment(A, 1),
    ]
    state = gone.state
    for message in (
        started(B.name, 2),
        says(B.name, "dormant", LATER - 3_600_000, right),
        ActorEnded("b/supervisor", 2, None),
    ):
        state = advance(SETUP, state, message, right).state
    assert isinstance(state, Running)
    assert isinstance(state.members[B.name], Dormant), "it is woken once"


def test_a_clock_that_was_ahead_for_a_while_is_set_back_from_there() -> None:
    """Who fell asleep meanwhile went by it, whoever has the soonest deadline fell asleep before."""
    ahead = advance(SETUP, after(*SLEEPING).state, Woken(99), Now(NOW.wall + 30_000, NOW.mono))
    right = advance(SETUP, ahead.state, Woken(99), Now(NOW.wall - 35_000, NOW.mono))
    assert right.effects == (StartDeployment(A, 1),)


def test_one_that_has_judged_by_a_clock_that_is_set_back_before_it_is_gone_is_woken() -> None:
    """The root may see that first: by any message, and by the word of that one itself. It slept on for a year."""
    up = after(Begin((A, B)), BusStarted(1, BUS), started(A.name), started(B.name), says(B.name, "running"))
    right = Now(NOW.wall - 3_600_000, NOW.mono)
    parting = advance(SETUP, up.state, says(B.name, "dormant", LATER), right)
    gone = advance(SETUP, parting.state, ActorEnded("b/supervisor", 1, None), right)
    assert [each for each in gone.effects if isinstance(each, StartDeployment)] == [StartDeployment(B, 2)]


def test_so_is_one_whose_word_that_it_sleeps_comes_after_the_root_has_seen_that() -> None:
    """Any message may come between its look at the repository and that word."""
    up = after(Begin((A, B)), BusStarted(1, BUS), started(A.name), started(B.name), says(B.name, "running"))
    right = Now(NOW.wall - 3_600_000, NOW.mono)
    seen = advance(SETUP, up.state, says(A.name, "running"), right)
    parting = advance(SETUP, seen.state, says(B.name, "dormant", LATER), right)
    gone = advance(SETUP, parting.state, ActorEnded("b/supervisor", 1, None), right)
    assert [each for each in gone.effects if isinstance(each, StartDeployment)] == [StartDeployment(B, 2)]


def test_a_clock_that_is_set_back_in_several_steps_is_set_back_by_all_of_them() -> None:
    """Each asks for a wake-up anew, which hid the steps before it."""
    state = after(*SLEEPING).state
    once = advance(SETUP, state, Woken(2), Now(NOW.wall - 40_000, NOW.mono))
    assert once.effects == (WakeAt(Woken(3), wall=LATER),)
    assert advance(SETUP, once.state, Woken(3), Now(NOW.wall - 80_000, NOW.mono)).effects == (StartDeployment(A, 1),)


def test_a_sooner_deadline_gets_a_wake_up_of_its_own() -> None:
    """One for all of them: the soonest."""
    up = (
        Begin((A, B), {A.name: Sleep(LATER)}),
        BusStarted(1, BUS),
        started(B.name),
        says(B.name, "dormant", LATER - 1000),
    )
    gone = after(*up, ActorEnded("b/supervisor", 1, None))
    assert gone.effects[-1] == WakeAt(Woken(3), wall=LATER - 1000)
    both = advance(SETUP, gone.state, Woken(3), DUE)
    assert both.effects == (StartDeployment(B, 2), StartDeployment(A, 1))


# --- room ----------------------------------------------------------------------------------------------------------


FULL = (
    Begin((A, B, C, D), dict.fromkeys((C.name, D.name), Sleep(None))),
    BusStarted(1, BUS),
    started(A.name),
    started(B.name),
)


def test_where_there_is_no_room_the_oldest_gives_way_and_the_others_wait() -> None:
    """In the order in which they were woken."""
    first = after(*FULL, Rouse(C.name))
    assert first.effects == (Tell(ref("supervisor a 1"), GiveWay()), WakeAt(Woken(2), mono=NOW.mono + PATIENCE))
    second = after(*FULL, Rouse(C.name), Rouse(D.name))
    assert second.effects == (Tell(ref("supervisor b 1"), GiveWay()),)
    gone = (says(B.name, "dormant"), ActorEnded("b/supervisor", 1, None))
    assert StartDeployment(C, 1) in after(*FULL, Rouse(C.name), Rouse(D.name), *gone).effects


def test_who_was_asked_to_give_way_and_is_made_anew_or_goes_on_is_asked_again() -> None:
    """Nobody is left who knows of it: others were kept out for it until it fell asleep of itself."""
    failed = after(*FULL, Rouse(C.name), ActorEnded("a/supervisor", 1, "it broke"), started(A.name, 2))
    assert Tell(ref("supervisor a 2"), GiveWay()) in failed.effects
    awake = after(*FULL, Rouse(C.name), says(A.name, "dormant"), says(A.name, "starting"))
    assert Tell(ref("supervisor a 1"), GiveWay()) in awake.effects


def test_when_all_are_at_work_for_a_while_one_more_is_started() -> None:
    """Else a mail could wait for hours to be accepted."""
    stuck = after(*FULL, says(A.name, "running"), says(B.name, "running"), Rouse(C.name), Woken(2))
    assert StartDeployment(C, 1) in stuck.effects


@pytest.mark.parametrize("moving", ["starting", "dozing", "dormant"])
def test_while_somebody_is_on_the_way_in_or_out_nobody_is_let_in_over_the_bound(moving: str) -> None:
    """A place comes free by that; a machine on which it takes longer than a moment is busy enough."""
    busy = after(*FULL, says(A.name, "running"), says(B.name, moving), Rouse(C.name), Woken(2))
    assert not any(isinstance(each, StartDeployment) for each in busy.effects)
    assert any(isinstance(each, WakeAt) for each in busy.effects), "it is looked again"


def test_one_that_is_held_takes_nobody_s_place() -> None:
    """It has no process, and can't give way."""
    following = after(*FULL, says(A.name, "held"), Rouse(C.name))
    assert following.effects == (StartDeployment(C, 1),)


def test_who_is_slow_is_waited_for_from_when_somebody_else_is_ready() -> None:
    """Of dozens that come up at once any may be the first; where none was ready, nobody was kept waiting by another."""

    def up(name: Deployment, state: str) -> StateChanged:
        shown = says(name, state).description
        return StateChanged(replace(shown, line="waits"))

    coming = (*SLEEPING, Rouse(A.name), Rouse(B.name), started(A.name), started(B.name), up(B.name, "starting"))
    patience = WakeAt(Woken(3), mono=NOW.mono + LINE_PATIENCE)
    assert not any(isinstance(each, WakeAt) for each in after(*coming).effects)
    ready = (*coming, up(B.name, "running"))
    assert patience in after(*ready).effects
    assert Tell(ref("supervisor b 1"), GoAhead()) in after(*ready, Woken(3)).effects


@pytest.mark.parametrize("code", [BROKEN, FULL_DISK, BARRED])
def test_who_runs_and_can_begin_no_run_is_waited_for_by_nobody(code: str) -> None:
    """Also one that is both barred and on a full disk, which is what is said of it first."""
    shown = replace(says(A.name, "running").description, line="called", code=code)
    coming = (*SLEEPING, Rouse(A.name), Rouse(B.name), started(A.name), started(B.name))
    waits = replace(says(B.name, "running").description, line="waits")
    assert Tell(ref("supervisor b 1"), GoAhead()) in after(*coming, StateChanged(waits), StateChanged(shown)).effects


# --- what else may happen ------------------------------------------------------------------------------------------


def test_a_failed_bus_is_told_who_sleeps() -> None:
    """Its mail is kept by the next one."""
    anew = after(*SLEEPING, ActorEnded("mail-bus", 1, "bug"), BusStarted(2, BUS_2))
    assert anew.effects == (Tell(BUS_2, Routes({A.address: Route(A.name, None), B.address: Route(B.name, None)})),)


def test_a_bus_that_failed_before_it_sent_one_away_leaves_nobody_behind() -> None:
    """Told again, by the root: who is awake ignores it, and who has gone hears nothing."""
    parting = (Begin((A,)), BusStarted(1, BUS), started(A.name), says(A.name, "dormant"))
    anew = after(*parting, ActorEnded("mail-bus", 1, "bug"), BusStarted(2, BUS_2))
    assert Tell(ref("supervisor a 1"), Depart()) in anew.effects


def test_without_a_bus_it_is_told_to_go_directly() -> None:
    """Nobody hands it anything."""
    up = (Begin((A,)), BusStarted(1, BUS), started(A.name), ActorEnded("mail-bus", 1, "bug"))
    assert next(each for each in after(*up, says(A.name, "dormant")).effects if isinstance(each, Tell)).ref == ref(
        "supervisor a 1"
    )


def test_a_stop_waits_for_nobody_who_sleeps() -> None:
    """And whoever wanted one is told so."""
    assert after(*SLEEPING, Asked(9, End())).effects == (Reply(9, None),)
    waits = after(*FULL, Asked(7, Awaken(C.name)), Asked(9, End()))
    replies = {each.token: each.value for each in waits.effects if isinstance(each, Reply)}
    assert isinstance(replies[7], NotNow)
    late = after(*SLEEPING, Asked(9, End()), Asked(7, Awaken(A.name)))
    assert isinstance(late.state, Stopped)
    (reply,) = late.effects
    assert isinstance(reply, Reply)
    assert isinstance(reply.value, NotNow)


def test_a_stop_waits_for_who_is_on_the_way_to_sleep() -> None:
    """It may be gone before it is asked to stop."""
    stopping = (Begin((A,)), BusStarted(1, BUS), started(A.name), says(A.name, "dormant"), Asked(9, End()))
    assert after(*stopping, ActorEnded("a/supervisor", 1, None)).effects[-1] == Reply(9, None)


def test_a_deployment_that_nobody_has_is_not_woken() -> None:
    """Whoever asks is told."""
    (reply,) = after(*SLEEPING, Asked(7, Awaken(Deployment("nobody")))).effects
    assert isinstance(reply, Reply)
    assert isinstance(reply.value, NotNow)


def test_a_change_of_one_that_sleeps_is_reported_once() -> None:
    """The timeline says it as it says everything."""
    up = (Begin((A,)), BusStarted(1, BUS), started(A.name))
    assert next(type(each) for each in after(*up, says(A.name, "dormant")).effects) is Report
