"""What the repository says of a drain, and what each state makes of it: whatever was going on, it comes to that.

Level-triggered: a state is held against ``Books.drain`` after every message, so it doesn't matter when an operator has
asked, which child was there, or which host. Where nothing executes, a deployment that is to rest is held at once. Pure.
"""

from dataclasses import replace

from actors.draining import Close
from actors.logic.supervisor import states as st
from actors.logic.supervisor.books import Renewing, Resting, Setup
from actors.logic.supervisor.draining import drain, shelve
from actors.logic.supervisor.effects import Effect, TellDispatch, Up
from actors.logic.supervisor.retiring import retire
from waypost.acting import Next
from waypost.model.times import Now


def heeded(setup: Setup, following: Next[st.State], now: Now) -> Next[st.State]:
    """What follows, and then what the repository wants of it."""
    drain = following.state.books.drain
    if drain is None:
        return _let_go(setup, following, now)
    return _retire(following) if drain.to == "end" else _rest(following, now)


def _retire(following: Next[st.State]) -> Next[st.State]:
    """It waits for every run to end, as soon as there is a child that brings them there."""
    state = following.state
    return _also(_closed(following), retire(state)) if isinstance(state, st.Running) else following


def _rest(following: Next[st.State], now: Now) -> Next[st.State]:
    """What executes comes to rest."""
    match following.state:
        case st.Running() | st.Draining(goal=Renewing()) as state:
            return _also(following, drain(state, Resting(), None, now))
        case st.Raising() | st.BackingOff() as state:
            return _also(following, shelve(state.books, st.UNSUPERVISED))
        case st.Preparing() | st.Starting() | st.Succeeding() as state:  # that child was given nothing, and won't be
            return _also(following, shelve(state.books, st.WHOLE))
        case _:
            return following


def _let_go(setup: Setup, following: Next[st.State], now: Now) -> Next[st.State]:
    """An operator has thought better of it: a fresh process takes what has come, and been let go of, meanwhile."""
    match following.state:
        case st.Draining(goal=Resting()) as state:
            goal = Renewing("operator", "resumed while it drained")
            return _also(following, drain(state, goal, setup.limits.drain, now))
        case st.Retiring() as state:
            kept = st.Running(state.books, state.pid, state.since)
            return _also(following, drain(kept, Renewing("operator", "resumed"), setup.limits.drain, now))
        case _:
            return following


def _closed(following: Next[st.State]) -> Next[st.State]:
    """Dispatch is to begin no run: said with the child, where that comes up in this very moment."""
    generation = following.state.books.generation
    if not any(isinstance(each, Up) for each in following.effects):
        return Next(following.state, (*following.effects, TellDispatch(Close(generation))))
    effects = (replace(each, takes="begun") if isinstance(each, Up) else each for each in following.effects)
    return Next(following.state, tuple(effects))


def _also(first: Next[st.State], then: Next[st.State]) -> Next[st.State]:
    effects: tuple[Effect, ...] = (*first.effects, *then.effects)
    return Next(then.state, effects)
