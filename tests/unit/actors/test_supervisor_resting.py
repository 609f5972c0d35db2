"""A deployment comes to rest, as its repository says: from whatever state, under whatever host, and back again."""

from dataclasses import replace
from typing import Any

import pytest

from actors.draining import Quiesce, StillExecuting
from actors.logic.supervisor.books import Early, Renewing
from actors.logic.supervisor.effects import Announce, EnlistOutsiders, Pass, TellDispatch
from actors.logic.supervisor.states import (
    UNSUPERVISED,
    WHOLE,
    Again,
    CrashLooping,
    Draining,
    Ending,
    Held,
    Opening,
    Running,
    Shelving,
)
from actors.logic.supervisor.words import describe
from actors.messages import Forward, GenerationDown, Role, Woken
from substrate.messages import (
    Done,
    DrainDeployment,
    GoesOn,
    HoldDeployment,
    Outcome,
    Refused,
    ResumeDeployment,
    Withheld,
)
from waypost.acting import Asked, Next, Reply, WakeAt
from waypost.model.ids import Generation
from waypost.testing.supervision import (
    BACKING_OFF,
    BEREFT,
    BOOKS,
    COUNTING,
    DIED,
    DOZING,
    DRAINED,
    DRAINING,
    DRAINING_TO_REST,
    EVICTING,
    FAILED,
    HELD,
    LATCHED,
    LETTING_GO,
    LIMITS,
    OPENING,
    RAISED,
    RAISING,
    REPLACING,
    REST,
    RESTING,
    RUNNING,
    SETUP,
    SHELVING,
    SNAPSHOT,
    STARTING,
    SUCCEEDING,
    SUPERSEDING,
    TO_REST,
    TOKEN,
    step,
)

NOBODY = StillExecuting(Generation(3), ())


def done(following: Next[Any]) -> tuple[Any, ...]:
    return tuple(effect for effect in following.effects if not isinstance(effect, Announce))


def test_an_operators_drain_has_no_limit_and_ends_held() -> None:
    """Parked runs stay live; that it rests is durable before the child goes, and then all is built from the log."""
    asked = step(RUNNING, Asked(6, Forward(DrainDeployment("ann"))))
    assert isinstance(asked.state, Running), "nothing has begun that isn't durable"
    begun = step(asked.state, Outcome(11, Done(1, REST)))
    assert begun.state == Draining(replace(TO_REST, last=11), 77, 90.0, RESTING)
    assert done(begun) == (Reply(6, Done(1, REST)), TellDispatch(Quiesce(Generation(3))))
    drained = step(DRAINING_TO_REST, NOBODY)
    assert drained.state == Shelving(replace(TO_REST, last=11), 11, WHOLE)
    assert done(drained) == (TellDispatch(GenerationDown(Generation(3), unexpected=False)), Pass(11, HoldDeployment()))
    shelved = step(SHELVING, Outcome(RAISED, Done(1, None)))
    assert isinstance(shelved.state, Ending)
    assert isinstance(shelved.state.then, Again)
    assert describe(SETUP, shelved.state).state == "draining"
    opened = step(Opening(BOOKS, TOKEN), Outcome(TOKEN, Done(0, replace(SNAPSHOT, held="drain"))))
    assert isinstance(opened.state, Held)
    assert opened.state.books.drain is None


@pytest.mark.parametrize("result", [Withheld("no space"), Refused("full", "no space")])
def test_a_rest_that_can_not_be_recorded_yet_is_tried_again(result: Any) -> None:
    """Nothing executes meanwhile; one try in every moment, not as many as a disk can refuse."""
    following = step(SHELVING, Outcome(RAISED, result))
    assert following.state == replace(SHELVING, books=replace(TO_REST, last=11), shelved=11)
    assert WakeAt(Woken(11), mono=100.0 + LIMITS.backoff_first) in following.effects
    again = step(following.state, Woken(11))
    assert done(again) == (Pass(12, HoldDeployment()),)


def test_a_rest_that_nobody_wants_any_more_is_none() -> None:
    """An operator was quicker: it goes on, built anew from the log."""
    following = step(SHELVING, Outcome(RAISED, Refused("not-draining", "an operator lets it go on")))
    assert isinstance(following.state, Ending)
    assert following.state.then == Again("an operator lets it go on")


def test_a_child_that_ends_while_the_rest_is_recorded_is_not_asked_to() -> None:
    """Nobody who has gone can be waited for."""
    gone = step(SHELVING, DIED).state
    following = step(gone, Outcome(RAISED, Done(1, None)))
    assert isinstance(following.state, Ending)
    assert Role.CHILD not in following.state.left


def told(state: Any, value: Any) -> Any:
    """The repository has answered what an operator asked for."""
    return step(replace(state, books=replace(state.books, asked={DRAINED: 6})), Outcome(DRAINED, Done(1, value)))


@pytest.mark.parametrize(
    ("state", "crew"),
    [
        (RAISING, UNSUPERVISED),
        (BACKING_OFF, UNSUPERVISED),
        (STARTING, WHOLE),
        (SUCCEEDING, WHOLE),
    ],
)
def test_where_nothing_executes_a_deployment_is_drained_at_once(state: Any, crew: Any) -> None:
    """Also between two children: an operator who takes away what ends again and again hasn't to catch it alive."""
    following = told(state, REST)
    assert isinstance(following.state, Shelving)
    assert following.state.crew == crew
    assert step(following.state, Woken(TOKEN)).state == following.state, "the next child doesn't come any more"


def test_a_drain_that_comes_while_a_fresh_process_is_awaited_is_what_it_is_drained_for() -> None:
    """Without a limit: what executes comes to rest."""
    following = told(DRAINING, REST)
    assert following.state == replace(DRAINING, books=replace(TO_REST, asked={}), goal=RESTING, limit=None)


@pytest.mark.parametrize("state", [EVICTING, COUNTING, SUPERSEDING, BEREFT, REPLACING, DOZING, LETTING_GO, HELD])
def test_elsewhere_it_waits_for_what_is_under_way(state: Any) -> None:
    """It is recorded, and comes after that."""
    following = told(state, REST)
    assert type(following.state) is type(state)
    assert following.state.books.drain == REST


def test_an_operator_may_think_better_of_it() -> None:
    """What was let go of has been given to that child already, so another one goes on with it."""
    following = told(DRAINING_TO_REST, GoesOn("draining"))
    assert isinstance(following.state, Draining)
    assert isinstance(following.state.goal, Renewing)
    assert done(following) == (Reply(6, Done(1, GoesOn("draining"))), WakeAt(Woken(11), mono=100.0 + LIMITS.drain))


def test_a_host_that_starts_goes_on_with_it() -> None:
    """Nothing executes there, so it is held at once: nothing leaves, no timer fires, no child comes."""
    opened = step(OPENING, Outcome(TOKEN, Done(0, replace(SNAPSHOT, drain=REST))))
    assert opened.state == Shelving(replace(TO_REST, broadcaster=2, last=11), 11, (Role.SUBSTRATE, Role.BROADCASTER))
    assert Pass(11, HoldDeployment()) in opened.effects
    assert EnlistOutsiders() not in opened.effects
    assert describe(SETUP, opened.state).state == "draining"
    assert describe(SETUP, opened.state).since == REST.at
    latched = step(OPENING, Outcome(TOKEN, Done(0, replace(SNAPSHOT, drain=REST, latch=LATCHED))))
    assert isinstance(latched.state, CrashLooping), "that is what somebody has to see to"
    assert "it is being drained" in describe(SETUP, latched.state).reason


def test_a_stopped_one_that_was_drained_before_is_let_go_on_by_the_same_verb() -> None:
    """The repository is asked: else the next start would find that it is still to be drained."""
    resumed = step(replace(FAILED, books=TO_REST), Asked(9, Forward(ResumeDeployment("ann"))))
    assert isinstance(resumed.state, Opening)
    assert resumed.state.early == (Early(9, ResumeDeployment("ann")),)
    opened = step(resumed.state, Outcome(resumed.state.opened, Done(0, replace(SNAPSHOT, drain=REST))))
    passed = [effect.what for effect in opened.effects if isinstance(effect, Pass)]
    assert passed == [ResumeDeployment("ann"), HoldDeployment()], "in this order, so the second one is refused"
