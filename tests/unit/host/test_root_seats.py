"""Whoever looks on and fails is followed by another one, who is told everything anew; as a table."""

from dataclasses import replace
from typing import Any, cast

import pykka
import pytest

from actors.messages import StateChanged
from actors.watching import APPROVALS, FOLLOWED, TURNS, Sleeps
from waypost.acting import ActorEnded, Asked, Next, Ref, Tell
from waypost.host.described import Sleep
from waypost.host.messages import Begin, BusStarted, DeploymentStarted, End
from waypost.host.root.logic import advance
from waypost.host.root.seats import NOTHING, Seat
from waypost.host.root.states import Idle, Introduce, Reseat, Setup, StartDeployment, State, Vacate
from waypost.model.limits import Limits
from waypost.model.times import Now
from waypost.testing.supervision import a_spec


def seat(name: str, what: Any) -> Seat:
    return Seat(name, what, lambda parent, _incarnation: parent)


BUS, SUPERVISOR, COURIER = (cast(Ref, name) for name in ("bus", "supervisor a", "courier a"))
TIMELINE, SINKS, FOLLOWERS = seat("timeline", None), seat("sinks", APPROVALS), seat("followers", FOLLOWED)
LIMITS = Limits()
OBSERVER, LIBRARY = seat("observer", TURNS), seat("library", NOTHING)
SETUP = Setup(LIMITS, seats=(TIMELINE, SINKS, FOLLOWERS, OBSERVER, LIBRARY))
A, B = a_spec("a"), a_spec("b")
UP = (Begin((A, B), {B.name: Sleep(None)}), BusStarted(1, BUS), DeploymentStarted(A.name, 1, SUPERVISOR, COURIER))


def after(*messages: Any, at: float = 50.0) -> Next[State]:
    """The state after these messages, and the effects of the last one, which comes ``at`` that time."""
    following: Next[State] = Next(Idle())
    for message in messages[:-1]:
        following = advance(SETUP, following.state, message, Now(1_000_000, 50.0))
    return advance(SETUP, following.state, messages[-1], Now(1_000_000, at))


def failed(who: Seat, incarnation: int = 1) -> ActorEnded:
    return ActorEnded(who.name, incarnation, "OSError('no terminal')")


def test_whoever_looks_on_is_introduced_to_each_supervisor() -> None:
    """By the root: it knows who sits there now."""
    introduced = [each for each in after(*UP).effects if isinstance(each, Introduce)]
    assert introduced == [Introduce(each, SUPERVISOR) for each in (TIMELINE, SINKS, FOLLOWERS, OBSERVER)]


@pytest.mark.parametrize("who", [SINKS, FOLLOWERS], ids=["sinks", "followers"])
def test_another_one_takes_its_place_and_is_told_of_all_deployments(who: Seat) -> None:
    """Of those that are awake by their supervisors, of those that sleep by the root."""
    assert after(*UP, failed(who)).effects == (
        Reseat(who, 2),
        Introduce(who, SUPERVISOR),
        Tell(who, Sleeps(B.name, B.address)),
    )


def test_the_timeline_hears_of_those_that_are_awake() -> None:
    """What sleeps has nothing to say."""
    assert after(*UP, failed(TIMELINE)).effects == (Reseat(TIMELINE, 2), Introduce(TIMELINE, SUPERVISOR))


def test_another_observer_is_told_how_each_deployment_is() -> None:
    """Else it would take the next child of each for the first."""
    reseated, introduced, *told = after(*UP, failed(OBSERVER)).effects
    assert (reseated, introduced) == (Reseat(OBSERVER, 2), Introduce(OBSERVER, SUPERVISOR))
    assert all(isinstance(each, Tell) and isinstance(each.message, StateChanged) for each in told)
    assert {cast(Any, each).message.description.name for each in told} == {A.name, B.name}


def test_whoever_only_answers_is_replaced_and_introduced_to_nobody() -> None:
    """The library reads what lies on the disk; a supervisor that told it of every event would tell it for nothing."""
    assert after(*UP, failed(LIBRARY)).effects == (Reseat(LIBRARY, 2),)


def test_one_that_fails_again_and_again_is_left_out() -> None:
    """What it can't stand comes again; deployments go on, and so do the others who look on."""
    twice = (*UP, failed(TIMELINE), failed(TIMELINE, 2))
    (vacated,) = after(*twice, failed(TIMELINE, 3)).effects
    assert isinstance(vacated, Vacate)
    assert "3 times" in vacated.why
    assert "no terminal" in vacated.why
    assert after(*twice, failed(SINKS)).effects[0] == Reseat(SINKS, 2)
    later = after(*twice, failed(TIMELINE, 3), at=51.0 + LIMITS.actor_window)
    assert later.effects[0] == Reseat(TIMELINE, 4), "that was long ago"


def test_it_is_told_while_the_bus_is_made_anew_too() -> None:
    """And what has failed before isn't forgotten by that."""
    opening = (*UP, failed(TIMELINE), ActorEnded("mail-bus", 1, "boom"))
    assert after(*opening, failed(TIMELINE, 2)).effects[0] == Reseat(TIMELINE, 3)
    (vacated,) = after(*opening, failed(TIMELINE, 2), BusStarted(2, BUS), failed(TIMELINE, 3)).effects
    assert isinstance(vacated, Vacate)


def test_nobody_takes_a_place_in_a_host_that_ends() -> None:
    """It is about to be empty."""
    assert after(*UP, Asked(5, End()), failed(TIMELINE)).effects == ()


def test_a_seat_that_is_empty_loses_what_it_is_told() -> None:
    """As any actor that has ended; its leaving is no trouble either."""
    empty = seat("timeline", None)
    with pytest.raises(pykka.ActorDeadError):
        empty.tell("news")
    empty.leave(1.0)
    assert str(empty) == "<Seat of the timeline>"
    assert replace(SETUP, seats=(empty,)).seats != SETUP.seats
    assert StartDeployment(A, 1) in after(*UP[:2]).effects
