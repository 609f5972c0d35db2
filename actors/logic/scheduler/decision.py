"""When something is due: the decision of the SchedulerActor, over what the substrate publishes and the clock says.

Promise: what is recorded as due fires once, by one commit, in order, never before the wall clock shows its time; and
however much lies ahead, an event costs the same (``scheduler_timers``). A schedule's tick has one mail, whatever the
host and the clock did meanwhile (``scheduler_ticks``).

The two halves know nothing of each other: of the numbers that come back with answers and wake-ups, those above 0 are
the timers', those below 0 the schedules'.
"""

from dataclasses import dataclass
from typing import TypeAlias, assert_never

from actors.errors import OutOfTurn
from actors.logic.scheduler import ticks as ticking
from actors.logic.scheduler import timers as timing
from actors.logic.scheduler.ticks import Ticks
from actors.logic.scheduler.timers import Timers
from actors.messages import SchedulerMessage, Woken
from substrate.messages import Appended, Committed, Durable, Outcome, Snapshot
from waypost.acting import Next
from waypost.model.limits import Limits
from waypost.model.times import Now


@dataclass(frozen=True, slots=True)
class Unopened:
    """The repository's present isn't known yet."""

    limits: Limits


@dataclass(frozen=True, slots=True)
class Watching:
    """What lies ahead is known, or asked for."""

    timers: Timers
    ticks: Ticks


State: TypeAlias = Unopened | Watching


def advance(state: State, message: SchedulerMessage, now: Now) -> Next[State]:
    """The next state and what is to be done. Raises OutOfTurn, and then nothing has changed."""
    match state:
        case Unopened():
            return _unopened(state, message, now)
        case Watching():
            return _watching(state, message, now)
        case _:
            assert_never(state)


def _unopened(state: Unopened, message: SchedulerMessage, now: Now) -> Next[State]:
    match message:
        case Snapshot():
            timers, effects = timing.act(Timers(limits=state.limits), now)
            ticks, more = ticking.look(Ticks(limits=state.limits))
            return Next(Watching(timers, ticks), (*effects, *more))
        case Committed() | Durable() | Outcome() | Woken():
            raise OutOfTurn("scheduler", "unopened", type(message).__name__)
        case _:
            assert_never(message)


def _watching(  # noqa: C901 - a table
    state: Watching, message: SchedulerMessage, now: Now
) -> Next[State]:
    timers, ticks = state.timers, state.ticks
    match message:
        case Committed():
            for fact in message.facts:
                if isinstance(fact, Appended):
                    timers = timing.learn(timers, fact)
            timers, effects = timing.act(timers, now)
            ticks, more = ticking.learn(ticks, message.facts)
            effects = (*effects, *more)
        case Outcome() if message.correlation < 0:
            ticks, effects = ticking.answered(ticks, message, now)
        case Outcome():
            timers, effects = timing.answered(timers, message, now)
        case Woken(token) if token < 0:
            ticks, effects = ticking.woken(ticks, token, now)
        case Woken(token):
            timers, effects = timing.act(timing.woken(timers, token), now)
        case Durable():
            timers, effects = timing.act(timers, now)
        case Snapshot():
            raise OutOfTurn("scheduler", "watching", "Snapshot")
        case _:
            assert_never(message)
    if timers is state.timers and ticks is state.ticks:
        return Next(state, effects)
    return Next(Watching(timers, ticks), effects)
