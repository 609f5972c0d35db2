"""A deployment for which there is nothing to do lets its child go, and then everything: it is dormant.

The way there: for its idle time nothing was written, and the repository says that nothing is to be done; dispatch says
so of the mail, and claims nothing from then on; the child is asked to leave, and is gone; scheduler, dispatch and
broadcaster end. Now nobody writes but the repository, which is asked once more: only if nothing was committed since
dispatch has judged, it is closed, and the deployment is dormant. What comes on the way, from whoever, is in the log by
then or has been kept: it is opened again. No child that was let go counts as a crash. Pure.
"""

from dataclasses import replace

from actors.draining import ChildWeighed, Doze, RecycleRequested, Rested, StillExecuting
from actors.logic.supervisor.books import Renewing, Setup
from actors.logic.supervisor.child import Internal, running
from actors.logic.supervisor.crashes import NONE
from actors.logic.supervisor.draining import drain
from actors.logic.supervisor.effects import Effect, Pass, TellChild, TellDispatch
from actors.logic.supervisor.ending import wind
from actors.logic.supervisor.sleep import Asleep, Audit, Auditing, Dozing, LettingGo
from actors.logic.supervisor.states import UNSUPERVISED, Again, Running, State
from actors.messages import ChannelViolated, ChildExited, GenerationDown, Role, Terminate, Woken
from substrate.messages import Done, Outcome, ReadRest, ReadSealed, Rest
from waypost.acting import Next, WakeAt
from waypost.model.times import Now

NAP = 5.0
"""Seconds: what has to be done again so soon isn't worth another process; a shorter idle time takes its place."""
PRESSED, SELDOM = 0.05, 1.0
"""Seconds between two looks while others wait for the place: at least, and at most. It is looked again when the child
has been there for as long again: with dozens that are asked to give way, looking often would cost more than their work.
"""
_CAME = "something came while it fell asleep"


def drowsy(setup: Setup, following: Next[State], now: Now) -> Next[State]:
    """What follows; and where a child runs that may be let go, a look at whether there is anything to do."""
    state = following.state
    if not isinstance(state, Running) or state.look is not None or not _may_sleep(setup, state):
        return following
    looking = _later(state, now.mono + _patience(setup, state, now))
    return Next(looking.state, (*following.effects, *looking.effects))


def gives_way(setup: Setup, state: State) -> Next[State]:
    """Others wait for its place: it looks now, and then often."""
    pressed = replace(state, books=replace(state.books, pressed=True))
    if isinstance(pressed, Running) and _may_sleep(setup, pressed):
        return _look(pressed)
    return Next(pressed)


def looked(setup: Setup, state: Running, message: Internal, now: Now) -> Next[State]:
    """It is time to look; or the repository has said how it is."""
    match message:
        case Woken():
            return _look(state)
        case Outcome(result=Done(value=Rest() as rest)) if not rest.busy and state.books.crashes == NONE:
            idle = 0.0 if state.books.pressed else setup.limits.idle
            due = max(state.since, rest.quiet) + idle
            if due > now.mono:
                return _later(state, due)
            if not _soon(setup, rest.deadline, now):
                dozing = Dozing(state.books, state.pid, state.since)
                return Next(dozing, (TellDispatch(Doze(state.books.generation)),))
        case _:
            pass  # there is something to do, or it couldn't say
    return _later(state, now.mono + _patience(setup, state, now))


def dozing(
    setup: Setup,
    state: Dozing,
    message: Internal | Rested | StillExecuting | RecycleRequested | ChildWeighed,
    now: Now,
) -> Next[State]:
    """Dispatch has judged; or the child ends, which counts as ever."""
    generation = state.books.generation
    match message:
        case RecycleRequested(of, reason) if of == generation:
            return Next(replace(state, wish=reason))
        case Rested(of, None) if of == generation:
            kept = Running(state.books, state.pid, state.since)
            wish = state.wish
            return Next(kept) if wish is None else drain(kept, Renewing("self", wish), setup.limits.drain, now)
        case Rested(of, int() as position) if of == generation:
            books = state.books.numbered()
            gone = TellDispatch(GenerationDown(generation, unexpected=False))
            end = TellChild(Terminate("there is nothing to do: the deployment goes to sleep"))
            return Next(LettingGo(books, position), (gone, Pass(books.last, ReadSealed()), end))
        case ChildExited() | ChannelViolated():
            kept = Running(state.books, state.pid, state.since)
            following = running(setup, kept, message, now)
            return Next(state) if following.state == kept else following
        case _:
            return Next(state)


def letting_go(setup: Setup, state: LettingGo, message: Internal, now: Now) -> Next[State]:
    """The child is gone, as was asked for: however it ended, that is no crash."""
    if isinstance(message, ChildExited) and message.generation == state.books.generation:
        return wind(setup, state.books, tuple(reversed(UNSUPERVISED)), Audit(state.position), now)
    return Next(state)


def auditing(setup: Setup, state: Auditing, message: Internal, now: Now) -> Next[State]:
    """The repository has said how it is, after everybody else has ended."""
    match message:
        case Outcome(state.audited, Done(value=Rest() as rest)):
            came = bool(rest.busy) or rest.position != state.position or _soon(setup, rest.deadline, now)
            then = (
                Again(_CAME, state.early)
                if came or state.early
                else Asleep(rest.deadline, live=rest.live, judged=rest.judged)
            )
        case Outcome(state.audited):
            then = Again(_CAME, state.early)
        case _:
            return Next(state)
    return wind(setup, state.books, (Role.SUBSTRATE,), then, now)


def _may_sleep(setup: Setup, state: Running) -> bool:
    books = state.books
    return bool(setup.limits.idle) and not (setup.spec.warm or state.broken or books.disk_faults or books.line)


def _patience(setup: Setup, state: Running, now: Now) -> float:
    idle = setup.limits.idle
    return min(max(PRESSED, now.mono - state.since), SELDOM, idle) if state.books.pressed else idle


def _soon(setup: Setup, deadline: int | None, now: Now) -> bool:
    return deadline is not None and deadline <= now.wall + 1000 * min(NAP, setup.limits.idle)


def _look(state: Running) -> Next[State]:
    books = state.books.numbered()
    return Next(replace(state, books=books, look=books.last), (Pass(books.last, ReadRest()),))


def _later(state: Running, mono: float) -> Next[State]:
    books = state.books.numbered()
    wake: tuple[Effect, ...] = (WakeAt(Woken(books.last), mono=mono),)
    return Next(replace(state, books=books, look=books.last), wake)
