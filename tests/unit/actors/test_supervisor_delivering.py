"""Credentials and sources through a supervisor: at once, for the next child, or refused; in each of its states."""

from dataclasses import replace
from typing import Any

import pytest

from actors.credentials import DeliverCredentials, DeliverSources
from actors.logic.supervisor.effects import TellChild, Up
from actors.logic.supervisor.states import Running, State
from actors.messages import Send
from ipc.deliveries import CredentialsUpdated
from substrate.messages import Done, Outcome, Refused
from waypost.acting import Asked, Reply, Tell
from waypost.model.ids import Generation
from waypost.testing.lifecycle import PUBLIC, outcome
from waypost.testing.supervision import (
    BACKING_OFF,
    CREDENTIALS,
    DOWN,
    HELD,
    MESSAGES,
    RUNNING,
    SOURCES,
    STARTING,
    STATES,
    SUCCEEDING,
    step,
)

NEWER = CredentialsUpdated(serial=2, bindings={}, materials={})


def test_a_running_child_is_given_them_at_once_and_the_next_one_too() -> None:
    """A value that was rotated while a step runs is there when it asks again."""
    following = step(RUNNING, Asked(6, DeliverCredentials(CREDENTIALS)))
    assert following.effects == (TellChild(Send(CREDENTIALS)), Reply(6, Done(0, value=True)))
    assert following.state.books.credentials == CREDENTIALS


@pytest.mark.parametrize("state", [STARTING, SUCCEEDING], ids=lambda s: type(s).__name__)
def test_a_child_that_comes_up_has_all_that_was_delivered_before_dispatch_hears_of_it(state: State) -> None:
    """Else a run of it could ask for something that is still on its way; and an older delivery changes nothing."""
    for message in (DeliverSources(SOURCES), DeliverCredentials(NEWER), DeliverCredentials(CREDENTIALS)):
        following = step(state, message)
        assert following.effects == ()
        state = following.state
    following = step(state, MESSAGES["ready"])
    assert isinstance(following.state, Running)
    given = [effect for effect in following.effects if isinstance(effect, TellChild | Up)]
    assert given == [TellChild(Send(SOURCES)), TellChild(Send(NEWER)), Up(Generation(3))]


def test_where_nothing_was_delivered_a_child_is_given_nothing() -> None:
    """Most deployments have no secrets."""
    effects = step(STARTING, MESSAGES["ready"]).effects
    assert not [effect for effect in effects if isinstance(effect, TellChild)]


def test_between_two_children_they_are_kept() -> None:
    """A rotation while a child backs off isn't lost."""
    following = step(BACKING_OFF, Asked(6, DeliverSources(SOURCES)))
    assert following.effects == (Reply(6, Done(0, value=False)),)
    assert following.state.books.sources == SOURCES


@pytest.mark.parametrize("state", [HELD, DOWN], ids=lambda s: type(s).__name__)
def test_where_there_can_be_no_child_whoever_delivers_is_told_so(state: Any) -> None:
    """Asked or told; and nothing of it is kept in memory for nobody."""
    following = step(state, Asked(6, DeliverCredentials(CREDENTIALS)))
    (reply,) = following.effects
    assert isinstance(reply.value, Refused)
    assert reply.value.code == "no-child"
    assert "it is" in reply.value.why
    assert following.state == state
    teller: Any = object()
    (told,) = step(state, DeliverCredentials(CREDENTIALS, teller, 9)).effects
    assert told == Tell(teller, Outcome(9, reply.value))
    assert step(state, DeliverSources(SOURCES)).effects == ()


def test_what_was_kept_is_forgotten_where_a_delivery_is_refused() -> None:
    """It may have been taken back by then: the child that comes after all asks for what holds."""
    kept = replace(HELD, books=replace(HELD.books, credentials=CREDENTIALS, sources=SOURCES))
    books = step(kept, DeliverCredentials(NEWER)).state.books
    assert (books.credentials, books.sources) == (None, None)


@pytest.mark.parametrize("state", STATES, ids=lambda s: type(s).__name__)
def test_in_every_state_they_are_delivered_kept_or_refused(state: Any) -> None:
    """One of the three; `docs/lifecycle.md` has the table, made of this."""
    outcomes = {outcome(state, PUBLIC[label]) for label in ("credentials", "sources")}
    assert outcomes <= {"delivered", "kept", "refused `no-child`"}


@pytest.mark.parametrize("state", STATES, ids=lambda s: type(s).__name__)
def test_no_repr_of_a_supervisor_shows_a_value(state: Any) -> None:
    """Neither of what it keeps nor of what it is told: a failed actor is logged with both."""
    kept = replace(state, books=replace(state.books, credentials=CREDENTIALS))
    shown = repr((kept, DeliverCredentials(CREDENTIALS), step(kept, DeliverCredentials(CREDENTIALS))))
    assert "ghp_" not in shown
