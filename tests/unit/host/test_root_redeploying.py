"""A host takes other code for one deployment: never two writers of its repository, and whoever asked is answered."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from actors.describing import Description
from actors.messages import DeploymentSpec, Start, StateChanged, Stop
from substrate.messages import Ref
from waypost.acting import ActorEnded, Asked, Reply, Tell
from waypost.host.described import Described
from waypost.host.errors import NotNow
from waypost.host.messages import Begin, BusStarted, DeploymentStarted, Deposit, End, Installed, Redeploy, Routes
from waypost.host.root.logic import advance
from waypost.host.root.states import (
    Awaiting,
    Dismiss,
    Idle,
    Install,
    Installing,
    Leaving,
    Lost,
    Member,
    Parting,
    Raised,
    Raising,
    Running,
    Setup,
    StartDeployment,
    State,
    Store,
)
from waypost.model.code import deployed
from waypost.model.declaration import Declared
from waypost.model.ids import Deployment, Generation
from waypost.model.limits import Limits
from waypost.model.times import Now

LIMITS = Limits()
BUS = cast(Ref, "bus")
NOW = Now(wall=1_000_000, mono=50.0)
NAME = Deployment("a")


def described(code: bytes) -> Described:
    """The deployment, with this code."""
    record = deployed({"a.py": code}, root="", module="a", declared=Declared(name="a", address="a@example.com"))
    spec = DeploymentSpec(
        name=NAME,
        address="a@example.com",
        definition=record.definition,
        code=record.tree,
        file="a.py",
        steps=(),
        mail_to=(),
        runs="thread",
        env=(),
        python="",
        waypost="",
    )
    return Described(spec, record, "thread", {"a.py": code})


OLD, NEW = described(b"old"), described(b"new")
ASKED = Asked(7, Redeploy(NEW))


class Root:
    """The decision, with the state that it is in."""

    def __init__(self) -> None:
        self.state: State = Idle()
        self.tell(Begin((OLD.spec,)))
        self.tell(BusStarted(1, BUS))
        self.started(1)

    def tell(self, message: Any) -> tuple[Any, ...]:  # Any: messages of the root, effects of all kinds
        """One message; its effects."""
        following = advance(Setup(LIMITS), self.state, message, NOW)
        self.state = following.state
        return following.effects

    def started(self, incarnation: int) -> tuple[Any, ...]:
        """Its supervisor lives."""
        supervisor, courier = cast(Ref, f"supervisor {incarnation}"), cast(Ref, f"courier {incarnation}")
        return self.tell(DeploymentStarted(NAME, incarnation, supervisor, courier))

    def is_now(self, state: str) -> tuple[Any, ...]:
        """Its supervisor says how it is."""
        return self.tell(
            StateChanged(
                Description(
                    name=NAME,
                    address="a@example.com",
                    state=state,
                    reason="",
                    generation=Generation(1),
                    pid=None,
                    until=None,
                    isolation="none",
                )
            )
        )

    def ended(self) -> tuple[Any, ...]:
        """Its supervisor has ended."""
        return self.tell(ActorEnded("a/supervisor", 1, None))


def installing() -> Root:
    """A root whose deployment has stopped for other code."""
    root = Root()
    root.tell(ASKED)
    root.is_now("stopped")
    root.ended()
    return root


def test_other_code_is_installed_when_nobody_has_the_repository_open_any_more() -> None:
    """Stop, and time for its runs; dismiss; install; start; and only then the answer."""
    root = Root()
    assert root.tell(ASKED) == (Tell(cast(Ref, "supervisor 1"), Stop(LIMITS.drain_stop)),)
    assert not any(isinstance(effect, Dismiss | Install) for effect in root.is_now("stopping"))
    dismissed = [effect for effect in root.is_now("stopped") if isinstance(effect, Dismiss)]
    assert dismissed == [Dismiss(cast(Ref, "supervisor 1")), Dismiss(cast(Ref, "courier 1"))]
    assert root.ended()[-1] == Install(NEW)
    effects = root.tell(Installed(NAME, None))
    assert effects[1:] == (StartDeployment(NEW.spec, 2), Reply(7, None))
    assert Tell(cast(Ref, "supervisor 2"), Start(again=True)) in root.started(2)


def test_mail_is_withheld_meanwhile_and_its_address_stays_known() -> None:
    """A route to a supervisor that has ended is answered with "not now", never with "no such address"."""
    root = installing()
    root.tell(ActorEnded("mail-bus", 1, "boom"))
    told = [effect.message for effect in root.tell(BusStarted(2, BUS)) if isinstance(effect, Tell)]
    (routes,) = [message for message in told if isinstance(message, Routes)]
    assert routes.by_address["a@example.com"].supervisor == cast(Ref, "supervisor 1")


def test_what_cannot_be_installed_leaves_the_old_code() -> None:
    """It starts with that, and says why."""
    root = installing()
    failure = NotNow("the disk is full")
    effects = root.tell(Installed(NAME, failure))
    assert effects[1:] == (StartDeployment(OLD.spec, 2), Reply(7, failure))


def test_one_that_fails_while_it_is_asked_to_leave_is_replaced_all_the_same() -> None:
    """It has ended, which is all that was wanted."""
    root = Root()
    root.tell(ASKED)
    assert root.tell(ActorEnded("a/supervisor", 1, "boom"))[-1] == Install(NEW)


@pytest.mark.parametrize("when", ["leaving", "installing"])
def test_a_second_wish_is_refused_until_the_first_one_is_done(when: str) -> None:
    """Two at once would have two ends."""
    root = installing() if when == "installing" else Root()
    if when == "leaving":
        root.tell(ASKED)
    (reply,) = root.tell(Asked(8, Redeploy(NEW)))
    assert (reply.token, type(reply.value)) == (8, NotNow)
    assert "another deploy of a is under way" in reply.value.message


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (Raising, "a is being started"),
        (Awaiting, "a waits until another deployment falls asleep"),
        (Lost, "a has failed too often; stop the host, deploy, and start it again"),
    ],
)
def test_one_that_takes_no_code_at_this_moment_says_why(state: Callable[..., Member], why: str) -> None:
    """Each is another thing to wait for, or to do."""
    root = Root()
    assert isinstance(root.state, Running)
    shown = root.state.members[NAME].description
    member = state(spec=OLD.spec, incarnation=1, description=shown)
    root.state = replace(root.state, members={NAME: member})
    (reply,) = root.tell(ASKED)
    assert reply.value.message == f"not accepted now: {why}"


def test_one_that_falls_asleep_and_a_host_that_stops_take_none_either() -> None:
    """The one is awake again within a moment; the other may be started with the new code."""
    root = Root()
    assert isinstance(root.state, Running)
    member = root.state.members[NAME]
    assert isinstance(member, Raised)
    parting = Parting(
        spec=OLD.spec,
        incarnation=1,
        description=member.description,
        supervisor=member.supervisor,
        courier=member.courier,
    )
    root.state = replace(root.state, members={NAME: parting})
    (reply,) = root.tell(ASKED)
    assert reply.value.message == "not accepted now: a is falling asleep"
    root.state = replace(root.state, members={NAME: member})
    root.tell(Asked(9, End()))
    (reply,) = root.tell(ASKED)
    assert reply.value.message == "not accepted now: the host is stopping"


@pytest.mark.parametrize("state", [Leaving, Installing])
def test_a_host_that_stops_meanwhile_answers_whoever_waits(state: type) -> None:
    """And waits itself for the one that is leaving."""
    root = installing() if state is Installing else Root()
    if state is Leaving:
        root.tell(ASKED)
    effects = root.tell(Asked(9, End()))
    assert [effect.token for effect in effects if isinstance(effect, Reply)] == ([7, 9] if state is Installing else [7])
    if state is Leaving:
        assert Reply(9, None) in root.is_now("stopped")
    assert not root.tell(Installed(NAME, None))


def test_late_news_of_an_installation_changes_nothing() -> None:
    """Nobody is waiting for it."""
    root = Root()
    before = root.state
    assert root.tell(Installed(NAME, None)) == ()
    assert root.state == before


def test_the_code_of_one_that_isnt_run_here_is_stored_in_the_roots_own_turn() -> None:
    """So its repository has one writer, whoever else asks meanwhile; what became of it is the answer."""
    root, other = Root(), replace(NEW, spec=replace(NEW.spec, name=Deployment("left")))
    assert root.tell(Asked(9, Deposit(other))) == (Store(other, 9),)
    assert root.tell(Asked(9, Deposit(other))) == (Store(other, 9),), "nothing is remembered of it"
    (told,) = root.tell(Asked(9, Deposit(NEW)))
    assert isinstance(told, Reply)
    assert isinstance(told.value, NotNow)
    root.tell(Asked(1, End()))
    (told,) = root.tell(Asked(9, Deposit(other)))
    assert isinstance(told, Reply)
    assert isinstance(told.value, NotNow)
