"""When a timer is due: the decision of the SchedulerActor.

Deadlines are absolute wall times as they stand in the log: a restart doesn't move them, a clock that jumps is simply
believed. What is due is asked to be written, in the order of deadline, run and call; each timer is asked for once, and
the log decides who was first (a mail, a cancellation): a refusal is an answer like any other.

Only the soonest deadlines are here, up to an ``edge``; what lies behind it is asked for when all before it is due. So
memory doesn't grow with the runs that wait.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, assert_never

from actors.effects import Ask
from actors.errors import OutOfTurn
from actors.messages import SchedulerMessage, WakeAt, Woken
from substrate.messages import (
    Append,
    Appended,
    Committed,
    Deadlines,
    Done,
    Durable,
    Outcome,
    ReadDeadlines,
    Refused,
    Snapshot,
    Stage,
    Supervisor,
    Withheld,
)
from waypost.acting import Next
from waypost.model import events as ev
from waypost.model.deadlines import Deadline, deadlines
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


@dataclass(frozen=True, slots=True)
class Alarm:
    """The wake-up that is under way."""

    token: int
    wall: int


@dataclass(frozen=True, slots=True)
class Unopened:
    """The repository's present isn't known yet."""

    limits: Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """What lies ahead, and what was asked for."""

    limits: Limits
    edge: Deadline | None
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
    """Couldn't be written; the wake-up with token ``retry`` tries again."""
    retry: int | None = None
    alarm: Alarm | None = None
    counter: int = 0


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
            return _act(Watching(limits=state.limits, edge=_BEGINNING), now)
        case Committed() | Durable() | Outcome() | Woken():
            raise OutOfTurn("scheduler", "unopened", type(message).__name__)
        case _:
            assert_never(message)


def _watching(state: Watching, message: SchedulerMessage, now: Now) -> Next[State]:
    match message:
        case Committed():
            for fact in message.facts:
                if isinstance(fact, Appended) and any(isinstance(each.event, _TURNS) for each in fact.events):
                    state = _learn(state, fact)
            return _act(state, now)
        case Outcome():
            return _answered(state, message, now)
        case Woken(token):
            return _act(_woken(state, token), now)
        case Durable():
            return _act(state, now)
        case Snapshot():
            raise OutOfTurn("scheduler", "watching", "Snapshot")
        case _:
            assert_never(message)


def _learn(state: Watching, fact: Appended) -> Watching:
    """The run's deadlines are now these."""
    before, after = state.runs.get(fact.run, frozenset()), _within(state.edge, deadlines(fact.state))
    if before == after:
        return state
    closed = before - after
    runs = {run: found for run, found in state.runs.items() if run != fact.run}
    return replace(
        state,
        runs={**runs, fact.run: after} if after else runs,
        ahead=_with(_without(state.ahead, closed - state.asked), after - before),
        asked=state.asked - closed,
        withheld=tuple(deadline for deadline in state.withheld if deadline not in closed),
    )


def _within(edge: Deadline | None, found: frozenset[Deadline]) -> frozenset[Deadline]:
    return found if edge is None else frozenset(each for each in found if each <= edge)


def _cut(state: Watching) -> Watching:
    """Forget the latest of what lies ahead, where that is too much; it will be asked for again."""
    most = state.limits.deadlines
    if len(state.ahead) <= 2 * most or state.looking is not None:
        return state
    edge = state.ahead[most - 1]
    runs = {run: kept for run, found in state.runs.items() if (kept := _within(edge, found) | (found & state.asked))}
    return replace(state, edge=edge, ahead=state.ahead[:most], runs=runs)


def _found(state: Watching, message: Outcome, now: Now) -> Next[State]:
    """What lies behind the edge has come."""
    state = replace(state, looking=None)
    match message.result:
        case Done(value=Deadlines(found, more)):
            runs = dict(state.runs)
            for deadline in found:
                runs[deadline.run] = runs.get(deadline.run, frozenset()) | {deadline}
            edge = found[-1] if more else None
            return _act(replace(state, edge=edge, runs=runs, ahead=_with(state.ahead, found)), now)
        case Done() | Refused() | Withheld():
            return _retry(state, now)
        case _:
            assert_never(message.result)


def _act(state: Watching, now: Now) -> Next[State]:
    """Ask for what is due, and see to it that there is a wake-up for what comes next."""
    state = _cut(state)
    effects: list[Any] = []
    count = 0
    counter = state.counter
    firing = dict(state.firing)
    for deadline in state.ahead:
        if deadline.fire_at > now.wall:
            break
        counter, count = counter + 1, count + 1
        firing[counter] = deadline
        fired = ev.TimerFired(call=deadline.call, timer=deadline.timer)
        effects.append(Ask(counter, Append(by=Supervisor(), run=deadline.run, events=(fired,)), Stage.COMMITTED))
    ahead, due = state.ahead[count:], state.ahead[:count]
    alarm = state.alarm
    if ahead and (alarm is None or ahead[0].fire_at < alarm.wall):
        counter += 1
        alarm = Alarm(counter, ahead[0].fire_at)
        effects.append(WakeAt(Woken(counter), wall=alarm.wall))
    looking = state.looking
    if not ahead and state.edge is not None and looking is None and state.retry is None:
        counter += 1
        looking = counter
        after = None if state.edge == _BEGINNING else state.edge
        effects.append(Ask(counter, ReadDeadlines(after=after, limit=state.limits.deadlines), Stage.COMMITTED))
    following = replace(
        state,
        ahead=ahead,
        looking=looking,
        asked=state.asked.union(due),
        firing=firing,
        alarm=alarm,
        counter=counter,
    )
    return Next(following, tuple(effects))


def _answered(state: Watching, message: Outcome, now: Now) -> Next[State]:
    if message.correlation == state.looking:
        return _found(state, message, now)
    deadline = state.firing.get(message.correlation)
    if deadline is None:
        return Next(state)
    firing = {token: each for token, each in state.firing.items() if token != message.correlation}
    state = replace(state, firing=firing)
    match message.result:
        case Done() | Refused():
            return _act(state, now)  # fired; or answered, cancelled or ended before
        case Withheld():
            return _later(state, deadline, now)
        case _:
            assert_never(message.result)


def _later(state: Watching, deadline: Deadline, now: Now) -> Next[State]:
    if deadline not in state.asked:
        return _act(state, now)  # closed meanwhile
    return _retry(replace(state, withheld=(*state.withheld, deadline)), now)


def _retry(state: Watching, now: Now) -> Next[State]:
    """See to it that there is a wake-up that tries again."""
    if state.retry is not None:
        return _act(state, now)
    token = state.counter + 1
    wake = WakeAt(Woken(token), mono=now.mono + state.limits.backoff_first)
    following = _act(replace(state, retry=token, counter=token), now)
    return Next(following.state, (wake, *following.effects))


def _woken(state: Watching, token: int) -> Watching:
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


def _with(ahead: tuple[Deadline, ...], more: Iterable[Deadline]) -> tuple[Deadline, ...]:
    return tuple(sorted((*ahead, *more))) if more else ahead


def _without(ahead: tuple[Deadline, ...], fewer: Iterable[Deadline]) -> tuple[Deadline, ...]:
    for deadline in fewer:
        at = bisect_left(ahead, deadline)
        assert ahead[at : at + 1] == (deadline,), "an open deadline lies ahead until it is asked for"
        ahead = ahead[:at] + ahead[at + 1 :]
    return ahead
