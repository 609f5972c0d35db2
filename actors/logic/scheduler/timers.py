"""Which timers lie ahead, and which are being fired: the half of the scheduler's decision that runs' deadlines are.

Deadlines are absolute wall times as they stand in the log: a restart doesn't move them, a clock that jumps is simply
believed. What is due is asked to be written, in the order of deadline, run and call, one commit each; each timer is
asked for once, and the log decides who was first (a mail, a cancellation): a refusal is an answer like any other.

Only the soonest deadlines are here, up to an ``edge``; what lies behind it is asked for when all before it is due. And
only so many are under way at once. So neither memory nor what one event costs grows with the timers that there are.

Every number that this half gives to a question or a wake-up is above 0.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, assert_never

from actors.effects import Ask
from actors.messages import Woken
from substrate.messages import (
    Append,
    Appended,
    Deadlines,
    Done,
    Outcome,
    ReadDeadlines,
    Refused,
    Stage,
    Supervisor,
    Withheld,
)
from waypost.acting import WakeAt
from waypost.model import events as ev
from waypost.model.deadlines import Deadline, is_open, opened
from waypost.model.ids import CallId, RunId
from waypost.model.limits import Limits
from waypost.model.times import Now

_TURNS = (
    ev.RunStarted
    | ev.TimerSet
    | ev.TimerFired
    | ev.TimerCancelled
    | ev.SignalAwaited
    | ev.SignalReceived
    | ev.SignalAwaitAbandoned
    | ev.RunCompleted
    | ev.RunFailed
    | ev.RunCancelled
)
"""Events that may change which deadlines a run has."""
_BEGINNING = Deadline(-1, RunId(""), CallId(""), "")
"""Before all deadlines."""
_NONE: frozenset[Deadline] = frozenset()


@dataclass(frozen=True, slots=True)
class Alarm:
    """The wake-up that is under way."""

    token: int
    wall: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timers:
    """What lies ahead, and what was asked for."""

    limits: Limits
    edge: Deadline | None = _BEGINNING
    """Up to it every open deadline is known here; None: all of them are."""
    looking: int | None = None
    """Correlation of the question for what lies behind the edge."""
    ahead: tuple[Deadline, ...] = ()
    """Sorted; nothing in it has been asked for."""
    runs: Mapping[RunId, frozenset[Deadline]] = field(default_factory=dict)
    """The open deadlines up to the edge of each run that has any, asked for or not."""
    asked: frozenset[Deadline] = frozenset()
    """Asked for, and still open as far as the stream has told."""
    firing: Mapping[int, Deadline] = field(default_factory=dict)
    """By correlation: asked for, not answered yet."""
    withheld: tuple[Deadline, ...] = ()
    """Couldn't be written; the wake-up with token ``retry`` tries again, and until then nothing else is tried."""
    retry: int | None = None
    alarm: Alarm | None = None
    counter: int = 0


Turn: TypeAlias = tuple[Timers, tuple[Any, ...]]
"""What is so now, and the effects."""


def learn(state: Timers, fact: Appended) -> Timers:
    """A run has other events: its open deadlines are perhaps others."""
    if not any(isinstance(each.event, _TURNS) for each in fact.events):
        return state
    before = state.runs.get(fact.run, _NONE)
    closed = frozenset(each for each in before if not is_open(fact.state, each))
    new = frozenset(
        found
        for each in fact.events
        if (found := opened(fact.run, each.event)) is not None
        and (state.edge is None or found <= state.edge)
        and is_open(fact.state, found)
    ).difference(before)
    if not closed and not new:
        return state
    runs, after = dict(state.runs), (before - closed) | new
    if after:
        runs[fact.run] = after
    else:
        del runs[fact.run]
    return replace(
        state,
        runs=runs,
        ahead=_with(_without(state.ahead, closed - state.asked), new),
        asked=state.asked - closed,
        withheld=tuple(deadline for deadline in state.withheld if deadline not in closed),
    )


def act(state: Timers, now: Now) -> Turn:
    """Ask for what is due, and see to it that there is a wake-up for what comes next."""
    state = _cut(state)
    effects: list[Any] = []
    asking = 0 if state.retry is not None else state.limits.deadlines - len(state.firing)
    due = state.ahead[: min(max(0, asking), bisect_left(state.ahead, now.wall + 1, key=_fire_at))]
    if due:
        firing = dict(enumerate(due, state.counter + 1))
        effects += (_fire(correlation, deadline) for correlation, deadline in firing.items())
        state = replace(
            state,
            ahead=state.ahead[len(due) :],
            asked=state.asked.union(due),
            firing={**state.firing, **firing},
            counter=state.counter + len(due),
        )
    following = state.ahead[0].fire_at if state.ahead else None
    # What is due and isn't asked for waits for an answer, which comes by itself.
    if following is not None and now.wall < following and (state.alarm is None or following < state.alarm.wall):
        alarm = Alarm(state.counter + 1, following)
        state = replace(state, alarm=alarm, counter=alarm.token)
        effects.append(WakeAt(Woken(alarm.token), wall=alarm.wall))
    if not state.ahead and state.edge is not None and state.looking is None and state.retry is None:
        after = None if state.edge == _BEGINNING else state.edge
        state = replace(state, looking=state.counter + 1, counter=state.counter + 1)
        question = ReadDeadlines(after=after, limit=state.limits.deadlines)
        effects.append(Ask(state.counter, question, Stage.COMMITTED))
    return state, tuple(effects)


def answered(state: Timers, message: Outcome, now: Now) -> Turn:
    """An answer: to a look further ahead, or about a timer that was to be fired."""
    if message.correlation == state.looking:
        return _found(state, message, now)
    firing = dict(state.firing)
    deadline = firing.pop(message.correlation, None)
    if deadline is None:
        return state, ()
    state = replace(state, firing=firing)
    match message.result:
        case Done() | Refused():
            return act(state, now)  # fired; or answered, cancelled or ended before
        case Withheld() if deadline in state.asked:
            return _retry(replace(state, withheld=(*state.withheld, deadline)), now)
        case Withheld():
            return act(state, now)  # closed meanwhile
        case _:
            assert_never(message.result)


def woken(state: Timers, token: int) -> Timers:
    """A wake-up has come, perhaps one that nobody waits for any more."""
    if token == state.retry:
        return replace(
            state,
            retry=None,
            withheld=(),
            asked=state.asked.difference(state.withheld),
            ahead=_with(state.ahead, state.withheld),
        )
    if state.alarm is not None and token == state.alarm.token:
        return replace(state, alarm=None)
    return state


def _fire(correlation: int, deadline: Deadline) -> Ask:
    fired = ev.TimerFired(call=deadline.call, timer=deadline.timer)
    return Ask(correlation, Append(by=Supervisor(), run=deadline.run, events=(fired,)), Stage.COMMITTED)


def _found(state: Timers, message: Outcome, now: Now) -> Turn:
    """What lies behind the edge has come."""
    state = replace(state, looking=None)
    match message.result:
        case Done(value=Deadlines(found, more)):
            runs = dict(state.runs)
            for deadline in found:
                runs[deadline.run] = runs.get(deadline.run, _NONE) | {deadline}
            edge = found[-1] if more else None
            return act(replace(state, edge=edge, runs=runs, ahead=_with(state.ahead, found)), now)
        case Done() | Refused() | Withheld():
            return _retry(state, now)
        case _:
            assert_never(message.result)


def _retry(state: Timers, now: Now) -> Turn:
    """See to it that there is a wake-up that tries again."""
    if state.retry is not None:
        return act(state, now)
    token = state.counter + 1
    wake = WakeAt(Woken(token), mono=now.mono + state.limits.backoff_first)
    following, effects = act(replace(state, retry=token, counter=token), now)
    return following, (wake, *effects)


def _cut(state: Timers) -> Timers:
    """Forget the latest of what lies ahead, where that is too much; it will be asked for again."""
    most = state.limits.deadlines
    if len(state.ahead) <= 2 * most or state.looking is not None:
        return state
    edge = state.ahead[most - 1]
    runs = {
        run: kept
        for run, found in state.runs.items()
        if (kept := frozenset(each for each in found if each <= edge or each in state.asked))
    }
    return replace(state, edge=edge, ahead=state.ahead[:most], runs=runs)


def _with(ahead: tuple[Deadline, ...], more: Iterable[Deadline]) -> tuple[Deadline, ...]:
    found = list(ahead)
    for deadline in more:
        insort(found, deadline)
    return tuple(found) if len(found) > len(ahead) else ahead


def _without(ahead: tuple[Deadline, ...], fewer: Iterable[Deadline]) -> tuple[Deadline, ...]:
    for deadline in fewer:
        at = bisect_left(ahead, deadline)
        assert ahead[at : at + 1] == (deadline,), "an open deadline lies ahead until it is asked for"
        ahead = ahead[:at] + ahead[at + 1 :]
    return ahead


def _fire_at(deadline: Deadline) -> int:
    return deadline.fire_at
