"""A fresh process for a deployment, of the same deployed code: drain, end the generation, replace the child.

What the old child still says is refused from the moment on at which the next generation begins, which also puts claims
back; only then does it have to go, and only when it is gone is the next one launched. A recycle that fails leaves no
process and no other try: the deployment is stopped, and says why. Pure.
"""

from dataclasses import replace

from actors.describing import Exited
from actors.draining import ChildWeighed, Renewed, Weigh
from actors.logic.supervisor import states as st
from actors.logic.supervisor.books import Books, Renewing, Setup
from actors.logic.supervisor.child import Internal
from actors.logic.supervisor.effects import Effect, Hire, Pass, TellChild, Up
from actors.logic.supervisor.ending import wind
from actors.messages import ChannelViolated, ChildExited, ChildReady, Launch, Role, Terminate, Woken
from substrate.messages import BeginGeneration, Done, Outcome, Refused, Withheld
from waypost.acting import Next, WakeAt
from waypost.model.ids import Generation
from waypost.model.times import Now


def supersede(books: Books, goal: Renewing, before: tuple[Effect, ...]) -> Next[st.State]:
    """Begin the next generation beside the child of this one, of which nothing more is taken."""
    books = books.numbered()
    return Next(st.Superseding(books, goal, books.last), (*before, Pass(books.last, BeginGeneration(blame=False))))


def superseding(setup: Setup, state: st.Superseding | st.Bereft, message: Internal, now: Now) -> Next[st.State]:
    """The next generation has begun, or can't; or the old child is gone already."""
    match message:
        case Outcome(state.raised, Done(value=generation)):
            if isinstance(state, st.Bereft):
                return _launch(setup, state.books, state.goal, generation, now)
            end = TellChild(Terminate(f"a fresh process follows: {state.goal.reason}"))
            return Next(st.Replacing(state.books, state.goal, generation), (end,))
        case Outcome(state.raised, Refused(why=why) | Withheld(reason=why)):
            crew = st.UNSUPERVISED if isinstance(state, st.Bereft) else st.WHOLE
            return _failed(setup, state.books, f"no new generation could be begun: {why}", crew, now)
        case ChildExited(of) if of == state.books.generation and isinstance(state, st.Superseding):
            return Next(st.Bereft(state.books, state.goal, state.raised))
        case _:
            return Next(state)


def replacing(setup: Setup, state: st.Replacing, message: Internal, now: Now) -> Next[st.State]:
    """The old child is gone."""
    match message:
        case ChildExited(of) if of == state.books.generation:
            return _launch(setup, state.books, state.goal, state.next, now)
        case _:
            return Next(state)


def succeeding(setup: Setup, state: st.Succeeding, message: Internal, now: Now) -> Next[st.State]:
    """The new child says hello with the same code; whatever else it does, the recycle has failed."""
    generation = state.books.generation
    match message:
        case ChildReady(of, pid, code, error) if of == generation:
            if code != setup.spec.code:
                why = error or "it has other code than what is deployed"
                return _failed(setup, state.books, f"its code can't be run: {why}", st.WHOLE, now)
            goal = state.goal
            renewed = Renewed(goal.origin, goal.reason, now.wall, Generation(generation - 1))
            return Next(st.Running(replace(state.books, renewed=renewed), pid, now.mono), (Up(generation),))
        case ChildExited(of, reason) if of == generation:
            books = replace(state.books, exited=Exited(generation, now.wall, str(reason), reason))
            return _failed(setup, books, str(reason), st.UNSUPERVISED, now)
        case ChannelViolated(of, why) if of == generation:
            return _failed(setup, state.books, why, st.WHOLE, now)
        case Woken(state.deadline):
            return _failed(setup, state.books, f"not ready within {setup.limits.ready_deadline:g} s", st.WHOLE, now)
        case _:
            return Next(state)


# --- the bounds that want one --------------------------------------------------------------------------------------


def watched(setup: Setup, state: st.State, now: Now) -> Next[st.State]:
    """Have a child that has just come up looked at, where there are bounds that want a fresh process."""
    limits = setup.limits
    bounds = limits.recycle_age or limits.recycle_memory or limits.recycle_grants
    if not isinstance(state, st.Running | st.Retiring) or not bounds:
        return Next(state)
    ages = (age for age in (limits.recycle_age, limits.recycle_grants) if age)
    due = (state.since + age - now.mono for age in ages if state.since + age > now.mono)
    books = state.books.numbered()
    wake = WakeAt(Woken(books.last), mono=now.mono + min((limits.recycle_look, *due)))
    return Next(replace(state, books=books, tick=books.last), (wake,))


def policed(setup: Setup, following: Next[st.State], now: Now) -> Next[st.State]:
    """What follows, with the child looked at if that has brought one up."""
    also = watched(setup, following.state, now)
    return Next(also.state, (*following.effects, *also.effects))


def looked_at(setup: Setup, state: st.Running | st.Retiring, now: Now) -> str | Next[st.State]:
    """Why a fresh process is due, in words; else the child is weighed, and looked at again."""
    limits, age = setup.limits, now.mono - state.since
    if limits.recycle_age and age >= limits.recycle_age:
        return f"max-uptime: it has run for {age:.0f} s, of {limits.recycle_age:g}"
    if limits.recycle_grants and age >= limits.recycle_grants:
        return f"grants-staleness: it was given its grants {age:.0f} s ago, of {limits.recycle_grants:g}"
    following = watched(setup, state, now)
    weigh = (TellChild(Weigh()),) if limits.recycle_memory else ()
    return Next(following.state, (*weigh, *following.effects))


def too_heavy(setup: Setup, weighed: ChildWeighed) -> str:
    """Why a fresh process is due, in words; empty where none is."""
    most = setup.limits.recycle_memory
    return f"max-memory: it has {weighed.size:,} bytes, of {most:,}" if most and weighed.size > most else ""


def _launch(setup: Setup, books: Books, goal: Renewing, generation: Generation, now: Now) -> Next[st.State]:
    books = replace(books.numbered(), generation=generation, launched=now.mono)
    wake = WakeAt(Woken(books.last), mono=now.mono + setup.limits.ready_deadline)
    return Next(st.Succeeding(books, goal, books.last), (Hire(Role.CHILD, generation), TellChild(Launch()), wake))


def _failed(setup: Setup, books: Books, why: str, crew: tuple[Role, ...], now: Now) -> Next[st.State]:
    return wind(setup, books, tuple(reversed(crew)), st.Over((), f"the recycle failed: {why}"), now)
