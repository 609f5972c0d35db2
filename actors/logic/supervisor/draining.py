"""A drain: nothing is begun any more, what executes comes to rest, and then follows what it was for.

Dispatch says who still executes; runs that are parked are at rest and stay live. A child that ends meanwhile has ended
like any other: that is counted, once, and nothing executes any more. Where it was for a stop, who asked for that is
answered, whatever comes. Whether an operator wants it is in the repository: ``supervisor_heeding``. Pure.
"""

from dataclasses import replace
from typing import assert_never

from actors.draining import Quiesce, StillExecuting
from actors.logic.supervisor import states as st
from actors.logic.supervisor.books import Books, Goal, Leaving, Renewing, Resting, Setup
from actors.logic.supervisor.child import Internal, counting, leaving, running
from actors.logic.supervisor.effects import Effect, Pass, TellDispatch
from actors.logic.supervisor.ending import stop, wind
from actors.logic.supervisor.recycling import supersede
from actors.messages import ChannelViolated, ChildExited, GenerationDown, Role, Woken
from substrate.messages import Done, HoldDeployment, Outcome, Refused, Withheld
from waypost.acting import Next, WakeAt
from waypost.model.times import Now


def drain(state: st.Running | st.Draining, goal: Goal, patience: float | None, now: Now) -> Next[st.State]:
    """Begin, or go on for another purpose. ``patience``: seconds after which it is over all the same."""
    books, limit = state.books, None
    over = None if patience is None else now.wall + round(patience * 1000)
    effects: tuple[Effect, ...] = ()
    if patience is not None:
        limit = books.last + 1
        books = replace(books, last=limit)
        effects = (WakeAt(Woken(limit), mono=now.mono + patience),)
    if isinstance(state, st.Draining):
        return Next(replace(state, books=books, goal=goal, limit=limit, over=over), effects)
    return Next(
        st.Draining(books, state.pid, state.since, goal, limit, over=over),
        (TellDispatch(Quiesce(books.generation)), *effects),
    )


def leave(setup: Setup, state: st.State, askers: tuple[int, ...], patience: float, now: Now) -> Next[st.State]:
    """End because somebody wants it; where there is patience, runs that execute come to rest before."""
    askers = (*waiting(state), *askers)
    if patience > 0:
        match state:
            case st.Running() | st.Draining():
                return drain(state, Leaving(askers), patience, now)
            case st.Retiring():
                kept = st.Running(state.books, state.pid, state.since)
                return drain(kept, Leaving(askers), patience, now)
            case st.Evicting() | st.Counting():  # that is counted first: a stop makes no exit undone
                return Next(replace(state, goal=Leaving(askers)))
            case _:
                pass
    return stop(setup, state, askers, now)


def draining(setup: Setup, state: st.Draining, message: Internal | StillExecuting, now: Now) -> Next[st.State]:
    """Somebody has come to rest, or everybody; or it takes too long; or the child ends."""
    generation = state.books.generation
    match message:
        case StillExecuting(of, runs, more) if of == generation:
            return Next(replace(state, executing=runs, more=more)) if runs else _drained(setup, state, now)
        case Woken(state.limit):
            return _drained(setup, state, now)
        case ChildExited() | ChannelViolated():
            following = running(setup, st.Running(state.books, state.pid, state.since), message, now)
            if isinstance(following.state, st.Running) or not isinstance(state.goal, Leaving):
                return Next(state) if isinstance(following.state, st.Running) else following
            return _onward(setup, following, state.goal, now)
        case _:
            return Next(state)


def bereaved(
    setup: Setup, state: st.Evicting | st.Counting, goal: Leaving, message: Internal, now: Now
) -> Next[st.State]:
    """The child ended, or had to go, while it was drained for a stop."""
    plain = replace(state, goal=None)
    following = (
        leaving(setup, plain, message, now) if isinstance(plain, st.Evicting) else counting(setup, plain, message, now)
    )
    return _onward(setup, following, goal, now)


def shelving(setup: Setup, state: st.Shelving, message: Internal, now: Now) -> Next[st.State]:
    """It is durable that the deployment is held: all is built anew from a log that says so. Or it couldn't be yet."""
    match message:
        case Outcome(state.shelved, Done()):
            then = st.Again("nothing executes any more", word="draining")
        case Outcome(state.shelved, Refused("not-draining", why)):
            then = st.Again(why)
        case Outcome(state.shelved, Refused() | Withheld()):
            books = state.books.numbered()
            wake = WakeAt(Woken(books.last), mono=now.mono + setup.limits.backoff_first)
            return Next(replace(state, books=books, shelved=books.last), (wake,))
        case Woken(state.shelved):
            return shelve(state.books, state.crew)
        case ChildExited(of) if of == state.books.generation:
            return Next(replace(state, crew=tuple(role for role in state.crew if role is not Role.CHILD)))
        case _:
            return Next(state)
    return wind(setup, state.books, tuple(reversed(state.crew)), then, now)


def shelve(books: Books, crew: tuple[Role, ...], before: tuple[Effect, ...] = ()) -> Next[st.State]:
    """Have it recorded that the deployment is held."""
    books = books.numbered()
    return Next(st.Shelving(books, books.last, crew), (*before, Pass(books.last, HoldDeployment())))


def waiting(state: st.State) -> tuple[int, ...]:
    """Who waits for the end that a drain is for."""
    goal = state.goal if isinstance(state, st.Draining | st.Evicting | st.Counting) else None
    return goal.askers if isinstance(goal, Leaving) else ()


def answerable(setup: Setup, before: st.State, following: Next[st.State], now: Now) -> Next[st.State]:
    """What follows, and if a drain for a stop is over without one, the stop: whoever waits for it is answered."""
    askers = waiting(before)
    if not askers or waiting(following.state) or isinstance(following.state, st.Stopped):
        return following
    if isinstance(following.state, st.Ending) and isinstance(following.state.then, st.Over):
        return following
    stopped = stop(setup, following.state, askers, now)
    return Next(stopped.state, (*following.effects, *stopped.effects))


def _drained(setup: Setup, state: st.Draining, now: Now) -> Next[st.State]:
    gone = TellDispatch(GenerationDown(state.books.generation, unexpected=False))
    match state.goal:
        case Renewing():
            return supersede(state.books, state.goal, (gone,))
        case Resting():
            return shelve(state.books, st.WHOLE, (gone,))
        case Leaving():
            return stop(setup, state, state.goal.askers, now)
        case _:
            assert_never(state.goal)


def _onward(setup: Setup, following: Next[st.State], goal: Leaving, now: Now) -> Next[st.State]:
    """The stop that it was drained for, after the end of its child is counted."""
    state = following.state
    if isinstance(state, st.Evicting | st.Counting):
        return Next(replace(state, goal=goal), following.effects)
    stopped = stop(setup, state, goal.askers, now)
    return Next(stopped.state, (*following.effects, *stopped.effects))
