"""What the root decides: what is started in which order, what is started again, and how everything is stopped.

The bus and each supervisor may fail a few times within a window, each on its own, and are made anew; beyond that a
deployment is given up by itself (its neighbours go on), and a host without a bus ends, because mail that nobody can
take in is no host.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from actors.describing import Description
from actors.draining import Depart
from actors.messages import StateChanged, Stop, Woken
from waypost.acting import ActorEnded, Asked, Next, Reply, Tell, WakeAt
from waypost.host.errors import AllDown, HostBroke, NotNow
from waypost.host.messages import (
    Awaken,
    Begin,
    BusStarted,
    Deployments,
    DeploymentStarted,
    Deposit,
    End,
    Installed,
    OutboxStuck,
    Redeploy,
    Reroute,
    RootMessage,
    Rouse,
    Route,
    Serve,
)
from waypost.host.root import states as st
from waypost.host.root.lining import UNTOLD, start
from waypost.host.root.redeploying import described, installed, left_for, redeploy
from waypost.host.root.routes import routes
from waypost.host.root.seating import unseated
from waypost.host.root.sleep import (
    asleep,
    begun,
    departed,
    deployed,
    hand,
    on_again,
    refused,
    reported,
    roused,
    settle,
    woken,
)
from waypost.host.root.slots import left
from waypost.model.ids import Deployment
from waypost.model.limits import Limits
from waypost.model.times import Now

BUS = "mail-bus"
SUPERVISOR = "supervisor"
COURIER = "courier"
KEEPER = "keeper"
VITAL = frozenset({"clock", "wires", KEEPER})
"""Without these nothing goes on; what they held can't be made anew beside what still runs."""

_DEADLINE = 1
"""Token of the wake-up that ends a stop."""


def advance(  # noqa: C901, PLR0911 - one return per state
    setup: st.Setup, state: st.State, message: RootMessage, now: Now
) -> Next[st.State]:
    """One message: a question that is answered in several states, or what its state makes of it."""
    match message:
        case Asked(token, Deployments()):
            members = () if isinstance(state, st.Idle) else tuple(map(deployed, state.members.values()))
            return Next(state, (Reply(token, members),))
        case Asked(token, Redeploy() | Deposit() as wish) if isinstance(state, st.Opening | st.Running | st.Stopping):
            return redeploy(state, token, wish, setup.limits)
        case Asked(token, Awaken(name)) if isinstance(state, st.Opening | st.Running):
            following = roused(state, name, token)
            if not isinstance(following.state, st.Running):
                return following
            settled = settle(setup, following.state, now)
            return Next(settled.state, (*following.effects, *settled.effects))
        case Asked(token, Awaken()):
            return Next(state, refused((token,), why="the host is stopping"))
        case _:
            pass
    match state:
        case st.Idle():
            return _idle(setup, state, message)
        case st.Opening():
            return _opening(setup, state, message, now)
        case st.Running():
            return _running(setup, state, message, now)
        case st.Stopping():
            return _stopping(state, message)
        case st.Stopped():
            return Next(state, (Reply(message.token, None),)) if isinstance(message, Asked) else Next(state)
        case _:
            assert_never(state)


def _idle(setup: st.Setup, state: st.Idle, message: RootMessage) -> Next[st.State]:
    match message:
        case Begin():
            opening = begun(message)
            return Next(opening, (st.StartBus(1), *asleep(setup, opening.members.values())))
        case Asked():
            return Next(st.Stopped({}), (Reply(message.token, None),))
        case _:
            return Next(state)


def _opening(setup: st.Setup, state: st.Opening, message: RootMessage, now: Now) -> Next[st.State]:
    match message:
        case BusStarted():
            members = state.members.values()
            running = st.Running(state.members, message.bus, state.incarnation, state.dormancy, state.lapses)
            serve = (Tell(m.courier, Serve(m.supervisor, message.bus)) for m in members if isinstance(m, st.Raised))
            # The bus that was to send these away, or have them begin, may have ended before it did.
            depart = (Tell(m.supervisor, Depart()) for m in members if isinstance(m, st.Parting))
            raised = (m for m in members if isinstance(m, st.Raised) and m.description.state in UNTOLD)
            begin = (start(running, m) for m in raised)
            following = settle(setup, running, now)
            return Next(following.state, (routes(running), *serve, *depart, *begin, *following.effects))
        case Asked():
            return _end(state.members, message, now, setup.limits)
        case _:
            # Deployments go on while the bus is made anew; what they tell is kept in the same way.
            return _of_deployments(setup, state, message, now)


def _running(setup: st.Setup, state: st.Running, message: RootMessage, now: Now) -> Next[st.State]:
    match message:
        case Asked():
            return _end(state.members, message, now, setup.limits)
        case ActorEnded(name) if name == BUS:
            if message.incarnation != state.incarnation:
                return Next(state)
            lapses, often = st.lapsed(state.lapses, name, now, setup.limits)
            if often >= setup.limits.actor_failures:
                broke = HostBroke(f"the mail bus failed {often} times: {message.failure}")
                return Next(replace(state, lapses=lapses), (st.GiveUp(broke),))
            incarnation = state.incarnation + 1
            return Next(st.Opening(state.members, incarnation, state.dormancy, lapses), (st.StartBus(incarnation),))
        case _:
            following = _of_deployments(setup, state, message, now)
            if not isinstance(following.state, st.Running):
                return following
            settled = settle(setup, following.state, now)
            return Next(settled.state, (*following.effects, *settled.effects))


def _of_deployments(  # noqa: PLR0911 - one return per message
    setup: st.Setup, state: st.Opening | st.Running, message: RootMessage, now: Now
) -> Next[st.State]:
    match message:
        case DeploymentStarted():
            return _started(setup, state, message)
        case StateChanged():
            return _changed(state, message.description)
        case ActorEnded():
            return _ended(setup, state, message, now)
        case Installed():
            return installed(state, message)
        case Rouse():
            return roused(state, message.name, message)
        case Woken():
            return woken(setup, state, message.token)
        case OutboxStuck():
            member = state.members.get(message.name)
            if not isinstance(member, st.Raised) or message.incarnation != member.incarnation:
                return Next(state)
            return Next(replace(state, members={**state.members, message.name: replace(member, stuck=message.stuck)}))
        case Begin() | BusStarted() | Asked():
            return Next(state)  # a second beginning, or late news
        case _:
            assert_never(message)


def _started(setup: st.Setup, state: st.Opening | st.Running, message: DeploymentStarted) -> Next[st.State]:
    member = state.members[message.name]
    assert isinstance(member, st.Raising), "nobody else is being made"
    raised = st.Raised(
        spec=member.spec,
        incarnation=message.incarnation,
        description=member.description,
        supervisor=message.supervisor,
        courier=message.courier,
    )
    after = on_again(replace(state, members={**state.members, message.name: raised}), message.name)
    effects: list[object] = [st.Introduce(seat, message.supervisor) for seat in setup.seats if seat.watches]
    begin = start(after, raised)
    if isinstance(after, st.Opening):  # the bus that is being made is told all routes
        return Next(after, (*effects, begin, *hand(raised, member.wishes)))
    effects.append(Tell(message.courier, Serve(message.supervisor, after.bus)))
    if member.last is None:
        # Behind the mail that was kept for it, which is in its repository before there is a process to take it up.
        effects.append(Tell(after.bus, Reroute(member.spec.address, Route(message.name, message.supervisor), begin)))
    else:
        # In the place of one that failed, or had another address: with all others, and what was handed there is lost.
        effects += [routes(after), begin]
    return Next(after, (*effects, *hand(raised, member.wishes)))


def _changed(state: st.Opening | st.Running, description: Description) -> Next[st.State]:
    member = state.members.get(description.name)
    if member is None or isinstance(member, st.Lost):
        return Next(state)
    if isinstance(member, st.Raised | st.Parting):
        return reported(state, member, description, _all_down)
    after = replace(state, members={**state.members, description.name: replace(member, description=description)})
    dismissed: tuple[st.Dismiss, ...] = ()
    if isinstance(member, st.Leaving) and description.state == "stopped":
        dismissed = st.Dismiss(member.supervisor), st.Dismiss(member.courier)
    return Next(after, (st.Report(description), *dismissed, *_all_down(after.members)))


def _ended(  # noqa: PLR0911 - one return per actor that ends
    setup: st.Setup, state: st.Opening | st.Running, message: ActorEnded, now: Now
) -> Next[st.State]:
    if message.name in VITAL:
        return Next(state, (st.GiveUp(HostBroke(f"the {message.name} failed: {message.failure}")),))
    seat = next((seat for seat in setup.seats if seat.name == message.name), None)
    if seat is not None:
        return unseated(setup, state, seat, message, now)
    name, _, role = message.name.partition("/")
    member = state.members.get(Deployment(name))
    if isinstance(member, st.Leaving) and role == SUPERVISOR:
        return left_for(state, member)
    if isinstance(member, st.Parting) and role == SUPERVISOR:
        return departed(setup, state, member, now)
    if not isinstance(member, st.Raised):
        return Next(state)
    if role == COURIER and message.incarnation == member.incarnation:
        # Another one can only be subscribed by another supervisor, from whose repository it learns what is due.
        return Next(state, (st.Dismiss(member.supervisor),))
    if role != SUPERVISOR:
        return Next(state)
    return _made_anew(setup, state, member, message, now)


def _made_anew(
    setup: st.Setup, state: st.Opening | st.Running, member: st.Raised, ended: ActorEnded, now: Now
) -> Next[st.State]:
    reason = f"its supervisor failed: {ended.failure}" if ended.failure else "its supervisor has ended"
    lapses, often = st.lapsed(state.lapses, ended.name, now, setup.limits)
    incarnation = member.incarnation + 1
    after: st.Member
    effects: list[object] = [st.Dismiss(member.courier)]
    dormancy = state.dormancy
    if often >= setup.limits.actor_failures:
        dormancy = replace(dormancy, slots=left(dormancy.slots, member.spec.name))
        shown = described(member.spec, "down", f"host-fault: {reason}, {often} times in a short while")
        after = st.Lost(spec=member.spec, incarnation=incarnation, description=shown)
        effects.append(st.Forget(member.spec.name))
    else:
        shown = described(member.spec, "starting", reason)
        after = st.Raising(spec=member.spec, incarnation=incarnation, description=shown, last=member.supervisor)
        effects.append(st.StartDeployment(member.spec, incarnation))
    members = {**state.members, member.spec.name: after}
    after_all = replace(state, members=members, lapses=lapses, dormancy=dormancy)
    return Next(after_all, (*effects, st.Report(shown), *_all_down(members)))


# --- the end -------------------------------------------------------------------------------------------------------


def _end(members: Mapping[Deployment, st.Member], message: Asked, now: Now, limits: Limits) -> Next[st.State]:
    assert isinstance(message.body, End)
    # One that has stopped before has nothing left to end, and would say so no second time.
    raised = [
        member
        for member in members.values()
        if isinstance(member, st.Raised | st.Leaving | st.Parting) and member.description.state != "stopped"
    ]
    why = NotNow("the host is stopping")
    waiting: tuple[object, ...] = tuple(
        Reply(each.asker, why) for each in members.values() if isinstance(each, st.Leaving | st.Installing)
    )
    wishes = (each.wishes for each in members.values() if isinstance(each, st.Parting | st.Awaiting | st.Raising))
    waiting = (*waiting, *refused(*wishes, why="the host is stopping"))
    if not raised:
        return Next(st.Stopped(members), (*waiting, Reply(message.token, None)))
    # Youngest first; each is on its own, so that one that is slow delays nobody.
    patience = message.body.patience
    stops = tuple(Tell(member.supervisor, Stop(patience)) for member in reversed(raised))
    left = frozenset(member.spec.name for member in raised)
    deadline = WakeAt(Woken(_DEADLINE), mono=now.mono + patience + limits.stop_deadline)
    return Next(st.Stopping(members, left, (message.token,)), (*waiting, *stops, deadline))


def _stopping(state: st.Stopping, message: RootMessage) -> Next[st.State]:
    match message:
        case Asked():
            after = replace(state, askers=(*state.askers, message.token))
            if message.body != End():
                return Next(after)
            left = (member for name, member in state.members.items() if name in state.left)
            return Next(
                after,
                tuple(
                    Tell(each.supervisor, Stop())
                    for each in left
                    if isinstance(each, st.Raised | st.Leaving | st.Parting)
                ),
            )
        case StateChanged(description):
            member = replace(state.members[description.name], description=description)
            shown = replace(state, members={**state.members, description.name: member})
            following = _one_less(shown, description.name) if description.state == "stopped" else Next(shown)
            return Next(following.state, (st.Report(description), *following.effects))
        case ActorEnded():
            name, _, role = message.name.partition("/")
            return _one_less(state, Deployment(name)) if role == SUPERVISOR else Next(state)
        case Woken(token) if token == _DEADLINE:
            return Next(st.Stopped(state.members), tuple(Reply(token, None) for token in state.askers))
        case _:
            return Next(state)


def _one_less(state: st.Stopping, name: Deployment) -> Next[st.State]:
    left = state.left - {name}
    if left:
        return Next(replace(state, left=left))
    return Next(st.Stopped(state.members), tuple(Reply(token, None) for token in state.askers))


# --- small things --------------------------------------------------------------------------------------------------


def _all_down(members: Mapping[Deployment, st.Member]) -> tuple[st.GiveUp, ...]:
    """When no deployment has a repository that could be opened, staying up would only look like a host."""
    if any(each.description.state != "down" or each.description.generation for each in members.values()):
        return ()
    shown = (each.description for each in members.values())
    return (st.GiveUp(AllDown(tuple(f"{each.name}: {each.reason}" for each in shown))),)
