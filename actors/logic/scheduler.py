"""When something is due: the decision of the SchedulerActor, over what the substrate publishes and the clock says.

Promise: what is recorded as due fires once, by one commit, in order, never before the wall clock shows its time; and
however much lies ahead, an event costs the same (``scheduler_timers``).
"""

from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from actors.errors import OutOfTurn
from actors.logic import scheduler_timers as timing
from actors.logic.scheduler_timers import Timers
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
            return Next(Watching(timers), effects)
        case Committed() | Durable() | Outcome() | Woken():
            raise OutOfTurn("scheduler", "unopened", type(message).__name__)
        case _:
            assert_never(message)


def _watching(state: Watching, message: SchedulerMessage, now: Now) -> Next[State]:
    timers = state.timers
    match message:
        case Committed():
            for fact in message.facts:
                if isinstance(fact, Appended):
                    timers = timing.learn(timers, fact)
            timers, effects = timing.act(timers, now)
        case Outcome():
            timers, effects = timing.answered(timers, message, now)
        case Woken(token):
            timers, effects = timing.act(timing.woken(timers, token), now)
        case Durable():
            timers, effects = timing.act(timers, now)
        case Snapshot():
            raise OutOfTurn("scheduler", "watching", "Snapshot")
        case _:
            assert_never(message)
    return Next(state if timers is state.timers else replace(state, timers=timers), effects)
