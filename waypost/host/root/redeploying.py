"""How a host takes other code for one of its deployments: it stops that one, installs, and starts it anew.

The others go on. Mail for it is withheld meanwhile, which its senders try again; what can't be installed leaves the old
code, with which it starts anew all the same. Pure.
"""

from dataclasses import replace
from typing import assert_never

from actors.describing import Description
from actors.messages import DeploymentSpec, Stop
from waypost.acting import Next, Reply, Tell
from waypost.host.errors import NotNow
from waypost.host.messages import Deposit, Installed, Redeploy
from waypost.host.root import states as st
from waypost.host.root import why as root_why
from waypost.host.root.routes import routes
from waypost.host.root.slots import entered
from waypost.model.ids import Deployment, Generation
from waypost.model.limits import Limits


def redeploy(state: st.State, asker: int, wanted: Redeploy | Deposit, limits: Limits) -> Next[st.State]:
    """Begin: its runs have as long to come to rest as when the host stops."""
    name = wanted.one.spec.name
    if isinstance(wanted, Deposit):
        return _deposited(state, asker, wanted)
    member = state.members.get(name) if isinstance(state, st.Opening | st.Running) else None
    if isinstance(state, st.Opening | st.Running) and isinstance(member, st.Dormant):
        return _asleep(state, member, asker, wanted)
    if not isinstance(state, st.Opening | st.Running) or not isinstance(member, st.Raised):
        return Next(state, (Reply(asker, NotNow(_busy(name, member))),))
    leaving = st.Leaving(
        spec=member.spec,
        incarnation=member.incarnation,
        description=member.description,
        supervisor=member.supervisor,
        courier=member.courier,
        one=wanted.one,
        asker=asker,
    )
    after = replace(state, members={**state.members, name: leaving})
    return Next(after, (Tell(member.supervisor, Stop(limits.drain_stop)),))


def _deposited(state: st.State, asker: int, wanted: Deposit) -> Next[st.State]:
    """Nobody in this host has the repository open, and nobody else may: it is written in the root's own turn."""
    name = wanted.one.spec.name
    if not isinstance(state, st.Opening | st.Running) or name in state.members:
        return Next(state, (Reply(asker, NotNow("the host is stopping, or runs it by now")),))
    return Next(state, (st.Store(wanted.one, asker),))


def _busy(name: Deployment, member: st.Member | None) -> str:
    """Why it can't take other code at this moment."""
    match member:
        case st.Leaving() | st.Installing():
            return f"another deploy of {name} is under way"
        case st.Raising():
            return f"{name} is being started"
        case st.Parting():
            return f"{name} is falling asleep"
        case st.Awaiting():
            return f"{name} waits until another deployment falls asleep"
        case st.Lost():
            return f"{name} has failed too often; stop the host, deploy, and start it again"
        case st.Raised() | st.Dormant() | None:
            return "the host is stopping"
        case _:
            assert_never(member)


def _asleep(state: st.Opening | st.Running, member: st.Dormant, asker: int, wanted: Redeploy) -> Next[st.State]:
    """Nobody has its repository open, and nobody has to end."""
    shown = described(member.spec, "starting", "its code is replaced")
    installing = st.Installing(
        spec=member.spec,
        incarnation=member.incarnation + 1,
        description=shown,
        last=None,
        one=wanted.one,
        asker=asker,
    )
    name, dormancy = member.spec.name, state.dormancy
    awake = replace(
        dormancy,
        slots=entered(dormancy.slots, name),
        deadlines=tuple(each for each in dormancy.deadlines if each[1] != name),
    )
    after = replace(state, members={**state.members, name: installing}, dormancy=awake)
    return Next(after, (st.Report(shown), st.Install(wanted.one)))


def left_for(state: st.Opening | st.Running, member: st.Leaving) -> Next[st.State]:
    """Nobody has its repository open any more."""
    shown = described(member.spec, "starting", "its code is replaced")
    installing = st.Installing(
        spec=member.spec,
        incarnation=member.incarnation + 1,
        description=shown,
        last=member.supervisor,
        one=member.one,
        asker=member.asker,
    )
    after = replace(state, members={**state.members, member.spec.name: installing})
    return Next(after, (st.Report(shown), st.Install(member.one)))


def installed(state: st.Opening | st.Running, message: Installed) -> Next[st.State]:
    """It starts with the new code; with the old one where that couldn't be installed, and whoever asked is told why."""
    member = state.members.get(message.name)
    if not isinstance(member, st.Installing):
        return Next(state)
    spec = member.one.spec if message.failure is None else member.spec
    shown = described(spec, "starting", "" if message.failure is None else message.failure.message)
    raising = st.Raising(spec=spec, incarnation=member.incarnation, description=shown, last=member.last)
    after = replace(state, members={**state.members, message.name: raising})
    start = st.StartDeployment(spec, member.incarnation)
    moved = (routes(after),) if isinstance(after, st.Running) and spec.address != member.spec.address else ()
    return Next(after, (*moved, st.Report(shown), start, Reply(member.asker, message.failure)))


def described(spec: DeploymentSpec, state: str, reason: str) -> Description:
    """A deployment that has no supervisor to describe it."""
    return Description(
        name=spec.name,
        address=spec.address,
        state=state,
        reason=reason,
        generation=Generation(0),
        pid=None,
        until=None,
        isolation=spec.isolation,
        code=root_why.HOST_FAULT if state == "down" else "",
        why=root_why.sentence(spec.name, state, reason),
    )
