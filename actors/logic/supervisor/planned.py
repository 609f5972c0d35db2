"""What is wanted of a deployment that runs: a fresh process, or rest; and the way there, state by state.

One at a time: a recycle beside something else is refused, with what is under way; a drain is in the repository
(``supervisor_heeding``), which refuses a second one. A stop goes before both. Pure.
"""

from typing import assert_never

from actors.draining import ChildWeighed, Recycle, RecycleRequested, Rested, StillExecuting
from actors.logic.supervisor import states as st
from actors.logic.supervisor.books import Goal, Renewing, Resting, Setup
from actors.logic.supervisor.child import Internal, running
from actors.logic.supervisor.dozing import looked
from actors.logic.supervisor.draining import drain, draining, shelving
from actors.logic.supervisor.ending import opening
from actors.logic.supervisor.recycling import looked_at, replacing, succeeding, superseding, too_heavy
from actors.logic.supervisor.retiring import retiring, seen
from actors.logic.supervisor.sleep import Asleep, Audit, Auditing, Dormant, Dozing, LettingGo
from actors.logic.supervisor.words import phrase
from actors.messages import Woken
from substrate.messages import Done, Outcome, Refused
from waypost.acting import Next, Reply
from waypost.model.times import Now

News = Internal | StillExecuting | Rested | RecycleRequested | ChildWeighed


def wanted(setup: Setup, state: st.State, what: Recycle, token: int, now: Now) -> Next[st.State]:
    """Begin the recycle that an operator asks for, and say so; or why not."""
    match state:
        case st.Running():
            following = drain(state, Renewing("operator", what.reason), setup.limits.drain, now)
        case Dormant():
            following = opening(state.books, ())
            return Next(following.state, (Reply(token, _refused(setup, state)), *following.effects))
        case _:
            return Next(state, (Reply(token, _refused(setup, state)),))
    answer = Reply(token, Done(0, following.state.books.generation))
    return Next(following.state, (*following.effects, answer))


def manned(setup: Setup, state: st.Running, message: News, now: Now) -> Next[st.State]:
    """A child that runs: it may want another one in its place, or have come to a bound; else it is as ever."""
    match message:
        case RecycleRequested() | ChildWeighed() | Woken(state.tick):
            return _bounded(setup, state, message, now)
        case Woken(state.look) | Outcome(state.look):
            return looked(setup, state, message, now)
        case StillExecuting() | Rested():
            return Next(state)  # of a drain that is over
        case _:
            return running(setup, state, message, now)


def planned(  # noqa: PLR0911 - one return per state
    setup: Setup, state: st.Planned, message: News, now: Now
) -> Next[st.State]:
    """One message on the way; what a child wants that has to go anyway is nothing new.

    One that is there until every run has ended may be for long: it is replaced, and that goes on with the next one.
    """
    if isinstance(state, st.Retiring):
        return _retiring(setup, state, message, now)
    if isinstance(message, RecycleRequested | ChildWeighed | Rested):
        return Next(state)
    if isinstance(state, st.Draining):
        return draining(setup, state, message, now)
    if isinstance(message, StillExecuting):
        return Next(state)
    match state:
        case st.Shelving():
            return shelving(setup, state, message, now)
        case st.Superseding() | st.Bereft():
            return superseding(setup, state, message, now)
        case st.Replacing():
            return replacing(setup, state, message, now)
        case st.Succeeding():
            return succeeding(setup, state, message, now)
        case _:
            assert_never(state)


def _retiring(setup: Setup, state: st.Retiring, message: News, now: Now) -> Next[st.State]:
    match message:
        case RecycleRequested() | ChildWeighed() | Woken(state.tick):
            return _bounded(setup, state, message, now)
        case StillExecuting() | Rested():
            return Next(state)
        case _:
            return retiring(setup, state, message, now)


def _bounded(setup: Setup, state: st.Running | st.Retiring, message: News, now: Now) -> Next[st.State]:
    """The child wants another one in its place, or is to be looked at, or has been: it may be at a bound."""
    kept = st.Running(state.books, state.pid, state.since)
    match message:
        case RecycleRequested(state.books.generation, reason):
            return _renew(setup, kept, Renewing("self", reason), now)
        case ChildWeighed(state.books.generation):
            if why := too_heavy(setup, message):
                return _renew(setup, kept, Renewing("policy", why), now)
            return seen(state, message) if isinstance(state, st.Retiring) else Next(state)
        case Woken():
            due = looked_at(setup, state, now)
            return due if isinstance(due, Next) else _renew(setup, kept, Renewing("policy", due), now)
        case _:
            return Next(state)  # of an earlier child


def _renew(setup: Setup, state: st.Running, goal: Goal, now: Now) -> Next[st.State]:
    return drain(state, goal, setup.limits.drain, now)


def _refused(setup: Setup, state: st.State) -> Refused:
    why = phrase(setup, state)
    if isinstance(state, st.Held | st.Lifting):
        return Refused("held", why)
    falls_asleep = isinstance(state, st.Ending) and isinstance(state.then, Audit | Asleep)
    if falls_asleep or isinstance(state, Dozing | LettingGo | Auditing | Dormant):
        return Refused("asleep", why, "try again in a moment: that wakes it")
    if not isinstance(state, st.Planned):
        return Refused("not-running", why, "`waypost runs` and `waypost why RUN` say more; try again when it runs")
    return Refused(_under_way(state), why, "one thing at a time; `waypost resume` ends a drain")


def _under_way(state: st.State) -> str:
    match state:
        case st.Retiring():
            return "retiring"
        case st.Shelving() | st.Draining(goal=Resting()):
            return "draining"
        case _:
            return "recycling"
