"""When schedules tick: the half of the scheduler's decision that a deployment's cron schedules are.

What is due follows from how far each schedule has come, as its file in the repository says, and from the time: a tick
is asked to be dealt with, one at a time of each schedule, and the answer says how far that has come now. So a start
after a day, a host that was stopped for an hour, a clock that was set and the next minute are all the same decision.
What was missed is caught up as the schedule says, and what is left out is told.

A tick that waits for the run of the one before is asked for when that run ends. Where the zone of a schedule has gone
from the zone database, it stands still and says so.

Every number that this half gives to a question or a wake-up is below 0.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, assert_never

from actors.effects import Ask
from actors.logic.scheduler.timers import Alarm
from actors.messages import Woken
from substrate.messages import (
    Appended,
    Consumed,
    Done,
    Fact,
    Held,
    Outcome,
    Planned,
    ReadSchedules,
    Refused,
    Stage,
    Tick,
    Withheld,
)
from waypost.acting import WakeAt
from waypost.model import run as fold
from waypost.model.errors import Invalid
from waypost.model.limits import Limits
from waypost.model.schedule import Caught, caught_up, next_after
from waypost.model.times import Now, stamp, unstamp


@dataclass(frozen=True, slots=True)
class Warn:
    """Effect: a line for the host's log."""

    text: str


@dataclass(frozen=True, slots=True)
class Resting:
    """A schedule whose next tick is ``at``, in Unix milliseconds; None: it has none."""

    plan: Planned
    at: int | None


@dataclass(frozen=True, slots=True)
class Asking:
    """A schedule that has come further, as soon as that is written."""

    plan: Planned
    correlation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticks:
    """The schedules, each in its state."""

    limits: Limits
    looking: int | None = None
    """Correlation of the question for them."""
    schedules: Mapping[str, Resting | Asking] = field(default_factory=dict)
    ahead: Mapping[str, int] = field(default_factory=dict)
    """How far each had come of which it was said last that this lies in the future."""
    retry: int | None = None
    """Token of the wake-up before which nothing is asked: something couldn't be written, or read."""
    alarm: Alarm | None = None
    counter: int = 0


Turn: TypeAlias = tuple[Ticks, tuple[Any, ...]]
"""What is so now, and the effects."""


def look(state: Ticks) -> Turn:
    """Ask how far the schedules have come."""
    state = replace(state, looking=state.counter - 1, counter=state.counter - 1, schedules={})
    return state, (Ask(state.counter, ReadSchedules(), Stage.COMMITTED),)


def learn(state: Ticks, facts: Iterable[Fact]) -> Turn:
    """Something was committed: perhaps the run that a tick waits for has ended, or its mail was taken up."""
    effects: list[Any] = []
    for name, one in tuple(state.schedules.items()):
        if isinstance(one, Resting) and one.plan.ticked.waiting and any(_frees(each, one.plan) for each in facts):
            state, ask = _head(state, name, one.plan)
            effects.append(ask)
    return state, tuple(effects)


def woken(state: Ticks, token: int, now: Now) -> Turn:
    """A wake-up has come, perhaps one that nobody waits for any more, or because the clock was set back."""
    if token == state.retry:
        return look(replace(state, retry=None))
    if state.alarm is not None and token == state.alarm.token:
        return _act(replace(state, alarm=None), now)
    return state, ()


def answered(state: Ticks, message: Outcome, now: Now) -> Turn:  # noqa: PLR0911 - a table
    """An answer: how far all have come, or how far one has."""
    if message.correlation == state.looking:
        return _found(replace(state, looking=None), message, now)
    asking = (one for one in state.schedules.values() if isinstance(one, Asking))
    one = next((one for one in asking if one.correlation == message.correlation), None)
    if one is None:
        return state, ()
    plan = one.plan
    match message.result:
        case Done(value=ticked):
            return _found_out(state, (Planned(plan.schedule, ticked),), now)
        case Refused(code="under-way"):
            return _rest(state, (plan,), now)
        case Refused(code="moved" | "schedule"):
            return look(state)
        case Refused(why=why):
            return _later(state, now, Warn(f"schedule {plan.schedule.id} can't be moved on: {why}"))
        case Withheld():
            return _later(state, now)
        case _:
            assert_never(message.result)


def _found(state: Ticks, message: Outcome, now: Now) -> Turn:
    match message.result:
        case Done(value=tuple() as plans):
            return _found_out(state, plans, now)
        case Refused(why=why):
            return _later(state, now, Warn(f"the schedules can't be read: {why}"))
        case Done() | Withheld():
            return _later(state, now)
        case _:
            assert_never(message.result)


def _found_out(state: Ticks, plans: Iterable[Planned], now: Now) -> Turn:
    """These have come so far. What waits is tried: what it waits for may have ended before anybody was told."""
    plans = tuple(plans)
    state, effects = _rest(state, plans, now)
    heads: list[Ask] = []
    for plan in plans:
        name = plan.schedule.id
        if plan.ticked.waiting and isinstance(state.schedules[name], Resting):
            state, ask = _head(state, name, plan)
            heads.append(ask)
    return state, (*effects, *heads)


def _later(state: Ticks, now: Now, *effects: Warn) -> Turn:
    """Look anew after a while, once for all that failed; the longer, where somebody was told."""
    if state.retry is not None:
        return state, effects
    token, limits = state.counter - 1, state.limits
    wake = WakeAt(Woken(token), mono=now.mono + (limits.backoff_cap if effects else limits.backoff_first))
    return replace(state, retry=token, counter=token), (*effects, wake)


def _rest(state: Ticks, plans: Iterable[Planned], now: Now) -> Turn:
    """These have come so far; see what is next."""
    schedules, ahead, effects = dict(state.schedules), dict(state.ahead), list[Any]()
    for plan in plans:
        schedule, reached = plan.schedule, plan.ticked.reached
        at: int | None = None
        try:
            at = next_after(schedule, reached)
        except Invalid as gone:  # NoZone
            effects.append(Warn(f"schedule {schedule.id} stands still: {gone.message}; {gone.hint}"))
        if reached > now.wall and ahead.get(schedule.id) != reached:  # once, however many ticks wait meanwhile
            ahead[schedule.id] = reached
            clock = f"the clock says {stamp(now.wall)}, so it was set back"
            effects.append(Warn(f"schedule {schedule.id} was dealt with up to {stamp(reached)}, and {clock}"))
        schedules[schedule.id] = Resting(plan, at)
    following, more = _act(replace(state, schedules=schedules, ahead=ahead), now)
    return following, (*effects, *more)


def _act(state: Ticks, now: Now) -> Turn:
    """Ask for what is due, and see to it that there is a wake-up for what comes next."""
    effects: list[Any] = []
    if state.retry is not None or state.looking is not None:
        return state, ()
    for name, one in tuple(state.schedules.items()):
        if isinstance(one, Resting) and one.at is not None and not one.plan.ticked.reached <= now.wall < one.at:
            state, more = _due(state, name, one.plan, now)
            effects += more
    following = min((one.at for one in state.schedules.values() if isinstance(one, Resting) and one.at), default=None)
    if following is not None and (state.alarm is None or following < state.alarm.wall):
        alarm = Alarm(state.counter - 1, following)
        state = replace(state, alarm=alarm, counter=alarm.token)
        effects.append(WakeAt(Woken(alarm.token), wall=alarm.wall))
    return state, tuple(effects)


def _due(state: Ticks, name: str, plan: Planned, now: Now) -> Turn:
    """A schedule has something to do, or its last tick lies in the future."""
    reached = plan.ticked.reached
    caught = caught_up(plan.schedule, reached, now.wall)
    if not caught.fire and caught.last == reached:
        return state, ()  # the clock was set back by less than an interval
    last = caught.fire[0] if caught.fire else caught.last
    due = last if caught.fire else None
    state, ask = _ask(state, name, plan, Tick(schedule=name, after=reached, last=last, due=due))
    return state, (*_told(plan, caught), ask)


def _told(plan: Planned, caught: Caught) -> tuple[Warn, ...]:
    name = f"schedule {plan.schedule.id}"
    if caught.ahead:
        return (Warn(f"{name} is due again after {stamp(caught.last)}: a clock set back holds it for one interval"),)
    if caught.left_out is None:
        return ()
    first, latest = map(stamp, caught.left_out)
    return (Warn(f"{name} leaves out what was missed, from {first} to {latest}: catch_up={plan.schedule.catch_up!r}"),)


def _head(state: Ticks, name: str, plan: Planned) -> tuple[Ticks, Ask]:
    """The tick that has waited longest, for the run of the one before."""
    reached, due = plan.ticked.reached, unstamp(plan.ticked.waiting[0])
    return _ask(state, name, plan, Tick(schedule=name, after=reached, last=reached, due=due))


def _ask(state: Ticks, name: str, plan: Planned, what: Tick) -> tuple[Ticks, Ask]:
    correlation = state.counter - 1
    schedules = {**state.schedules, name: Asking(plan, correlation)}
    return replace(state, schedules=schedules, counter=correlation), Ask(correlation, what, Stage.COMMITTED)


def _frees(fact: Fact, plan: Planned) -> bool:
    """Whether a tick that waits need perhaps wait no longer."""
    match fact:
        case Appended(run, _, fold.Ended()):
            return run == plan.ticked.run
        case Consumed(arrival):
            return arrival == plan.ticked.arrival
        case Held(entry):
            return entry.arrival == plan.ticked.arrival
        case _:
            return False
