"""The root starts everything once, makes anew what fails, gives up loudly, and stops in order."""

from typing import cast

import pytest

from actors.describing import Description
from actors.messages import DeploymentSpec, Start, StateChanged, Stop, Woken
from substrate.messages import Ref
from waypost.acting import ActorEnded, Asked, Reply, Tell, WakeAt
from waypost.host.errors import AllDown, HostBroke
from waypost.host.mail.stuck import Stuck
from waypost.host.messages import (
    Begin,
    BusStarted,
    Deployed,
    Deployments,
    DeploymentStarted,
    End,
    OutboxStuck,
    Reroute,
    RootMessage,
    Rouse,
    Route,
    Routes,
    Serve,
)
from waypost.host.root.logic import advance
from waypost.host.root.seats import Seat
from waypost.host.root.states import (
    Dismiss,
    GiveUp,
    Idle,
    Introduce,
    Report,
    Setup,
    StartBus,
    StartDeployment,
    State,
    Stopped,
)
from waypost.model.ids import Deployment, Generation
from waypost.model.limits import Limits
from waypost.model.times import Now

LIMITS = Limits()
BUS, BUS_2 = (cast(Ref, name) for name in ("bus", "bus 2"))
WATCHER = Seat("timeline", None, lambda parent, _incarnation: parent)
BEGIN = Now(wall=1_000_000, mono=50.0)


def spec(name: str) -> DeploymentSpec:
    return DeploymentSpec(
        name=Deployment(name),
        address=f"{name}@example.com",
        definition="",
        code="",
        file=f"{name}.py",
        steps=(),
        mail_to=(),
        runs="thread",
        env=(),
        python="",
        waypost="",
    )


A, B = spec("a"), spec("b")


def ref(text: str) -> Ref:
    return cast(Ref, text)


def started(which: DeploymentSpec, incarnation: int = 1) -> DeploymentStarted:
    supervisor, courier = ref(f"supervisor {which.name} {incarnation}"), ref(f"courier {which.name} {incarnation}")
    return DeploymentStarted(which.name, incarnation, supervisor, courier)


def described(which: DeploymentSpec, state: str, generation: int = 1) -> StateChanged:
    return StateChanged(
        Description(
            name=which.name,
            address=which.address,
            state=state,
            reason="why",
            generation=Generation(generation),
            pid=None,
            until=None,
            isolation="none",
        )
    )


def after(*messages: RootMessage, now: Now = BEGIN) -> tuple[State, list[object]]:
    """The state after these messages, and the effects of the last one."""
    state: State = Idle()
    effects: list[object] = []
    for message in messages:
        following = advance(Setup(LIMITS, (WATCHER,)), state, message, now)
        state, effects = following.state, list(following.effects)
    return state, effects


START = Tell(ref("supervisor a 1"), Start())
UP = (Begin((A, B)), BusStarted(1, BUS), started(A), started(B))
ROUTES = Routes(
    {
        "a@example.com": Route(A.name, ref("supervisor a 1")),
        "b@example.com": Route(B.name, ref("supervisor b 1")),
    }
)


UNSTARTED = Routes({"a@example.com": Route(A.name, None), "b@example.com": Route(B.name, None)})


def test_the_bus_comes_first_then_each_deployment_in_order() -> None:
    """Nobody may be able to send a mail that no bus would take on."""
    assert after(*UP[:1])[1] == [StartBus(1)]
    assert after(*UP[:2])[1] == [Tell(BUS, UNSTARTED), StartDeployment(A, 1), StartDeployment(B, 1)]
    assert after(*UP[:3])[1] == [
        Introduce(WATCHER, ref("supervisor a 1")),
        Tell(ref("courier a 1"), Serve(ref("supervisor a 1"), BUS)),
        Tell(BUS, Reroute(A.address, Route(A.name, ref("supervisor a 1")), START)),
    ]


def test_one_that_is_being_started_or_is_up_is_not_woken() -> None:
    """An address that isn't known yet isn't nobody's: the bus keeps what is for it, and is told the route."""
    assert after(*UP[:2], Rouse(A.name), Rouse(A.name))[1] == []
    assert after(*UP, Rouse(A.name))[1] == []
    route = Route(A.name, ref("supervisor a 1"))
    assert after(*UP[:2], started(A))[1][-1] == Tell(BUS, Reroute(A.address, route, START))


def test_a_failed_supervisor_is_made_anew_and_its_mail_is_withheld_meanwhile() -> None:
    """Its address stays known; its courier goes with it."""
    ended = ActorEnded("a/supervisor", 1, "bug")
    _, effects = after(*UP, ended)
    assert effects[:2] == [Dismiss(ref("courier a 1")), StartDeployment(A, 2)]
    assert isinstance(effects[2], Report)
    _, effects = after(*UP, ended, started(A, 2))
    routes = {**ROUTES.by_address, "a@example.com": Route(A.name, ref("supervisor a 2"))}
    assert Tell(BUS, Routes(routes)) in effects


def test_a_failed_courier_takes_its_deployment_along() -> None:
    """What it was about to deliver is learnt anew from the repository."""
    assert after(*UP, ActorEnded("a/courier", 1, "bug"))[1] == [Dismiss(ref("supervisor a 1"))]
    assert after(*UP, ActorEnded("a/courier", 7, "bug"))[1] == []


def test_what_cannot_leave_is_known_with_its_deployment_as_long_as_that_is_so() -> None:
    """`why` asks the root alone; what a courier of before said counts no more."""
    stuck = Stuck(ordinal=3, to=("x@y",), why="disk full", since=1, until=2)
    news = OutboxStuck(A.name, 1, stuck)

    def known(*messages: RootMessage) -> list[object]:
        (reply,) = after(*UP, *messages, Asked(7, Deployments()))[1]
        assert isinstance(reply, Reply)
        return [each.stuck for each in reply.value]

    assert known(news) == [stuck, None]
    assert known(news, OutboxStuck(A.name, 1, None)) == [None, None]
    assert known(news, ActorEnded("a/supervisor", 1, "bug"), started(A, 2), news) == [None, None]
    assert known(OutboxStuck(Deployment("gone"), 1, stuck)) == [None, None]


def test_a_failed_bus_is_made_anew_and_everybody_is_told() -> None:
    """Couriers hold its address; an old one answers nobody."""
    assert after(*UP, ActorEnded("mail-bus", 1, "bug"))[1] == [StartBus(2)]
    assert after(*UP, ActorEnded("mail-bus", 1, "bug"), BusStarted(2, BUS_2))[1] == [
        Tell(BUS_2, ROUTES),
        Tell(ref("courier a 1"), Serve(ref("supervisor a 1"), BUS_2)),
        Tell(ref("courier b 1"), Serve(ref("supervisor b 1"), BUS_2)),
        START,
        Tell(ref("supervisor b 1"), Start()),
    ]
    assert after(*UP, ActorEnded("mail-bus", 9, "late"))[1] == []


def test_a_bus_that_keeps_failing_ends_the_host() -> None:
    """A host that can't take mail in only looks like one."""
    failing: list[RootMessage] = []
    for n in (1, 2):
        failing += [ActorEnded("mail-bus", n, "bug"), BusStarted(n + 1, BUS)]
    _, effects = after(*UP, *failing, ActorEnded("mail-bus", 3, "bug"))
    (gave_up,) = effects
    assert isinstance(gave_up, GiveUp)
    assert isinstance(gave_up.error, HostBroke)


def test_failures_long_ago_are_forgotten() -> None:
    """Three in a window, not three in a lifetime."""
    state, _ = after(*UP)
    for n in range(1, 9):
        now = Now(BEGIN.wall, BEGIN.mono + n * LIMITS.actor_window)
        state = advance(Setup(LIMITS), state, ActorEnded("mail-bus", n, "bug"), now).state
        following = advance(Setup(LIMITS), state, BusStarted(n + 1, BUS), now)
        state = following.state
        assert not any(isinstance(effect, GiveUp) for effect in following.effects)


def test_a_deployment_that_keeps_failing_is_given_up_alone() -> None:
    """Its neighbour goes on."""
    failing: list[RootMessage] = []
    for n in (1, 2):
        failing += [ActorEnded("a/supervisor", n, "bug"), started(A, n + 1)]
    state, effects = after(*UP, *failing, ActorEnded("a/supervisor", 3, "bug"))
    assert not any(isinstance(effect, StartDeployment | GiveUp) for effect in effects)
    (reply,) = advance(Setup(LIMITS), state, Asked(5, Deployments()), BEGIN).effects
    assert isinstance(reply, Reply)
    first, second = cast("tuple[Deployed, Deployed]", reply.value)
    assert (first.description.state, first.supervisor) == ("down", None)
    assert second.supervisor == ref("supervisor b 1")


def test_what_others_failed_is_counted_against_nobody() -> None:
    """Two deployments and the bus fail once each, within a moment: each is made anew."""
    failing = ActorEnded("b/supervisor", 1, "bug"), started(B, 2), ActorEnded("mail-bus", 1, "bug"), BusStarted(2, BUS)
    assert StartDeployment(A, 2) in after(*UP, *failing, ActorEnded("a/supervisor", 1, "bug"))[1]
    second = *failing[:2], ActorEnded("a/supervisor", 1, "bug"), started(A, 2)
    assert after(*UP, *second, ActorEnded("mail-bus", 1, "bug"))[1] == [StartBus(2)]


@pytest.mark.parametrize("part", ["clock", "wires"])
def test_without_a_clock_or_the_wires_the_host_ends(part: str) -> None:
    """They can't be made anew beside what still runs."""
    (gave_up,) = after(*UP, ActorEnded(part, 1, "bug"))[1]
    assert isinstance(gave_up, GiveUp)


def test_a_host_none_of_whose_repositories_could_be_opened_ends() -> None:
    """With the reasons; one that is up, or was, keeps it alive."""
    down = described(A, "down", 0), described(B, "down", 0)
    assert [type(effect) for effect in after(*UP, down[0])[1]] == [Report]
    gave_up = after(*UP, *down)[1][-1]
    assert isinstance(gave_up, GiveUp)
    assert isinstance(gave_up.error, AllDown)
    assert gave_up.error.reasons == ("a: why", "b: why")
    assert [type(effect) for effect in after(*UP, down[0], described(B, "down", 1))[1]] == [Report]


def test_a_stop_asks_the_youngest_first_and_answers_after_the_last() -> None:
    """Whoever asked may take the lock away then."""
    _, effects = after(*UP, Asked(9, End()))
    assert effects == [
        Tell(ref("supervisor b 1"), Stop()),
        Tell(ref("supervisor a 1"), Stop()),
        WakeAt(Woken(1), mono=BEGIN.mono + LIMITS.stop_deadline),
    ]
    ending = (*UP, Asked(9, End()), described(A, "stopped"))
    assert [type(effect) for effect in after(*ending)[1]] == [Report]
    state, effects = after(*ending, described(B, "stopped"))
    assert effects[-1] == Reply(9, None)
    assert isinstance(state, Stopped)


@pytest.mark.parametrize("last", [ActorEnded("b/supervisor", 1, "bug"), Woken(1)])
def test_a_stop_ends_also_when_a_supervisor_does_not(last: RootMessage) -> None:
    """It failed meanwhile, or took longer than anybody waits."""
    assert after(*UP, Asked(9, End()), described(A, "stopped"), last)[1] == [Reply(9, None)]


def test_a_stop_waits_for_nobody_who_has_stopped_before() -> None:
    """A recycle that failed has ended it: it says nothing a second time, and the host would wait for its deadline."""
    _, effects = after(*UP, described(B, "stopped"), Asked(9, End()))
    assert effects[0] == Tell(ref("supervisor a 1"), Stop())
    both = (described(A, "stopped"), described(B, "stopped"))
    assert after(*UP, *both, Asked(9, End()))[1] == [Reply(9, None)]


def test_a_host_can_be_stopped_in_every_state() -> None:
    """Also before it has begun, while its bus is being made, twice, and after its end."""
    assert after(Asked(9, End()))[1] == [Reply(9, None)]
    assert after(Begin((A,)), Asked(9, End()))[1] == [Reply(9, None)]
    stopped = (*UP, Asked(9, End()), Asked(10, End()), described(A, "stopped"), described(B, "stopped"))
    assert after(*stopped)[1][-2:] == [Reply(9, None), Reply(10, None)]
    assert after(*stopped, Asked(11, End()))[1] == [Reply(11, None)]
