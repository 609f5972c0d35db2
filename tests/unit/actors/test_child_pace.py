"""A child that writes faster than it may is answered later: by table, and through the decision of its life."""

import hashlib
from typing import Any

import pytest

from actors.effects import Ask
from actors.logic.child.decision import PACE
from actors.logic.child.outbox import Transmit
from actors.logic.child.pace import Late, Pace, charge, release
from actors.logic.child.states import Heard, Killed, Leaving, Setup, Talking
from ipc.messages import AppendResponse, BlobPut
from substrate.messages import Done, Outcome, Refused
from waypost.acting import Next, WakeAt
from waypost.model.ids import Generation
from waypost.model.limits import DEFAULT, Limits
from waypost.model.times import Now
from waypost.testing.childhood import LEAVING, NOW, PID, RUN, TALKING, append, step

LIMITS = Limits(commits=4.0, commits_over=1.0, requests=6)
SETUP = Setup(generation=Generation(3), limits=LIMITS)
ONE, TWO, THREE = (AppendResponse(id=number) for number in (1, 2, 3))


@pytest.mark.parametrize(
    ("pace", "now", "after", "said"),
    [
        (Pace(), 100.0, Pace(100.25), (TWO,)),
        (Pace(100.75), 100.0, Pace(101.0), (TWO,)),
        (Pace(101.0), 100.0, Pace(101.25, (Late(100.25, TWO),)), ()),
        (Pace(101.0), 100.25, Pace(101.25), (TWO,)),
        (Pace(101.25, (Late(100.25, ONE),)), 100.5, Pace(101.5, (Late(100.25, ONE), Late(100.5, TWO))), ()),
    ],
    ids=["at rest", "the last that is free", "ahead", "not any more", "behind one that waits"],
)
def test_an_answer_is_held_back_by_as_much_as_the_child_is_ahead(
    pace: Pace, now: float, after: Pace, said: tuple[Any, ...]
) -> None:
    """Four commits a second, averaged over one second."""
    assert charge(pace, (TWO,), now, LIMITS) == (after, said)


def test_what_is_held_back_leaves_in_its_order() -> None:
    """As far as its time has come."""
    late = (Late(1.0, ONE), Late(1.25, TWO), Late(1.5, THREE))
    assert release(Pace(2.5, late), 0.5) == (Pace(2.5, late), ())
    assert release(Pace(2.5, late), 1.25) == (Pace(2.5, late[2:]), (ONE, TWO))


def test_the_contract_s_figures_hold_by_default() -> None:
    """Twenty thousand commits at one moment are let through, and no more; then two thousand a second."""
    pace, at_once = Pace(), 0
    for _ in range(22_000):
        pace, said = charge(pace, (ONE,) if not pace.late else (), 50.0, DEFAULT)
        at_once += len(said)
    assert at_once == pytest.approx(20_000, abs=1)
    assert pace.until - 50.0 - DEFAULT.commits_over == pytest.approx(1.0)


def ask(state: Any, *numbers: int, setup: Setup = SETUP) -> Any:
    """So many appends under way."""
    for number in numbers:
        state = step(state, Heard(append(number)), setup=setup).state
    return state


def done(state: Any, correlation: int, mono: float = 100.0, result: Any = None) -> Next[Any]:
    """The substrate's answer to one."""
    outcome = Outcome(correlation, result or Done(correlation))
    return step(state, outcome, setup=SETUP, now=Now(NOW.wall, mono))


def test_a_child_that_is_too_fast_is_slowed_and_not_killed() -> None:
    """Its answers wait for one wake-up, and then for the next."""
    state = ask(TALKING, 1, 2, 3, 4, 5, 6)
    for number in (1, 2, 3, 4):
        following = done(state, number)
        assert following.effects == (Transmit(AppendResponse(id=number)),)
        state = following.state
    following = done(state, 5)
    assert following.effects == (WakeAt(PACE, mono=100.25),)
    following = done(following.state, 6)
    assert following.effects == ()
    following = step(following.state, PACE, setup=SETUP, now=Now(NOW.wall, 100.25))
    assert following.effects == (Transmit(AppendResponse(id=5)), WakeAt(PACE, mono=100.5))
    following = step(following.state, PACE, setup=SETUP, now=Now(NOW.wall, 100.6))
    assert following.effects == (Transmit(AppendResponse(id=6)),)
    assert isinstance(following.state, Talking)
    assert step(following.state, PACE, setup=SETUP) == Next(following.state)


def test_what_waits_for_its_answer_is_under_way_still() -> None:
    """Else a child that waits for nothing would not be slowed at all: more than it may have ends it, as before."""
    state = ask(TALKING, 1, 2, 3, 4, 5, 6)
    for number in (1, 2, 3, 4, 5, 6):
        state = done(state, number).state
    state = ask(state, 7, 8, 9, 10)
    assert isinstance(state, Talking)
    assert isinstance(ask(state, 11), Killed)


@pytest.mark.parametrize("result", [Refused("phase", "the run has ended")])
def test_a_refusal_is_no_commit(result: Refused) -> None:
    """Nothing was written, so nothing is counted; nor is a value, which is no commit until an event names it."""
    state = ask(TALKING, 1)
    following = done(state, 1, result=result)
    assert following.state.pace == Pace()
    name = hashlib.sha256(b"abc").hexdigest()
    value = BlobPut(id=2, run=RUN, sha256=name, offset=0, data=b"abc", last=True)
    stored = step(following.state, Heard(value), setup=SETUP)
    assert isinstance(stored.effects[0], Ask)
    assert done(stored.state, 2).state.pace == Pace()


def test_a_wake_up_for_answers_ends_no_child_that_is_leaving() -> None:
    """It was asked for before; only the other one means that patience has ended."""
    assert step(LEAVING, PACE) == Next(Leaving(PID))
