"""How the root keeps deployments that sleep, and wakes them: by mail, by whoever wants one, and at their deadlines.

No actor, thread, repository or journal belongs to one that sleeps: it is a record here, and a line in one row of
deadlines for the whole host. Whoever says that it sleeps is told to go behind all that was handed to it, so that
nothing is lost between the two; what comes meanwhile is kept by the bus, for the next supervisor. Who may be awake at
once is ``slots``. Pure.
"""

from bisect import insort
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import assert_never

from actors.describing import Description
from actors.draining import Depart, GiveWay
from actors.logic.supervisor import why as supervisor_why
from actors.messages import Woken
from actors.watching import APPROVALS, FOLLOWED, Sleeps
from waypost.acting import Next, Reply, Tell, WakeAt
from waypost.host.clock import jump
from waypost.host.described import Sleep
from waypost.host.errors import NotNow
from waypost.host.messages import Begin, Deployed, Reroute, Rouse, Route
from waypost.host.root import line, slots
from waypost.host.root import lining as root_line
from waypost.host.root import states as st
from waypost.host.root.redeploying import described
from waypost.host.root.slots import Enter, Patience, Press, Slots
from waypost.host.root.why import leaving
from waypost.model.ids import Deployment
from waypost.model.times import Now

WISHES = 256
"""Who may want one deployment at once that is being woken."""
SET_BACK = 60.0
"""Seconds by which the wall clock may go back before everybody with a deadline is woken, to look at it anew: a schedule
holds still for one interval at most then, and no interval is shorter."""
AWARE = frozenset({APPROVALS, FOLLOWED})
"""Who watches for one of these is told of deployments that sleep, too."""
_REST = frozenset({"held", "down", "stopped"})
"""States in which a deployment has no child, and can't give way to anybody."""
_ROUSABLE = (st.Awaiting, st.Raising, st.Parting, st.Dormant)
"""Whom mail wakes, or has woken: it is taken up in the order in which it came."""
_ON_THE_WAY = frozenset({"idle", "waking", "starting", "dozing", "dormant"})
"""States out of which a deployment comes by itself, and soon."""


def begun(message: Begin) -> st.Opening:
    """The state at the start: deployments wait in order, warm ones first; those that sleep go on sleeping."""
    members: dict[Deployment, st.Member] = {}
    deadlines: list[tuple[int, Deployment]] = []
    for spec in message.specs:
        sleep = message.dormant.get(spec.name)
        if sleep is None:
            members[spec.name] = st.Awaiting(spec=spec, incarnation=1, description=described(spec, "idle", ""))
            continue
        shown = _dormant(described(spec, "dormant", ""), sleep)
        members[spec.name] = st.Dormant(spec=spec, incarnation=0, description=shown, deadline=sleep.deadline)
        if sleep.deadline is not None:
            deadlines.append((sleep.deadline, spec.name))
    awaiting = (spec for spec in message.specs if spec.name not in message.dormant)
    row = tuple(spec.name for spec in sorted(awaiting, key=lambda spec: not spec.warm))
    return st.Opening(members, 1, dormancy=st.Dormancy(Slots(waiting=row), deadlines=tuple(sorted(deadlines))))


def deployed(member: st.Member) -> Deployed:
    """A deployment as the root knows it."""
    shown = leaving(member.description) if isinstance(member, st.Leaving) else member.description
    if isinstance(member, st.Raised):
        return Deployed(member.spec, shown, member.supervisor, member.stuck)
    return Deployed(member.spec, shown, None)


# --- who wants one awake ---------------------------------------------------------------------------------------------


def refused(*several: Iterable[st.Wish], why: str) -> tuple[Reply, ...]:
    """The answers where a deployment won't be woken; mail that the bus keeps is the bus's to withhold."""
    return tuple(Reply(each, NotNow(why)) for wishes in several for each in wishes if isinstance(each, int))


def hand(member: st.Raised, wishes: Iterable[st.Wish]) -> tuple[Reply, ...]:
    """The answers to those who wanted a deployment that is up now; the bus learns of it by its route."""
    return tuple(Reply(each, deployed(member)) for each in wishes if isinstance(each, int))


def roused(  # noqa: PLR0911 - one return per state of it
    state: st.Opening | st.Running, name: Deployment, wish: st.Wish
) -> Next[st.State]:
    """Somebody wants a deployment, which is woken for it, if it sleeps."""
    member = state.members.get(name)
    if isinstance(wish, Rouse) and isinstance(member, _ROUSABLE):
        state = root_line.joined(state, name)
    match member:
        case st.Raised():
            return Next(state, hand(member, (wish,)))
        case st.Dormant():
            return Next(_wake(state, member, (wish,)))
        case st.Awaiting() | st.Raising() | st.Parting() if wish in member.wishes:
            return Next(state)
        case st.Awaiting() | st.Raising() | st.Parting() if len(member.wishes) < WISHES:
            return Next(_with(state, replace(member, wishes=(*member.wishes, wish))))
        case st.Awaiting() | st.Raising() | st.Parting():
            return Next(state, refused((wish,), why="too many want it already; try again"))
        case st.Leaving() | st.Installing():
            return Next(state, refused((wish,), why="its code is being replaced; try again"))
        case st.Lost() | None:
            return Next(state, refused((wish,), why="it isn't up"))
        case _:
            assert_never(member)


# --- falling asleep --------------------------------------------------------------------------------------------------


def reported(
    state: st.Opening | st.Running,
    member: st.Raised | st.Parting,
    description: Description,
    all_down: Callable[[Mapping[Deployment, st.Member]], tuple[st.GiveUp, ...]],
) -> Next[st.State]:
    """A supervisor says how it is: it sleeps, or is awake again although it was told to go."""
    sleeps, shown = description.state == "dormant", st.Report(description)
    match member:
        case st.Raised() if sleeps:
            parting = st.Parting(
                spec=member.spec,
                incarnation=member.incarnation,
                description=description,
                supervisor=member.supervisor,
                courier=member.courier,
            )
            return Next(_with(state, parting), (shown, *_reroute(state, member, None)))
        case st.Parting() if not sleeps:
            raised = st.Raised(
                spec=member.spec,
                incarnation=member.incarnation,
                description=description,
                supervisor=member.supervisor,
                courier=member.courier,
            )
            after = _with(on_again(state, member.spec.name), raised)
            return Next(after, (shown, *_reroute(state, member, member), *hand(raised, member.wishes)))
        case st.Raised() | st.Parting():
            after = _with(state, replace(member, description=description))
            return Next(after, (shown, *all_down(after.members)))
        case _:
            assert_never(member)


def on_again(state: st.Opening | st.Running, name: Deployment) -> st.Opening | st.Running:
    """It goes on, and nobody there knows that it was asked to give way."""
    return replace(state, dormancy=replace(state.dormancy, slots=slots.anew(state.dormancy.slots, name)))


def departed(setup: st.Setup, state: st.Opening | st.Running, member: st.Parting, now: Now) -> Next[st.State]:
    """Its supervisor has ended, so it is dormant: this record is all that is left of it.

    What was judged by a clock that was set back since is looked at anew at once.
    """
    name, deadline = member.spec.name, member.description.until
    if deadline is not None and jump(member.description.judged, now) < -SET_BACK:
        deadline = now.wall
    dormant = st.Dormant(
        spec=member.spec, incarnation=member.incarnation, description=member.description, deadline=deadline
    )
    dormancy = replace(state.dormancy, slots=slots.left(state.dormancy.slots, name))
    after = _with(replace(state, dormancy=_put(dormancy, name, deadline)), dormant)
    if member.wishes:
        after = _wake(after, dormant, member.wishes)
    return Next(
        after,
        (
            st.Dismiss(member.courier),
            st.Note(name, Sleep(deadline, member.description.live)),
            st.Forget(name),
            *asleep(setup, (dormant,)),
        ),
    )


def asleep(setup: st.Setup, members: Iterable[st.Member]) -> tuple[Tell, ...]:
    """Whoever shows approvals, or passes followers on, is told of those that sleep.

    What they ask of people is open all the same, and nobody waits for word of theirs.
    """
    told = [seat for seat in setup.seats if seat.what in AWARE]
    sleeping = [each.spec for each in members if isinstance(each, st.Dormant)]
    return tuple(Tell(who, Sleeps(each.name, each.address)) for each in sleeping for who in told)


# --- waking ----------------------------------------------------------------------------------------------------------


def woken(setup: st.Setup, state: st.Opening | st.Running, token: int) -> Next[st.State]:
    """A wake-up that was asked for here: for a deadline, because the clock was set back, or because others wait."""
    dormancy = state.dormancy
    if dormancy.alarm is not None and dormancy.alarm[0] == token:
        return Next(replace(state, dormancy=replace(dormancy, alarm=None)))
    awake = {name: state.members[name] for name in dormancy.slots.awake}
    bound = slots.most(setup.limits)
    after = slots.impatient(
        dormancy.slots,
        token,
        moving=frozenset(name for name, each in awake.items() if _moves(each)),
        up=frozenset(name for name, each in awake.items() if each.description.state == "running"),
        beyond=0 if bound is None else slots.over(dormancy.slots, bound, _uncounted(awake)),
    )
    return root_line.impatient(replace(state, dormancy=replace(dormancy, slots=after)), token)


def settle(setup: st.Setup, state: st.Running, now: Now) -> Next[st.State]:
    """Wake whoever is due, start whom there is a place for, let on those in line, and be woken for the next."""
    leap = jump(state.dormancy.ahead, now)
    # Set back, what was a schedule's next tick perhaps is no longer: once, before anybody who falls asleep asks anew.
    back = leap < -SET_BACK
    due = [name for wall, name in state.dormancy.deadlines if back or wall <= now.wall]
    if back or leap > 0 or state.dormancy.ahead is None:  # one that was ahead, and is set right, is set back from there
        state = replace(state, dormancy=replace(state.dormancy, ahead=now))
    for name in due:
        member = state.members[name]
        assert isinstance(member, st.Dormant), "nobody else is in that row"
        woke = _wake(state, member, ())
        assert isinstance(woke, st.Running)
        state = woke
    effects: list[object] = []
    if state.dormancy.slots.waiting or state.dormancy.slots.patience is not None:
        state, effects = _moved(setup, state, now)
    state, called = root_line.moved(state, now)
    effects += called
    dormancy = state.dormancy
    if dormancy.deadlines and (dormancy.alarm is None or dormancy.deadlines[0][0] < dormancy.alarm[1]):
        token, wall = dormancy.last + 1, dormancy.deadlines[0][0]
        effects.append(WakeAt(Woken(token), wall=wall))
        state = replace(state, dormancy=replace(dormancy, last=token, alarm=(token, wall)))
    return Next(state, tuple(effects))


def _moved(setup: st.Setup, state: st.Running, now: Now) -> tuple[st.Running, list[object]]:
    dormancy, members = state.dormancy, dict(state.members)
    line_ = frozenset(dormancy.line.row)  # what woke them isn't done
    present = {name: members[name] for name in (*dormancy.slots.awake, *dormancy.slots.waiting[:1])}
    after, made = slots.moves(
        dormancy.slots,
        setup.limits,
        uncounted=_uncounted(present),
        may_leave=frozenset(
            name
            for name, each in present.items()
            if isinstance(each, st.Raised) and not each.spec.warm and name not in line_
        ),
    )
    effects: list[object] = []
    for move in made:
        member = members[move.name]
        match move:
            case Enter() if isinstance(member, st.Awaiting):
                members[move.name] = st.Raising(
                    spec=member.spec,
                    incarnation=member.incarnation,
                    description=member.description,
                    wishes=member.wishes,
                )
                effects.append(st.StartDeployment(member.spec, member.incarnation))
            case Press() if isinstance(member, st.Raised):
                effects.append(Tell(member.supervisor, GiveWay()))
            case _:
                raise AssertionError(f"{move} of one that is {type(member).__name__}")
    last = dormancy.last
    if after.waiting and after.patience is None:
        last += 1
        after = replace(after, patience=Patience(last, after.entered))
        effects.append(WakeAt(Woken(last), mono=now.mono + slots.PATIENCE))
    return replace(state, members=members, dormancy=replace(dormancy, slots=after, last=last)), effects


def _wake(state: st.Opening | st.Running, member: st.Dormant, wishes: tuple[st.Wish, ...]) -> st.Opening | st.Running:
    """Put it behind those that wait for a slot."""
    name, dormancy = member.spec.name, state.dormancy
    awaiting = st.Awaiting(
        spec=member.spec,
        incarnation=member.incarnation + 1,
        description=described(member.spec, "waking", ""),
        wishes=wishes,
    )
    deadlines = tuple(each for each in dormancy.deadlines if each[1] != name)
    before = line.behind(dormancy.line, name)  # mail that came while it was on its way out came before theirs
    dormancy = replace(dormancy, deadlines=deadlines, slots=slots.wants(dormancy.slots, name, before))
    return _with(replace(state, dormancy=dormancy), awaiting)


# --- small things ----------------------------------------------------------------------------------------------------


def _uncounted(members: Mapping[Deployment, st.Member]) -> frozenset[Deployment]:
    """Those of them that take nobody's place."""
    return frozenset(name for name, each in members.items() if each.spec.warm or each.description.state in _REST)


def _moves(member: st.Member) -> bool:
    """Whether it is on the way in or out."""
    return isinstance(member, st.Raising | st.Parting) or member.description.state in _ON_THE_WAY


def _put(dormancy: st.Dormancy, name: Deployment, deadline: int | None) -> st.Dormancy:
    if deadline is None:
        return dormancy
    row = list(dormancy.deadlines)
    insort(row, (deadline, name))
    return replace(dormancy, deadlines=tuple(row))


def _with(state: st.Opening | st.Running, member: st.Member) -> st.Opening | st.Running:
    return replace(state, members={**state.members, member.spec.name: member})


def _reroute(state: st.Opening | st.Running, member: st.Raised | st.Parting, to: st.Parting | None) -> tuple[Tell, ...]:
    """Its mail goes to this supervisor from now on; to none: it comes here, and the supervisor is told to go."""
    if not isinstance(state, st.Running):  # the next bus is told all routes; the one before it hands over nothing more
        return (Tell(member.supervisor, Depart()),) if to is None else ()
    route = Route(member.spec.name, None if to is None else to.supervisor)
    depart = Tell(member.supervisor, Depart()) if to is None else None
    return (Tell(state.bus, Reroute(member.spec.address, route, depart)),)


def _dormant(shown: Description, sleep: Sleep) -> Description:
    return replace(shown, until=sleep.deadline, why=supervisor_why.asleep(sleep.deadline, ""), live=sleep.live)
